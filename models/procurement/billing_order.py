"""The order in which vendors apply commitments to an hour's usage, as they document it. Nothing here is a choice of ours.

The order is a sorted list of pairs (commitment, usage): each pair takes what it can, and the next gets what is left. What
a vendor does not document (which of two equal reservations is used first) is decided by name, so that it never depends on
the order of rows.

Sources: AWS Savings Plans user guide, "Understanding how Savings Plans apply to your AWS usage" (sp-applying.html); AWS
EC2 user guide, "How Reserved Instances are applied" (apply_ri.html) and "Capacity Reservation pricing and billing"; Azure,
"How saving plan discount is applied" (discount-application.md) and "Instance size flexibility"; Google Cloud, "Committed
use discounts" and "Combine reservations with committed use discounts".

Does not belong here: amounts and quantities (``billing``, ``bill``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from models.errors import UsageError
from models.prices import YEAR_SECONDS, Instrument, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

OUTSIDE_DISCOUNTS = (Instrument.OWNED, Instrument.CONTRACT, Instrument.CAPACITY_BLOCK)
"""Capacity that serves its own usage before any discount is looked at; an AWS Capacity Block takes neither RI nor SP."""

NOT_FLEXIBLE = ("g4ad", "g4dn", "g5", "g5g")
"""EC2 families whose regional Reserved Instances match their own size only."""

_QUARTERS_OF_NAMED_SIZE = {"nano": 1, "micro": 2, "small": 4, "medium": 8, "large": 16, "xlarge": 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of a reservation one instance uses up.

    Attributes:
      family: Sizes of one family share a reservation: EC2 family, Azure instance size flexibility group.
      points: Size in whole points; only the ratio within the family matters.
      is_flexible: Whether reservations of the family reach its other sizes.
    """

    family: str
    points: int
    is_flexible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kind:
    """A kind of usage: what the vendor tells apart when it applies commitments.

    Attributes:
      account: Account, project or subscription that runs it.
      resource: What runs, under the name that rates and sizes are given for: an instance type, or a pool of GPUs.
        Types of one name that have prices of their own (platform, tenancy) need names of their own.
      region: Region.
      zone: Availability zone.
      is_idle: Capacity that is reserved on demand and not used: billed as if it ran.
    """

    account: str = ""
    resource: str
    region: str = ""
    zone: str = ""
    is_idle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledCommitment:
    """A commitment with what its vendor's order looks at. It counts in the hours that begin within its term.

    Either in units (``units_millionths``) or in money (``hourly_commitment_micros``).

    Attributes:
      commitment_id: Name at its seller; unique.
      provider: Whose rules apply: aws, gcp, azure; all others are billed in the AWS order.
      instrument: How it is paid for.
      scope: ZONE matches its own zone; a savings plan of scope FAMILY goes before all other plans.
      account: Account that owns it.
      is_shared: Whether it reaches the organisation's other accounts.
      region: Region that it is bound to; empty where it reaches all.
      zone: Zone that it is bound to; empty where it reaches all.
      starts_at: First instant of its term, UTC.
      ends_at: End of its term, exclusive.
      rates: What it reaches. In money: its rate, micros for one unit-hour of each resource. In units: how many points
        one unit of the resource uses up.
      unit_points: Points that one of its own units holds, where it is in units.
      units_millionths: Millionths of units that it covers each hour; None for a commitment in money.
      micros_per_unit_hour: What one unit recurs to in each hour, used or not.
      hourly_commitment_micros: Money committed for each hour, whatever of it was paid upfront; None for one in units.
      upfront_micros: Paid at its start for the whole term. In units it comes on top of what recurs; in money it is the
        part of the commitment that was paid in advance.

    Raises:
      UsageError: It is neither or both in units and in money, its term is empty, or an amount is negative.
    """

    commitment_id: str
    provider: str
    instrument: Instrument
    scope: Scope
    starts_at: datetime
    ends_at: datetime
    rates: Mapping[str, int]
    account: str = ""
    is_shared: bool = True
    region: str = ""
    zone: str = ""
    unit_points: int = 1
    units_millionths: int | None = None
    micros_per_unit_hour: int = 0
    hourly_commitment_micros: int | None = None
    upfront_micros: int = 0

    def __post_init__(self) -> None:
        """Refuse a commitment that cannot be priced."""
        if (self.units_millionths is None) == (self.hourly_commitment_micros is None):
            raise UsageError(f"{self.commitment_id}: expected either units or money each hour, found both or neither")
        if self.ends_at <= self.starts_at:
            raise UsageError(
                f"{self.commitment_id}: the term ends at {self.ends_at}, expected after its start {self.starts_at}"
            )
        amounts = (self.units_millionths or 0, self.hourly_commitment_micros or 0, self.micros_per_unit_hour)
        least = min(*amounts, self.upfront_micros, *self.rates.values(), 0)
        if least < 0 or self.unit_points <= 0:
            raise UsageError(f"{self.commitment_id}: found an amount of {least}, expected none below 0")

    @property
    def is_money(self) -> bool:
        """Whether it commits to money rather than to units."""
        return self.hourly_commitment_micros is not None

    def reaches(self, kind: Kind) -> bool:
        """Whether the vendor may apply it to this usage at all."""
        return (
            kind.resource in self.rates
            and (self.is_shared or self.account == kind.account)
            and self.region in {"", kind.region}
            and self.zone in {"", kind.zone}
            and not (kind.is_idle and (self.scope is Scope.ZONE or self.instrument in OUTSIDE_DISCOUNTS))
        )


