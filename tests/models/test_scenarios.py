"""What demand may become: drawn from whole weeks, together, reproducibly, and changed only as told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.demand import Scenarios, digest, trace_demand
from models.errors import UsageError
from models.scenarios import Growth, Migration, Outlook, Ramp, draw_scenarios

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
WEEK, YEAR = 168, 8_760


def history(weeks: float = 8, seed: int = 3, **changes: Any) -> Scenarios:
    """Two pools that are busy on the same days, by day and week, in two classes."""
    hours = np.arange(int(weeks * WEEK))
    random = np.random.default_rng(seed)
    weekly = np.repeat(random.gamma(4, 0.25, int(np.ceil(weeks)) + 1), WEEK)[: hours.size]
    base = (10 + 8 * np.sin(hours / 24 * 2 * np.pi)) * (hours % WEEK < 120) * weekly
    pools = np.stack([base + random.random(hours.size), 2 * base + random.random(hours.size)], axis=1)
    gpus = {"rigid": pools[np.newaxis], "dev": 0.1 * pools[np.newaxis]}
    start = MONDAY - timedelta(hours=int(hours.size))
    return replace(Scenarios(start_at=start, pools=("old", "new"), probability=np.ones(1), gpus=gpus), **changes)


def draw(past: Scenarios, outlook: Outlook | None = None, **asked: Any) -> Scenarios:
    about = {"start_at": MONDAY, "hours": 4 * WEEK, "count": 3, "seed": 11, "outlook": outlook or Outlook(), **asked}
    return draw_scenarios(past, **about)


def test_each_week_drawn_is_a_week_of_the_past_the_same_in_all_pools_and_classes() -> None:
    past = history()
    found = draw(past)
    weeks = past.gpus["rigid"].reshape(8, WEEK, 2)
    for scenario in range(3):
        for week in found.gpus["rigid"][scenario].reshape(4, WEEK, 2):
            assert sum(np.array_equal(week, known) for known in weeks) == 1
    np.testing.assert_array_equal(found.gpus["dev"], 0.1 * found.gpus["rigid"])
    assert found.probability.tolist() == [1 / 3] * 3
    assert (found.seed, found.pools, found.start_at) == (11, past.pools, MONDAY)


@pytest.mark.parametrize("later", [1, 53, 167, 168, 1_000])
def test_a_horizon_that_starts_in_mid_week_keeps_the_hour_of_the_week(later: int) -> None:
    """Every hour of the past says which hour of the week it is; so must each hour drawn from it."""
    past = history(6.5)
    hour = (np.arange(past.gpus["rigid"].shape[1]) + round((past.start_at - MONDAY) / timedelta(hours=1))) % WEEK
    said = np.repeat(hour[:, np.newaxis], 2, axis=1)[np.newaxis] + 1.0
    found = draw(replace(past, gpus={"rigid": said}), start_at=MONDAY + timedelta(hours=later), with_look_back=True)
    expected = (np.arange(4 * WEEK) + later) % WEEK + 1.0
    np.testing.assert_array_equal(found.gpus["rigid"], np.broadcast_to(expected[:, np.newaxis], (4, 4 * WEEK, 2)))


def test_a_short_past_is_drawn_by_days() -> None:
    past = history(2.5)
    found = draw(past, hours=10 * 24)
    days = past.gpus["rigid"][0][-17 * 24 :].reshape(-1, 24, 2)
    for day in found.gpus["rigid"].reshape(-1, 24, 2):
        assert sum(np.array_equal(day, known) for known in days) == 1


def test_means_by_hour_of_the_week_are_those_of_the_past() -> None:
    """Monte Carlo: the mean of 2,000 weeks drawn lies within five standard errors of the past's mean, hour by hour."""
    past = history()
    weeks = past.gpus["rigid"].reshape(8, WEEK, 2)
    drawn = draw(past, count=500).gpus["rigid"].reshape(-1, WEEK, 2)
    error = weeks.std(axis=0) / np.sqrt(drawn.shape[0])
    assert (np.abs(drawn.mean(axis=0) - weeks.mean(axis=0)) <= 5 * error + 1e-12).all()


