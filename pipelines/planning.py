"""From the published file and ``plan.yaml`` to a plan, and from a plan to events: thin, all thinking is ``models``'.

A plan is made from what the file shows and nothing else, so the same file and settings give the same plan, and its id is
the digest of both. Does not belong here: printing, and what is recommended.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from models.demand import digest as demand_digest
from models.errors import UsageError
from models.events import PlanLineRecommended, PlanNoted, PlanRecommended, PlanSavingEstimated, polars_schema
from models.price_book import COMMITMENT_SCHEMA, PRICE_SCHEMA, book, portfolio
from models.prices import HOURS_PER_MONTH
from models.procurement.plan import Plan, plan
from models.procurement.policy import assumptions
from models.scenarios import Growth, Migration, Outlook, Ramp, draw_scenarios
from models.units import format_money, money
from pipelines.demand import coverage, read_demand
from pipelines.lake import Lake
from pipelines.publish import query
from pipelines.sources.base import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from pipelines.plan_settings import PlanSettings
    from pipelines.settings import Settings
    from pipelines.statement import Ask

SOURCE = "plan"
"""Source of the batches that hold plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All that a plan is made from.

    Attributes:
      at: First hour of the horizon; prices and commitments are those in force then.
      history: What was wanted until then: one scenario.
      scenarios: What may be wanted.
      pools: What is known of each pool.
      offers: What can be bought.
      portfolio: What is held or queued.
      policy: The organisation's policy.
      recent_gpus: Most GPUs that each pool wanted in the last days; empty: no cap.
      notes: What a reader must know of the inputs, in words.
      log_batch_id: Last batch that the published file shows.
      policy_digest: Digest of ``plan.yaml``.
    """

    at: datetime
    history: Scenarios
    scenarios: Scenarios
    pools: Sequence[Pool]
    offers: Sequence[Offer]
    portfolio: Sequence[Commitment]
    policy: PlanPolicy
    recent_gpus: Mapping[str, float]
    notes: tuple[str, ...]
    log_batch_id: int
    policy_digest: str

    def digest(self) -> str:
        """SHA-256 of everything but the batch: equal inputs, equal plan."""
        said = {
            "at": self.at.isoformat(),
            "demand": demand_digest(self.scenarios),
            "pools": [asdict(one) for one in self.pools],
            "offers": [_plain(one) for one in self.offers],
            "portfolio": [_plain(one) for one in self.portfolio],
            "recent_gpus": dict(self.recent_gpus),
            "policy": self.policy_digest,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _plain(one: Offer | Commitment) -> dict[str, Any]:
    return {name: dict(value) if hasattr(value, "items") else value for name, value in asdict(one).items()}


def read_inputs(ask: Ask, settings: PlanSettings, *, at: datetime | None = None) -> Inputs:
    """What the published file says that a plan needs.

    Args:
      ask: Asks the published file.
      settings: ``plan.yaml``.
      at: First hour of the horizon; None: the end of what the ledger knows.

    Raises:
      UsageError: The file knows no demand of the pools before ``at``, or no price for them; says what to bring.
    """
    known = ask("select known_from_at, known_until_at, batch_id from marts.ledger").row(0, named=True)
    if known["known_until_at"] is None:
        raise UsageError("the ledger knows no demand yet: ingest nodes and a scheduler's records, build and publish")
    start_at = _whole_hour(at or known["known_until_at"])
    origins, pools, demand = settings.origins(), settings.plan_pools(), settings.demand
    clusters = ", ".join(
        f"'{one.cluster.replace(chr(39), chr(39) * 2)}'" for found in origins.values() for one in found
    )
    first = ask(f"select min(use_hour) from marts.demand_hourly where cluster in ({clusters})").item()
    since = max(start_at - timedelta(days=demand.look_back_days), first.replace(hour=0) if first else start_at)
    if first is None or since >= start_at:
        raise UsageError(
            f"no demand of {clusters} is known before {start_at:%Y-%m-%d %H:%M} UTC: ingest the scheduler's records, "
            "build and publish, or name other clusters in the pools"
        )
    history = read_demand(ask, start=since, end=start_at, pools=origins)
    scenarios = draw_scenarios(
        history,
        start_at=start_at,
        hours=demand.horizon_months * HOURS_PER_MONTH,
        count=demand.scenarios,
        seed=demand.seed,
        outlook=_outlook(settings, start_at),
    )
    max_age = timedelta(days=settings.prices.max_age_days)
    prices = ask(f"select {', '.join(PRICE_SCHEMA)} from core.offer")
    commitments = ask(f"select {', '.join(COMMITMENT_SCHEMA)} from staged.commitment")
    found = book(prices.filter(~pl.col("offer_id").is_in(settings.prices.without)), pools, start_at, max_age)
    seen = coverage(ask, start=since, end=start_at, pools=origins)
    notes = [f"demand is drawn from {(start_at - since).days:,} days, {since:%Y-%m-%d} to {start_at:%Y-%m-%d}"]
    if seen.unclassified_ratio:
        notes.append(
            f"{seen.unclassified_ratio:.1%} of the GPU-hours wanted are of no workload class, so they count as rigid: "
            "set policy workload_class"
        )
    if seen.queue_known_ratio is not None and seen.queue_known_ratio < 1:
        notes.append(
            f"of {1 - seen.queue_known_ratio:.1%} of the GPU-hours it is not known when they were asked for: what waited "
            "in the queue is not in their demand"
        )
    return Inputs(
        at=start_at,
        history=history,
        scenarios=scenarios,
        pools=pools,
        offers=found.offers,
        portfolio=portfolio(commitments, prices, pools, start_at),
        policy=settings.plan_policy(),
        recent_gpus=_recent_gpus(history, settings),
        notes=(*notes, *found.notes),
        log_batch_id=known["batch_id"],
        policy_digest=settings.digest(),
    )


def _whole_hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _outlook(settings: PlanSettings, start_at: datetime) -> Outlook:
    """What is expected to change, with months of the horizon as instants."""

    def month(number: int) -> datetime:
        return start_at + timedelta(hours=number * HOURS_PER_MONTH)

    demand = settings.demand
    return Outlook(
        growth={
            name: Growth(low_ratio=low, mode_ratio=mode, high_ratio=high)
            for name, (low, mode, high) in demand.growth.items()
        },
        migrations=tuple(
            Migration(
                from_pool=one.pool,
                to_pool=one.to_pool,
                starts_at=month(one.start_month),
                until_at=month(one.end_month),
                remaining_ratio=one.remaining_ratio,
                to_reference_gpus=1 / one.to_gpus_per_gpu,
            )
            for one in demand.migrations
        ),
        ramps=tuple(
            Ramp(
                workload_class=one.workload_class,
                pool=one.pool,
                starts_at=month(one.start_month),
                full_from_at=month(max(one.full_month, one.start_month)),
                gpus=one.gpus,
            )
            for one in demand.ramps
        ),
    )


def _recent_gpus(history: Scenarios, settings: PlanSettings) -> dict[str, float]:
    """Peak of each pool in the last days; a pool whose demand is announced to rise is not capped by its past."""
    if settings.demand.recent_days is None:
        return {}
    rising = {one.pool for one in settings.demand.ramps} | {one.to_pool for one in settings.demand.migrations}
    peaks = history.total()[0, -24 * settings.demand.recent_days :].max(axis=0)
    return {name: float(peak) for name, peak in zip(history.pools, peaks.tolist(), strict=True) if name not in rising}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with what it was made from.

    Attributes:
      plan_id: Digest of the inputs.
      inputs: What it was made from.
      plan: The recommendation.
    """

    plan_id: str
    inputs: Inputs
    plan: Plan

    def notes(self, currency: str) -> list[tuple[str, str]]:
        """All that a reader must know, as (kind, text): warnings, other worlds, assumptions."""
        warned = [("warning", text) for text in (*self.inputs.notes, *self.plan.notes)]
        worlds = [
            (
                "stress",
                (f"if {one.name}: {format_money(money(one.cost_micros))} {currency} with the purchases, "
                f"{format_money(money(one.without_micros))} without them"),
            )
            for one in self.plan.stresses
        ]
        assumed = [("assumption", f"{name} {value}: {doc}") for name, value, doc in assumptions(self.inputs.policy)]
        return [*warned, *worlds, *assumed]


