from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from dashboards import procurement
from models.price_book import PRICE_SCHEMA
from models.prices import Instrument
from models.procurement.curve import Line
from models.procurement.policy import PlanPolicy

SEEN = datetime(2026, 9, 1, tzinfo=UTC)


def book(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "gpu_model": "H100-80GB",
        "region": "eu",
        "zone": "",
        "provider": "acme",
        "observed_at": SEEN,
        "price_source": "list",
    }
    return pl.DataFrame([plain | row for row in rows], schema=PRICE_SCHEMA)


def line(name: str, instrument: Instrument, fixed: float, hourly: float) -> Line:
    return Line(offer_id=name, instrument=instrument, fixed_micros=fixed * 1e6, hourly_micros=hourly * 1e6)


def test_a_policy_is_read_from_what_the_plan_printed_and_the_rest_is_as_usual() -> None:
    found = procurement.stated_policy(
        {"discount_ratio": "0.07", "energy_amount_per_kwh": "0.09", "budget_amount": "none"}
    )
    assert (found.discount_ratio, found.energy_micros_per_kwh) == (0.07, 90_000)
    assert found.spot_goodput_ratio == PlanPolicy().spot_goodput_ratio


def test_the_place_with_most_offers_comes_first_and_contracts_serve_it_from_elsewhere() -> None:
    found = procurement.pools(
        book(
            {"offer_id": "a", "instrument": "on_demand"},
            {"offer_id": "b", "instrument": "reserved"},
            {"offer_id": "c", "instrument": "on_demand", "region": "us"},
            {"offer_id": "d", "instrument": "owned", "provider": "own", "region": "home"},
            {"offer_id": "e", "instrument": "on_demand", "gpu_model": "A100-80GB"},
        ),
        "H100-80GB",
    )
    assert [(one.provider, one.region, one.other_providers) for one in found] == [
        ("acme", "eu", ("own",)),
        ("acme", "us", ("own",)),
    ]


def test_of_each_way_to_pay_the_cheapest_is_kept_on_demand_first() -> None:
    found = procurement.cheapest_by_instrument(
        [
            line("ri3", Instrument.RESERVED, 2, 0),
            line("ri1", Instrument.RESERVED, 3, 0),
            line("od", Instrument.ON_DEMAND, 0, 6),
        ]
    )
    assert [one.offer_id for one in found] == ["od", "ri3"]


def test_a_commitment_pays_from_its_price_over_on_demand_and_never_where_it_is_dearer() -> None:
    found = procurement.priced(
        [
            line("od", Instrument.ON_DEMAND, 0, 6),
            line("ri", Instrument.RESERVED, 3, 0),
            line("block", Instrument.CAPACITY_BLOCK, 7, 0),
        ]
    )
    assert dict(found.select("offer_id", "pays_from_ratio").iter_rows()) == {"od": None, "ri": 0.5, "block": None}


def test_what_is_paid_upfront_is_spread_over_the_term_and_unknown_stays_unknown() -> None:
    rows = book(
        {"offer_id": "up", "instrument": "reserved", "upfront_micros": 8_760_000_000, "term_seconds": 31_536_000},
        {"offer_id": "none", "instrument": "reserved"},
    ).to_dicts()
    assert [procurement.hourly_micros(row) for row in rows] == [1_000_000, None]


def test_what_is_sold_stands_apart_from_spot_by_the_hour_first() -> None:
    rows = book(
        {"offer_id": "ri", "instrument": "reserved", "hourly_micros": 3},
        {"offer_id": "od", "instrument": "on_demand", "hourly_micros": 6},
        {"offer_id": "spot", "instrument": "spot", "hourly_micros": 2, "zone": "a"},
        {"offer_id": "spot", "instrument": "spot", "hourly_micros": 1, "zone": "b"},
        {"offer_id": "unpriced", "instrument": "on_demand"},
        {"offer_id": "own", "instrument": "owned", "upfront_micros": 1},
    )
    spots, others = procurement.sold(rows, "H100-80GB")
    assert spots == {"spot": 1}
    assert list(others.items()) == [("od", 6), ("ri", 3)]
