"""How long to work between checkpoints when a job may be interrupted, and what the interruptions then cost in time.

Times between interruptions of the whole job are exponential with mean ``mtbf_minutes``; an interruption may hit work, the
writing of a checkpoint, or a restart. Does not belong here: where the mean comes from (``models.interruptions``), real
spells (``models.spot_replay``), money (``models.spot_advice``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.errors import UsageError

SHORTEST_MINUTES, LONGEST_MINUTES = 1e-9, 1e9
"""Nothing that a job waits for lasts less than a tenth of a microsecond, or 1,900 years: such a number is a slip."""

LEAST_GOODPUT_RATIO = 1e-6
"""Below it a job is said not to finish at all: a useful hour would take a million."""

BRANCH_SERIES = (1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280)
"""1 + W0 in powers of p = sqrt(2 (1 + e z)) (Corless et al. 1996, On the Lambert W function, eq. 4.22)."""


def check_number(name: str, value: float, least: float, most: float, *, open_below: bool = False) -> None:
    """Refuse a number outside ``[least, most]``, or ``(least, most]``; also NaN and infinities.

    Raises:
      UsageError: It is outside; the message names it.
    """
    if not (least < value <= most if open_below else least <= value <= most):
        bounds = f"{'above' if open_below else 'from'} {least:g} {'and at most' if open_below else 'to'} {most:,.10g}"
        raise UsageError(f"{name}: expected a number {bounds}, found {value:g}")


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """How a job is interrupted and how it saves its work; of the whole job, not of one of its nodes.

    Attributes:
      mtbf_minutes: Mean time between interruptions of the whole job.
      checkpoint_minutes: What writing a checkpoint holds up; only the blocking part.
      restart_minutes: From an interruption, with capacity there again, until work goes on: start, load, warm up.
      notice_success_ratio: Probability that the notice before an interruption suffices to save the work in progress; below 1.
    """

    mtbf_minutes: float
    checkpoint_minutes: float
    restart_minutes: float
    notice_success_ratio: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
          UsageError: A number is not finite, or outside its range.
        """
        check_number("mtbf_minutes", self.mtbf_minutes, SHORTEST_MINUTES, LONGEST_MINUTES)
        check_number("checkpoint_minutes", self.checkpoint_minutes, SHORTEST_MINUTES, LONGEST_MINUTES)
        check_number("restart_minutes", self.restart_minutes, 0, LONGEST_MINUTES)
        check_number("notice_success_ratio", self.notice_success_ratio, 0, 0.999)


@dataclass(frozen=True, slots=True)
class Run:
    """What becomes of a job's time, on average over the exponential model; running time only, without waits for capacity.

    Attributes:
      work_minutes: Useful work, asked for.
      wall_minutes: All of it together: work, checkpoints, restarts and lost.
      checkpoint_minutes: Writing the checkpoints that were completed.
      restart_minutes: Restarting, with restarts that were themselves interrupted.
      lost_minutes: Work, and checkpoint writing, that was done in vain.
      interruption_count: Expected interruptions.
      checkpoint_count: Expected periodic checkpoints completed.
    """

    work_minutes: float
    wall_minutes: float
    checkpoint_minutes: float
    restart_minutes: float
    lost_minutes: float
    interruption_count: float
    checkpoint_count: float


def lambert_w0(z: float) -> float:
    """The principal branch of w e^w = z on [-1/e, 0), by Halley's method from the series at the branch point.

    Raises:
      ValueError: ``z`` is outside the interval.

    >>> w = lambert_w0(-0.2)
    >>> round(w, 12), round(w * math.exp(w), 12)
    (-0.259171101819, -0.2)
    """
    if not -math.exp(-1) <= z < 0:
        raise ValueError(f"expected a number in [-1/e, 0), found {z}")
    near_branch = 2 * (1 + math.e * z)
    w = z if z > -0.1 else _branch_series(math.sqrt(max(near_branch, 0))) - 1
    for _ in range(50):
        error = w * math.exp(w) - z
        if w <= -1 or abs(error) <= 2e-16 * abs(z):
            break
        step = error / (math.exp(w) * (w + 1) - (w + 2) * error / (2 * w + 2))
        w -= step
        if abs(step) <= 1e-16 * abs(w):
            break
    return w


def _branch_series(p: float) -> float:
    return sum(coefficient * p**power for power, coefficient in enumerate(BRANCH_SERIES, start=1))


def _one_plus_w0(a: float) -> float:
    """1 + W0(-exp(-1 - a)) for a >= 0, without losing the digits of a small ``a`` in the 1."""
    p = math.sqrt(-2 * math.expm1(-a))
    if p < 3e-3:  # the next term is below 1e-15 of the sum
        return _branch_series(p)
    z = -math.exp(-1 - a)
    return 1 + lambert_w0(z) if z else 1.0


def young_minutes(c: Checkpointing) -> float:
    """Work between checkpoints by Young's first-order rule (CACM 17(9), 1974): sqrt(2 delta M).

    >>> young_minutes(Checkpointing(1440, 5, 10))
    120.0
    """
    return math.sqrt(2 * c.checkpoint_minutes * c.mtbf_minutes)


