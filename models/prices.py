"""The price book as the optimizer reads it: pools of GPUs, what can be bought for them, and what was bought already.

An instrument that does not exist for a pool has no rate there: nothing is defaulted. All money is in micros of the
ledger's reporting currency, per GPU, so that instances of different sizes compare. Does not belong here: where prices
come from (``pipelines/sources``), and choosing among them (``models/procurement``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

YEAR_SECONDS = 31_536_000
"""One year of a commitment: 365 days, as AWS states the term of a one-year reservation."""

HOURS_PER_MONTH = 730
"""Hours of a month in a price that is quoted by the month: 8,760 / 12."""


class Instrument(StrEnum):
    """Ways to pay for a GPU."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
    SAVINGS_PLAN = "savings_plan"
    COMMITTED_USE = "committed_use"
    CAPACITY_BLOCK = "capacity_block"
    CONTRACT = "contract"
    OWNED = "owned"


BY_THE_HOUR = (Instrument.ON_DEMAND, Instrument.SPOT)
"""Instruments that bind nobody."""


class Scope(StrEnum):
    """How far a commitment reaches."""

    ZONE = "zone"
    REGION = "region"
    FAMILY = "family"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """GPUs that can stand in for each other: demand is counted in them, and offers are matched to them.

    Attributes:
      name: Name in the demand, in plans and on pages.
      gpu_model: Canonical GPU model.
      provider: Whose GPUs they are (aws, gcp, a neocloud).
      region: Region; empty where there is only one.
      zone: Availability zone that the demand is bound to; empty where it may run in any zone of the region.
      node_gpus: GPUs of one node, in which capacity is bought.
      other_providers: Whose contracts and machines may serve the same demand, wherever they stand.
    """

    name: str
    gpu_model: str
    provider: str
    region: str
    zone: str = ""
    node_gpus: int = 8
    other_providers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something that can be bought, priced for the pools it reaches.

    Attributes:
      offer_id: Stable name, as in the price book.
      instrument: How it is paid for.
      provider: Who sells it.
      scope: How far it reaches.
      has_capacity: Whether it holds capacity ready; a savings plan, a CUD and a regional reservation do not.
      micros_per_gpu_hour: Recurring price by the name of each pool that it reaches. Of a commitment it is due every
        hour of the term; of a savings plan it is the plan's rate, at which usage counts against the commitment.
      upfront_micros_per_gpu: Paid at the start for the whole term; an owned GPU's purchase.
      node_gpus: GPUs that are bought together; 1 where any number can be bought.
      term_seconds: Length of the obligation; None for on-demand and spot.
      payment_option: no_upfront, partial_upfront or all_upfront; empty where there is no choice.
      lead_seconds: From the order to the first hour of use.
      life_months: Months over which an owned GPU loses its value; 0 for all else.
      residual_micros_per_gpu: Value of an owned GPU at the end of its life.
      power_watts_per_gpu: Power that an owned GPU draws at the wall.
      monthly_fee_micros_per_gpu: Colocation, support and staff of an owned GPU.
      reference_gpus: Reference GPUs that one of these is worth.
      observed_at: When the price was seen.
      price_source: Where it was seen.
    """

    offer_id: str
    instrument: Instrument
    provider: str
    scope: Scope
    has_capacity: bool
    micros_per_gpu_hour: Mapping[str, int]
    observed_at: datetime
    price_source: str
    upfront_micros_per_gpu: int = 0
    node_gpus: int = 1
    term_seconds: int | None = None
    payment_option: str = ""
    lead_seconds: int = 0
    life_months: int = 0
    residual_micros_per_gpu: int = 0
    power_watts_per_gpu: float = 0.0
    monthly_fee_micros_per_gpu: int = 0
    reference_gpus: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Something that is bought already, or queued to start.

    Attributes:
      commitment_id: Name at its seller.
      instrument: How it is paid for.
      provider: Who sold it.
      scope: How far it reaches.
      has_capacity: Whether it holds capacity ready.
      pools: Names of the pools it reaches.
      starts_at: First instant of its term.
      ends_at: End of its term, exclusive.
      gpus: GPUs that it covers; None for a commitment in money.
      hourly_commitment_micros: Money committed for each hour, of a savings plan; None for a commitment in GPUs.
      rate_micros_per_gpu_hour: A savings plan's rate by pool; of a commitment in GPUs, what each recurs to.
      upfront_micros: Paid at its start for the whole term.
      is_queued: Bought, but not started when the plan is made.
    """

    commitment_id: str
    instrument: Instrument
    provider: str
    scope: Scope
    has_capacity: bool
    pools: tuple[str, ...]
    starts_at: datetime
    ends_at: datetime
    rate_micros_per_gpu_hour: Mapping[str, int]
    gpus: int | None = None
    hourly_commitment_micros: int | None = None
    upfront_micros: int = 0
    is_queued: bool = False
