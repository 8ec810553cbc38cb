"""What demand may become: weeks of the past drawn again, with growth, moves to another generation, and announced work.

Hours are UTC throughout. Where a site's clock changes, its working day moves by an hour against the weeks drawn; nothing
is lost or counted twice. Does not belong here: reading the past (``pipelines/demand.py``), and deciding what to buy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from models.demand import UNCLASSIFIED, WORKLOAD_CLASSES, Scenarios
from models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

HOURS_PER_DAY, HOURS_PER_WEEK, HOURS_PER_YEAR = 24, 168, 8_760
LEAST_WEEKS = 3
"""Whole weeks are drawn from so much history on; from less, whole days."""

_CLASSES = (*WORKLOAD_CLASSES, UNCLASSIFIED)
_BLOCKS, _GROWTH = 0, 1
"""Streams of random numbers of a scenario: so that a longer horizon does not change how it grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Growth of a class a year, compounded from the start of the horizon: 0.2 is a fifth more, -1 nothing left.

    One value is drawn for each scenario, from the triangular distribution of these three.

    Attributes:
      low_ratio: Least.
      mode_ratio: Most likely.
      high_ratio: Most.
    """

    low_ratio: float
    mode_ratio: float
    high_ratio: float

    def __post_init__(self) -> None:
        """Refuse what is no range, or shrinks below nothing."""
        low, mode, high = self.low_ratio, self.mode_ratio, self.high_ratio
        if not (-1 <= low <= mode <= high and isfinite(high)):
            raise UsageError(
                f"growth a year: found low {low:g}, mode {mode:g}, high {high:g}, expected -1 <= low <= mode <= high "
                "(-1: nothing left after a year)"
            )

    def at(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles: the growth that is not exceeded with each probability. Never falls where a bound is raised."""
        low, mode, high = self.low_ratio, self.mode_ratio, self.high_ratio
        if low == high:
            return np.full_like(probability, low)
        below = low + np.sqrt(probability * (high - low) * (mode - low))
        above = high - np.sqrt((1 - probability) * (high - low) * (high - mode))
        return np.where(probability * (high - low) < mode - low, below, above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A pool's demand moves to another generation, in a straight line between two instants.

    Attributes:
      from_pool: Pool that is left.
      to_pool: Pool that takes its work.
      starts_at: When the move starts.
      until_at: When it is done.
      remaining_ratio: Part of the demand that stays.
      from_reference_gpus: Reference GPUs that one GPU of ``from_pool`` is worth.
      to_reference_gpus: Reference GPUs that one GPU of ``to_pool`` is worth.
    """

    from_pool: str
    to_pool: str
    starts_at: datetime
    until_at: datetime
    remaining_ratio: float = 0.0
    from_reference_gpus: float = 1.0
    to_reference_gpus: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no move."""
        what = f"migration from {self.from_pool} to {self.to_pool}"
        if self.from_pool == self.to_pool:
            raise UsageError(f"{what}: expected two pools")
        if not 0 <= self.remaining_ratio <= 1:
            raise UsageError(f"{what}: remaining_ratio: found {self.remaining_ratio:g}, expected 0 to 1")
        if not (0 < self.from_reference_gpus < np.inf and 0 < self.to_reference_gpus < np.inf):
            raise UsageError(
                f"{what}: reference GPUs: found {self.from_reference_gpus:g} and {self.to_reference_gpus:g}, expected above 0"
            )
        _check_order(what, "until_at", self.starts_at, self.until_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """Announced work that the past does not show: from none at ``starts_at``, in a straight line, to all at ``full_from_at``.

    Attributes:
      workload_class: Class it is of.
      pool: Pool it wants.
      starts_at: When the first GPU is wanted.
      full_from_at: When all are wanted, and from then on.
      gpus: GPUs wanted then.
    """

    workload_class: str
    pool: str
    starts_at: datetime
    full_from_at: datetime
    gpus: float

    def __post_init__(self) -> None:
        """Refuse what is no work."""
        what = f"announced {self.workload_class} work on {self.pool}"
        _check_class(what, self.workload_class)
        if not (self.gpus >= 0 and isfinite(self.gpus)):
            raise UsageError(f"{what}: gpus: found {self.gpus:g}, expected 0 or more; less demand is a growth below 0")
        _check_order(what, "full_from_at", self.starts_at, self.full_from_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is expected to change against the past.

    Attributes:
      growth: By workload class; a class without one stays as it was.
      migrations: Applied in their order, after growth.
      ramps: Added last: what is announced neither grows nor moves.
    """

    growth: Mapping[str, Growth] = field(default_factory=dict)
    migrations: tuple[Migration, ...] = ()
    ramps: tuple[Ramp, ...] = ()

    def __post_init__(self) -> None:
        """Refuse classes that do not exist."""
        for name in self.growth:
            _check_class("growth", name)


UNCHANGED = Outlook()


def draw_scenarios(  # noqa: PLR0913 - a horizon, how it is drawn, and what is expected to change
    history: Scenarios,
    *,
    start_at: datetime,
    hours: int,
    count: int,
    seed: int,
    outlook: Outlook = UNCHANGED,
    with_look_back: bool = False,
) -> Scenarios:
    """Scenarios of equal probability by a seasonal block bootstrap.

    Whole weeks of the past (days, where it has fewer than three weeks) are drawn with replacement, and each is laid where its hour of
    the week is that of the horizon. All pools and classes take the same week, so that what peaks together goes on to.
    A scenario depends on the seed and its own number alone, however many others are drawn, and does not change when the
    horizon is made longer. The past's oldest hours that fill no whole week are left out. Politis and Romano 1992 (circular
    blocks); the past is not detrended.

    Args:
      history: What was wanted: one scenario.
      start_at: First hour of the horizon.
      hours: Its length.
      count: Scenarios to draw.
      seed: Of the random numbers: the same seed, the same scenarios.
      outlook: What is expected to change.
      with_look_back: Put one more in front: the latest weeks in the order they had, with each class's most likely growth.

    Raises:
      UsageError: The history has less than a day, or no demand at all; a pool is unknown; nothing is asked for.
    """
    for asked, found, least in (("hours", hours, 1), ("count", count, 1), ("seed", seed, 0)):
        if found < least:
            raise UsageError(f"{asked}: found {found}, expected {least} or more")
    _check_history(history, start_at, outlook)
    _check_pools(history.pools, outlook)
    streams = [_stream(seed, number, _BLOCKS) for number in range(count)]
    place = _places(history, start_at, hours, streams, with_look_back)
    luck = np.array([_stream(seed, number, _GROWTH).random(len(_CLASSES)) for number in range(count)])
    years = np.arange(hours) / HOURS_PER_YEAR
    gpus = {}
    for position, name in enumerate(_CLASSES):
        growth = outlook.growth.get(name)
        if name in history.gpus and history.gpus[name].any():
            gpus[name] = history.gpus[name][0][place]
            if growth:
                ratio = np.concatenate([[growth.mode_ratio] * with_look_back, growth.at(luck[:, position])])
                gpus[name] *= ((1 + ratio)[:, np.newaxis] ** years)[:, :, np.newaxis]
    for move in outlook.migrations:
        _migrate(gpus, history.pools, move, start_at, hours)
    for ramp in outlook.ramps:
        _announce(gpus, history.pools, ramp, start_at, place.shape)
    scenario_count = place.shape[0]
    return Scenarios(
        start_at=start_at,
        pools=history.pools,
        probability=np.full(scenario_count, 1 / scenario_count),
        gpus=gpus,
        seed=seed,
    )


def _stream(seed: int, number: int, stream: int) -> np.random.Generator:
    """Random numbers of one scenario for one purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number, stream))))


