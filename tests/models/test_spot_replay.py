"""Checkpointing simulated against the closed form, and replayed on traces against a replay written step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import UsageError
from models.spot import Checkpointing, exact_minutes, expected_run, goodput_ratio
from models.spot_replay import (
    ExponentialSpells,
    Resampling,
    TraceSpells,
    gains,
    replay,
    simulate_wall_minutes,
    trace_report,
)

WORK_MINUTES = 2000
REPLICATIONS = 3000
MEASURED = [(1440, 5, 10), (360, 5, 10), (120, 2, 8), (60, 1, 5), (60, 5, 10), (15, 5, 10)]

spell_lists = st.lists(st.floats(0.01, 1000), min_size=1, max_size=30)


@pytest.mark.parametrize("notice", [0.0, 0.6])
@pytest.mark.parametrize("job", MEASURED)
def test_the_simulated_wall_time_is_the_expected_one(job: tuple[float, float, float], notice: float) -> None:
    """3,000 replications, within three standard errors. The work is rounded to whole intervals, as the closed form has it."""
    c = Checkpointing(*job, notice_success_ratio=notice)
    tau = exact_minutes(c)
    # With notice, an interval begins anew after each success; over much work the last one does not matter.
    work = round((WORK_MINUTES if not notice else 40 * tau) / tau) * tau
    run = expected_run(c, tau, work)
    assert run is not None
    spells = ExponentialSpells(c.mtbf_minutes, 1.0, Resampling(REPLICATIONS, 11))
    simulated = simulate_wall_minutes(c, tau, work, spells, until_minutes=run.wall_minutes * 5)
    error = simulated.std(ddof=1) / math.sqrt(REPLICATIONS)
    assert abs(simulated.mean() - run.wall_minutes) < 3 * error + (0.5 * (tau + c.checkpoint_minutes) if notice else 0)


def test_the_interruptions_are_wall_time_over_their_mean() -> None:
    """A stock of interruptions seen one by one: each of a job's failed attempts is followed by a restart."""
    c, tau, intervals = Checkpointing(60, 5, 10), 20.0, 50
    random = np.random.default_rng(5)
    counted = []
    for _ in range(400):
        now, done, spell, count = 0.0, 0, random.exponential(60), 0
        left = spell
        while done < intervals:
            if left >= tau + 5:
                left, now, done = left - tau - 5, now + tau + 5, done + 1
                continue
            now, count, left = now + left, count + 1, random.exponential(60)
            while left < 10:
                now, count, left = now + left, count + 1, random.exponential(60)
            now, left = now + 10, left - 10
        counted.append(count)
    run = expected_run(c, tau, tau * intervals)
    assert run is not None
    error = np.std(counted) / math.sqrt(len(counted))
    assert abs(np.mean(counted) - run.interruption_count) < 3 * error


def test_waits_make_the_calendar_longer_by_the_availability() -> None:
    c, tau = Checkpointing(60, 5, 10), 20.0
    run = expected_run(c, tau, 200 * tau)
    assert run is not None
    spells = ExponentialSpells(60, 0.5, Resampling(1000, 2))
    ends = simulate_wall_minutes(c, tau, 200 * tau, spells, until_minutes=run.wall_minutes * 10)
    error = ends.std() / math.sqrt(len(ends))
    first_wait = 0.5 * 60
    assert abs(ends.mean() - run.wall_minutes / 0.5 - first_wait) < 3 * error


def test_a_job_is_done_to_the_minute_where_all_spells_are_alike() -> None:
    """Spells of 100: two intervals of 40 + 5, then 10 lost; after a restart of 15 the third needs 45 more."""
    c = Checkpointing(1, 5, 15)
    trace = TraceSpells(np.array([100.0]), np.array([7.0]), Resampling(3, 0))
    assert simulate_wall_minutes(c, 40, 120, trace, until_minutes=1e4).tolist() == [7 + 100 + 7 + 15 + 45] * 3