def test_pools_stay_as_correlated_as_they_were() -> None:
    """Drawn each for itself, the pools would keep only the rhythm that they share; together they keep good and bad weeks too."""

    def correlation(first: Floats, second: Floats) -> float:
        weekly = [one.reshape(-1, WEEK).sum(axis=1) for one in (first, second)]
        return float(np.corrcoef(*weekly)[0, 1])

    past = history()
    known = correlation(past.gpus["rigid"][..., 0], past.gpus["rigid"][..., 1])
    drawn, other = draw(past, count=200).gpus["rigid"], draw(past, count=200, seed=12).gpus["rigid"]
    assert known > 0.99
    assert correlation(drawn[..., 0], drawn[..., 1]) > 0.99
    assert abs(correlation(drawn[..., 0], other[..., 1])) < 0.2


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    outlook = Outlook(growth={"rigid": Growth(low_ratio=-0.1, mode_ratio=0.2, high_ratio=0.9)})
    assert digest(draw(history(), outlook)) == digest(draw(history(), outlook))
    assert digest(draw(history(), outlook)) != digest(draw(history(), outlook, seed=12))


def test_a_scenario_does_not_depend_on_how_many_others_or_hours_are_drawn() -> None:
    outlook = Outlook(growth={"rigid": Growth(low_ratio=-0.1, mode_ratio=0.2, high_ratio=0.9)})
    few = draw(history(), outlook).gpus["rigid"]
    many = draw(history(), outlook, count=9, hours=9 * WEEK, with_look_back=True).gpus["rigid"]
    np.testing.assert_array_equal(few, many[1:4, : 4 * WEEK])
    calm = draw(history(), Outlook(growth={**outlook.growth, "dev": Growth(low_ratio=0, mode_ratio=1, high_ratio=1)}))
    np.testing.assert_array_equal(few, calm.gpus["rigid"])


def test_the_look_back_is_the_latest_weeks_in_their_order() -> None:
    past = history()
    found = draw(past, with_look_back=True)
    assert found.gpus["rigid"].shape == (4, 4 * WEEK, 2)
    np.testing.assert_array_equal(found.gpus["rigid"][0], past.gpus["rigid"][0][-4 * WEEK :])
    again = draw(past, hours=12 * WEEK, with_look_back=True).gpus["rigid"][0]
    np.testing.assert_array_equal(again[-8 * WEEK :], past.gpus["rigid"][0])
    np.testing.assert_array_equal(again[: 4 * WEEK], past.gpus["rigid"][0][-4 * WEEK :])
    assert found.probability.sum() == 1


# Growth

RANGES = st.tuples(*[st.floats(-1, 3)] * 3).map(sorted)


@given(RANGES, st.integers(0, 2), st.floats(0, 2), st.integers(0, 2**31))
@settings(max_examples=50)
def test_more_growth_is_never_less_demand(bounds: list[float], raised: int, more: float, seed: int) -> None:
    higher = [*bounds[:raised], *(max(one, bounds[raised] + more) for one in bounds[raised:])]
    less, greater = (
        draw(
            history(3),
            Outlook(growth={"rigid": Growth(low_ratio=low, mode_ratio=mode, high_ratio=high)}),
            hours=30 * WEEK,
            seed=seed,
        )
        for low, mode, high in (bounds, higher)
    )
    assert (greater.gpus["rigid"] >= less.gpus["rigid"] * (1 - 1e-12)).all()
    np.testing.assert_array_equal(greater.gpus["dev"], less.gpus["dev"])


