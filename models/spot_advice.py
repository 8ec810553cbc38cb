"""Whether a class of jobs should run on spot: what a useful GPU-hour costs there, and whether a deadline holds.

Belongs here: money, deadlines and the reasons in words. Does not belong here: how often the job is interrupted
(``models.interruptions``), the checkpoint interval (``models.spot``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from models.errors import UsageError
from models.spot import Checkpointing, Run, check_number, exact_minutes, expected_run, goodput_ratio
from models.spot_replay import ExponentialSpells, Resampling, simulate_wall_minutes
from models.units import format_share, money

MOST_HOURS = 1e6
MOST_MICROS = 10**15
SURE_RATIO = 0.95
"""A deadline is met where at least so many of the simulated jobs meet it."""
DRAWN = Resampling(2000, 0)


class Verdict(StrEnum):
    """Where a job should run."""

    SPOT = "spot"
    ALTERNATIVE = "alternative"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Job:
    """A job, or the typical one of a class.

    Attributes:
      name: Of the class.
      gpus: GPUs that it holds while it runs.
      work_hours: Useful work: the hours that it would take without checkpoints and interruptions.
      checkpointing: How it is interrupted and saves its work; None where that is not known, or it cannot save it.
      unknown_reason: Why ``checkpointing`` is None.
      deadline_hours: By when it must be done, from its start; None if it need not.
    """

    name: str
    gpus: int
    work_hours: float
    checkpointing: Checkpointing | None
    unknown_reason: str = ""
    deadline_hours: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
          UsageError: A number is outside its range, or ``checkpointing`` is None without a reason.
        """
        check_number("gpus", self.gpus, 1, 1e6)
        check_number("work_hours", self.work_hours, 0, MOST_HOURS, open_below=True)
        if self.deadline_hours is not None:
            check_number("deadline_hours", self.deadline_hours, 0, MOST_HOURS, open_below=True)
        if self.checkpointing is None and not self.unknown_reason:
            raise UsageError(f"{self.name}: expected how it is interrupted, or the reason why that is not known")


@dataclass(frozen=True, slots=True)
class Market:
    """What spot costs, and what it is compared with.

    Attributes:
      spot_micros_per_gpu_hour: Price of spot while it runs.
      alternative_micros_per_gpu_hour: What one more hour of the alternative costs, after discounts: 0 for a commitment
        that lies unused.
      alternative_name: What the alternative is.
      availability_ratio: Part of the time in which the job's whole size can be had on spot; None where unknown.
      checkpoint_micros: Storage and egress of one checkpoint of the whole job.
      restart_micros: Egress and the like of one restart of the whole job.
    """

    spot_micros_per_gpu_hour: int
    alternative_micros_per_gpu_hour: int
    alternative_name: str
    availability_ratio: float | None = None
    checkpoint_micros: int = 0
    restart_micros: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
          UsageError: A number is outside its range.
        """
        check_number("spot_micros_per_gpu_hour", self.spot_micros_per_gpu_hour, 0, MOST_MICROS)
        check_number("alternative_micros_per_gpu_hour", self.alternative_micros_per_gpu_hour, 0, MOST_MICROS)
        check_number("checkpoint_micros", self.checkpoint_micros, 0, MOST_MICROS)
        check_number("restart_micros", self.restart_micros, 0, MOST_MICROS)
        if self.availability_ratio is not None:
            check_number("availability_ratio", self.availability_ratio, 0, 1, open_below=True)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a class of jobs, and why. None is unknown, or does not apply; a reason says which.

    Attributes:
      job: Name of the class.
      verdict: Where it should run.
      reasons: Why, in words.
      interval_minutes: Work between checkpoints.
      goodput_ratio: Useful work per running time.
      wall_hours: Expected running time.
      calendar_hours: With the waits for capacity.
      interruption_count: Expected interruptions.
      lost_gpu_hours: Expected GPU-hours of work done in vain.
      restart_gpu_hours: Expected GPU-hours of restarting.
      effective_micros_per_gpu_hour: Price of a useful GPU-hour on spot.
      alternative_micros_per_gpu_hour: Price of a useful GPU-hour of the alternative.
      break_even_goodput_ratio: Spot is cheaper above this goodput; above 1 it never is.
      is_cheaper: Whether spot costs less than the alternative.
      deadline_probability_ratio: Simulated jobs done by the deadline; None where the availability is unknown.
      deadline_at_best_ratio: The same if capacity is always there; where the availability is unknown.
    """

    job: str
    verdict: Verdict
    reasons: tuple[str, ...]
    interval_minutes: float | None = None
    goodput_ratio: float | None = None
    wall_hours: float | None = None
    calendar_hours: float | None = None
    interruption_count: float | None = None
    lost_gpu_hours: float | None = None
    restart_gpu_hours: float | None = None
    effective_micros_per_gpu_hour: int | None = None
    alternative_micros_per_gpu_hour: int | None = None
    break_even_goodput_ratio: float | None = None
    is_cheaper: bool | None = None
    deadline_probability_ratio: float | None = None
    deadline_at_best_ratio: float | None = None


