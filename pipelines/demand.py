"""Read demand from the published file: one history of what was wanted, hour by hour and pool by pool.

An hour without a row is an hour without demand only where the cluster was known then; otherwise it is unknown, and says
so. Does not belong here: metering (``sql/projections/core/demand_hourly.sql``), and drawing what will be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from models.demand import UNCLASSIFIED, Scenarios
from models.errors import UsageError
from models.units import SHARE_SECONDS_PER_GPU_HOUR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from pipelines.statement import Ask

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


class Origin(NamedTuple):
    """GPUs of one model in one cluster: where demand was observed."""

    cluster: str
    gpu_model: str

    def __str__(self) -> str:
        """As pools that nobody named are called."""
        return f"{self.cluster}/{self.gpu_model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the demand in a window is known how well.

    Attributes:
      wanted_gpu_hours: Wanted in the pools.
      elsewhere_gpu_hours: Wanted in clusters or of GPU models that no pool counts.
      unclassified_ratio: Part of what the pools wanted of which no policy says what kind of work it is; None: nothing wanted.
      queue_known_ratio: Part of what the pools wanted in hours in which every submission is known; None: nothing wanted.
    """

    wanted_gpu_hours: float
    elsewhere_gpu_hours: float
    unclassified_ratio: float | None
    queue_known_ratio: float | None


def known_origins(ask: Ask) -> tuple[Origin, ...]:
    """Clusters and GPU models that runs wanted at any time."""
    found = ask("select distinct cluster, gpu_model from marts.demand_hourly order by cluster, gpu_model")
    return tuple(Origin(*row) for row in found.rows())


def pools_by_origin(ask: Ask) -> dict[str, tuple[Origin, ...]]:
    """A pool for each GPU model of each cluster, named cluster/model: for a ledger whose pools nobody named."""
    return {str(one): (one,) for one in known_origins(ask)}


def read_demand(ask: Ask, *, start: datetime, end: datetime, pools: Mapping[str, Collection[Origin]]) -> Scenarios:
    """What was wanted from ``start`` up to ``end``: one scenario with a class for each kind of work that wanted anything.

    Towards its end a window knows less than was wanted: runs that still wait are known once they start.

    Args:
      ask: Asks the published file.
      start: First hour.
      end: End, exclusive.
      pools: Where each pool's demand was observed.

    Raises:
      UsageError: The window is not of whole hours in UTC or is empty; a pool names what the ledger does not know, or two
        pools name the same; a cluster is not known for the whole window, with the days that are.
    """
    start, end = _window(start, end)
    _check_pools(ask, pools)
    _check_known(ask, start, end, sorted({one.cluster for found in pools.values() for one in found}))
    hours = (end - start) // _HOUR
    names = tuple(pools)
    rows = _wanted(ask, start, end, pools).filter(pl.col("pool").is_not_null())
    gpus = {}
    for (name,), part in rows.group_by("workload_class", maintain_order=True):
        wanted = np.zeros((1, hours, len(names)))
        place = part["place"].to_numpy(), part["pool"].to_numpy()
        np.add.at(wanted[0], place, part["share_seconds"].to_numpy() / SHARE_SECONDS_PER_GPU_HOUR)
        gpus[str(name)] = wanted
    if not gpus:
        gpus[UNCLASSIFIED] = np.zeros((1, hours, len(names)))
    return Scenarios(start_at=start, pools=names, probability=np.ones(1), gpus=gpus)


def coverage(ask: Ask, *, start: datetime, end: datetime, pools: Mapping[str, Collection[Origin]]) -> Coverage:
    """How well the demand of the window is known; raises what ``read_demand`` raises of its window."""
    rows = _wanted(ask, *_window(start, end), pools)
    inside = rows.filter(pl.col("pool").is_not_null())
    whole, everywhere = int(inside["share_seconds"].sum()), int(rows["share_seconds"].sum())

    def part(condition: pl.Expr) -> float | None:
        return int(inside.filter(condition)["share_seconds"].sum()) / whole if whole else None

    return Coverage(
        wanted_gpu_hours=whole / SHARE_SECONDS_PER_GPU_HOUR,
        elsewhere_gpu_hours=(everywhere - whole) / SHARE_SECONDS_PER_GPU_HOUR,
        unclassified_ratio=part(pl.col("workload_class") == UNCLASSIFIED),
        queue_known_ratio=part(pl.col("is_queue_known")),
    )