@given(RANGES)
def test_growth_is_drawn_from_the_triangle(bounds: list[float]) -> None:
    """Closed form: P(x <= mode) = (mode - low) / (high - low), mean = (low + mode + high) / 3."""
    low, mode, high = bounds
    growth = Growth(low_ratio=low, mode_ratio=mode, high_ratio=high)
    quantiles = growth.at((np.arange(20_000) + 0.5) / 20_000)
    assert quantiles.mean() == pytest.approx(sum(bounds) / 3, abs=1e-4 * (high - low) + 1e-12)
    assert (np.diff(quantiles) >= 0).all()
    assert growth.at(np.array([0.0, 1.0])) == pytest.approx([low, high], abs=1e-12)
    if high > low:
        assert growth.at(np.array([(mode - low) / (high - low)]))[0] == pytest.approx(mode, abs=1e-6)


def test_a_fifth_more_a_year_is_a_fifth_more_after_a_year() -> None:
    steady = history(3, gpus={"rigid": np.full((1, 3 * WEEK, 2), 10.0)})
    certain = Outlook(growth={"rigid": Growth(low_ratio=0.2, mode_ratio=0.2, high_ratio=0.2)})
    found = draw(steady, certain, hours=2 * YEAR + 1).gpus["rigid"]
    assert found[:, [0, YEAR, 2 * YEAR], 0].tolist() == [pytest.approx([10, 12, 14.4])] * 3
    ending = Outlook(growth={"rigid": Growth(low_ratio=-1, mode_ratio=-1, high_ratio=-1)})
    assert draw(steady, ending).gpus["rigid"][0, :3, 0].tolist() == [10, 0, 0]


# Moves and announced work


def test_a_generation_is_left_in_a_straight_line() -> None:
    """100 GPUs of 1 reference GPU each move within 100 hours to a tenth, to GPUs that are worth 2.5."""
    steady = history(
        3, gpus={"rigid": np.stack([np.full(3 * WEEK, 100.0), np.full(3 * WEEK, 7.0)], axis=1)[np.newaxis]}
    )
    move = Migration(
        from_pool="old",
        to_pool="new",
        starts_at=MONDAY + timedelta(hours=10),
        until_at=MONDAY + timedelta(hours=110),
        remaining_ratio=0.1,
        to_reference_gpus=2.5,
    )
    found = draw(steady, Outlook(migrations=(move,))).gpus["rigid"][0]
    assert found[[0, 10, 60, 110, 600], 0].tolist() == pytest.approx([100, 100, 55, 10, 10])
    assert found[[0, 10, 60, 110, 600], 1].tolist() == pytest.approx([7, 7, 25, 43, 43])
    np.testing.assert_allclose(found[:, 0] + 2.5 * found[:, 1], 117.5)


def test_announced_work_comes_on_top() -> None:
    past = history(gpus={"rigid": np.full((1, 8 * WEEK, 2), 10.0)})
    ramp = Ramp(
        workload_class="inference",
        pool="new",
        starts_at=MONDAY + timedelta(hours=100),
        full_from_at=MONDAY + timedelta(hours=200),
        gpus=64,
    )
    at_once = replace(ramp, pool="old", full_from_at=ramp.starts_at)
    found = draw(past, Outlook(ramps=(ramp, at_once, replace(ramp, workload_class="dev", gpus=0)))).gpus
    assert set(found) == {"rigid", "inference"}
    assert (found["rigid"] == 10).all()
    assert found["inference"][2, [99, 100, 125, 200, 671], 1].tolist() == [0, 0, 16, 64, 64]
    assert found["inference"][2, [99, 100, 671], 0].tolist() == [0, 64, 64]


def test_classes_that_want_nothing_are_left_out() -> None:
    past = history()
    assert set(draw(replace(past, gpus={**past.gpus, "inference": 0 * past.gpus["dev"]})).gpus) == {"rigid", "dev"}


# A real cluster


