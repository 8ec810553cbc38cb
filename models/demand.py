"""Demand for GPUs by the hour: what was wanted, how long at which level, and traces of clusters as demand.

Does not belong here: reading the ledger, drawing what will be (``models/scenarios.py``), and deciding what to buy.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.errors import UsageError
from models.policies import UNCLASSIFIED, WORKLOAD_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

__all__ = ["UNCLASSIFIED", "WORKLOAD_CLASSES", "LoadDuration", "Scenarios", "digest", "load_duration", "trace_demand"]

ALL_POOLS = "all"
"""Name of the pool that a whole cluster is counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenarios:
    """Demand of T hours from ``start_at``, in S scenarios, for P pools.

    One scenario with probability 1 is a history or a single forecast.

    Attributes:
      start_at: First hour, UTC.
      pools: Names (P).
      probability: Of each scenario (S), adding up to 1.
      gpus: GPUs wanted by workload class, (S, T, P) each.
      seed: Seed they were drawn with; None for a history.
    """

    start_at: datetime
    pools: tuple[str, ...]
    probability: NDArray[np.float64]
    gpus: Mapping[str, NDArray[np.float64]]
    seed: int | None = None

    def total(self) -> NDArray[np.float64]:
        """GPUs wanted by all classes together (S, T, P)."""
        wanted: NDArray[np.float64] = np.sum(list(self.gpus.values()), axis=0)
        return wanted


def digest(scenarios: Scenarios) -> str:
    """Digest of all that a plan reads of demand: equal demand, equal digest."""
    found = hashlib.sha256(
        repr(
            (scenarios.start_at.astimezone(UTC), scenarios.pools, scenarios.seed, scenarios.probability.shape)
        ).encode()
    )
    found.update(np.ascontiguousarray(scenarios.probability).tobytes())
    for name, gpus in sorted(scenarios.gpus.items()):
        found.update(repr((name, gpus.shape)).encode())
        found.update(np.ascontiguousarray(gpus).tobytes())
    return found.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDuration:
    """For how many hours which level of demand is expected: steps from the highest to the lowest.

    Attributes:
      gpus: Level of each step, descending (N).
      hours: Expected hours at each level (N), adding up to the hours of the curve.
    """

    gpus: NDArray[np.float64]
    hours: NDArray[np.float64]

    @property
    def gpu_hours(self) -> float:
        """Area under the curve: GPU-hours wanted, expected over the scenarios."""
        return float(self.gpus @ self.hours)

    def at_least_ratio(self, gpus: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of hours in which at least so many GPUs are wanted: whether the k-th GPU pays, by the slot rule."""
        reached = np.searchsorted(-self.gpus, -np.asarray(gpus, dtype=np.float64), side="right")
        share: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(self.hours / self.hours.sum())])[reached]
        return share

    def thinned(self, steps: int) -> LoadDuration:
        """The curve in about so many steps for a chart, with the same area.

        It is cut where a multiple of the hours and where a multiple of the peak is passed, so that neither a flat base nor a short
        peak is lost; each piece keeps its mean level.

        Raises:
          UsageError: Fewer than 2 steps are asked for.
        """
        if steps < 2:
            raise UsageError(f"steps: found {steps}, expected 2 or more")
        if self.gpus.size <= steps:
            return self
        ends = np.concatenate([[0.0], np.cumsum(self.hours)])
        area = np.concatenate([[0.0], np.cumsum(self.gpus * self.hours)])
        levels = np.linspace(self.gpus[0], self.gpus[-1], steps // 2, endpoint=False)
        cuts = ends[np.searchsorted(-self.gpus, -levels, side="right")]
        edges = np.unique(np.concatenate([np.linspace(0, ends[-1], steps - steps // 2 + 1), cuts]))
        widths = np.diff(edges)
        return LoadDuration(gpus=np.diff(np.interp(edges, ends, area)) / widths, hours=widths)


def load_duration(gpus: NDArray[np.float64], probability: NDArray[np.float64]) -> LoadDuration:
    """Load-duration curve of one pool, or of any sum of pools.

    Args:
      gpus: GPUs wanted, by scenario and hour (S, T).
      probability: Of each scenario (S).

    Raises:
      UsageError: There is no hour.
    """
    if not gpus.size:
        raise UsageError("the demand curve has no hour: give at least one")
    levels, place = np.unique(gpus, return_inverse=True)
    weights = np.broadcast_to(probability[:, np.newaxis], gpus.shape)
    hours = np.bincount(place.ravel(), weights=weights.ravel())[::-1].astype(np.float64)
    return LoadDuration(gpus=levels[::-1], hours=hours)


def trace_demand(frame: pl.DataFrame, *, workload_class: str, by_account: bool = True) -> Scenarios:
    """Demand of a cluster of which a trace says, minute by minute, how many GPUs run and how many are waited for.

    What is wanted is both together: the queue does not hide it.

    Args:
      frame: Columns vc (virtual cluster), time (each minute, taken as UTC), running_gpu_num and pending_gpu_num, as the
        HeliosData traces have them.
      workload_class: Class that all of it is counted as.
      by_account: A pool for each virtual cluster; otherwise one for all.

    Raises:
      UsageError: A minute is missing or told twice; names the first such hour.
    """
    hourly = (
        frame.group_by("vc", pl.col("time").dt.truncate("1h").alias("use_hour"))
        .agg(
            pl.col("time").n_unique().alias("minute_count"),
            pl.len().alias("row_count"),
            ((pl.col("running_gpu_num") + pl.col("pending_gpu_num")).sum() / 60).alias("gpus"),
        )
        .sort("use_hour", "vc")
    )
    partial = hourly.filter((pl.col("minute_count") != 60) | (pl.col("row_count") != 60))
    if partial.height:
        vc, hour, minutes, rows, _ = partial.row(0)
        raise UsageError(
            f"{vc}, {hour:%Y-%m-%d %H:%M}: found {rows} rows of {minutes} minutes, expected one of each of 60"
        )
    wide = hourly.pivot("vc", index="use_hour", values="gpus").sort("use_hour")
    pools = sorted(name for name in wide.columns if name != "use_hour")
    start = wide["use_hour"][0]
    hours = pl.datetime_range(start, wide["use_hour"][-1], "1h", eager=True)
    if hours.len() != wide.height or hourly.height != wide.height * len(pools):
        raise UsageError(
            f"the trace has {hourly.height} hours of {len(pools)} virtual clusters, expected {hours.len()} of each: "
            "an hour is missing"
        )
    gpus = wide.select(pools).to_numpy().astype(np.float64)
    if not by_account:
        pools, gpus = [ALL_POOLS], gpus.sum(axis=1, keepdims=True)
    return Scenarios(
        start_at=start.replace(tzinfo=UTC),
        pools=tuple(pools),
        probability=np.ones(1),
        gpus={workload_class: gpus[np.newaxis]},
    )
