from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from models.errors import UsageError
from models.price_book import COMMITMENT_SCHEMA, PRICE_SCHEMA, book, portfolio
from models.prices import YEAR_SECONDS, Instrument, Pool, Scope

AT = datetime(2026, 11, 1, tzinfo=UTC)
MAX_AGE = timedelta(days=45)
H100 = Pool(name="h100", gpu_model="H100-80GB", provider="aws", region="us-east-1", other_providers=("nebius",))
A100 = Pool(name="a100", gpu_model="A100-80GB", provider="aws", region="us-east-1", zone="us-east-1a")


def prices(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "gpu_model": "H100-80GB", "region": "us-east-1", "zone": "", "instrument": "on_demand", "provider": "aws",
        "gpu_count": 8, "scope": "region", "has_capacity": False, "hourly_micros": 6_880_000,
        "observed_at": AT - timedelta(days=3), "from_at": AT - timedelta(days=3), "price_source": "price list",
    }  # fmt: skip
    return pl.DataFrame([{**dict.fromkeys(PRICE_SCHEMA), **plain, **row} for row in rows], schema=PRICE_SCHEMA)


def commitments(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "instrument": "reserved", "provider": "aws", "region": "us-east-1", "gpu_model": "H100-80GB", "scope": "region",
        "has_capacity": False, "starts_at": AT - timedelta(days=30), "ends_at": AT + timedelta(days=335), "gpu_count": 16,
        "hourly_micros": 4_000_000, "state": "active",
    }  # fmt: skip
    return pl.DataFrame(
        [{**dict.fromkeys(COMMITMENT_SCHEMA), **plain, **row} for row in rows], schema=COMMITMENT_SCHEMA
    )


def test_an_offer_is_priced_for_the_pools_that_it_reaches() -> None:
    found = book(
        prices(
            {"offer_id": "od"},
            {"offer_id": "elsewhere", "region": "eu-west-1"},
            {"offer_id": "sp", "instrument": "savings_plan", "term_seconds": YEAR_SECONDS, "hourly_micros": 5_000_000},
            {"offer_id": "sp", "instrument": "savings_plan", "term_seconds": YEAR_SECONDS, "hourly_micros": 2_700_000,
             "gpu_model": "A100-80GB"},
        ),
        [H100, A100], AT, MAX_AGE,
    )  # fmt: skip
    assert {one.offer_id: dict(one.micros_per_gpu_hour) for one in found.offers} == {
        "od": {"h100": 6_880_000},
        "sp": {"h100": 5_000_000, "a100": 2_700_000},
    }
    assert found.notes == ()


def test_a_global_savings_plan_has_the_rate_of_each_pools_own_region() -> None:
    about = {"instrument": "savings_plan", "scope": "global", "term_seconds": YEAR_SECONDS, "offer_id": "compute"}
    rows = prices(
        {**about, "hourly_micros": 5_000_000},
        {**about, "region": "eu-west-1", "hourly_micros": 4_000_000},
        {**about, "region": "eu-west-1", "hourly_micros": 1_000_000, "gpu_model": "A100-80GB"},
    )
    (found,) = book(rows, [H100, A100], AT, MAX_AGE).offers
    # Where it is cheaper elsewhere does not matter, and where its rate is known elsewhere only it is unknown here.
    assert dict(found.micros_per_gpu_hour) == {"h100": 5_000_000}
    money = {"instrument": "savings_plan", "scope": "global", "region": "eu-west-1", "gpu_model": None, "gpu_count": None,
             "hourly_commitment_micros": 9_000_000, "offer_id": "compute", "commitment_id": "held"}  # fmt: skip
    (held,) = portfolio(commitments(money), rows, [H100, A100], AT)
    assert dict(held.rate_micros_per_gpu_hour) == {"h100": 5_000_000}


def test_a_contract_of_another_provider_may_serve_but_its_on_demand_may_not() -> None:
    about = {"provider": "nebius", "region": "eu-north1", "term_seconds": YEAR_SECONDS}
    found = book(
        prices(
            {"offer_id": "contract", "instrument": "contract", **about},
            {"offer_id": "their on demand", **about},
        ),
        [H100],
        AT,
        MAX_AGE,
    )
    assert [one.offer_id for one in found.offers] == ["contract"]


def test_a_pool_bound_to_a_zone_takes_that_zones_price_and_another_the_cheapest() -> None:
    rows = prices(
        *(
            {"offer_id": "spot", "instrument": "spot", "gpu_model": model, "zone": zone, "hourly_micros": micros}
            for model in ("H100-80GB", "A100-80GB")
            for zone, micros in (("us-east-1a", 3_000_000), ("us-east-1b", 2_000_000))
        )
    )
    (offer,) = book(rows, [H100, A100], AT, MAX_AGE).offers
    assert dict(offer.micros_per_gpu_hour) == {"h100": 2_000_000, "a100": 3_000_000}