def test_a_real_month_drawn_again_wants_as_much(shared_data: Path) -> None:
    """Earth, May 2020, 16 virtual clusters: the total of four weeks drawn is within what its own weeks span."""
    import polars as pl  # noqa: PLC0415 - only here

    trace = pl.read_parquet(shared_data / "helios-earth" / "earth_vc_minute.parquet")
    past = trace_demand(trace, workload_class="deferrable")
    found = draw_scenarios(
        past, start_at=datetime(2020, 6, 1, tzinfo=UTC), hours=4 * WEEK, count=50, seed=1, with_look_back=True
    )
    weeks = past.total()[0, -4 * WEEK :].sum(axis=1).reshape(4, WEEK).sum(axis=1)
    totals = found.total().sum(axis=(1, 2))
    assert (totals >= 0.9 * 4 * weeks.min()).all()
    assert (totals <= 1.1 * 4 * weeks.max()).all()
    assert totals.std() > 0


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": {"rigid": np.ones((1, 1, 2))}}, "the history has 1 hours, expected 24 or more"),
        ({"gpus": {"rigid": np.zeros((1, 99, 2))}}, "wants no GPU in any hour"),
        ({"gpus": {}}, "wants no GPU in any hour"),
        ({"gpus": {"batch": np.ones((1, 99, 2))}}, "history: found workload class 'batch', expected one of inference"),
        ({"probability": np.full(2, 0.5)}, "found 2 scenarios, expected one"),
    ],
)
def test_a_past_that_cannot_be_drawn_from(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(history(**change))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"hours": 0}, "hours: found 0, expected 1"),
        ({"count": 0}, "count: found 0, expected 1"),
        ({"seed": -1}, "seed: found -1, expected 0"),
        ({"start_at": MONDAY.replace(tzinfo=None)}, "expected a whole hour in UTC"),
        ({"start_at": MONDAY.replace(minute=30)}, "expected a whole hour in UTC"),
    ],
)
def test_a_horizon_that_is_none(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(history(), **asked)


MOVE = {"from_pool": "old", "to_pool": "new", "starts_at": MONDAY, "until_at": MONDAY}
WORK = {"workload_class": "dev", "pool": "old", "starts_at": MONDAY, "full_from_at": MONDAY, "gpus": 1}


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (
            Growth,
            {"low_ratio": -1.5, "mode_ratio": 0, "high_ratio": 1},
            "found low -1.5, mode 0, high 1, expected -1 <=",
        ),
        (Growth, {"low_ratio": 0, "mode_ratio": 2, "high_ratio": 1}, "expected -1 <= low <= mode <= high"),
        (Growth, {"low_ratio": 0, "mode_ratio": 0, "high_ratio": float("nan")}, "found low 0, mode 0, high nan"),
        (Migration, {**MOVE, "to_pool": "old"}, "migration from old to old: expected two pools"),
        (Migration, {**MOVE, "remaining_ratio": 1.1}, "remaining_ratio: found 1.1, expected 0 to 1"),
        (Migration, {**MOVE, "to_reference_gpus": 0}, "reference GPUs: found 1 and 0, expected above 0"),
        (Migration, {**MOVE, "until_at": MONDAY - timedelta(1)}, "until_at: found 2026-01-04.*expected 2026-01-05"),
        (Migration, {**MOVE, "starts_at": MONDAY.replace(tzinfo=None)}, "expected instants with their zone"),
        (Ramp, {**WORK, "workload_class": "batch"}, "found workload class 'batch'"),
        (Ramp, {**WORK, "gpus": -4}, "gpus: found -4, expected 0 or more; less demand is a growth below 0"),
        (Ramp, {**WORK, "starts_at": MONDAY + timedelta(1)}, "full_from_at: found 2026-01-05.*expected 2026-01-06"),
        (Outlook, {"growth": {"batch": None}}, "growth: found workload class 'batch'"),
    ],
)
def test_an_outlook_that_means_nothing(kind: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kind(**fields)


def test_an_outlook_on_a_pool_that_does_not_exist() -> None:
    for outlook in (
        Outlook(migrations=(Migration(**{**MOVE, "to_pool": "B300"}),)),
        Outlook(ramps=(Ramp(**{**WORK, "pool": "B300"}),)),
    ):
        with pytest.raises(UsageError, match="found pool 'B300', expected one of old, new"):
            draw(history(), outlook)
