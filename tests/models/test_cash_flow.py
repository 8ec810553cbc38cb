from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.cash_flow import (
    annuity,
    capital_recovery,
    implied_upfront_return,
    monthly_ratio,
    present_value,
    sinking_fund,
)

if TYPE_CHECKING:
    from pathlib import Path

rates = st.just(0.0) | st.floats(0.001, 1.0)


@given(yearly=rates)
def test_twelve_months_compound_to_a_year(yearly: float) -> None:
    assert (1 + monthly_ratio(yearly)) ** 12 == pytest.approx(1 + yearly)


@given(rate=rates, start=st.integers(0, 24), length=st.integers(0, 120))
def test_an_annuity_is_the_sum_of_its_payments(rate: float, start: int, length: int) -> None:
    payments = sum(1 / (1 + rate) ** period for period in range(start + 1, start + length + 1))
    assert annuity(rate, start, start + length) == pytest.approx(payments)


def test_arrays_are_taken_element_by_element() -> None:
    found = annuity(np.array([0.0, 0.1]), np.array([0, 0]), np.array([3, 3]))
    assert found == pytest.approx([3, 2.486852])
    assert present_value(np.array([0.0, 0.1]), 1) == pytest.approx([1, 1 / 1.1])


@given(rate=rates, years=st.integers(1, 30))
def test_capital_recovery_repays_a_loan_with_interest(rate: float, years: int) -> None:
    owed = 1.0
    for _ in range(years):
        owed = owed * (1 + rate) - float(capital_recovery(rate, years))
    assert owed == pytest.approx(0, abs=1e-9 * (1 + rate) ** years)


@given(rate=rates, years=st.integers(1, 30))
def test_a_sinking_fund_has_grown_to_one(rate: float, years: int) -> None:
    saved = 0.0
    for _ in range(years):
        saved = saved * (1 + rate) + float(sinking_fund(rate, years))
    assert saved == pytest.approx(1)


@given(yearly=st.floats(-0.2, 2.0), term_years=st.integers(1, 5))
def test_the_implied_return_is_the_one_that_made_the_offer(yearly: float, term_years: int) -> None:
    monthly = (1 + yearly) ** (1 / 12) - 1
    months = 12 * term_years
    upfront = sum(1 / (1 + monthly) ** month for month in range(months)) / months
    assert implied_upfront_return(upfront, 1, term_years) == pytest.approx(yearly, abs=1e-6)


def test_what_costs_the_same_in_all_earns_nothing_and_what_costs_one_payment_earns_without_bound() -> None:
    assert implied_upfront_return(2, 2, 1) == pytest.approx(0, abs=1e-9)
    assert implied_upfront_return(1 / 12, 1, 1) is None


@pytest.mark.parametrize(
    ("family", "term_years", "offer", "published"),
    [
        ("p4d", 1, "Standard", pytest.approx(0.164, abs=0.0006)),
        ("g5", 1, "Standard", pytest.approx(0.315, abs=0.0006)),
        ("g5", 3, "Standard", pytest.approx(0.137, abs=0.0006)),
        # Here the mean over the grid's 24 rows gives 26.5 %; which rows the published figure took is not said.
        ("g5", 1, "Savings", pytest.approx(0.262, abs=0.004)),
    ],
)
def test_published_returns_come_from_the_mean_discounts_of_the_price_grid(
    shared_data: Path, family: str, term_years: int, offer: str, published: object
) -> None:
    grid = pl.read_csv(shared_data / "prices" / "aws_cn_gpu_full_term_structure.csv").filter(
        pl.col("instance_type").str.starts_with(f"{family}."), term_years=term_years, offer=offer
    )
    discounts = dict(grid.group_by("payment").agg(pl.col("discount_vs_on_demand").mean().round(3)).iter_rows())
    found = implied_upfront_return(1 - discounts["allUpfront"], 1 - discounts["noUpfront"], term_years)
    assert found == published


def test_a_single_offer_of_the_grid_may_lie_far_from_the_mean_of_its_family(shared_data: Path) -> None:
    prices = pl.read_csv(shared_data / "prices" / "aws_cn_gpu_full_term_structure.csv").pivot(
        on="payment",
        index=["instance_type", "region", "os", "term_years", "offer"],
        values="effective_cny_h",
    )
    returns = {
        (row["instance_type"], row["region"], row["term_years"], row["offer"]): implied_upfront_return(
            row["allUpfront"], row["noUpfront"], row["term_years"]
        )
        for row in prices.filter(pl.col("allUpfront").is_not_null(), pl.col("noUpfront").is_not_null()).to_dicts()
    }
    assert returns["p4d.24xlarge", "cn-northwest-1", 1, "Standard"] == pytest.approx(0.1649, abs=1e-4)
    assert returns["g5.xlarge", "cn-north-1", 1, "Standard"] == pytest.approx(0.4935, abs=1e-4)
    assert returns["g5.xlarge", "cn-northwest-1", 1, "Standard"] == pytest.approx(0.1649, abs=1e-4)
