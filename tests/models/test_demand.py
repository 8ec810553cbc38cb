"""Demand by the hour: levels and their hours, and a real cluster's minutes as demand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from models.demand import Scenarios, digest, load_duration, trace_demand
from models.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAY = datetime(2020, 5, 1, tzinfo=UTC)
WHOLE_GPUS = arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=st.integers(0, 40))


@pytest.fixture(scope="module")
def earth(shared_data: Path) -> pl.DataFrame:
    return pl.read_parquet(shared_data / "helios-earth" / "earth_vc_minute.parquet")


def test_a_curve_by_hand() -> None:
    """Two equally likely days of four hours: 3 GPUs are wanted in half an hour of four, 1 at least in three."""
    gpus = np.array([[3.0, 1, 1, 0], [1, 1, 1, 0]])
    curve = load_duration(gpus, np.array([0.5, 0.5]))
    assert curve.gpus.tolist() == [3, 1, 0]
    assert curve.hours.tolist() == [0.5, 2.5, 1]
    assert curve.gpu_hours == 4
    assert curve.at_least_ratio(np.array([4.0, 3, 2, 1, 0.5, 0])).tolist() == [0, 0.125, 0.125, 0.75, 0.75, 1]


@given(WHOLE_GPUS, st.integers(2, 30))
def test_the_area_is_all_gpu_hours_however_thin(gpus: Floats, steps: int) -> None:
    probability = np.full(gpus.shape[0], 1 / gpus.shape[0])
    curve = load_duration(gpus, probability)
    expected = float((probability[:, np.newaxis] * gpus).sum())
    assert curve.gpu_hours == pytest.approx(expected, rel=1e-12, abs=1e-12)
    thin = curve.thinned(steps)
    assert thin.gpu_hours == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert thin.hours.sum() == pytest.approx(gpus.shape[1], rel=1e-12)
    assert (np.diff(thin.gpus) <= 1e-9).all()
    assert thin.gpus.size <= steps


@given(WHOLE_GPUS)
def test_one_history_of_whole_gpus_adds_up_exactly(gpus: Floats) -> None:
    curve = load_duration(gpus[:1], np.ones(1))
    assert curve.gpu_hours == gpus[0].sum()
    for level in (0, 1, 7, 40):
        assert curve.at_least_ratio(np.array([level]))[0] == pytest.approx((gpus[0] >= level).mean())


def test_the_hours_above_a_level_are_those_counted_one_by_one() -> None:
    random = np.random.default_rng(7)
    gpus, probability = random.integers(0, 90, (3, 500)).astype(float), np.array([0.2, 0.3, 0.5])
    levels = np.arange(0, 95, dtype=float)
    counted = (probability[:, np.newaxis, np.newaxis] * (gpus[:, :, np.newaxis] >= levels)).sum(axis=(0, 1)) / 500
    np.testing.assert_allclose(load_duration(gpus, probability).at_least_ratio(levels), counted, atol=1e-12)


def test_a_short_peak_survives_thinning() -> None:
    gpus = np.concatenate([[1_000.0], np.linspace(10, 20, 8_759)])[np.newaxis]
    curve = load_duration(gpus, np.ones(1))
    assert curve.gpus.size == 8_760
    thin = curve.thinned(40)
    assert thin.gpus.size <= 40
    assert thin.gpus[0] == pytest.approx(1_000)
    assert thin.gpu_hours == pytest.approx(gpus.sum(), rel=1e-12)


def test_nothing_to_draw_says_so() -> None:
    with pytest.raises(UsageError, match="no hour"):
        load_duration(np.zeros((1, 0)), np.ones(1))
    with pytest.raises(UsageError, match="steps: found 1, expected 2"):
        load_duration(np.ones((1, 5)), np.ones(1)).thinned(1)


def test_equal_demand_has_an_equal_digest() -> None:
    gpus = np.arange(6.0).reshape(1, 3, 2)
    first = Scenarios(start_at=MAY, pools=("a", "b"), probability=np.ones(1), gpus={"dev": gpus, "rigid": gpus})
    same = replace(first, gpus={"rigid": gpus.copy(), "dev": np.asfortranarray(gpus)})
    assert digest(first) == digest(same)
    changed = gpus.copy()
    changed[0, 2, 1] += 1e-9
    others = [
        replace(first, start_at=MAY + timedelta(hours=1)),
        replace(first, pools=("b", "a")),
        replace(first, seed=1),
        replace(first, gpus={"dev": gpus, "inference": gpus}),
        replace(first, gpus={"dev": gpus, "rigid": changed}),
        replace(first, gpus={"dev": gpus, "rigid": gpus.reshape(1, 2, 3)}),
    ]
    assert len({digest(first), *map(digest, others)}) == 7


def test_a_real_cluster_wanted_what_ran_and_what_waited(earth: pl.DataFrame) -> None:
    """HeliosData, Earth, May 2020: 424,772.6167 GPU-hours used and 45,671.6167 waited for."""
    by_account = trace_demand(earth, workload_class="rigid")
    whole = trace_demand(earth, workload_class="rigid", by_account=False)
    assert (by_account.start_at, len(by_account.pools), whole.pools) == (MAY, 16, ("all",))
    assert by_account.gpus["rigid"].shape == (1, 744, 16)
    for found in (by_account, whole):
        assert found.total().sum() == pytest.approx(424_772.6167 + 45_671.6167, abs=1e-3)
    np.testing.assert_allclose(by_account.total().sum(axis=2, keepdims=True), whole.total())
    quota = 636_864 / 744
    assert load_duration(whole.total()[:, :, 0], whole.probability).at_least_ratio(np.array([quota]))[0] > 0


def test_a_trace_with_a_missing_minute_or_hour_is_refused(earth: pl.DataFrame) -> None:
    minute = (pl.col("vc") == "vcvlY") & (pl.col("time") == datetime(2020, 5, 3, 4, 5))  # noqa: DTZ001 - as in the trace
    hour = (pl.col("vc") == "vcvlY") & (pl.col("time").dt.truncate("1h") == datetime(2020, 5, 3, 4))  # noqa: DTZ001
    with pytest.raises(UsageError, match="vcvlY, 2020-05-03 04:00: found 59 rows of 59 minutes"):
        trace_demand(earth.filter(~minute), workload_class="rigid")
    with pytest.raises(UsageError, match="vcvlY, 2020-05-03 04:00: found 61 rows of 60 minutes"):
        trace_demand(pl.concat([earth, earth.filter(minute)]), workload_class="rigid")
    with pytest.raises(UsageError, match="an hour is missing"):
        trace_demand(earth.filter(~hour), workload_class="rigid")