def daly_minutes(c: Checkpointing) -> float:
    """Work between checkpoints by Daly's higher-order rule (FGCS 22(3), 2006, doi 10.1016/j.future.2004.11.016).

    >>> [round(daly_minutes(Checkpointing(mtbf, 5, 10)), 2) for mtbf in (1440, 360, 15)]
    [116.69, 56.71, 9.14]
    """
    half = c.checkpoint_minutes / (2 * c.mtbf_minutes)
    if half >= 1:
        return c.mtbf_minutes
    return young_minutes(c) * (1 + math.sqrt(half) / 3 + half / 9) - c.checkpoint_minutes


def exact_minutes(c: Checkpointing) -> float:
    """Work between checkpoints that makes the expected wall time least; the restart time does not matter.

    With d = delta/M, p the success of a notice checkpoint and k = p/(1-p) (e^d - 1), the derivative of ``goodput_ratio``
    vanishes where 1 + k - t = exp(-t - d), so tau = M (1 + k + W0(-exp(-1 - k - d))). Without notice k = 0, which is
    the optimum of Daly's model. Each minute of notice success lengthens the interval.

    >>> round(exact_minutes(Checkpointing(15, 5, 10)), 2)
    9.17
    """
    d = c.checkpoint_minutes / c.mtbf_minutes
    # Beyond 30 no periodic checkpoint ever completes: how much longer the interval then is means nothing.
    k = c.notice_success_ratio / (1 - c.notice_success_ratio) * math.expm1(min(d, 30))
    return c.mtbf_minutes * (k + _one_plus_w0(k + d))


def goodput_ratio(c: Checkpointing, interval_minutes: float) -> float:
    """Useful work per running time, in the long run: 0 to 1, never NaN; 0.0 where it is below the smallest number.

    A renewal at each durable state. An attempt lasts min(X, w) with w = tau + delta; it gains tau if X >= w, and
    min(X, tau) if it is interrupted but the notice checkpoint succeeds, which takes none of the job's time. Each interruption costs M (e^{R/M} - 1) until a
    restart is through. Without notice this is Daly's T = M e^{R/M} (e^{(tau+delta)/M} - 1) Ts/tau.

    >>> round(goodput_ratio(Checkpointing(60, 5, 10), 21.28), 3)
    0.546
    """
    check_number("interval_minutes", interval_minutes, 0, math.inf, open_below=True)
    gain, fails, _completes = _attempt(c, interval_minutes)
    return gain / fails * math.exp(-c.restart_minutes / c.mtbf_minutes)


def _attempt(c: Checkpointing, interval_minutes: float) -> tuple[float, float, float]:
    """Of one attempt from a durable state: expected gain / M, probability of an interruption, and of none."""
    t = interval_minutes / c.mtbf_minutes
    w = (interval_minutes + c.checkpoint_minutes) / c.mtbf_minutes
    completes, fails, notice = math.exp(-w), -math.expm1(-w), c.notice_success_ratio
    # t may be infinite where nothing completes any more, and inf * 0 is no number.
    whole = t * completes if completes else 0.0
    return (1 - notice) * whole - notice * math.expm1(-t), fails, completes


def expected_run(c: Checkpointing, interval_minutes: float, work_minutes: float) -> Run | None:
    """What becomes of the time of a job, on average; None where the goodput is effectively 0 and it does not finish.

    Work counts in proportion: its last interval, where shorter, carries its part of the overhead.

    >>> run = expected_run(Checkpointing(1440, 5, 10), 116.69, 2000)
    >>> round(run.wall_minutes, 1), round(run.interruption_count, 2)
    (2191.5, 1.52)
    """
    check_number("work_minutes", work_minutes, 0, LONGEST_MINUTES, open_below=True)
    goodput = goodput_ratio(c, interval_minutes)
    if goodput < LEAST_GOODPUT_RATIO:
        return None
    gain, fails, completes = _attempt(c, interval_minutes)
    attempts = work_minutes / (gain * c.mtbf_minutes)
    wall = work_minutes / goodput
    checkpoints = attempts * completes * c.checkpoint_minutes
    restarts = attempts * fails * c.mtbf_minutes * math.expm1(c.restart_minutes / c.mtbf_minutes)
    return Run(
        work_minutes=work_minutes,
        wall_minutes=wall,
        checkpoint_minutes=checkpoints,
        restart_minutes=restarts,
        # Tiny differences of large numbers may fall below 0.
        lost_minutes=max(wall - work_minutes - checkpoints - restarts, 0.0),
        interruption_count=wall / c.mtbf_minutes,
        checkpoint_count=attempts * completes,
    )


def regret_ratio(c: Checkpointing, interval_minutes: float) -> float | None:
    """How much longer a job takes with this interval than with the exact one, as a part; None where neither finishes.

    >>> round(regret_ratio(Checkpointing(15, 5, 10), 12.247), 4)
    0.0277
    """
    best, here = goodput_ratio(c, exact_minutes(c)), goodput_ratio(c, interval_minutes)
    return best / here - 1 if here >= LEAST_GOODPUT_RATIO else None