def test_only_prices_in_force_count_and_old_ones_are_said() -> None:
    month = timedelta(days=30)
    found = book(
        prices(
            {"offer_id": "od", "hourly_micros": 9_000_000, "from_at": AT - 5 * month, "until_at": AT - 2 * month},
            {"offer_id": "od", "observed_at": AT - 2 * month, "from_at": AT - 2 * month},
            {"offer_id": "tomorrow", "from_at": AT + timedelta(days=1)},
        ),
        [H100],
        AT,
        MAX_AGE,
    )
    assert [(one.offer_id, dict(one.micros_per_gpu_hour)) for one in found.offers] == [("od", {"h100": 6_880_000})]
    assert found.notes == (
        "od: its price was observed on 2026-09-02, 60 days before the plan (at most 45 are expected): observe it again",
    )


def test_an_unknown_price_is_left_out_and_said() -> None:
    found = book(prices({"offer_id": "od", "hourly_micros": None}), [H100], AT, MAX_AGE)
    assert not found.offers
    assert found.notes == ("od: left out, its price is not known in the reporting currency: ingest the exchange rate",)


def test_what_binds_without_saying_how_long_is_left_out_and_said() -> None:
    found = book(
        prices({"offer_id": "contract", "instrument": "contract"}, {"offer_id": "own", "instrument": "owned"}),
        [H100],
        AT,
        MAX_AGE,
    )
    assert not found.offers
    assert found.notes == (
        "contract: left out: it binds (contract), and its price has no term_seconds",
        "own: left out: it binds (owned), and its price has no life_months_count",
    )


def test_rows_of_one_offer_that_contradict_each_other_are_refused() -> None:
    rows = prices(
        {"offer_id": "sp", "instrument": "savings_plan", "term_seconds": YEAR_SECONDS},
        {"offer_id": "sp", "instrument": "savings_plan", "term_seconds": 3 * YEAR_SECONDS, "gpu_model": "A100-80GB"},
    )
    with pytest.raises(UsageError, match="sp: found term_seconds 31536000, 94608000 in its rows, expected one"):
        book(rows, [H100, A100], AT, MAX_AGE)


def test_the_portfolio_is_what_has_not_ended_and_reaches_a_pool() -> None:
    found = portfolio(
        commitments(
            {"commitment_id": "a"},
            {"commitment_id": "b", "state": "cancelled"},
            {"commitment_id": "c", "ends_at": AT},
            {"commitment_id": "d", "gpu_model": "B200-192GB"},
            {"commitment_id": "e", "starts_at": AT + timedelta(days=9), "state": "queued", "upfront_micros": 5},
        ),
        prices(),
        [H100],
        AT,
    )
    assert [(one.commitment_id, one.gpus, one.is_queued, one.upfront_micros) for one in found] == [
        ("a", 16, False, 0),
        ("e", 16, True, 5),
    ]


def test_a_commitment_in_money_takes_the_rates_of_its_offer_when_it_started() -> None:
    plan = {"offer_id": "sp", "instrument": "savings_plan", "term_seconds": YEAR_SECONDS}
    rows = prices(
        {**plan, "hourly_micros": 5_000_000, "from_at": AT - timedelta(days=90), "until_at": AT - timedelta(days=9)},
        {**plan, "hourly_micros": 4_000_000, "from_at": AT - timedelta(days=9)},
    )
    money = {
        "commitment_id": "sp-1", "offer_id": "sp", "instrument": "savings_plan", "gpu_model": None, "gpu_count": None,
        "hourly_micros": None, "hourly_commitment_micros": 40_000_000,
    }  # fmt: skip
    (found,) = portfolio(commitments(money), rows, [H100, A100], AT)
    assert found.instrument is Instrument.SAVINGS_PLAN
    assert found.scope is Scope.REGION
    assert (found.pools, dict(found.rate_micros_per_gpu_hour)) == (("h100",), {"h100": 5_000_000})
    with pytest.raises(UsageError, match="sp-1: found no rates of its offer sp, expected a price"):
        portfolio(commitments(money), prices(), [H100], AT)


@pytest.mark.parametrize(
    "unknown",
    [
        {"hourly_micros": None},
        {"gpu_count": None, "gpu_model": None, "instrument": "savings_plan", "hourly_micros": None},
    ],
)
def test_a_commitment_whose_cost_is_not_known_does_not_count_as_free(unknown: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match="commitment r-1: found no cost in the reporting currency, expected what it costs"
    ):
        portfolio(commitments({"commitment_id": "r-1", **unknown}), prices(), [H100], AT)
    (paid,) = portfolio(
        commitments({"commitment_id": "r-1", "hourly_micros": None, "upfront_micros": 9}), prices(), [H100], AT
    )
    assert (dict(paid.rate_micros_per_gpu_hour), paid.upfront_micros) == ({"h100": 0}, 9)
