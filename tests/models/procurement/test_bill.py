from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from models.prices import Instrument, Scope
from models.procurement.bill import Summary, micros_of, rounded_up
from models.procurement.billing import simulate
from models.procurement.billing_order import BilledCommitment
from models.procurement.billing_usage import USAGE_SCHEMA

START = datetime(2026, 3, 2, tzinfo=UTC)
DOLLAR = 1_000_000
PLAN = BilledCommitment(
    commitment_id="sp",
    provider="azure",
    instrument=Instrument.SAVINGS_PLAN,
    scope=Scope.GLOBAL,
    starts_at=START - timedelta(days=10),
    ends_at=START + timedelta(days=355),
    rates={"nd": 60 * DOLLAR},
    hourly_commitment_micros=120 * DOLLAR,
    upfront_micros=8_760 * 20 * DOLLAR,
)


def usage(*counts: int, price: int | None = 100 * DOLLAR) -> pl.DataFrame:
    """Instances by hour."""
    rows = [(START + timedelta(hours=hour), "", "nd", "", "", n * DOLLAR, price) for hour, n in enumerate(counts)]
    return pl.DataFrame(rows, schema=USAGE_SCHEMA, orient="row")


def test_the_summary_has_azures_terms() -> None:
    # Committed 4 x 120 = 480. Hours 0 to 3 use 60, 120, 120 and 0 of it: 300, so 180 are lost.
    # One instance of hour 2 is left: 100. List price 6 x 100 = 600; 500 of it is covered. Total 580, 20 saved.
    assert simulate(usage(1, 2, 3), [PLAN], start_at=START, hours=4).summary() == Summary(
        average_utilization_percentage=62.5,
        benefit_cost_micros=480 * DOLLAR,
        commitment_amount_micros=120 * DOLLAR,
        cost_without_benefit_micros=600 * DOLLAR,
        coverage_percentage=pytest.approx(100 * 5 / 6),
        overage_cost_micros=100 * DOLLAR,
        savings_amount_micros=20 * DOLLAR,
        savings_percentage=pytest.approx(100 / 30),
        total_cost_micros=580 * DOLLAR,
        wastage_cost_micros=180 * DOLLAR,
        effective_savings_ratio=pytest.approx(1 / 30),
    )


def test_a_commitments_row_adds_up() -> None:
    # 20 of the 120 an hour were paid in advance, before these hours: cash is the other 100.
    row = simulate(usage(1, 2, 3), [PLAN], start_at=START, hours=4).by_commitment().row(0, named=True)
    assert row == {
        "commitment_id": "sp",
        "cost_micros": 480 * DOLLAR,
        "recurring_micros": 400 * DOLLAR,
        "upfront_micros": 80 * DOLLAR,
        "cash_micros": 400 * DOLLAR,
        "used_micros": 300 * DOLLAR,
        "unused_micros": 180 * DOLLAR,
        "utilisation_ratio": 0.625,
        "covered_list_micros": 500 * DOLLAR,
        "coverage_ratio": pytest.approx(5 / 6),
        "savings_micros": 20 * DOLLAR,
    }


def test_cash_counts_what_is_paid_upfront_in_the_hour_of_payment() -> None:
    row = simulate(usage(), [PLAN], start_at=PLAN.starts_at, hours=2).by_commitment().row(0, named=True)
    assert row["cash_micros"] == 2 * 100 * DOLLAR + PLAN.upfront_micros
    assert row["cost_micros"] == 2 * 120 * DOLLAR


def test_an_unknown_list_price_makes_what_is_saved_unknown() -> None:
    bill = simulate(usage(1, price=None), [PLAN], start_at=START, hours=1)
    summary, row = bill.summary(), bill.by_commitment().row(0, named=True)
    unknown = (summary.cost_without_benefit_micros, summary.savings_amount_micros, summary.effective_savings_ratio)
    assert unknown == (None, None, None)
    assert (row["covered_list_micros"], row["savings_micros"], row["used_micros"]) == (None, None, 60 * DOLLAR)
    assert bill.lines()["list_micros"].to_list() == [None, None]
    assert bill.total_micros == 120 * DOLLAR


def test_without_hours_or_usage_nothing_is_a_number() -> None:
    summary = simulate(usage(), [], start_at=START, hours=2).summary()
    assert (summary.total_cost_micros, summary.coverage_percentage, summary.effective_savings_ratio) == (0, None, None)
    assert simulate(usage(), [], start_at=START, hours=2).lines().is_empty()


def test_money_is_rounded_without_leaving_64_bits() -> None:
    # 10**12 millionths at 10**12 micros would be 10**24 on the way.
    many = np.array([10**12, 500_000, 499_999, 1])
    assert micros_of(many, 10**12).tolist() == [10**18, 5 * 10**11, 499_999 * 10**6, 10**6]
    assert micros_of(np.array([500_000, 499_999]), 1).tolist() == [1, 0]
    assert rounded_up(np.array([0, 1, 1_000_000]), 1).tolist() == [0, 1, 1]