def test_what_is_not_done_in_time_is_infinite() -> None:
    c = Checkpointing(1, 5, 15)
    never = TraceSpells(np.array([50.0]), np.array([0.0]), Resampling(2, 0))
    assert simulate_wall_minutes(c, 60, 120, never, until_minutes=1e4).tolist() == [math.inf] * 2
    enough = TraceSpells(np.array([100.0]), np.array([7.0]), Resampling(1, 0))
    assert simulate_wall_minutes(c, 40, 120, enough, until_minutes=173).tolist() == [math.inf]


def test_the_same_seed_gives_the_same_times() -> None:
    c = Checkpointing(60, 5, 10, 0.5)
    first, again, other = (
        simulate_wall_minutes(c, 20, 500, ExponentialSpells(60, 0.8, Resampling(50, seed)), until_minutes=1e5)
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def replayed_by_hand(c: Checkpointing, tau: float, spell: float) -> float:
    """Useful minutes of one spell, minute of work by minute of work."""
    left, saved = spell - c.restart_minutes, 0.0
    while left >= tau + c.checkpoint_minutes:
        left, saved = left - tau - c.checkpoint_minutes, saved + tau
    return saved + c.notice_success_ratio * min(max(left, 0), tau)


@given(spell_lists, st.floats(5, 300), st.sampled_from([0.0, 0.3]))
def test_a_replay_is_what_happens_step_by_step(spells: list[float], tau: float, notice: float) -> None:
    c = Checkpointing(1, 3, 8, notice)
    by_hand = [replayed_by_hand(c, tau, spell) for spell in spells]
    # An interval that just fits, or just does not, may go either way by rounding.
    assert gains(c, np.array([tau]), np.array(spells))[0] == pytest.approx(by_hand, abs=1e-6)


@given(spell_lists)
def test_no_interval_is_better_than_the_best_in_hindsight(spells: list[float]) -> None:
    c, up = Checkpointing(1, 3, 8), np.array(spells)
    report = trace_report(c, up, Resampling(2, 0))
    dense = np.geomspace(0.1, 1000, 2000)
    # The last digit of a spell decides whether an interval fits it; and below a hundredth of a spell none was tried.
    tried = dense[dense > (up.max() - 8) / 100]
    assert gains(c, tried, up).sum(axis=1).max() / up.sum() <= report.at_best.goodput_ratio * (1 + 1e-8)
    assert report.at_best.goodput_ratio >= report.at_exact.goodput_ratio


def test_a_replay_of_exponential_spells_is_the_formula() -> None:
    c = Checkpointing(60, 5, 10)
    up = np.random.default_rng(3).exponential(60, 20_000)
    tau = exact_minutes(c)
    found = replay(c, np.array([tau]), up, Resampling(100, 4))[0]
    assert found.low_ratio < goodput_ratio(c, tau) < found.high_ratio


def test_blocks_keep_runs_of_bad_luck_together() -> None:
    """Long spells all come first, short ones after them: whole blocks spread the goodput wider than single spells."""
    c, up = Checkpointing(1, 3, 8), np.repeat([200.0, 12.0], 50)
    alone, together = (replay(c, np.array([30.0]), up, Resampling(500, 1, block))[0] for block in (1, 25))
    assert together.high_ratio - together.low_ratio > 2 * (alone.high_ratio - alone.low_ratio)
    assert together.goodput_ratio == alone.goodput_ratio


@pytest.mark.parametrize(
    ("up", "block", "complaint"),
    [
        ([], 1, "at least one, found 0 and 0"),
        ([0.0, 0.0], 1, "at least one running spell above 0"),
        ([5.0, math.nan], 1, "finite"),
        ([5.0, -1.0], 1, "0 minutes or more"),
        ([5.0, 6.0], 3, "expected a block of 1 to 2 spells, found 3"),
    ],
)
def test_spells_that_cannot_be_are_refused(up: list[float], block: int, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        trace_report(Checkpointing(1, 3, 8), np.array(up), Resampling(10, 0, block))


def test_a_simulation_that_would_take_minutes_is_refused() -> None:
    spells = ExponentialSpells(0.001, 1.0, Resampling(1000, 0))
    with pytest.raises(UsageError, match="fewer replications or a shorter time"):
        simulate_wall_minutes(Checkpointing(0.001, 1e-6, 0), 1, 10, spells, until_minutes=1e6)