def effective_micros(market: Market, gpus: int, run: Run) -> int:
    """Price of a useful GPU-hour on spot: q/G, and what checkpoints and restarts cost beside the GPUs.

    >>> from models.spot import expected_run
    >>> run = expected_run(Checkpointing(60, 5, 10), 21.28, 2000)
    >>> effective_micros(Market(1_000_000, 6_880_000, "on demand"), 8, run)
    1830681
    """
    extra = run.checkpoint_count * market.checkpoint_micros + run.interruption_count * market.restart_micros
    running = market.spot_micros_per_gpu_hour * (run.wall_minutes / run.work_minutes)
    return round(running + extra * 60 / run.work_minutes / gpus)


def break_even_goodput(market: Market, gpus: int, c: Checkpointing, run: Run) -> float | None:
    """Goodput above which spot costs less than the alternative; None where no goodput suffices.

    Effective price = (q + restart cost per running GPU-hour) / G + checkpoint cost per useful GPU-hour.
    """
    running = market.spot_micros_per_gpu_hour + 60 * market.restart_micros / (c.mtbf_minutes * gpus)
    fixed = run.checkpoint_count * 60 / run.work_minutes * market.checkpoint_micros / gpus
    spare = market.alternative_micros_per_gpu_hour - fixed
    return running / spare if spare > 0 else None


def deadline_probability(
    c: Checkpointing, interval_minutes: float, job: Job, availability_ratio: float, drawn: Resampling
) -> float:
    """Part of the simulated jobs that are done by the deadline, waits for capacity included.

    Waits are exponential, of the mean that the availability implies.

    Raises:
      UsageError: The job has no deadline, or the simulation would be too long.
    """
    if job.deadline_hours is None:
        raise UsageError(f"{job.name}: expected a deadline")
    spells = ExponentialSpells(c.mtbf_minutes, availability_ratio, drawn)
    ends = simulate_wall_minutes(
        c, interval_minutes, job.work_hours * 60, spells, until_minutes=job.deadline_hours * 60
    )
    return float(np.isfinite(ends).mean())