def aws_size(instance_type: str, *, platform: str = "Linux/UNIX", tenancy: str = "default") -> Size:
    """Size of an EC2 instance: its normalisation factor in quarters (nano 0.25 is 1 point, xlarge 8 is 32).

    Reservations are flexible in size for Linux/UNIX with default tenancy only, and not for G4ad, G4dn, G5 and G5g
    (EC2 user guide, apply_ri.html). Bare metal has no factor of its own: name its virtual equivalent.

    Raises:
      UsageError: The size is not one that has a factor.

    >>> aws_size("m4.2xlarge").points
    64
    >>> aws_size("g5.xlarge").is_flexible
    False
    """
    family, _, size = instance_type.partition(".")
    many = size.removesuffix("xlarge")
    points = 32 * int(many) if many != size and many.isdigit() else _QUARTERS_OF_NAMED_SIZE.get(size)
    if points is None:
        raise UsageError(
            f"{instance_type}: found the size {size or 'none'}, expected nano to xlarge or a number of xlarge; "
            "for bare metal name the virtual size of the same family"
        )
    is_flexible = platform == "Linux/UNIX" and tenancy == "default" and family not in NOT_FLEXIBLE
    return Size(family=family, points=points, is_flexible=is_flexible)


def sizes_reached(resource: str, sizes: Mapping[str, Size], scope: Scope) -> dict[str, int]:
    """Points of each resource that a reservation of ``resource`` reaches: the ``rates`` of a commitment in units.

    Args:
      resource: What was reserved.
      sizes: Size by resource.
      scope: A zonal reservation reaches its own size only.
    """
    own = sizes[resource]
    if scope is Scope.ZONE or not own.is_flexible:
        return {resource: own.points}
    return {name: one.points for name, one in sizes.items() if one.is_flexible and one.family == own.family}


@dataclass(frozen=True, slots=True)
class Pair:
    """One step of the order: a commitment, a kind of usage (as places in their lists), and the rate between them."""

    commitment: int
    kind: int
    rate: int


def application_order(
    commitments: Sequence[BilledCommitment], kinds: Sequence[Kind], on_demand_micros: Sequence[int | None]
) -> list[Pair]:
    """The pairs (commitment, usage) in the order in which vendors apply them at these on-demand prices.

    Capacity outside the discounts comes first (owned, contract, Capacity Block), then:

    - aws: zonal reservations, regional ones, savings plans bound to a family (EC2 Instance), all other plans (Compute).
      Within each the owner's account goes first; reservations go from the smallest size to the largest, plans from the
      highest saving in per cent down, ties from the lowest rate up, all plans of a type together.
    - gcp: resource-based commitments, then spend-based ones, highest saving first (Google publishes no finer order).
      Spot usage is never covered: it does not belong in the usage.
    - azure: reservations, then savings plans; a narrower scope (one subscription) before a shared one, a three-year plan
      before a shorter one, then the greatest saving, ties the lowest price. Where the price on demand is below the
      plan's rate, it is the rate.

    Args:
      commitments: What may be applied.
      kinds: Kinds of usage (U).
      on_demand_micros: Micros on demand for one unit-hour of each kind (U); None where there is no such price, whose
        saving is unknown and ranks last.
    """
    ranked = []
    for place, held in enumerate(commitments):
        for other, kind in enumerate(kinds):
            if held.reaches(kind):
                price = on_demand_micros[other]
                rate = held.rates[kind.resource]
                if held.provider == "azure" and held.is_money and price is not None:
                    rate = min(rate, price)
                rank = (_stage(held), _within(held, kind, rate, price), kind, held.commitment_id)
                ranked.append((rank, Pair(place, other, rate)))
    return [pair for _, pair in sorted(ranked, key=lambda one: one[0])]


def _stage(held: BilledCommitment) -> int:
    if held.instrument in OUTSIDE_DISCOUNTS:
        return 0
    if held.is_money:
        return 3 if held.scope is Scope.FAMILY else 4
    return 1 if held.scope is Scope.ZONE else 2


def _within(held: BilledCommitment, kind: Kind, rate: int, price: int | None) -> tuple[int | Fraction, ...]:
    """Rank within a stage: running before idle, the vendor's own rule, then size or saving."""
    is_others = int(held.account != kind.account)
    first: tuple[int, ...] = (int(kind.is_idle), is_others)
    if held.provider == "azure":
        term_years = (held.ends_at - held.starts_at).total_seconds() // YEAR_SECONDS
        first = (int(kind.is_idle), int(held.is_shared), -int(term_years) if held.is_money else 0)
    if not held.is_money:
        return (*first, rate)
    if not price:
        return (*first, 1, 0, rate)
    return (*first, 0, Fraction(rate - price, price), rate)
