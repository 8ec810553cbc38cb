"""What a plan is made from: the published file's demand, prices and commitments, and ``plan.yaml``.

Thin: what they mean is ``models``'. Does not belong here: planning.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from models.demand import digest as demand_digest
from models.errors import UsageError
from models.price_book import COMMITMENT_SCHEMA, PRICE_SCHEMA, book, portfolio
from models.prices import HOURS_PER_MONTH
from models.scenarios import draw_scenarios
from pipelines.demand import coverage, known_window, read_demand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from pipelines.demand import Coverage
    from pipelines.plan_settings import PlanSettings
    from pipelines.statement import Ask


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
      basis: What demand is drawn from, in words.
      stated: How it is drawn, as (key in plan.yaml, value, meaning).
      notes: What a reader is warned of in the inputs, in words.
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
    basis: str
    stated: tuple[tuple[str, str, str], ...]
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
      at: First hour of the horizon; None: the end of the last day in which the runs of all pools are known.

    Raises:
      UsageError: The file knows no demand of the pools before ``at``, or no price for them; says what to bring.
    """
    origins, pools, demand = settings.origins(), settings.plan_pools(), settings.demand
    first, end = known_window(ask, {one.cluster for found in origins.values() for one in found})
    start_at = _whole_hour(at or end)
    since = max(start_at - timedelta(days=demand.look_back_days), first)
    if since >= start_at:
        raise UsageError(
            f"no demand is known before {start_at:%Y-%m-%d %H:%M} UTC: the pools' runs begin on {first:%Y-%m-%d}"
        )
    history = read_demand(ask, start=since, end=start_at, pools=origins)
    scenarios = draw_scenarios(
        history,
        start_at=start_at,
        hours=demand.horizon_months * HOURS_PER_MONTH,
        count=demand.scenarios,
        seed=demand.seed,
        outlook=settings.outlook(start_at),
    )
    prices = _prices(ask)
    max_age = timedelta(days=settings.prices.max_age_days)
    found = book(prices.filter(~pl.col("offer_id").is_in(settings.prices.without)), pools, start_at, max_age)
    return Inputs(
        at=start_at,
        history=history,
        scenarios=scenarios,
        pools=pools,
        offers=found.offers,
        portfolio=read_portfolio(ask, pools, start_at),
        policy=settings.plan_policy(),
        recent_gpus=_recent_gpus(history, settings),
        basis=f"demand is drawn from {_length(start_at - since)}, {since:%Y-%m-%d} to {start_at:%Y-%m-%d}",
        stated=settings.demand.stated(),
        notes=(
            *_demand_notes(coverage(ask, start=since, end=start_at, pools=origins)),
            *found.notes,
            *_alike(ask, start_at),
        ),
        log_batch_id=ask("select batch_id from marts.ledger").item(),
        policy_digest=settings.digest(),
    )


def read_portfolio(ask: Ask, pools: Sequence[Pool], at: datetime) -> list[Commitment]:
    """What was held or queued at an instant, as the published file knows it now; raises what ``price_book.portfolio`` raises."""
    commitments = ask(f"select {', '.join(COMMITMENT_SCHEMA)} from staged.commitment")
    return portfolio(commitments, _prices(ask), pools, at)


def _alike(ask: Ask, at: datetime) -> list[str]:
    """Commitments of one offer that begin and end on the same days, and have not ended: bought twice, or recorded twice."""
    found = ask(
        "select offer_id, list_sort(list(commitment_id)) as commitments from staged.commitment "
        f"where state <> 'cancelled' and offer_id is not null and ends_at > timestamptz '{at.isoformat()}' "
        "group by offer_id, region, zone, gpu_model, cast(starts_at as date), cast(ends_at as date) "
        "having count(*) > 1 order by 1, 2"
    )
    return [
        f"{', '.join(names)}: commitments of one offer, {offer_id}, begin and end together: if they are one purchase recorded "
        "twice, record the surplus as cancelled, or it counts twice"
        for offer_id, names in found.rows()
    ]


def _prices(ask: Ask) -> pl.DataFrame:
    return ask(f"select {', '.join(PRICE_SCHEMA)} from core.offer")


def _length(time: timedelta) -> str:
    return "1 day" if time.days == 1 else f"{time.days:,} days"


def _demand_notes(seen: Coverage) -> list[str]:
    notes = []
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
    return notes


def _whole_hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _recent_gpus(history: Scenarios, settings: PlanSettings) -> dict[str, float]:
    """Peak of each pool in the last days; a pool whose demand is announced to rise is not capped by its past."""
    if settings.demand.recent_days is None:
        return {}
    rising = {one.pool for one in settings.demand.ramps} | {one.to_pool for one in settings.demand.migrations}
    peaks = history.total()[0, -24 * settings.demand.recent_days :].max(axis=0)
    return {name: float(peak) for name, peak in zip(history.pools, peaks.tolist(), strict=True) if name not in rising}