def _wanted(ask: Ask, start: datetime, end: datetime, pools: Mapping[str, Collection[Origin]]) -> pl.DataFrame:
    """Rows with demand: workload_class, is_queue_known, share_seconds, place (hour of the window), pool (position or NULL)."""
    rows = ask(
        "select cluster, gpu_model, workload_class, is_queue_known, wanted_share_seconds as share_seconds, "
        f"date_diff('hour', {_literal(start)}, use_hour) as place from marts.demand_hourly "
        f"where wanted_share_seconds > 0 and use_hour >= {_literal(start)} and use_hour < {_literal(end)} "
        "order by workload_class, cluster, gpu_model, use_hour"
    )
    counted = [(*one, position) for position, found in enumerate(pools.values()) for one in found]
    schema = {"cluster": pl.String, "gpu_model": pl.String, "pool": pl.Int64}
    origins = pl.DataFrame(counted, schema=schema, orient="row")
    return rows.join(origins, on=["cluster", "gpu_model"], how="left", maintain_order="left")


def _literal(instant: datetime) -> str:
    return f"timestamptz '{instant.isoformat()}'"


def _window(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The window in UTC: a time zone's clock may change within it, its hours are whole all the same.

    Raises:
      UsageError: An instant has no zone or is within an hour, or there is no hour.
    """
    for name, instant in (("start", start), ("end", end)):
        if instant.tzinfo is None:
            raise UsageError(
                f"{name}: found {instant.isoformat()}, expected an instant with its zone, such as …T00:00:00Z"
            )
        if instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0) != instant:
            raise UsageError(f"{name}: found {instant.isoformat()}, expected a whole hour in UTC")
    if end.astimezone(UTC) - start.astimezone(UTC) < _HOUR:
        raise UsageError(f"found a window from {start.isoformat()} to {end.isoformat()}, expected an hour at least")
    return start.astimezone(UTC), end.astimezone(UTC)


def _check_pools(ask: Ask, pools: Mapping[str, Collection[Origin]]) -> None:
    named = Counter(one for found in pools.values() for one in found)
    twice = [str(one) for one, count in named.items() if count > 1]
    if twice:
        raise UsageError(f"pools: {', '.join(twice)} named more than once: its demand would count twice")
    known = known_origins(ask)
    unknown = [str(one) for one in named if one not in known]
    if unknown or not named:
        raise UsageError(
            f"pools: found {', '.join(unknown) or 'none'}, expected some of {', '.join(map(str, known)) or 'no runs yet'} "
            "(cluster/GPU model with runs in the ledger)"
        )


def known_window(ask: Ask, clusters: Collection[str]) -> tuple[datetime, datetime]:
    """First day, and the end of the last day, in which the runs of all these clusters are known.

    Raises:
      UsageError: No run of a cluster is known.
    """
    found = ask(
        "select cluster, date_trunc('day', min(use_hour)) as first_day, date_trunc('day', max(use_hour)) as last_day "
        "from marts.demand_hourly where held_share_seconds > 0 group by cluster"
    )
    known = {cluster: (first.astimezone(UTC), last.astimezone(UTC) + _DAY) for cluster, first, last in found.rows()}
    lacking = sorted(set(clusters) - set(known))
    if lacking:
        raise UsageError(
            f"{', '.join(lacking)}: nobody is known to have held its GPUs: ingest its runs, build and publish"
        )
    return max(known[one][0] for one in clusters), min(known[one][1] for one in clusters)


def _check_known(ask: Ask, start: datetime, end: datetime, clusters: list[str]) -> None:
    """Refuse a window in which a cluster is not known: before its first run, after the day of its last, or in a gap.

    A day is known by GPUs that were held, or by the cluster's capacity, in which then nobody held any.
    """
    found = ask(
        "select cluster, date_trunc('day', use_hour) as use_day, true as is_held from marts.demand_hourly "
        "where held_share_seconds > 0 group by all union all select cluster, use_day, false from marts.bucket_daily group by all"
    )
    for cluster in clusters:
        days = found.filter(pl.col("cluster") == cluster)
        held = days.filter("is_held")["use_day"]
        if held.is_empty():
            raise UsageError(f"{cluster}: nobody is known to have held its GPUs: ingest its runs")
        first, last = (one.astimezone(UTC) for one in (held.min(), held.max()))  # type: ignore[union-attr]
        if start < first or end > last + _DAY:
            raise UsageError(
                f"{cluster}: its runs are known from {first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC), asked for {start:%Y-%m-%d %H:%M} "
                f"to {end:%Y-%m-%d %H:%M}: ask for less, ingest its runs, or leave it out of the pools"
            )
        wanted = pl.datetime_range(_midnight(start), _midnight(end - _HOUR), "1d", eager=True)
        unknown = sorted({*wanted} - {*days["use_day"]})
        if unknown:
            raise UsageError(
                f"{cluster}: {len(unknown)} days are not known, first {unknown[0]:%Y-%m-%d}, last {unknown[-1]:%Y-%m-%d}: neither a run "
                "nor its capacity is; ingest its runs of these days, or its nodes if it stood idle"
            )


def _midnight(instant: datetime) -> datetime:
    return instant.replace(hour=0)
