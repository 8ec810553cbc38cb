"""How often jobs are interrupted, learnt from what happened to the jobs of one cluster: never from a price.

Belongs here: mean time between interruptions with its confidence, interruptions that come together, heavy tails, and the
spells of a gang of nodes. Does not belong here: what to do about it (``models.spot``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.spot_replay import Floats

SPELLS = {
    "run_id": pl.String(),
    "group": pl.String(),
    "up_seconds": pl.Int64(),
    "is_interrupted": pl.Boolean(),
    "interrupted_at": pl.Datetime("us", "UTC"),
    "gpus": pl.Int64(),
}
"""One row an attempt of a run: how long it was up, and whether an interruption ended it. Otherwise it was still running or
ended by itself, and all that is known is that it was not interrupted for so long (right-censored)."""

BULK_WINDOW_SECONDS = 30
LEAST_EVENTS = 5
SHORTEST_SECONDS = 0.5
"""What a spell of 0 whole seconds stands for: the Weibull distribution has no density there."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is known of one group's interruptions; None where too little happened to say, with the reason.

    Attributes:
      group: Pool or class of jobs.
      spell_count: Attempts seen.
      unknown_count: Attempts left out: nobody knows how long they ran or whether they were interrupted.
      interruption_count: Attempts that were interrupted.
      event_count: Interruptions, those within the window of each other counted once.
      exposure_seconds: Time that all attempts were up.
      mtbf_seconds: Exposure / interruptions, of an attempt as it ran: gangs are in it as gangs.
      mtbf_low_seconds: Lower confidence bound; also known where nothing happened yet.
      mtbf_high_seconds: Upper confidence bound.
      variation_ratio: Standard deviation / mean of the interrupted spells; 1 if exponential, more if heavy-tailed.
      weibull_shape_ratio: Weibull shape, censoring counted; 1 if exponential, below if heavy-tailed.
      weibull_error_ratio: Its standard error.
      reason: Why the figures are None, or what to bear in mind; empty if nothing.
    """

    group: str
    spell_count: int
    unknown_count: int
    interruption_count: int
    event_count: int
    exposure_seconds: int
    mtbf_seconds: float | None
    mtbf_low_seconds: float | None
    mtbf_high_seconds: float | None
    variation_ratio: float | None
    weibull_shape_ratio: float | None
    weibull_error_ratio: float | None
    reason: str


def check_spells(spells: pl.DataFrame) -> pl.DataFrame:
    """The columns of ``SPELLS``, in their types.

    Raises:
      SourceError: A column is missing or of another type, a spell is negative, or an interruption has no instant.
    """
    missing = sorted(SPELLS.keys() - set(spells.columns))
    if missing:
        raise SourceError(f"spells: expected the columns {', '.join(SPELLS)}, missing {', '.join(missing)}")
    try:
        typed = spells.select(pl.col(name).cast(dtype) for name, dtype in SPELLS.items())
    except pl.exceptions.PolarsError as error:
        raise SourceError(f"spells: a column is not of its type: {error}") from error
    bad = typed.filter(
        (pl.col("up_seconds") < 0)
        | (pl.col("is_interrupted") & pl.col("interrupted_at").is_null())
        | pl.col("group").is_null()
    )
    if bad.height:
        raise SourceError(
            f"spells: {bad.height:,} rows have negative up_seconds, an interruption without interrupted_at, or no group; "
            f"the first is run {bad['run_id'][0]!r}"
        )
    return typed


def bulk_events(spells: pl.DataFrame, window_seconds: int = BULK_WINDOW_SECONDS) -> pl.DataFrame:
    """Interruptions that came together: each within ``window_seconds`` of the one before, in the same group.

    Returns:
      One row an event: group, event_at (its first interruption), run_count, gpu_count (None if one is unknown).

    Raises:
      SourceError: As ``check_spells``.
    """
    gap = pl.col("interrupted_at").diff().over("group")
    return (
        check_spells(spells)
        .filter("is_interrupted")
        .sort("group", "interrupted_at", "run_id")
        .with_columns((gap > pl.duration(seconds=window_seconds)).fill_null(value=True).cum_sum().alias("event"))
        .group_by("group", "event", maintain_order=True)
        .agg(
            pl.col("interrupted_at").first().alias("event_at"),
            pl.len().cast(pl.Int64).alias("run_count"),
            pl.when(pl.col("gpus").null_count() == 0).then(pl.col("gpus").sum()).alias("gpu_count"),
        )
        .drop("event")
    )


def bulk_sizes(events: pl.DataFrame) -> pl.DataFrame:
    """How many events took how many runs at once: group, run_count, event_count."""
    sizes = events.group_by("group", "run_count").agg(pl.len().cast(pl.Int64).alias("event_count"))
    return sizes.sort("group", "run_count")


def fit(
    spells: pl.DataFrame,
    *,
    window_seconds: int = BULK_WINDOW_SECONDS,
    least_events: int = LEAST_EVENTS,
    confidence_ratio: float = 0.95,
) -> list[Fit]:
    """Learn each group's interruptions from its attempts.

    The mean is the exponential maximum likelihood with censoring: exposure / interruptions. Its bounds are those of as many
    independent events (``mtbf_bounds``): interruptions that came together are one piece of evidence.

    Args:
      spells: One row an attempt, as ``SPELLS``, of one cluster.
      window_seconds: Interruptions within it of each other are one event.
      least_events: With fewer events nothing is estimated.
      confidence_ratio: Of the two-sided bounds.

    Returns:
      One a group, in the order of their names.

    Raises:
      SourceError: As ``check_spells``.
    """
    by_group = check_spells(spells).partition_by("group", as_dict=True)
    return [
        _fit_group(str(group), attempts, window_seconds, least_events, confidence_ratio)
        for (group,), attempts in sorted(by_group.items())
    ]


def _fit_group(
    group: str, attempts: pl.DataFrame, window_seconds: int, least_events: int, confidence_ratio: float
) -> Fit:
    """One group's figures; attempts of unknown length or end are counted and left out."""
    known = attempts.drop_nulls(["up_seconds", "is_interrupted"])
    event_count = bulk_events(known, window_seconds).height
    exposure = int(known["up_seconds"].sum())
    interrupted = known["is_interrupted"].to_numpy()
    count = int(interrupted.sum())
    low, high = mtbf_bounds(exposure, count, event_count, confidence_ratio)
    enough = event_count >= least_events and exposure > 0
    seconds = np.maximum(known["up_seconds"].to_numpy().astype(np.float64), SHORTEST_SECONDS)
    shape = weibull_shape(seconds, interrupted) if enough else None
    spells = seconds[interrupted]
    return Fit(
        group=group,
        spell_count=known.height,
        unknown_count=attempts.height - known.height,
        interruption_count=count,
        event_count=event_count,
        exposure_seconds=exposure,
        mtbf_seconds=exposure / count if enough else None,
        mtbf_low_seconds=low,
        mtbf_high_seconds=high if enough else None,
        variation_ratio=float(spells.std(ddof=1) / spells.mean()) if enough and count > 1 else None,
        weibull_shape_ratio=shape[0] if shape else None,
        weibull_error_ratio=shape[1] if shape else None,
        reason=_caveat(shape, count, event_count)
        if enough
        else _too_few(known.height, event_count, exposure, least_events),
    )


