from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.prices import YEAR_SECONDS, Instrument
from models.procurement.columns import columns_of, cost_of, fixed_cost
from models.procurement.policy import PlanPolicy
from tests.markets import AT, DOLLAR, HOUR, commitment, demand, offer, reserved, savings_plan

YEAR, MONTH = 8_760, 730
POLICY = PlanPolicy(discount_ratio=0.10, later_use_ratio=0.7)


def present(hours: int, first: int = 0) -> float:
    """What 1 at the start of each hour is worth in hour 0, at 10 % a year: a geometric series in closed form."""
    step = 1.1 ** (-1 / YEAR)
    return float(step**first * (1 - step ** (hours - first)) / (1 - step))


@given(st.integers(1, 36), st.sampled_from([1, 3]), st.floats(0, 1), st.integers(0, 60))
def test_two_ways_to_pay_that_are_worth_the_same_now_cost_the_same_in_any_horizon(
    months: int, years: int, later_use: float, lead_days: int
) -> None:
    # Whoever lends at 10 % a year does not care; the horizon must not either.
    lead = {"lead_seconds": lead_days * 24 * HOUR}
    monthly = reserved(2, years, **lead)
    worth = 2 * present(years * YEAR + 24 * lead_days, 24 * lead_days)
    at_once = reserved(0, years, upfront_micros_per_gpu=round(worth * DOLLAR), payment_option="all_upfront", **lead)
    policy = replace(POLICY, later_use_ratio=later_use)
    hours = months * MONTH + 24 * lead_days
    columns, _ = columns_of([monthly, at_once], ["h100"], hours, policy)
    spread, paid = (cost_of(one, hours, policy) for one in columns)
    assert paid == pytest.approx(spread, rel=1e-6)


def test_a_savings_plan_that_is_paid_at_once_is_paid_at_once() -> None:
    def cost(payment_option: str) -> tuple[float, float]:
        plan = replace(savings_plan({"h100": 4.0}), payment_option=payment_option)
        (column,), _ = columns_of([plan], ["h100"], YEAR, POLICY)
        return column.upfront, cost_of(column, YEAR, POLICY)

    assert cost("no_upfront") == (0, pytest.approx(present(YEAR)))
    assert cost("all_upfront") == (YEAR, pytest.approx(YEAR))
    assert cost("partial_upfront") == (YEAR / 2, pytest.approx((YEAR + present(YEAR)) / 2))


def test_an_owned_gpu_from_order_to_the_end_of_the_horizon_by_hand() -> None:
    # 45,000 paid at the order, serving from month 3 for 48 months; after 12 months 39 of 48 months are left of its life.
    owned = offer(
        "owned", Instrument.OWNED, 0.05, upfront_micros_per_gpu=45_000 * DOLLAR, residual_micros_per_gpu=6_750 * DOLLAR,
        life_months=48, power_watts_per_gpu=1_020, monthly_fee_micros_per_gpu=584 * DOLLAR, lead_seconds=3 * MONTH * HOUR,
    )  # fmt: skip
    policy = replace(POLICY, power_usage_effectiveness=1.3, energy_micros_per_kwh=80_000)
    (column,), _ = columns_of([owned], ["h100"], YEAR, policy)
    assert (column.supply_hour, column.end_hour) == (3 * MONTH, 51 * MONTH)
    an_hour = 0.05 + 584 / 730 + 1.020 * 1.3 * 0.08
    worth = 6_750 + 0.7 * (45_000 - 6_750) * 39 / 48
    expected = 45_000 - worth / 1.1 + an_hour * present(YEAR, 3 * MONTH)
    assert cost_of(column, YEAR, policy) == pytest.approx(expected, rel=1e-9)
    # Over its whole life only the residual value is left, and it serves until then.
    whole = 51 * MONTH
    expected = 45_000 - 6_750 * 1.1 ** (-whole / YEAR) + an_hour * present(whole, 3 * MONTH)
    assert cost_of(column, whole, policy) == pytest.approx(expected, rel=1e-9)


def test_a_block_that_ends_within_the_horizon_is_paid_once_and_is_not_renewed() -> None:
    block = offer(
        "block", Instrument.CAPACITY_BLOCK, 0, term_seconds=14 * 24 * HOUR, upfront_micros_per_gpu=336 * DOLLAR
    )
    (column,), _ = columns_of([block], ["h100"], YEAR, POLICY)
    assert (column.end_hour, cost_of(column, YEAR, POLICY)) == (336, pytest.approx(336))


def test_a_block_cannot_be_had_more_than_eight_weeks_ahead() -> None:
    block = offer("block", Instrument.CAPACITY_BLOCK, 0, term_seconds=24 * HOUR, upfront_micros_per_gpu=24 * DOLLAR)
    contract = offer("contract", Instrument.CONTRACT, 3, term_seconds=YEAR_SECONDS)
    policy = replace(POLICY, start_months=(0, 1, 2))
    columns, notes = columns_of([block, contract], ["h100"], YEAR, policy)
    starts = [(one.offer.offer_id, one.start_hour // MONTH) for one in columns]
    assert starts == [("block", 0), ("block", 1), ("contract", 0), ("contract", 1), ("contract", 2)]
    assert notes == ["block: not offered from hour 1,460 on: a capacity block starts within 8 weeks"]


@pytest.mark.parametrize("part", [0.0, 0.2, 1.0])
def test_of_money_committed_what_was_paid_at_the_start_is_not_due_again(part: float) -> None:
    # 10 an hour for 10,000 hours, of which 1,000 are left: held, the rest of the hourly money is due; queued, the upfront too.
    about = {"gpus": None, "hourly_commitment_micros": 10 * DOLLAR, "instrument": Instrument.SAVINGS_PLAN,
             "upfront_micros": round(part * 10 * 10_000 * DOLLAR)}  # fmt: skip
    held = commitment("held", AT - timedelta(hours=9_000), AT + timedelta(hours=1_000), **about)
    wanted = demand([1] * 2_000)
    assert fixed_cost(held, wanted, 2_000, POLICY) == pytest.approx(10 * (1 - part) * present(1_000))
    queued = commitment("queued", AT, AT + timedelta(hours=10_000), is_queued=True, **about)
    assert fixed_cost(queued, wanted, 2_000, POLICY) == pytest.approx(part * 100_000 + 10 * (1 - part) * present(2_000))


def test_hours_are_discounted_as_the_series_says() -> None:
    assert present(3) == pytest.approx(np.sum(1.1 ** (-np.arange(3) / YEAR)))
