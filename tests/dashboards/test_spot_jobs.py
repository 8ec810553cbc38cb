from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from dashboards import spot_jobs
from models.interruptions import SPELLS, fit
from models.spot import Checkpointing
from models.spot_advice import Job
from models.spot_replay import Resampling, trace_report
from tests.dashboards.test_procurement import book

START = datetime(2026, 9, 1, tzinfo=UTC)


def spells(*rows: tuple[int | None, bool | None], group: str = "a") -> pl.DataFrame:
    """Attempts a day apart: hours up, and whether they were interrupted."""
    told = [
        (
            str(number),
            group,
            None if hours is None else hours * 3_600,
            cut,
            START + timedelta(days=number, hours=hours or 0) if cut else None,
            1,
        )
        for number, (hours, cut) in enumerate(rows)
    ]
    return pl.DataFrame(told, schema=SPELLS, orient="row")


def test_dalys_published_interval_stands_beside_the_others() -> None:
    found = spot_jobs.intervals(Checkpointing(360, 5, 10))
    assert found["interval_minutes"][1] == pytest.approx(56.71, abs=0.005)
    assert found["goodput_ratio"][0] == found["goodput_ratio"].max()


def test_the_goodput_curve_is_highest_around_the_optimum() -> None:
    c = Checkpointing(360, 5, 10)
    best = spot_jobs.intervals(c)["interval_minutes"][0]
    curve = spot_jobs.goodput_curve(c, best)
    assert curve.sort("goodput_ratio")["interval_minutes"][-1] == pytest.approx(best, rel=0.1)


def test_a_fit_is_a_sentence_with_its_bounds_and_unknown_says_why() -> None:
    [known] = fit(spells(*[(10, True)] * 8))
    assert "every **10.0 h** on average" in spot_jobs.mtbf_in_words(known)
    assert "at 95 % confidence" in spot_jobs.mtbf_in_words(known)
    [unknown] = fit(spells((10, False), (10, True)))
    assert "at least 5 events are needed" in spot_jobs.mtbf_in_words(unknown)
    assert "longer than" in spot_jobs.mtbf_in_words(unknown)
    assert spot_jobs.mtbf_minutes(known) == 600
    assert spot_jobs.mtbf_minutes(unknown) is None
    assert spot_jobs.fitted([known, unknown])["mtbf_hours"].to_list() == [10.0, None]


def test_attempts_laid_end_to_end_are_cut_where_one_was_interrupted() -> None:
    told = spells((2, False), (1, True), (None, None), (4, True), (5, False))
    assert spot_jobs.between_interruptions(told, "a").tolist() == [180, 240]
    assert spot_jobs.between_interruptions(told, "other").tolist() == []


def test_each_class_gets_its_advice_or_what_is_missing_for_it() -> None:
    groups = pl.DataFrame(
        {
            "group": ["train", "serve"],
            "gpu_model": ["H100-80GB", "L40S"],
            "gpus": [8, 1],
            "checkpoint_minutes": [5.0, None],
        }
    )
    prices = book(
        {"offer_id": "od", "instrument": "on_demand", "hourly_micros": 7_000_000},
        {"offer_id": "spot", "instrument": "spot", "hourly_micros": 1_000_000},
    )
    c = Checkpointing(360, 1, 10)
    found = spot_jobs.by_class(groups, prices, Job("x", 1, 24, c), c)
    train, serve = found.to_dicts()
    assert train["verdict"] == "spot pays"
    assert train["spot_cost"] == pytest.approx(1 / train["goodput_ratio"], rel=0.02)
    assert serve["verdict"] == "unknown"
    assert serve["interval_minutes"] is None
    assert serve["why"] == "not known: how long its checkpoints take, a spot price of L40S, another price of L40S"


def test_a_replay_stands_beside_its_formula() -> None:
    up = spot_jobs.between_interruptions(spells(*[(6, True)] * 20), "a")
    found = spot_jobs.replayed(trace_report(Checkpointing(360, 5, 10), up, Resampling(50, 1, 5)))
    assert found["low_ratio"].to_list()[0] is None
    assert found["goodput_ratio"][2] >= found["goodput_ratio"][1]


def test_what_is_entered_becomes_micros_and_ratios() -> None:
    assert spot_jobs.micros(1.5) == 1_500_000
    assert spot_jobs.price_of(1_500_000) == 1.5
    assert spot_jobs.price_of(None) is None
    assert spot_jobs.from_percent(12.5) == 0.125