def _too_few(spell_count: int, event_count: int, exposure: int, least_events: int) -> str:
    events = "interruption event" if event_count == 1 else "interruption events"
    return (
        f"{event_count:,} {events} in {exposure / 3600:,.1f} h of {spell_count:,} attempts: at least "
        f"{least_events:,} events are needed to tell how often it happens"
    )


def _caveat(shape: tuple[float, float] | None, count: int, event_count: int) -> str:
    """What to bear in mind of an estimate; empty if nothing."""
    said = []
    if shape and shape[0] + 2 * shape[1] < 1:
        said.append(
            f"heavy-tailed (Weibull shape {shape[0]:.2f}): many short spells and few long ones, so replay the trace beside "
            "the exponential formula"
        )
    if count > event_count:
        said.append(f"{count:,} interruptions came in {event_count:,} events: they are not independent")
    return "; ".join(said)


def mtbf_bounds(
    exposure_seconds: float, count: int, event_count: int, confidence_ratio: float = 0.95
) -> tuple[float | None, float | None]:
    """Two-sided confidence bounds of exposure / count, where the ``count`` interruptions came in independent events.

    Of n events in a time T, exact bounds of the mean time between events are 2T / chi2(1 - a/2; 2n + 2) and
    2T / chi2(a/2; 2n) (Epstein and Sobel 1953; the first is conservative). Each event stands for count / n interruptions.
    Quantiles by Wilson and Hilferty (1931): within 1 % from 2 degrees of freedom upwards, above, and from 10, below.

    Returns:
      Lower and upper bound; None where there is none: without events there is no upper one, without exposure neither.

    >>> [round(bound, 1) for bound in mtbf_bounds(1000, 10, 10)]
    [54.4, 208.9]
    """
    if exposure_seconds <= 0:
        return None, None
    tail = (1 - confidence_ratio) / 2
    per_event = max(count / event_count, 1.0) if event_count else 1.0
    low = 2 * exposure_seconds / chi_square_quantile(1 - tail, 2 * event_count + 2) / per_event
    high = 2 * exposure_seconds / chi_square_quantile(tail, 2 * event_count) / per_event if event_count else None
    return low, high