def make_plan(inputs: Inputs) -> Planned:
    """Plan from inputs; the same inputs give the same plan.

    Raises:
      UsageError: Nothing can be planned from them.
      UsageError: The policy's limits cannot all be kept.
    """
    made = plan(
        inputs.scenarios,
        inputs.pools,
        inputs.offers,
        inputs.portfolio,
        inputs.policy,
        recent_gpus=inputs.recent_gpus,
    )
    return Planned(plan_id=inputs.digest(), inputs=inputs, plan=made)


def record(
    settings: Settings,
    planned: Planned,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    on_wait: Callable[[str], None] = lambda _message: None,
) -> bool:
    """Append a plan to the log as a decision; False when the log holds it already."""
    with Lake(settings, now=now, on_wait=on_wait) as lake:
        known = lake.con.execute(
            "SELECT 1 FROM lake.events.plan_recommended WHERE plan_id = ?", [planned.plan_id]
        ).fetchone()
        if known is not None:
            return False
        chunk = as_events(planned, made_at=now().replace(microsecond=0), currency=settings.reporting_currency)
        lake.append(SOURCE, f"plan {planned.plan_id[:12]} from {planned.inputs.at:%Y-%m-%d}", iter([chunk]))
    return True


def as_events(planned: Planned, *, made_at: datetime, currency: str) -> Chunk:
    """A plan as the events that record it; its lines add up to its expected cost."""
    made, inputs = planned.plan, planned.inputs
    recommended = {
        "plan_id": planned.plan_id,
        "made_at": made_at,
        "inputs_digest": planned.plan_id,
        "log_batch_id": inputs.log_batch_id,
        "policy_digest": inputs.policy_digest,
        "horizon_start_at": made.start_at,
        "horizon_end_at": made.end_at,
        "seed": inputs.scenarios.seed,
        "scenario_count": len(inputs.scenarios.probability),
        "expected_cost_micros": made.expected_cost_micros,
        "cvar_cost_micros": made.cvar_cost_micros,
        "objective_cost_micros": made.objective_cost_micros,
        "bound_cost_micros": made.bound_cost_micros,
        "repriced_cost_micros": made.repriced_cost_micros,
        "solved_by": made.method,
        "prices_from_at": made.prices_from_at,
        "prices_until_at": made.prices_until_at,
    }
    savings = [{"plan_id": planned.plan_id, **asdict(one)} for one in made.savings]
    notes = [
        {"plan_id": planned.plan_id, "note": number, "note_kind": kind, "text": text}
        for number, (kind, text) in enumerate(planned.notes(currency), start=1)
    ]
    lines = [
        {"plan_id": planned.plan_id, "line": number, **line} for number, line in enumerate(plan_lines(made), start=1)
    ]
    frame = partial(pl.DataFrame, infer_schema_length=None)
    return Chunk(
        {
            PlanRecommended: frame([recommended], schema=polars_schema(PlanRecommended)),
            PlanSavingEstimated: frame(savings, schema=polars_schema(PlanSavingEstimated)),
            PlanLineRecommended: frame(lines, schema=polars_schema(PlanLineRecommended)),
            PlanNoted: frame(notes, schema=polars_schema(PlanNoted)),
        },
        rows_read=1 + len(savings) + len(lines) + len(notes),
    )


