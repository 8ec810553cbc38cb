"""Whether spot pays: the price of a useful GPU-hour, and what a deadline says to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from models.errors import UsageError
from models.spot import Checkpointing, exact_minutes, expected_run, goodput_ratio
from models.spot_advice import (
    Job,
    Market,
    Verdict,
    advise,
    break_even_goodput,
    deadline_probability,
    effective_micros,
)
from models.spot_replay import Resampling

C = Checkpointing(60, 5, 10)
GOODPUT = goodput_ratio(C, exact_minutes(C))  # 0.546
DRAWN = Resampling(1000, 3)

jobs = st.builds(
    Checkpointing,
    mtbf_minutes=st.floats(5, 1e5),
    checkpoint_minutes=st.floats(0.01, 50),
    restart_minutes=st.floats(0, 60),
)
micros = st.integers(0, 50_000_000)


def job(**about: float) -> Job:
    return Job(**({"name": "pretraining", "gpus": 64, "work_hours": 100, "checkpointing": C} | about))  # type: ignore[arg-type]


def market(spot: float, other: float, availability: float | None = None) -> Market:
    return Market(round(spot * 1e6), round(other * 1e6), "the one-year plan", availability)


@given(jobs, micros, micros, micros)
def test_a_useful_hour_never_costs_less_than_a_running_one(
    c: Checkpointing, price: int, per_checkpoint: int, per_restart: int
) -> None:
    run = expected_run(c, exact_minutes(c), 6000)
    assume(run is not None)
    assert run is not None
    bare = effective_micros(Market(price, 0, "x"), 8, run)
    assert bare >= price
    assert effective_micros(Market(price, 0, "x", None, per_checkpoint, per_restart), 8, run) >= bare


def test_the_effective_price_is_the_price_over_goodput_and_what_moves_with_the_data() -> None:
    run = expected_run(C, exact_minutes(C), 6000)
    assert run is not None
    assert effective_micros(market(2, 9), 8, run) == round(2e6 / GOODPUT)
    # 100 h: a checkpoint at 0.40 each tau of useful work, a restart at 3 each hour of running, over 800 useful GPU-hours.
    moved = Market(2_000_000, 9_000_000, "x", None, 400_000, 3_000_000)
    checkpoints, restarts = 6000 / exact_minutes(C), 100 / GOODPUT
    expected = 2e6 / GOODPUT + (checkpoints * 0.4e6 + restarts * 3e6) / 800
    assert effective_micros(moved, 8, run) == pytest.approx(expected, abs=1)


@given(jobs, micros, micros, micros, micros)
def test_spot_is_cheaper_exactly_above_the_break_even_goodput(
    c: Checkpointing, price: int, other: int, per_checkpoint: int, per_restart: int
) -> None:
    run = expected_run(c, exact_minutes(c), 6000)
    assume(run is not None)
    assert run is not None
    asked = Market(price, other, "x", None, per_checkpoint, per_restart)
    bound, effective = break_even_goodput(asked, 8, c, run), effective_micros(asked, 8, run)
    assume(abs(effective - other) > 2)  # rounding to whole micros may tip a tie
    assert (effective < other) == (bound is not None and goodput_ratio(c, exact_minutes(c)) > bound)


def test_at_four_tenths_of_the_price_a_goodput_of_0_47_still_pays() -> None:
    """What the price alone says; deadlines and availability speak against spot before it does."""
    found = advise(job(), market(0.4, 1))
    assert found.break_even_goodput_ratio == pytest.approx(0.4)
    assert (found.is_cheaper, found.verdict) == (True, Verdict.SPOT)


def test_spot_loses_to_a_discount_that_is_better() -> None:
    """Compared is the marginal price after discounts, not the list price."""
    found = advise(job(), market(2.20, 3.50))
    assert found.verdict is Verdict.ALTERNATIVE
    assert "the one-year plan 3.5000: spot does not pay; it does above a goodput of 62.9 %" in found.reasons[1]


def test_nothing_is_cheaper_than_a_commitment_that_lies_unused() -> None:
    found = advise(job(), market(0.01, 0))
    assert (found.verdict, found.break_even_goodput_ratio) == (Verdict.ALTERNATIVE, None)
    assert "would not at any goodput" in found.reasons[1]


def test_a_deadline_decides_against_a_cheaper_spot() -> None:
    """100 h of work take 183 h on average; with capacity there 60 % of the time, 305 h."""
    in_time = advise(job(deadline_hours=500), market(0.4, 1, 0.6), DRAWN)
    assert (in_time.verdict, in_time.calendar_hours) == (Verdict.SPOT, pytest.approx(100 / GOODPUT / 0.6))
    late = advise(job(deadline_hours=300), market(0.4, 1, 0.6), DRAWN)
    assert late.verdict is Verdict.ALTERNATIVE
    assert late.is_cheaper
    assert late.deadline_probability_ratio is not None
    assert 0.3 < late.deadline_probability_ratio < 0.6
    assert "of 1,000 simulated jobs are done within 300 h, with capacity there 60.0 % of the time" in late.reasons[2]


def test_an_unknown_availability_is_not_taken_for_full() -> None:
    maybe = advise(job(deadline_hours=500), market(0.4, 1), DRAWN)
    assert (maybe.verdict, maybe.deadline_probability_ratio, maybe.calendar_hours) == (Verdict.UNKNOWN, None, None)
    assert maybe.deadline_at_best_ratio == 1
    assert "how often it is there is not known" in maybe.reasons[2]
    # What cannot be met at best, cannot be met.
    assert advise(job(deadline_hours=120), market(0.4, 1), DRAWN).verdict is Verdict.ALTERNATIVE


@given(st.floats(80, 400), st.floats(1, 2), st.floats(0.3, 1))
def test_a_later_deadline_is_never_less_likely_met(hours: float, times: float, availability: float) -> None:
    drawn = Resampling(50, 1)
    early, late = (
        deadline_probability(C, 21.0, job(deadline_hours=each), availability, drawn) for each in (hours, hours * times)
    )
    assert early <= late


def test_a_job_whose_interruptions_are_unknown_gets_no_advice_but_the_reason() -> None:
    unknown = Job("sweeps", 8, 10, None, "2 interruption events in 4.0 h: at least 5 are needed")
    found = advise(unknown, market(0.4, 1))
    assert (found.verdict, found.interval_minutes) == (Verdict.UNKNOWN, None)
    assert found.reasons == ("not known whether spot pays: 2 interruption events in 4.0 h: at least 5 are needed",)


def test_a_job_that_would_never_finish_is_told_so() -> None:
    found = advise(job(checkpointing=Checkpointing(1, 50, 30)), market(0.4, 1))  # type: ignore[arg-type]
    assert (found.verdict, found.wall_hours) == (Verdict.ALTERNATIVE, None)
    assert "its goodput on spot is effectively 0" in found.reasons[0]


def test_a_job_shorter_than_its_interval_saves_once_at_its_end() -> None:
    found = advise(job(work_hours=0.1), market(0.4, 1))
    assert found.interval_minutes == pytest.approx(6)


@pytest.mark.parametrize(
    ("about", "named"),
    [({"work_hours": 0}, "work_hours"), ({"gpus": 0}, "gpus"), ({"deadline_hours": math.nan}, "deadline_hours")],
)
def test_a_job_that_cannot_be_is_refused(about: dict[str, float], named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named}: "):
        job(**about)


def test_a_market_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^spot_micros_per_gpu_hour: "):
        market(-1, 1)
    with pytest.raises(UsageError, match=r"^availability_ratio: "):
        market(1, 1, 0)
    with pytest.raises(UsageError, match="or the reason why"):
        Job("sweeps", 8, 10, None)
    with pytest.raises(UsageError, match="expected a deadline"):
        deadline_probability(C, 20, job(), 1, DRAWN)