def chi_square_quantile(probability: float, degrees: int) -> float:
    """Quantile of the chi-square distribution by Wilson and Hilferty's cube (1931).

    >>> round(chi_square_quantile(0.975, 20), 2)
    34.17
    """
    spread = 2 / (9 * degrees)
    return degrees * max(1 - spread + NormalDist().inv_cdf(probability) * math.sqrt(spread), 1e-3) ** 3


def weibull_shape(
    seconds: Floats, interrupted: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[float, float] | None:
    """Weibull shape by maximum likelihood with right-censoring, and its standard error; None if there is no maximum.

    Newton's method on the profile score 1/k + mean of ln t over events - sum t^k ln t / sum t^k = 0, which falls in k
    (Cohen 1965); the error is from its slope.

    Args:
      seconds: Spells, each above 0.
      interrupted: Whether an interruption ended the spell.
    """
    events = int(interrupted.sum())
    logs = np.log(seconds / seconds.max())
    mean_log = float(logs[interrupted].mean()) if events else 0.0
    if mean_log == 0:  # all interrupted spells as long as the longest: ever larger shapes fit ever better
        return None
    log_k = 0.0  # Newton in ln k, so that k stays above 0
    for _ in range(100):
        k = math.exp(log_k)
        weights = np.exp(k * logs)
        first, second = (float((weights * logs**power).sum() / weights.sum()) for power in (1, 2))
        score, slope = 1 / k + mean_log - first, 1 / k**2 + second - first**2
        step = max(min(score / (slope * k), 1.0), -1.0)
        log_k += step
        if abs(step) < 1e-12:
            break
    return k, 1 / math.sqrt(events * slope)


def up_minutes(spells: pl.DataFrame, group: str) -> Floats:
    """A group's spells in minutes and in the order given, for a replay; those of unknown length or end are left out.

    Give them in the order in which they began, so that what came together is resampled together.

    Raises:
      SourceError: As ``check_spells``.
    """
    known = check_spells(spells).filter(pl.col("group") == group).drop_nulls(["up_seconds", "is_interrupted"])
    return known["up_seconds"].to_numpy() / 60


def gang_mtbf_seconds(
    job_level: Sequence[float | None], node_level: float | None, nodes: int
) -> tuple[float | None, str]:
    """Mean time between interruptions of a job on ``nodes`` nodes, and what it rests on.

    Args:
      job_level: Of each correlated group that the job lies in, the mean of jobs like it; None where unknown.
      node_level: Mean of single nodes; used only where no group's jobs tell.
      nodes: Nodes of the job.

    >>> gang_mtbf_seconds([7200.0, 3600.0], 80000.0, 16)
    (3600.0, 'jobs like it, the most often interrupted of 2 groups')
    >>> gang_mtbf_seconds([None], 80000.0, 16)
    (5000.0, 'single nodes / 16, as if independent: too short where nodes go together; jobs like it are not known')
    """
    known = [each for each in job_level if each is not None]
    if known and len(known) == len(job_level):
        return min(known), f"jobs like it, the most often interrupted of {len(known):,} groups"
    if node_level is None:
        return None, "neither jobs like it nor single nodes were interrupted often enough to tell"
    return (
        node_level / nodes,
        f"single nodes / {nodes:,}, as if independent: too short where nodes go together; jobs like it are not known",
    )


def gang_spells(added: Floats, removed: Floats, until: float, nodes: int) -> tuple[Floats, Floats, Floats]:
    """Spells of a job that needs ``nodes`` nodes at once, on a pool whose nodes come and go.

    The job takes the nodes that are longest there, keeps those that it has, and is interrupted when one of its own goes;
    it goes on at once if enough others are there, and waits otherwise. Nodes that go at the same instant are one
    interruption. One step a spell, over all nodes.

    Args:
      added: When each node came.
      removed: When it went; inf if it was still there.
      until: End of the trace, in the same unit.
      nodes: Nodes that the job needs.

    Returns:
      Waits, spells after them, and whether an interruption ended the spell (1.0) or the trace (0.0).
    """
    order = np.argsort(added, kind="stable")
    added, removed = added[order], removed[order]
    now, waited = 0.0, 0.0
    found: list[tuple[float, float, float]] = []
    while now < until:
        there = np.flatnonzero((added <= now) & (removed > now))[:nodes]
        if len(there) < nodes:
            later = added[added > now]
            following = min(float(later.min()) if len(later) else until, until)
            waited += following - now
            now = following
            continue
        end = float(removed[there].min())
        found.append((waited, min(end, until) - now, float(end <= until)))
        now, waited = end, 0.0
    waits, spells, ends = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return waits, spells, ends
