from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards import procurement_charts as charts
from models.demand import load_duration
from models.prices import Instrument
from models.procurement.curve import Line, envelope, mix

DEMAND = Line(offer_id="od", instrument=Instrument.ON_DEMAND, fixed_micros=0, hourly_micros=6_000_000)
RESERVED = Line(offer_id="ri", instrument=Instrument.RESERVED, fixed_micros=3_000_000, hourly_micros=0)


def drawn(chart: Any, mark: str) -> list[dict[str, Any]]:
    """Rows behind the first layer with a mark."""
    spec = chart.to_dict()
    layer = next(one for one in spec["layer"] if one["mark"]["type"] == mark)
    rows: list[dict[str, Any]] = spec["datasets"][layer.get("data", spec.get("data", {}))["name"]]
    return rows


def test_a_line_costs_its_fixed_price_unused_and_both_in_full_use() -> None:
    found = charts.screening_lines([DEMAND, RESERVED]).filter(pl.col("used_ratio").is_in([0.0, 1.0]))
    assert found["cost"].to_list() == [0.0, 6.0, 3.0, 3.0]
    assert found["instrument"].unique(maintain_order=True).to_list() == ["On demand", "Reservation"]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60).filter(any))
def test_the_bands_together_are_the_demand(gpus: list[int]) -> None:
    demand = np.array([gpus], dtype=float)
    duration = load_duration(demand, np.ones(1))
    found = charts.bands(duration, mix([DEMAND, RESERVED], demand))
    # Each step is as wide as the distance to the next one of its band, the last to the right end.
    area = 0.0
    for (_,), band in found.group_by(["instrument"]):
        rows = band.sort("hours_ratio").filter(pl.col("hours_ratio") < 1)
        edges = np.append(rows["hours_ratio"].to_numpy(), band["hours_ratio"].max())
        widths = np.diff(edges)
        last = widths[-1] if len(widths) else 0.0
        steps = np.cumsum(duration.hours) / duration.hours.sum()
        ends = np.array([steps[np.searchsorted(steps, start, side="right")] for start in rows["hours_ratio"]])
        assert last >= 0
        area += float(((rows["high"] - rows["low"]).to_numpy() * (ends - rows["hours_ratio"].to_numpy())).sum())
    assert area == pytest.approx(np.mean(gpus))


def test_the_picture_marks_where_the_cheapest_changes_and_what_is_held() -> None:
    demand = np.array([[8.0, 4.0, 4.0, 0.0]])
    served = charts.bands(load_duration(demand, np.ones(1)), mix([DEMAND, RESERVED], demand))
    top, bottom = charts.mix_picture([DEMAND, RESERVED], envelope([DEMAND, RESERVED]), served, 6.0, "USD")
    assert drawn(top, "rule") == [{"used_ratio": 0.5}]
    spec = bottom.to_dict()
    texts = [row["text"] for rows in spec["datasets"].values() for row in rows if "text" in row]
    assert texts == ["held already: 6 GPUs"]


def test_without_anything_held_no_line_is_drawn_across() -> None:
    demand = np.array([[1.0]])
    served = charts.bands(load_duration(demand, np.ones(1)), mix([DEMAND], demand))
    _, bottom = charts.mix_picture([DEMAND], envelope([DEMAND]), served, 0.0, "USD")
    assert not any("text" in row for rows in bottom.to_dict()["datasets"].values() for row in rows)


def test_a_saving_shows_its_spread_and_a_baseline_without_price_is_left_out() -> None:
    frame = pl.DataFrame(
        {"name": ["a", "b"], "saving": [-1_500.0, None], "low_saving": [-2_000.0, None], "high_saving": [10.0, None]}
    )
    [row] = drawn(charts.savings(frame, "USD"), "bar")
    assert (row["low_saving"], row["high_saving"], row["label"]) == (-2000.0, 10.0, "−1,500")


def test_used_and_unused_money_stack_to_what_was_committed() -> None:
    frame = pl.DataFrame(
        {"bill_month": [date(2026, 10, 1), date(2026, 9, 1)], "used": [9.0, 7.0], "unused": [1.0, None]}
    )
    rows = next(iter(charts.commitment_use(frame, "USD").to_dict()["datasets"].values()))
    assert {(row["label"], row["what"], row["cost"]) for row in rows} == {
        ("Oct 2026", "Used", 9.0),
        ("Oct 2026", "Paid for, not used", 1.0),
    }


def test_only_cliffs_are_marked_on_the_terms() -> None:
    def on(year: int) -> datetime:
        return datetime(year, 3, 1, tzinfo=UTC)

    held = pl.DataFrame(
        {
            "name": ["a"],
            "instrument": ["owned"],
            "starts_at": [on(2026)],
            "ends_at": [on(2027)],
            "covers_gpus": [8.0],
        }
    )
    ends = pl.DataFrame({"month": [on(2027), on(2028)], "is_cliff": [True, False]})
    assert [row["label"] for row in drawn(charts.terms(held, ends), "rule")] == ["▼ Mar 2027"]


def test_a_rent_never_undercut_has_no_dot() -> None:
    costs = pl.DataFrame(
        {
            "comparator": ["dear", "dear", "cheap", "cheap"],
            "utilisation": [0.5, 1.0, 0.5, 1.0],
            "owned_per_gpu_hour": [4.0, 2.0, 4.0, 2.0],
            "rented_per_gpu_hour": [3.0, 3.0, 1.0, 1.0],
        }
    )
    dots = pl.DataFrame({"comparator": ["dear", "cheap"], "utilisation": [0.7, None], "price": [3.0, 1.0]})
    chart = charts.owned_against_rent(costs, dots, "USD")
    assert [row["comparator"] for row in drawn(chart, "point")] == ["dear"]
    assert {row["price"] for row in drawn(chart, "text")} == {3.0, 1.0}


def test_the_tornado_stands_about_the_stated_npv_in_words() -> None:
    frame = pl.DataFrame(
        {
            "input": ["residual_ratio", "unheard_of"],
            "low": [0.0, 1.0],
            "high": [0.3, 2.0],
            "npv_at_low": [-5.0, 9.0],
            "npv_at_high": [15.0, 11.0],
            "source": ["x", "y"],
        }
    )
    rows = drawn(charts.tornado(frame, 10.0, "USD"), "bar")
    assert [(row["label"], row["stated_npv"]) for row in rows] == [
        ("Residual, of the price", 10.0),
        ("unheard_of", 10.0),
    ]


def test_each_rule_is_marked_on_the_goodput_curve() -> None:
    curve = pl.DataFrame({"interval_minutes": [10.0, 100.0], "goodput_ratio": [0.5, 0.9]})
    rules = pl.DataFrame({"rule": ["Daly", "Young"], "interval_minutes": [50.0, 60.0], "goodput_ratio": [0.8, 0.8]})
    assert [row["rule"] for row in drawn(charts.goodput(curve, rules), "point")] == ["Daly", "Young"]
