"""What may be bought, as columns: when each serves, what a unit of it costs within the plan, and what is held costs.

What an obligation costs beyond the horizon is charged for the part that the policy does not expect to be worth its
price, so that a three-year term is not free after the first year. Does not belong here: the problem around the columns
(``compile``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError
from models.prices import BY_THE_HOUR, HOURS_PER_MONTH, Instrument
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers

HOURS_PER_YEAR = 8_760
BLOCK_AHEAD_HOURS = 8 * 7 * 24
"""How long before its start a capacity block can be bought (EC2 user guide, Capacity Blocks)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Something that may be bought: one unit is one GPU, or of a commitment in money one unit of it an hour.

    Attributes:
      offer: What is bought.
      pools: Names of the pools it serves.
      start_hour: First hour of its term, counted from the plan's first hour.
      supply_hour: First hour in which it serves; later than ``start_hour`` by the lead time.
      end_hour: End of its term, exclusive; beyond the horizon where the obligation is longer.
      upfront: Money that one unit costs at its start, in units of the currency.
      recurring: Money that one unit costs in each hour of its term.
      in_budget: Whether it adds to a budget rather than to one pool's GPUs.
    """

    offer: Offer
    pools: tuple[str, ...]
    start_hour: int
    supply_hour: int
    end_hour: int
    upfront: float
    recurring: float
    in_budget: bool

    @property
    def committed(self) -> float:
        """Money that one unit commits within its whole term, undiscounted."""
        return self.upfront + self.recurring * (self.end_hour - self.supply_hour)


def in_units(micros: float) -> float:
    """Micros in units of the currency, as the solvers count."""
    return micros / MICROS_PER_UNIT


def columns_of(
    offers: Sequence[Offer], names: Sequence[str], hours: int, policy: PlanPolicy
) -> tuple[list[Column], list[str]]:
    """All that may be bought within the horizon, and what was left out, in words.

    Args:
      offers: What is on offer; what binds nobody is no column.
      names: Pools (P).
      hours: Length of the horizon.
      policy: In which months a purchase may start.

    Raises:
      UsageError: An offer that binds has no term.
    """
    columns, notes = [], []
    for offer in offers:
        reached = tuple(name for name in names if name in offer.micros_per_gpu_hour)
        if offer.instrument in BY_THE_HOUR or not reached:
            continue
        in_budget = offer.instrument is Instrument.SAVINGS_PLAN or len(reached) > 1
        term = _term_hours(offer)
        upfront, recurring = _payments(offer, reached, term)
        for start in (month * HOURS_PER_MONTH for month in policy.start_months):
            supply = start + -(-offer.lead_seconds // SECONDS_PER_HOUR)
            if supply >= hours:
                notes.append(f"{offer.offer_id}: starting in hour {start:,} it would serve only after the horizon")
                continue
            if offer.instrument is Instrument.CAPACITY_BLOCK and start > BLOCK_AHEAD_HOURS:
                notes.append(
                    f"{offer.offer_id}: not offered from hour {start:,} on: a capacity block starts within 8 weeks"
                )
                break
            columns.append(
                Column(
                    offer=offer,
                    pools=reached,
                    start_hour=start,
                    supply_hour=supply,
                    end_hour=supply + term,
                    upfront=upfront,
                    recurring=recurring,
                    in_budget=in_budget,
                )
            )
    return columns, notes


def _term_hours(offer: Offer) -> int:
    if offer.instrument is Instrument.OWNED:
        return offer.life_months * HOURS_PER_MONTH
    if offer.term_seconds is None:
        raise UsageError(
            f"{offer.offer_id}: a {offer.instrument} needs a term, found none: add term_seconds to its price"
        )
    return offer.term_seconds // SECONDS_PER_HOUR


def upfront_share(offer: Offer) -> float:
    """Part of a savings plan's commitment that is paid at its start: its rates and its hourly money include it.

    Partial upfront is half (AWS, Savings Plans user guide: at least half).
    """
    return {"all_upfront": 1.0, "partial_upfront": 0.5}.get(offer.payment_option, 0.0)


def _payments(offer: Offer, reached: Sequence[str], term: int) -> tuple[float, float]:
    """Money that one unit costs at its start, and in each hour; a unit of a commitment in money is one unit of it an hour."""
    if offer.instrument is Instrument.SAVINGS_PLAN:
        share = upfront_share(offer)
        return share * term, 1 - share
    running = max(offer.micros_per_gpu_hour[name] for name in reached)
    return in_units(offer.upfront_micros_per_gpu), in_units(running)


def commitment_hours(held: Commitment, scenarios: Scenarios) -> tuple[int, int]:
    """First hour and end of a commitment's term, counted from the plan's first hour; the first may be negative."""
    start, end = (int((instant - scenarios.start_at).total_seconds()) for instant in (held.starts_at, held.ends_at))
    return start // SECONDS_PER_HOUR, -(-end // SECONDS_PER_HOUR)


def discount(policy: PlanPolicy, hours: Integers | int) -> Floats:
    """Value now of one unit of money in each hour: (1 + rate) ** (-hour / 8760)."""
    return np.asarray((1 + policy.discount_ratio) ** (-np.asarray(hours, dtype=np.float64) / HOURS_PER_YEAR))


def supply_of(columns: Sequence[Column], periods: Integers) -> Floats:
    """What one unit of each column adds in each period (J, M)."""
    starts = [start for start, _ in pairwise(periods.tolist())]
    rows = [[float(one.supply_hour <= start < one.end_hour) for start in starts] for one in columns]
    return np.array(rows, dtype=np.float64)


def step_of(column: Column, known: dict[str, Pool], policy: PlanPolicy) -> float:
    """GPUs that are bought together; 0 where any amount can be bought."""
    if not policy.whole_nodes or column.offer.instrument is Instrument.SAVINGS_PLAN:
        return 0.0
    return float(max([column.offer.node_gpus, *(known[name].node_gpus for name in column.pools)]))


def cost_of(column: Column, hours: int, policy: PlanPolicy) -> float:
    """Discounted cost of one unit: what falls into the horizon, and the part of the rest that is not expected to be used.

    What is paid upfront is an annuity over the term, so that two ways to pay that are worth the same now cost the same
    within any horizon.
    """
    end = min(column.end_hour, hours)

    def present(first: int, last: int) -> float:
        return float(discount(policy, np.arange(first, last)).sum())

    within, beyond = present(column.supply_hour, end), present(end, column.end_hour)
    if column.offer.instrument is Instrument.OWNED:
        return _owned_cost(column, end, within, policy)
    upfront = column.upfront * float(discount(policy, column.start_hour)) / (within + beyond)
    return (upfront + column.recurring) * (within + (1 - policy.later_use_ratio) * beyond)


def _owned_cost(column: Column, end: int, present_hours: float, policy: PlanPolicy) -> float:
    """Purchase, power and fees until ``end``, less what it is worth then: book value (straight line) and residual value.

    Args:
      column: What is bought.
      end: Hour in which the horizon or its life ends.
      present_hours: The hours in which it serves until then, discounted.
      policy: Discount, energy, and the part of the book value that counts.
    """
    offer = column.offer
    residual = in_units(offer.residual_micros_per_gpu)
    left_ratio = (column.end_hour - end) / (column.end_hour - column.supply_hour)
    worth = residual + policy.later_use_ratio * (column.upfront - residual) * left_ratio
    watts = offer.power_watts_per_gpu * policy.power_usage_effectiveness
    running = column.recurring + in_units(
        offer.monthly_fee_micros_per_gpu / HOURS_PER_MONTH + watts / 1_000 * policy.energy_micros_per_kwh
    )
    bought, kept = (float(discount(policy, hour)) for hour in (column.start_hour, end))
    return column.upfront * bought - worth * kept + running * present_hours


def fixed_cost(held: Commitment, scenarios: Scenarios, hours: int, policy: PlanPolicy) -> float:
    """Discounted cost of a commitment within the horizon; what was paid before it is spent whatever the plan."""
    start, end = commitment_hours(held, scenarios)
    first, last = min(max(start, 0), hours), min(max(end, 0), hours)
    if last <= first:
        return 0.0
    upfront = in_units(held.upfront_micros) * float(discount(policy, start)) if held.is_queued and start >= 0 else 0.0
    return recurring_cost(held) * float(discount(policy, np.arange(first, last)).sum()) + upfront


def recurring_cost(held: Commitment) -> float:
    """Money an hour that is due of a commitment through its term: of one in money what was not paid at its start."""
    if held.hourly_commitment_micros is None:
        return in_units((held.gpus or 0) * max(held.rate_micros_per_gpu_hour.values(), default=0))
    hours = (held.ends_at - held.starts_at).total_seconds() / SECONDS_PER_HOUR
    return in_units(max(0.0, held.hourly_commitment_micros - held.upfront_micros / hours))
