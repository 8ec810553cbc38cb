"""Checkpointing replayed on spells of running and waiting: drawn from the exponential model, or resampled from a trace.

All replications advance together, one array a step. Does not belong here: the closed forms (``models.spot``) that this is
compared with, and how spells are found in events (``models.interruptions``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from models.errors import UsageError
from models.spot import Checkpointing, check_number, exact_minutes, goodput_ratio

Floats: TypeAlias = NDArray[np.float64]

SPELLS_AT_ONCE = 128
MOST_SPELLS = 20_000_000
"""Spells drawn in one simulation; more would take minutes, and their mean is then certain anyway."""

SPREAD = (0.05, 0.95)
"""Quantiles between which nine in ten replications lie."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """How replications are drawn.

    Attributes:
      replications: How many.
      seed: Of all that is drawn; the same seed gives the same figures.
      block: Of a trace, spells that stay together.
    """

    replications: int
    seed: int
    block: int = 1


class Spells(Protocol):
    """Where spells come from: the next ``count`` running and waiting times, in minutes, of every replication.

    The wait stands before its spell. Luck is uniform on [0, 1): a notice checkpoint succeeds below its probability. All
    arrays are (replications, count).
    """

    mean_minutes: float

    def draw(self, count: int) -> tuple[Floats, Floats, Floats]:
        """The next spells: (waiting minutes, running minutes, luck)."""


class ExponentialSpells:
    """Spells of the exponential model, with waits that make the stated availability.

    A job starts at a random moment: with probability 1 - availability it first waits, and a wait is memoryless.
    """

    def __init__(self, mtbf_minutes: float, availability_ratio: float, drawn: Resampling) -> None:
        """Remember the rates and seed the generator.

        Raises:
          UsageError: A number is outside its range.
        """
        check_number("mtbf_minutes", mtbf_minutes, 0, math.inf, open_below=True)
        check_number("availability_ratio", availability_ratio, 0, 1, open_below=True)
        self.mean_minutes = mtbf_minutes
        self._wait_minutes = mtbf_minutes * (1 - availability_ratio) / availability_ratio
        self._unavailable = 1 - availability_ratio
        self._replications = drawn.replications
        self._random = np.random.default_rng(drawn.seed)
        self._is_first = True

    def draw(self, count: int) -> tuple[Floats, Floats, Floats]:
        """The next spells: (waiting minutes, running minutes, luck), each (replications, count)."""
        shape = (self._replications, count)
        waits = self._random.exponential(self._wait_minutes, shape) if self._wait_minutes else np.zeros(shape)
        if self._is_first:
            waits[:, 0] *= self._random.random(self._replications) < self._unavailable
            self._is_first = False
        return waits, self._random.exponential(self.mean_minutes, shape), self._random.random(shape)


class TraceSpells:
    """Spells resampled from a trace, in contiguous blocks, so that what comes together stays together.

    The trace is a ring: a block that reaches its end goes on at its beginning (circular block bootstrap, Politis and
    Romano 1992).
    """

    def __init__(self, up: Floats, down: Floats, drawn: Resampling) -> None:
        """Take the trace in its order: ``up[i]`` running minutes follow ``down[i]`` waiting minutes.

        Raises:
          UsageError: The arrays are empty or differ in length, a spell is negative or not finite, or none is above 0.
        """
        check_spells(up, down, drawn.block)
        self.mean_minutes = float(up.mean())
        self._up, self._down = up, down
        self._drawn = drawn
        self._random = np.random.default_rng(drawn.seed)

    def draw(self, count: int) -> tuple[Floats, Floats, Floats]:
        """The next spells: (waiting minutes, running minutes, luck), each (replications, count)."""
        picked = block_positions(len(self._up), count, self._drawn, self._random)
        return self._down[picked], self._up[picked], self._random.random(picked.shape)


def check_spells(up: Floats, down: Floats, block: int) -> None:
    """Refuse spells that cannot be replayed.

    Raises:
      UsageError: The arrays are empty or differ in length, a spell is negative or not finite, or none is above 0.
    """
    if not len(up) or len(up) != len(down):
        raise UsageError(f"expected as many waiting as running spells, at least one, found {len(down)} and {len(up)}")
    both = np.concatenate([up, down])
    if not np.isfinite(both).all() or (both < 0).any() or not up.any():
        raise UsageError("expected spells of 0 minutes or more, finite, and at least one running spell above 0")
    if not 1 <= block <= len(up):
        raise UsageError(f"expected a block of 1 to {len(up)} spells, found {block}")


def block_positions(length: int, count: int, drawn: Resampling, random: np.random.Generator) -> NDArray[np.int64]:
    """Positions in a ring of ``length``: ``count`` a replication, in blocks from random starts."""
    starts = random.integers(0, length, (drawn.replications, -(-count // drawn.block), 1))
    return ((starts + np.arange(drawn.block)) % length).reshape(drawn.replications, -1)[:, :count]


def gains(c: Checkpointing, intervals: Floats, up: Floats) -> Floats:
    """Useful minutes that each spell leaves behind, for each interval: shape (intervals, spells).

    A spell is a restart, then as many intervals with their checkpoints as fit, then work that is lost with the
    probability that the notice checkpoint fails. ``c.mtbf_minutes`` is not used.
    """
    tau = intervals[:, None]
    whole, rest = np.divmod(np.maximum(up - c.restart_minutes, 0), tau + c.checkpoint_minutes)
    return whole * tau + c.notice_success_ratio * np.minimum(rest, tau)


@dataclass(frozen=True, slots=True)
class Replay:
    """What checkpointing at one interval would have left of a trace's running time.

    Attributes:
      interval_minutes: Useful work between checkpoints.
      goodput_ratio: Useful work per running time on the trace as it is.
      low_ratio: Of nine in ten resampled traces, the lowest goodput.
      high_ratio: And the highest.
    """

    interval_minutes: float
    goodput_ratio: float
    low_ratio: float
    high_ratio: float


@dataclass(frozen=True, slots=True)
class TraceReport:
    """The trace beside the formula.

    Attributes:
      predicted_ratio: Goodput that the exponential model gives, with the trace's mean running spell, at its exact optimum.
      at_exact: The exact optimum of that model, replayed.
      at_best: The interval that is best on the trace in hindsight, replayed.
      mean_minutes: Mean running spell of the trace.
    """

    predicted_ratio: float
    at_exact: Replay
    at_best: Replay
    mean_minutes: float


def replay(c: Checkpointing, intervals: Floats, up: Floats, drawn: Resampling) -> list[Replay]:
    """Replay intervals on a trace's running spells, and on traces resampled from it in contiguous blocks.

    Every spell begins with a restart and ends with an interruption; one that the trace's end cut off counts as it is,
    which understates goodput a little. Waiting is not running and is not paid: it does not count here.

    Args:
      c: Costs of a checkpoint and a restart; its mean time between interruptions is not used.
      intervals: Minutes of work between checkpoints, each above 0.
      up: Running spells of the whole job, in minutes and in order.
      drawn: Resampled traces, each as long as the trace.

    Raises:
      UsageError: The spells, the block or an interval cannot be.
    """
    check_spells(up, np.zeros_like(up), drawn.block)
    for interval in intervals:
        check_number("interval_minutes", float(interval), 0, math.inf, open_below=True)
    gained = gains(c, intervals, up)
    picked = block_positions(len(up), len(up), drawn, np.random.default_rng(drawn.seed))
    rows = np.repeat(np.arange(drawn.replications), len(up))
    # A goodput is a ratio of sums, so how often each spell was picked is all that matters.
    weights = np.bincount(rows * len(up) + picked.ravel(), minlength=drawn.replications * len(up))
    weights = weights.reshape(drawn.replications, len(up)).astype(np.float64)
    running = weights @ up
    resampled = np.divide(
        gained @ weights.T, running, out=np.zeros((len(intervals), drawn.replications)), where=running > 0
    )
    low, high = np.quantile(resampled, SPREAD, axis=1)
    total = gained.sum(axis=1) / up.sum()
    return [Replay(*map(float, each)) for each in zip(intervals, total, low, high, strict=True)]


def trace_report(c: Checkpointing, up: Floats, drawn: Resampling) -> TraceReport:
    """A trace beside the exponential formula that only knows its mean; arguments as ``replay``.

    Goodput jumps wherever another whole interval fits a spell, so the best interval is one of (spell - restart) / n -
    checkpoint; they are all tried, as far as a spell holds a hundred intervals.

    Raises:
      UsageError: The spells or the block cannot be.
    """
    check_spells(up, np.zeros_like(up), drawn.block)
    mean = float(up.mean())
    model = Checkpointing(mean, c.checkpoint_minutes, c.restart_minutes, c.notice_success_ratio)
    exact = exact_minutes(model)
    usable = np.unique(up - c.restart_minutes)
    fitting = (usable[:, None] / np.arange(1, 101) - c.checkpoint_minutes).ravel()
    # A hair shorter, so that rounding does not push the last checkpoint past the interruption.
    candidates = np.unique(np.append(fitting[fitting > 0] * (1 - 1e-9), exact))
    goodputs = np.concatenate(
        [gains(c, part, up).sum(axis=1) for part in np.array_split(candidates, len(candidates) // 512 + 1)]
    )
    best = float(candidates[goodputs.argmax()])
    at_exact, at_best = replay(c, np.array([exact, best]), up, drawn)
    return TraceReport(goodput_ratio(model, exact), at_exact, at_best, mean)


def simulate_wall_minutes(
    c: Checkpointing, interval_minutes: float, work_minutes: float, spells: Spells, *, until_minutes: float
) -> Floats:
    """Time from start to end of a job, waits for capacity included, one a replication; inf where it is not done in time.

    Each spell after the first begins with a restart. The last interval may be shorter, and ends with a checkpoint too.

    Args:
      c: Costs of a checkpoint and a restart; its mean time between interruptions is not used.
      interval_minutes: Work between checkpoints.
      work_minutes: Useful work of the job.
      spells: Where spells come from; it is drawn from.
      until_minutes: When to stop looking, counted from the start.

    Raises:
      UsageError: A number is outside its range, or so many interruptions are expected that it would take minutes.
    """
    check_number("interval_minutes", interval_minutes, 0, math.inf, open_below=True)
    check_number("work_minutes", work_minutes, 0, math.inf, open_below=True)
    check_number("until_minutes", until_minutes, 0, math.inf, open_below=True)
    waits, runs, luck = spells.draw(SPELLS_AT_ONCE)
    expected = until_minutes / spells.mean_minutes * len(runs)
    if expected > MOST_SPELLS:
        raise UsageError(
            f"expected at most {MOST_SPELLS:,} spells to simulate, found {expected:,.0f}: fewer replications or a shorter time"
        )
    done, now, finished = np.zeros(len(runs)), np.zeros(len(runs)), np.full(len(runs), np.inf)
    restart = np.full(runs.shape, c.restart_minutes)
    restart[:, 0] = 0
    at = np.arange(len(runs))
    while True:
        whole, rest = np.divmod(np.maximum(runs - restart, 0), interval_minutes + c.checkpoint_minutes)
        gained = whole * interval_minutes + (luck < c.notice_success_ratio) * np.minimum(rest, interval_minutes)
        left = np.maximum(work_minutes - done[:, None] - np.cumsum(gained, axis=1) + gained, 0)
        # Rounding must not turn a job of whole intervals into one more.
        needed = restart + left + np.ceil(left / interval_minutes - 1e-9) * c.checkpoint_minutes
        started = now[:, None] + np.cumsum(waits + runs, axis=1) - runs
        fits = needed <= runs
        first = fits.argmax(axis=1)
        ends = np.where(fits[at, first], started[at, first] + needed[at, first], np.inf)
        finished = np.minimum(finished, ends)
        done, now = done + gained.sum(axis=1), started[:, -1] + runs[:, -1]
        if ((finished < np.inf) | (now >= until_minutes)).all():
            return np.where(finished <= until_minutes, finished, np.inf)
        waits, runs, luck = spells.draw(SPELLS_AT_ONCE)
        restart = np.full(runs.shape, c.restart_minutes)