def _places(
    history: Scenarios, start_at: datetime, hours: int, streams: list[np.random.Generator], with_look_back: bool
) -> NDArray[np.intp]:
    """Hour of the history that each hour of each scenario is taken from (S, T)."""
    known = _hours_of(history)
    block = HOURS_PER_WEEK if known >= LEAST_WEEKS * HOURS_PER_WEEK else HOURS_PER_DAY
    block_count = known // block
    kept = block_count * block
    first = history.start_at + timedelta(hours=known - kept)
    shift = int((start_at - first) / timedelta(hours=1)) % block
    needed = -(-hours // block)
    drawn = [stream.integers(0, block_count, size=needed) for stream in streams]
    if with_look_back:
        # Aligned blocks begin ``shift`` hours late, so the last of them ends in the first hours: it would not be the past.
        whole = block_count - (shift > 0)
        drawn.insert(0, np.arange(whole - needed, whole) % max(whole, 1))
    inside = (np.array(drawn)[:, :, np.newaxis] * block + shift + np.arange(block)) % kept
    return inside.reshape(len(drawn), -1)[:, :hours] + (known - kept)


def _progress(start_at: datetime, hours: int, from_at: datetime, until_at: datetime) -> NDArray[np.float64]:
    """How far something is that goes from 0 to 1 between two instants, as each hour begins (T)."""
    first = (start_at - from_at) / timedelta(hours=1)
    length = (until_at - from_at) / timedelta(hours=1)
    passed = first + np.arange(hours)
    return np.clip(passed / length, 0, 1) if length else (passed >= 0).astype(np.float64)


def _migrate(
    gpus: dict[str, NDArray[np.float64]], pools: tuple[str, ...], move: Migration, start_at: datetime, hours: int
) -> None:
    """Move demand of every class in place."""
    source, target = pools.index(move.from_pool), pools.index(move.to_pool)
    moved_ratio = (1 - move.remaining_ratio) * _progress(start_at, hours, move.starts_at, move.until_at)
    for wanted in gpus.values():
        moved = wanted[:, :, source] * moved_ratio
        wanted[:, :, source] -= moved
        wanted[:, :, target] += moved * (move.from_reference_gpus / move.to_reference_gpus)


def _announce(
    gpus: dict[str, NDArray[np.float64]],
    pools: tuple[str, ...],
    ramp: Ramp,
    start_at: datetime,
    shape: tuple[int, ...],
) -> None:
    """Add announced work in place; a class that wants nothing else comes in with it."""
    if ramp.gpus:
        wanted = gpus.setdefault(ramp.workload_class, np.zeros((*shape, len(pools))))
        wanted[:, :, pools.index(ramp.pool)] += ramp.gpus * _progress(
            start_at, shape[1], ramp.starts_at, ramp.full_from_at
        )


def _hours_of(history: Scenarios) -> int:
    return next(iter(history.gpus.values())).shape[1] if history.gpus else 0


def _check_history(history: Scenarios, start_at: datetime, outlook: Outlook) -> None:
    """Refuse a past that nothing can be drawn from."""
    if len(history.probability) != 1:
        raise UsageError(f"history: found {len(history.probability)} scenarios, expected one: what was wanted")
    for name in history.gpus:
        _check_class("history", name)
    is_announced = any(ramp.gpus for ramp in outlook.ramps)
    if not is_announced and not any(gpus.any() for gpus in history.gpus.values()):
        raise UsageError("the history wants no GPU in any hour, and no work is announced: there is nothing to plan for")
    if _hours_of(history) < HOURS_PER_DAY:
        raise UsageError(
            f"the history has {_hours_of(history)} hours, expected {HOURS_PER_DAY} or more: look back further"
        )
    if start_at.tzinfo is None or (start_at - history.start_at) % timedelta(hours=1):
        raise UsageError(f"start_at: found {start_at.isoformat()}, expected a whole hour in UTC")


def _check_pools(pools: tuple[str, ...], outlook: Outlook) -> None:
    """Refuse an outlook on pools that do not exist."""
    moves = [("migration", pool) for one in outlook.migrations for pool in (one.from_pool, one.to_pool)]
    for what, pool in (*moves, *(("announced work", one.pool) for one in outlook.ramps)):
        if pool not in pools:
            raise UsageError(f"{what}: found pool {pool!r}, expected one of {', '.join(pools)}")


def _check_class(what: str, name: str) -> None:
    if name not in _CLASSES:
        raise UsageError(f"{what}: found workload class {name!r}, expected one of {', '.join(_CLASSES)}")


def _check_order(what: str, name: str, first: datetime, second: datetime) -> None:
    if first.tzinfo is None or second.tzinfo is None:
        raise UsageError(
            f"{what}: expected instants with their zone, found {first.isoformat()} and {second.isoformat()}"
        )
    if second < first:
        raise UsageError(f"{what}: {name}: found {second.isoformat()}, expected {first.isoformat()} or later")
