"""What a reader of a plan must know beside its figures: months in which too much ends at once, and what capped it.

Does not belong here: deciding, and what the inputs warn of.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from models.expiry import SCHEMA, expiries
from models.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from models.prices import Commitment, Pool
    from models.procurement.plan import PlanLine


def cliffs(
    lines: Sequence[PlanLine],
    portfolio: Sequence[Commitment],
    pools: Sequence[Pool],
    start_at: datetime,
    end_at: datetime,
) -> list[str]:
    """Months within the horizon in which too much of what is held, queued or bought ends at once (``expiry``), in words.

    Args:
      lines: What the plan buys.
      portfolio: What is held or queued.
      pools: What is known of each pool.
      start_at: First hour of the horizon.
      end_at: Its end: a month that it cuts off is left out.
    """
    known = {pool.name: pool for pool in pools}
    rows = [*(_held(one, known) for one in portfolio), *(_bought(one, known) for one in lines)]
    found = expiries(pl.DataFrame(rows, schema=SCHEMA), start_at)
    sharp = found.filter(pl.col("is_cliff") & (pl.col("month").dt.offset_by("1mo") <= end_at))
    return [
        f"{one['month']:%Y-%m}: {_part(one['gpu_ratio'])} of the GPUs held and {_part(one['cost_ratio'])} of what they cost end "
        f"({one['names']}; {one['returning']} come back to demand): spread the ends over more months, or plan what follows"
        for one in sharp.iter_rows(named=True)
    ]


def caps(recent_gpus: Mapping[str, float]) -> list[str]:
    """That no more is committed than was wanted lately, in words; nothing where no pool is capped."""
    said = ", ".join(f"{name} {most:,.1f}" for name, most in sorted(recent_gpus.items()))
    return [f"no more GPUs are committed than were wanted at once in the last days: {said}"] if said else []


def _part(ratio: float | None) -> str:
    return "an unknown part" if ratio is None else f"{ratio:.0%}"


def _held(one: Commitment, known: Mapping[str, Pool]) -> dict[str, Any]:
    rates = one.rate_micros_per_gpu_hour
    hourly, gpus = one.hourly_commitment_micros, one.gpus
    if hourly is None:
        hours = (one.ends_at - one.starts_at).total_seconds() / SECONDS_PER_HOUR
        hourly = round((gpus or 0) * max(rates.values(), default=0) + one.upfront_micros / hours)
    covers = _covered(hourly, rates) if gpus is None else gpus
    return _row(one.commitment_id, one.pools, known, (one.starts_at, one.ends_at), (covers, hourly))


def _bought(one: PlanLine, known: Mapping[str, Pool]) -> dict[str, Any]:
    in_money = one.hourly_commitment_micros
    starts_at = one.starts_at + timedelta(seconds=one.offer.lead_seconds)
    hours = (one.ends_at - starts_at).total_seconds() / SECONDS_PER_HOUR
    hourly = round(one.committed_micros / hours) if in_money is None else in_money
    covers = _covered(in_money, one.offer.micros_per_gpu_hour) if in_money is not None else one.gpus
    return _row(f"{one.offer.offer_id} of this plan", one.pools, known, (starts_at, one.ends_at), (covers, hourly))


def _covered(hourly_micros: int, rates: Mapping[str, int]) -> float | None:
    """GPUs that money pays for, where it reaches one pool; else unknown."""
    (rate, *others) = rates.values()
    return None if others or not rate else hourly_micros / rate


def _row(
    name: str,
    reached: Sequence[str],
    known: Mapping[str, Pool],
    term: tuple[datetime, datetime],
    size: tuple[float | None, int],
) -> dict[str, Any]:
    models = {known[one].gpu_model for one in reached if one in known}
    model = models.pop() if len(models) == 1 else None
    return dict(zip(SCHEMA.names(), (name, model, *term, *size), strict=True))