def advise(job: Job, market: Market, drawn: Resampling = DRAWN, sure_ratio: float = SURE_RATIO) -> Advice:
    """Say whether a class of jobs should run on spot, with what interval, and why.

    Args:
      job: The job or its class.
      market: Prices and availability.
      drawn: How deadlines are simulated.
      sure_ratio: Of the simulated jobs, how many must meet the deadline.

    Raises:
      UsageError: The simulation would be too long.
    """
    c = job.checkpointing
    if c is None:
        return Advice(job.name, Verdict.UNKNOWN, (f"not known whether spot pays: {job.unknown_reason}",))
    work_minutes = job.work_hours * 60
    interval = min(exact_minutes(c), work_minutes)
    goodput = goodput_ratio(c, interval)
    run = expected_run(c, interval, work_minutes)
    if run is None:
        why = (
            f"interrupted every {c.mtbf_minutes:,.4g} min on average, it hardly ever gets through a restart of "
            f"{c.restart_minutes:,.4g} min, {interval:,.4g} min of work and a checkpoint of {c.checkpoint_minutes:,.4g} "
            "min: its goodput on spot is effectively 0, so it does not finish there"
        )
        return Advice(job.name, Verdict.ALTERNATIVE, (why,), goodput_ratio=goodput)
    price, bound = effective_micros(market, job.gpus, run), break_even_goodput(market, job.gpus, c, run)
    is_cheaper = price < market.alternative_micros_per_gpu_hour
    known = market.availability_ratio
    probability = None
    if job.deadline_hours is not None:
        probability = deadline_probability(c, interval, job, known or 1.0, drawn)
    verdict = _verdict(market, probability, sure_ratio, is_cheaper=is_cheaper)
    wall = run.wall_minutes / 60
    why = (
        f"checkpoint every {interval:,.4g} min of work: it is interrupted every {c.mtbf_minutes:,.4g} min on average, "
        f"and {format_share(goodput)} of the running time is useful"
    )
    priced = _price_reason(market, price, bound, is_cheaper=is_cheaper)
    return Advice(
        job=job.name,
        verdict=verdict,
        reasons=(why, priced, *_deadline_reasons(job, market, probability, sure_ratio, drawn)),
        interval_minutes=interval,
        goodput_ratio=goodput,
        wall_hours=wall,
        calendar_hours=wall / known if known else None,
        interruption_count=run.interruption_count,
        lost_gpu_hours=run.lost_minutes / 60 * job.gpus,
        restart_gpu_hours=run.restart_minutes / 60 * job.gpus,
        effective_micros_per_gpu_hour=price,
        alternative_micros_per_gpu_hour=market.alternative_micros_per_gpu_hour,
        break_even_goodput_ratio=bound,
        is_cheaper=is_cheaper,
        deadline_probability_ratio=probability if known else None,
        deadline_at_best_ratio=None if known else probability,
    )


def _verdict(market: Market, probability: float | None, sure_ratio: float, *, is_cheaper: bool) -> Verdict:
    """Spot where it is cheaper and no deadline speaks against it."""
    if not is_cheaper or (probability is not None and probability < sure_ratio):
        return Verdict.ALTERNATIVE
    # With capacity always there the deadline is met; whether it is with waits, nobody knows.
    return Verdict.UNKNOWN if probability is not None and market.availability_ratio is None else Verdict.SPOT


def _price_reason(market: Market, price: int, bound: float | None, *, is_cheaper: bool) -> str:
    """Which costs less, and from which goodput on spot would."""
    other = market.alternative_micros_per_gpu_hour
    compared = (
        f"spot costs {money(price):,.4f} a useful GPU-hour ({money(market.spot_micros_per_gpu_hour):,.4f} a running one), "
        f"{market.alternative_name} {money(other):,.4f}: spot {'pays' if is_cheaper else 'does not pay'}"
    )
    if bound is None or bound > 1:
        return f"{compared}, and would not at any goodput"
    return f"{compared}; it does above a goodput of {format_share(bound)}"


def _deadline_reasons(
    job: Job, market: Market, probability: float | None, sure_ratio: float, drawn: Resampling
) -> tuple[str, ...]:
    """How likely the deadline is met; nothing where there is none."""
    if job.deadline_hours is None or probability is None:
        return ()
    known = market.availability_ratio
    capacity = (
        "if capacity is always there; how often it is there is not known"
        if known is None
        else f"with capacity there {format_share(known)} of the time"
    )
    said = f"{format_share(probability)} of {drawn.replications:,} simulated jobs are done within {job.deadline_hours:,.4g} h, {capacity}"
    return (f"{said}; {format_share(sure_ratio)} are wanted",)