_USED_BY_THE_HOUR = {
    "spot": "interruptible GPU-hours, at their price divided by the useful part",
    "on_demand": "GPU-hours that nothing cheaper covers",
    "shortfall": "GPU-hours that nothing serves, at the price of going without",
}


def plan_lines(made: Plan) -> list[dict[str, Any]]:
    """Lines of a plan as rows: purchases, what is held, and what is used by the hour; costs add up to the plan's."""
    lines: list[dict[str, Any]] = [
        {
            "line_kind": "purchase",
            "offer_id": one.offer.offer_id,
            "pool": ", ".join(one.pools),
            "starts_at": one.starts_at,
            "ends_at": one.ends_at,
            "gpu_count": None if one.gpus is None else round(one.gpus),
            "hourly_commitment_micros": one.hourly_commitment_micros,
            "gpu_hours_quantity": None,
            "cost_micros": one.cost_micros,
            "upfront_micros": one.upfront_micros,
            "committed_micros": one.committed_micros,
            "break_even_ratio": one.break_even_ratio,
            "used_ratio": one.used_ratio,
            "reason": one.reason,
        }
        for one in made.lines
    ]
    plain = dict.fromkeys(lines[0] if lines else polars_schema(PlanLineRecommended).names()[2:])
    window = {"starts_at": made.start_at, "ends_at": made.end_at}
    if made.held_cost_micros:
        said = "what is held or queued already falls due, whatever is bought"
        lines.append(plain | window | {"line_kind": "held", "cost_micros": made.held_cost_micros, "reason": said})
    for row in made.dispatch.filter(pl.col("gpu_hours") > 0).iter_rows(named=True):
        if row["channel"] in _USED_BY_THE_HOUR:
            about = {
                "line_kind": row["channel"],
                "pool": row["pool"],
                "gpu_hours_quantity": Decimal(str(round(row["gpu_hours"], 6))),
                "cost_micros": row["cost_micros"],
                "reason": _USED_BY_THE_HOUR[row["channel"]],
            }
            lines.append(plain | window | about)
    return lines


def planned_from_ledger(settings: Settings, plan_settings: PlanSettings, *, at: datetime | None = None) -> Planned:
    """A plan from the ledger's published file.

    Raises:
      UsageError: Nothing is published, or it says too little for a plan.
      UsageError: The policy's limits cannot all be kept.
    """
    return make_plan(read_inputs(partial(query, settings), plan_settings, at=at))
