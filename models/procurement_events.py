"""Event types of procurement: prices, commitments, interruptions, checkpoints, and the plans recommended from them.

Belongs here: what is said of buying GPU capacity. ``models/events.py`` lists these with all other event types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.event_base import Event
from models.event_base import col as _col
from models.event_base import key as _key

# Needed at run time: columns are read from these annotations.
from models.units import (  # noqa: TC001
    Amount,
    Count,
    Flag,
    Instant,
    Mebibytes,
    Micros,
    Ordinal,
    Quantity,
    Ratio,
    Seconds,
    Seed,
    Text,
    Watts,
)

PAYMENT_OPTIONS = ("no_upfront", "partial_upfront", "all_upfront")
"""How a commitment is paid for: nothing, a part, or all of it at the start."""

COMMITMENT_STATES = ("active", "queued", "cancelled")
"""What became of a commitment that was bought."""

INTERRUPTION_CAUSES = ("preempted", "node_fail", "spot_reclaimed", "other")
"""Why a run was interrupted."""


@dataclass(frozen=True, kw_only=True)
class PriceObserved(Event):
    """A price that was offered. An instrument that does not exist has no row: it is absent, never defaulted.

    Amounts are per GPU. A savings plan has a row for each GPU model and region that it covers, under one offer.
    """

    touches: ClassVar[tuple[str, str | None] | None] = None  # prices are no cost: what was used is in the bill

    offer_id: Text = _key("stable name of the offer, such as aws/us-east-1/p5.48xlarge/on_demand")
    gpu_model: Text = _key("canonical GPU model")
    region: Text = _key("region as the provider names it; empty: any")
    zone: Text = _key("availability zone; empty: any")
    observed_at: Instant = _key("when the price was read, or has been in force from")
    instrument: Text = _col("on_demand, reserved, savings_plan, committed_use, capacity_block, spot, contract or owned")
    provider: Text = _col("who sells it: aws, gcp, azure, a neocloud, a manufacturer")
    instance_type: Text | None = _col("instance or machine type; NULL where the price is of a bare GPU or any type")
    operating_system: Text | None = _col("operating system that the price includes")
    gpu_count: Count = _col("GPUs of one instance or node: what is bought at least")
    scope: Text = _col("where it holds: zone, region, family or global")
    has_capacity: Flag = _col(
        "whether it reserves capacity (zonal reservation, capacity block, owned, contract), not only a price"
    )
    term_seconds: Seconds | None = _col("length of the commitment: 31,536,000 (1 year), 94,608,000 (3 years), a block")
    payment_option: Text | None = _col("no_upfront, partial_upfront or all_upfront")
    upfront_amount: Amount | None = _col("paid at the start, per GPU and for the whole term; owned: purchase per GPU")
    hourly_amount: Amount | None = _col(
        "recurring per GPU-hour; of a savings plan, its rate per GPU-hour of this model"
    )
    residual_amount: Amount | None = _col("owned: value per GPU at the end of its life")
    life_months_count: Count | None = _col("owned: months of use")
    power_watts: Watts | None = _col("owned: power per GPU, at the wall, its share of the node included")
    monthly_fee_amount: Amount | None = _col("owned: colocation, support and other fees, per GPU and month")
    lead_seconds: Seconds | None = _col("from order to use")
    reference_gpu_quantity: Quantity | None = _col("reference GPUs that one of these is worth: relative performance")
    currency: Text = _col("ISO 4217 code of the amounts")
    valid_from_at: Instant | None = _col("offered from, as the seller states")
    valid_until_at: Instant | None = _col("offered until (exclusive), as the seller states; NULL: until the next price")
    price_source: Text = _col("where the price was read: a file, an API, the bill, a quote")


@dataclass(frozen=True, kw_only=True)
class CommitmentRecorded(Event):
    """A commitment that was bought or is queued: so many GPUs, or so much money an hour, for a stretch of time."""

    touches: ClassVar[tuple[str, str | None] | None] = None

    commitment_id: Text = _key("the provider's id of the reservation, plan, block or contract")
    instrument: Text = _col("as in price_observed")
    provider: Text = _col("who sold it")
    offer_id: Text | None = _col("offer it was bought from, as in price_observed")
    region: Text | None = _col("region; NULL: any")
    zone: Text | None = _col("availability zone; NULL: any")
    gpu_model: Text | None = _col("canonical GPU model; NULL: money an hour over several models")
    instance_type: Text | None = _col("instance or machine type it is for; NULL: any")
    scope: Text = _col("where it applies: zone, region, family or global")
    has_capacity: Flag = _col("whether it reserves capacity, not only a price")
    starts_at: Instant = _col("in force from")
    ends_at: Instant = _col("in force until (exclusive)")
    gpu_count: Count | None = _col("GPUs committed to; NULL of a commitment in money")
    hourly_commitment_amount: Amount | None = _col("money an hour committed to; NULL of a commitment to GPUs")
    hourly_amount: Amount | None = _col("recurring per GPU-hour")
    upfront_amount: Amount | None = _col("paid at the start, in total")
    payment_option: Text | None = _col("no_upfront, partial_upfront or all_upfront")
    currency: Text = _col("ISO 4217 code of the amounts")
    state: Text = _col("active, queued or cancelled")


@dataclass(frozen=True, kw_only=True)
class RunInterrupted(Event):
    """An attempt of a run was ended from outside: preempted, its node failed, or its spot instance was taken back."""

    partition_by: ClassVar[str | None] = "started_at"
    touches: ClassVar[tuple[str, str | None] | None] = ("started_at", "interrupted_at")

    cluster: Text = _key("cluster")
    run_id: Text = _key("run, as in run_recorded")
    started_at: Instant = _key("when the attempt started, as in run_recorded")
    interrupted_at: Instant = _col("when it was interrupted")
    cause: Text = _col("preempted, node_fail, spot_reclaimed or other")
    node: Text | None = _col("node at fault; NULL: unknown or all")
    gpu_count: Count | None = _col("GPUs that the attempt held")
    notice_seconds: Seconds | None = _col("warning before the interruption")


@dataclass(frozen=True, kw_only=True)
class CheckpointSaved(Event):
    """A run wrote a checkpoint that it can start again from."""

    partition_by: ClassVar[str | None] = "saved_at"
    touches: ClassVar[tuple[str, str | None] | None] = ("saved_at", "saved_at")

    cluster: Text = _key("cluster")
    run_id: Text = _key("run, as in run_recorded")
    saved_at: Instant = _key("when the checkpoint was complete")
    blocking_seconds: Seconds | None = _col("time the job stood still for it")
    size_mib: Mebibytes | None = _col("size")


@dataclass(frozen=True, kw_only=True)
class PlanRecommended(Event):
    """A plan of what to buy, computed from inputs that its digest names: the same inputs give the same plan."""

    plan_id: Text = _key("digest of the inputs")
    made_at: Instant = _col("when it was computed")
    inputs_digest: Text = _col("digest of demand, offers and portfolio")
    log_batch_id: Ordinal = _col("last batch that the inputs were read from")
    policy_digest: Text = _col("digest of the planning policy")
    horizon_start_at: Instant = _col("start of the time planned for")
    horizon_end_at: Instant = _col("end of the time planned for (exclusive)")
    seed: Seed = _col("seed of the demand scenarios")
    scenario_count: Count = _col("demand scenarios")
    expected_cost_micros: Micros = _col("expected discounted cost over the horizon: the sum of the plan's lines")
    cvar_cost_micros: Micros = _col("mean cost of the worst scenarios (conditional value at risk)")
    objective_cost_micros: Micros = _col(
        "what the plan makes least: the expected cost, or a mean of it and of its tail"
    )
    bound_cost_micros: Micros = _col("lower bound: no plan has a lower objective")
    repriced_cost_micros: Micros | None = _col("expected cost when billed by the vendors' own order of commitments")
    solved_by: Text = _col("method: order statistics, L-shaped or extensive")
    prices_from_at: Instant = _col("oldest price used")
    prices_until_at: Instant = _col("newest price used")


@dataclass(frozen=True, kw_only=True)
class PlanLineRecommended(Event):
    """One line of a plan: an offer to buy, what is held already, or what is used by the hour. Lines add up to its cost."""

    plan_id: Text = _key("as in plan_recommended")
    line: Ordinal = _key("position in the plan, counted from 1")
    line_kind: Text = _col("purchase, held, spot, on_demand or shortfall")
    offer_id: Text | None = _col("of a purchase, as in price_observed")
    pool: Text | None = _col("demand that it serves; several are parted by commas; NULL: all")
    starts_at: Instant = _col("from")
    ends_at: Instant = _col("until (exclusive)")
    gpu_count: Count | None = _col("GPUs; NULL of a commitment in money")
    hourly_commitment_micros: Micros | None = _col("money an hour committed to; NULL of GPUs")
    gpu_hours_quantity: Quantity | None = _col("expected GPU-hours that it serves; NULL of a purchase")
    cost_micros: Micros = _col("expected discounted cost of the line within the horizon")
    upfront_micros: Micros | None = _col("of a purchase: paid at its start")
    committed_micros: Micros | None = _col("of a purchase: all that it obliges to pay over its term, undiscounted")
    break_even_ratio: Ratio | None = _col("part of its time that must be used for it to pay")
    used_ratio: Ratio | None = _col("part of its time expected to be used")
    reason: Text = _col("why, in one sentence")


@dataclass(frozen=True, kw_only=True)
class PlanSavingEstimated(Event):
    """What a plan saves against one named baseline, with its spread over the demand scenarios."""

    plan_id: Text = _key("as in plan_recommended")
    baseline: Text = _key("what the plan is compared with, such as nothing_new")
    baseline_cost_micros: Micros | None = _col("expected cost of the baseline; NULL where it has no price")
    saving_micros: Micros | None = _col("expected saving; negative where the plan costs more")
    low_micros: Micros | None = _col("5th percentile of the saving over the scenarios")
    high_micros: Micros | None = _col("95th percentile of the saving over the scenarios")


@dataclass(frozen=True, kw_only=True)
class PlanNoted(Event):
    """What a reader of a plan must know: a warning, or an assumption with its value."""

    plan_id: Text = _key("as in plan_recommended")
    note: Ordinal = _key("position, counted from 1")
    note_kind: Text = _col("warning or assumption")
    setting: Text | None = _col("of an assumption: key in plan.yaml, where it has one")
    value: Text | None = _col("of an assumption: value of that key")
    text: Text = _col("in words")


@dataclass(frozen=True, kw_only=True)
class PlanStressEstimated(Event):
    """What a plan's purchases would cost in another world: other prices, less demand, no spot."""

    plan_id: Text = _key("as in plan_recommended")
    world: Text = _key("what happens, in words")
    cost_micros: Micros = _col("expected cost then, with the purchases")
    without_micros: Micros = _col("expected cost then, had nothing been bought")
