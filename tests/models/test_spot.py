"""Checkpoint intervals against what Daly published, against scipy, and against their own optimality."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

from models.errors import UsageError
from models.spot import (
    LEAST_GOODPUT_RATIO,
    Checkpointing,
    daly_minutes,
    exact_minutes,
    expected_run,
    goodput_ratio,
    lambert_w0,
    regret_ratio,
    young_minutes,
)

WORK_MINUTES = 2000

# M, delta, R; intervals exact / Daly / Young; expected wall time, goodput; regret of Young and of Daly, as measured once.
MEASURED = [
    ((1440, 5, 10), (116.69, 116.69, 120.00), 2191.5, 0.913, 0.00003, 2e-13),
    ((360, 5, 10), (56.71, 56.71, 60.00), 2440.9, 0.819, 0.00025, 3e-11),
    ((120, 2, 8), (20.60, 20.60, 21.91), 2580.8, 0.775, 0.00033, 5e-11),
    ((60, 1, 5), (10.30, 10.30, 10.95), 2624.2, 0.762, 0.00033, 5e-11),
    ((60, 5, 10), (21.28, 21.27, 24.49), 3661.4, 0.546, 0.0036, 1.6e-8),
    ((15, 5, 10), (9.17, 9.14, 12.25), 10016.6, 0.200, 0.0277, 2.4e-6),
]

jobs = st.builds(
    Checkpointing,
    mtbf_minutes=st.floats(1, 1e5),
    checkpoint_minutes=st.floats(0.01, 100),
    restart_minutes=st.floats(0, 100),
    notice_success_ratio=st.just(0.0) | st.floats(0, 0.95),
)


@pytest.mark.parametrize(("mtbf", "published"), [(24 * 60, 116.69), (6 * 60, 56.71), (15, 9.14)])
def test_the_intervals_that_daly_published(mtbf: float, published: float) -> None:
    assert round(daly_minutes(Checkpointing(mtbf, 5, 10)), 2) == published


@pytest.mark.parametrize("measured", MEASURED)
def test_the_measured_table_comes_out_to_its_last_digit(measured: tuple[Any, ...]) -> None:
    job, intervals, wall, goodput, young_regret, daly_regret = measured
    c = Checkpointing(*job)
    assert tuple(round(each(c), 2) for each in (exact_minutes, daly_minutes, young_minutes)) == intervals
    run = expected_run(c, exact_minutes(c), WORK_MINUTES)
    assert run is not None
    assert round(run.wall_minutes, 1) == wall
    assert round(goodput_ratio(c, exact_minutes(c)), 3) == goodput
    # The smallest of them are differences of numbers near 1, good to a few 1e-16.
    assert regret_ratio(c, young_minutes(c)) == pytest.approx(young_regret, rel=0.06)
    assert regret_ratio(c, daly_minutes(c)) == pytest.approx(daly_regret, rel=0.15)


@given(st.floats(-math.exp(-1) + 1e-15, -1e-300))
@example(-0.1)
@example(-1e-12)
def test_lambert_w_is_scipys(z: float) -> None:
    # At the branch point the curve is vertical: half of the digits of z are all that can be told.
    assert lambert_w0(z) == pytest.approx(float(lambertw(z).real), rel=1e-9, abs=3e-8 if z < -0.3678794 else 0)


def test_at_its_branch_point_lambert_w_is_minus_one() -> None:
    assert lambert_w0(-math.exp(-1)) == pytest.approx(-1, abs=3e-8)


@pytest.mark.parametrize("z", [-0.4, 0.0, 1.0, math.nan])
def test_lambert_w_refuses_what_is_not_on_its_branch(z: float) -> None:
    with pytest.raises(ValueError, match="expected a number in"):
        lambert_w0(z)


@given(jobs)
def test_no_interval_is_better_than_the_exact_one(c: Checkpointing) -> None:
    tau = exact_minutes(c)
    here = goodput_ratio(c, tau)
    others = tau * np.geomspace(0.01, 100, 81)
    assert max(goodput_ratio(c, float(other)) for other in others) <= here * (1 + 1e-12)


@given(jobs)
def test_a_numerical_search_finds_the_same_interval(c: Checkpointing) -> None:
    tau = exact_minutes(c)
    assume(goodput_ratio(c, tau) > 1e-3)
    found = minimize_scalar(
        lambda log_tau: -goodput_ratio(c, math.exp(log_tau)),
        bounds=(math.log(tau) - 3, math.log(tau) + 3),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert -found.fun == pytest.approx(goodput_ratio(c, tau), rel=1e-9)


@given(jobs, st.floats(1, 50))
def test_more_frequent_interruptions_never_raise_goodput(c: Checkpointing, times: float) -> None:
    """Without notice, that is: one that suffices is a checkpoint for nothing, which a frequent one would give often."""
    c = replace(c, notice_success_ratio=0)
    worse = replace(c, mtbf_minutes=c.mtbf_minutes / times)
    for tau in (exact_minutes(c), 30.0):
        assert goodput_ratio(worse, tau) <= goodput_ratio(c, tau) * (1 + 1e-12)
    assert goodput_ratio(worse, exact_minutes(worse)) <= goodput_ratio(c, exact_minutes(c)) * (1 + 1e-12)


@given(jobs, st.floats(0.01, 0.9))
def test_notice_never_lowers_goodput_and_lengthens_the_interval(c: Checkpointing, more: float) -> None:
    p = c.notice_success_ratio + (0.999 - c.notice_success_ratio) * more
    noticed = replace(c, notice_success_ratio=p)
    assert exact_minutes(noticed) >= exact_minutes(c)
    assert goodput_ratio(noticed, exact_minutes(c)) >= goodput_ratio(c, exact_minutes(c)) * (1 - 1e-12)


@given(jobs, st.floats(0.1, 10))
def test_the_parts_of_the_time_add_up_to_it(c: Checkpointing, times: float) -> None:
    run = expected_run(c, exact_minutes(c) * times, WORK_MINUTES)
    assume(run is not None)
    assert run is not None
    parts = run.work_minutes + run.checkpoint_minutes + run.restart_minutes + run.lost_minutes
    assert parts == pytest.approx(run.wall_minutes, rel=1e-9)
    assert run.wall_minutes == pytest.approx(run.work_minutes / goodput_ratio(c, exact_minutes(c) * times))
    assert run.interruption_count == pytest.approx(run.wall_minutes / c.mtbf_minutes)


def test_without_notice_it_is_dalys_wall_time() -> None:
    c, tau = Checkpointing(60, 5, 10), 33.0
    run = expected_run(c, tau, WORK_MINUTES)
    assert run is not None
    daly = 60 * math.exp(10 / 60) * math.expm1((tau + 5) / 60) * WORK_MINUTES / tau
    assert run.wall_minutes == pytest.approx(daly, rel=1e-12)
    assert run.checkpoint_count == pytest.approx(WORK_MINUTES / tau)
    assert run.lost_minutes == pytest.approx((60 * math.expm1((tau + 5) / 60) - tau - 5) * WORK_MINUTES / tau)


@given(
    st.floats(1e-9, 1e9),
    st.floats(1e-9, 1e9),
    st.floats(0, 1e9),
    st.floats(0, 0.999),
    st.floats(1e-6, 1e9),
)
def test_no_job_is_so_extreme_that_a_figure_is_no_number(
    mtbf: float, checkpoint: float, restart: float, notice: float, tau: float
) -> None:
    c = Checkpointing(mtbf, checkpoint, restart, notice)
    for interval in (exact_minutes(c), young_minutes(c), daly_minutes(c)):
        assert 0 <= interval < math.inf
    goodput = goodput_ratio(c, tau)
    assert 0 <= goodput <= 1
    run = expected_run(c, tau, WORK_MINUTES)
    assert (run is None) == (goodput < LEAST_GOODPUT_RATIO)
    assert run is None or all(math.isfinite(getattr(run, name)) for name in run.__slots__)


def test_a_job_that_never_gets_through_says_so() -> None:
    c = Checkpointing(1, 50, 1000)
    assert goodput_ratio(c, 10) == 0
    assert expected_run(c, 10, WORK_MINUTES) is None
    assert regret_ratio(c, 10) is None


def test_a_tiny_checkpoint_keeps_its_digits() -> None:
    """Young's rule is exact in the limit; 1 + W0 computed naively would be 0 here."""
    c = Checkpointing(1e9, 1e-9, 0)
    assert exact_minutes(c) == pytest.approx(young_minutes(c), rel=1e-6)


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ((0, 5, 10), "mtbf_minutes"),
        ((math.nan, 5, 10), "mtbf_minutes"),
        ((math.inf, 5, 10), "mtbf_minutes"),
        ((60, 0, 10), "checkpoint_minutes"),
        ((60, 5, -1), "restart_minutes"),
        ((60, 5, 10, 1.0), "notice_success_ratio"),
    ],
)
def test_what_cannot_be_is_refused_by_name(numbers: tuple[float, ...], named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named}: expected a number"):
        Checkpointing(*numbers)
