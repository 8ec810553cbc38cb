from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl

from dashboards import charts


def spec(chart: charts.Chart) -> dict[str, Any]:
    found: dict[str, Any] = chart.to_dict()
    return found


def rows(chart: charts.Chart) -> list[dict[str, Any]]:
    found = spec(chart)
    return next(iter(found["datasets"].values()))


def test_names_beyond_the_palette_are_gathered_as_other_and_nothing_is_lost() -> None:
    frame = pl.DataFrame(
        {"month": [date(2026, 9, 1)] * 12, "name": [f"t{n}" for n in range(12)], "cost": list(map(float, range(12)))}
    )
    found = charts.largest(frame, "name", "cost")
    assert found.height == charts.MOST_NAMES + 1
    assert found["cost"].sum() == frame["cost"].sum()
    assert found.filter(pl.col("name") == "Other")["cost"].item() == 0 + 1 + 2 + 3 + 4


def test_the_platform_is_grey_and_what_nobody_owns_stands_out() -> None:
    found = charts.colours(["Platform", "Research", "Unassigned", *map(str, range(9))])
    assert found["Platform"] == charts.PLATFORM
    assert found["Unassigned"] == charts.ATTENTION
    assert found["Research"] == charts.CALM[0]


def test_months_keep_their_order() -> None:
    frame = pl.DataFrame({"month": [date(2026, 9, 1), date(2026, 10, 1)], "name": ["a", "b"], "cost": [1.0, None]})
    chart = charts.by_month(frame, "USD", "Team")
    assert spec(chart)["encoding"]["x"]["sort"] == ["Sep 2026"]
    assert spec(chart)["encoding"]["y"]["title"] == "USD"


def test_buckets_stack_in_one_order_with_one_colour_each() -> None:
    frame = pl.DataFrame({"use_day": [date(2026, 9, 1)] * 2, "bucket": ["down", "active"], "gpu_hours": [1.0, 2.0]})
    chart = spec(charts.buckets_by_day(frame))
    assert chart["encoding"]["color"]["scale"] == {
        "domain": ["Active", "Down"],
        "range": [charts.BUCKET_COLOURS["active"], charts.BUCKET_COLOURS["down"]],
    }


def test_a_waterfall_goes_from_before_to_after() -> None:
    bars = rows(charts.change(("Aug", 100.0), {"Hours": 30.0, "Price": -10.0}, "Sep", "USD"))
    assert [(bar["step"], bar["low"], bar["high"], bar["label"]) for bar in bars] == [
        ("Aug", 40.0, 100.0, "100"),
        ("Hours", 100.0, 130.0, "+30"),
        ("Price", 120.0, 130.0, "−10"),
        ("Sep", 40.0, 120.0, "120"),
    ]


def test_a_waterfall_below_zero_starts_at_zero() -> None:
    bars = rows(charts.change(("Aug", 10.0), {"Corrections": -30.0}, "Sep", "USD"))
    assert [(bar["low"], bar["high"]) for bar in bars] == [(0.0, 10.0), (-20.0, 10.0), (0.0, -20.0)]


def test_teams_without_idle_time_are_left_out() -> None:
    frame = pl.DataFrame(
        {
            "team": ["a", "b", "c"],
            "business_unit": ["one", "one", "two"],
            "idle_gpu_hours": [3.0, 0.0, None],
            "idle_ratio": [0.5, 0.0, None],
        }
    )
    assert [row["team"] for row in rows(charts.idle_by_team(frame))] == ["a"]


def test_teams_of_one_name_in_two_business_units_have_a_bar_each() -> None:
    frame = pl.DataFrame(
        {
            "team": ["speech", "vision", "speech"],
            "business_unit": ["Research", "Research", "Assistants"],
            "idle_gpu_hours": [3.0, 2.0, 1.0],
            "idle_ratio": [0.5, 0.2, 0.1],
        }
    )
    shown = [row["team"] for row in rows(charts.idle_by_team(frame))]
    assert shown == ["speech (Research)", "vision", "speech (Assistants)"]
