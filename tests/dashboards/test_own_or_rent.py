from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dashboards import own_or_rent
from models.break_even import break_even
from models.errors import UsageError
from models.prices import Instrument, Offer, Scope
from pipelines.break_even import read_inputs
from tests.dashboards.test_procurement import book

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWNED = Offer(
    offer_id="own/h100",
    instrument=Instrument.OWNED,
    provider="own",
    scope=Scope.REGION,
    has_capacity=True,
    micros_per_gpu_hour={},
    observed_at=datetime(2026, 9, 1, tzinfo=UTC),
    price_source="quote",
    upfront_micros_per_gpu=40_000_000_000,
    life_months=48,
    residual_micros_per_gpu=4_000_000_000,
    power_watts_per_gpu=1_000,
    monthly_fee_micros_per_gpu=500_000_000,
)


def test_the_first_figures_are_those_of_the_example_file() -> None:
    told = read_inputs(EXAMPLES / "break-even.yaml")
    start, sources = own_or_rent.owned_inputs(None, 8)
    kept = {"comparators": start.comparators, "ranges": {}, "upfront_offers": ()}
    assert replace(told, **kept) == start
    assert set(sources) >= {"purchase_per_node", "residual_ratio", "discount_ratio"}


def test_an_owned_offer_fills_the_node_and_says_that_it_did() -> None:
    start, sources = own_or_rent.owned_inputs(OWNED, 8)
    assert (start.purchase_per_node, start.residual_ratio, start.life_years) == (320_000, 0.1, 4)
    assert (start.measured_node_watts, start.fees_per_node_month, start.network_ratio) == (8_000, 4_000, 0)
    assert sources["purchase_per_node"] == "price book, own/h100: quote, 2026-09-01"
    assert "assumption" in sources["discount_ratio"]


def test_comparators_are_all_that_is_rented_at_a_known_price_the_dearest_first() -> None:
    found = own_or_rent.comparators(
        book(
            {"offer_id": "od", "instrument": "on_demand", "hourly_micros": 7_000_000},
            {"offer_id": "ri", "instrument": "reserved", "hourly_micros": 3_000_000},
            {"offer_id": "spot", "instrument": "spot", "hourly_micros": 1_000_000},
            {"offer_id": "own", "instrument": "owned", "upfront_micros": 1},
            {"offer_id": "unknown", "instrument": "on_demand"},
        )
    )
    assert [(one.name, one.price_per_gpu_hour, one.is_committed) for one in found] == [
        ("od", 7.0, False),
        ("ri", 3.0, True),
        ("spot", 1.0, False),
    ]
    assert own_or_rent.usual_comparators(found) == ["od", "ri", "spot"]


def test_ranges_surround_the_stated_value_and_what_costs_nothing_has_none() -> None:
    start, _ = own_or_rent.owned_inputs(OWNED, 8)
    found = own_or_rent.ranged(start).ranges
    assert "colo_per_kilowatt_month" not in found
    for name, one in found.items():
        assert one.low <= getattr(start, name) <= one.high


def test_a_field_in_per_cent_gives_back_the_ratio_that_it_showed() -> None:
    assert own_or_rent.from_shown("Residual, %", own_or_rent.to_shown("Residual, %", 0.3, float)) == 0.3
    assert own_or_rent.to_shown("Mean watts", None, float) == 0


def test_an_impossible_input_is_named() -> None:
    start, _ = own_or_rent.owned_inputs(None, 8)
    own_or_rent.check(start)
    with pytest.raises(UsageError, match=r"Utilisation: expected a number above 0 and at most 1, found 1\.2"):
        own_or_rent.check(replace(start, expected_utilisation=1.2))


def test_a_break_even_is_said_with_all_it_rests_on() -> None:
    start, _ = own_or_rent.owned_inputs(None, 8)
    table = break_even(start)
    first = table.filter(utilisation=0.7).row(0, named=True)
    assert own_or_rent.verdict(first, start).startswith("Owning has paid for itself after ")
    assert own_or_rent.verdict({"payback_months": None}, start) == "Owning never pays back within 120 months."
    assert own_or_rent.verdict({"payback_months": 40, "pays_within_life": False}, start).endswith("rent.")
    assert own_or_rent.basis(start, "x") == (
        "Against x, 70.0 % of its GPU-hours used, money at 10.0 % a year, residual 30.0 % after 3 years."
    )


def test_months_are_words_in_the_table_and_a_commitment_has_no_crossing() -> None:
    start, _ = own_or_rent.owned_inputs(None, 8)
    table = break_even(start)
    assert {"never"} < set(own_or_rent.in_words(table)["payback"])
    found = dict(own_or_rent.crossings(start, table).select("comparator", "utilisation").iter_rows())
    assert found["One-year contract"] is None
    assert 0 < found["AWS p5 on demand"] < 1


def test_curves_reach_full_use() -> None:
    start, _ = own_or_rent.owned_inputs(None, 8)
    assert own_or_rent.over_utilisation(start).utilisations[-1] == 1


def test_the_odds_are_a_sentence() -> None:
    drawn = {
        "draws": 2000,
        "seed": 1,
        "pays_within_life_ratio": 0.5,
        "pays_with_residual_ratio": 0.6,
        "payback_p10_months": 10,
        "payback_p50_months": 30,
        "payback_p90_months": None,
    }
    assert "**50.0 %**" in own_or_rent.odds(drawn)
    assert own_or_rent.odds(drawn).endswith(
        "It pays back after 10 months in the best tenth, after 30 months in the middle and never in the worst tenth."
    )
