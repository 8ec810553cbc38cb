from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from models.errors import UsageError
from models.prices import YEAR_SECONDS, Instrument
from models.procurement.compile import compile_problem
from models.procurement.policy import PlanPolicy
from tests.markets import AT, DOLLAR, commitment, demand, offer, on_demand, pool, reserved, savings_plan, spot

PLAIN = PlanPolicy(discount_ratio=0, later_use_ratio=1, whole_nodes=False)
YEAR = 8_760


def test_a_reservation_costs_its_price_each_hour_of_the_horizon() -> None:
    problem = compile_problem(demand([1] * YEAR), [pool()], [on_demand(6), reserved(4)], [], PLAIN).problem
    assert problem.column_cost == pytest.approx([4 * YEAR])
    assert problem.column_supply.tolist() == [[1.0]]


def test_three_years_are_not_free_after_the_first() -> None:
    policy = replace(PLAIN, later_use_ratio=0.6)
    problem = compile_problem(demand([1] * YEAR), [pool()], [on_demand(6), reserved(3, 3)], [], policy).problem
    # One year in full, and of two years the 40 % that are not expected to be worth their price.
    assert problem.column_cost == pytest.approx([3 * YEAR + 0.4 * 3 * 2 * YEAR])


def test_upfront_money_is_spread_over_the_term() -> None:
    upfront = reserved(0, 3, upfront_micros_per_gpu=3_000 * DOLLAR)
    problem = compile_problem(demand([1] * YEAR), [pool()], [on_demand(6), upfront], [], PLAIN).problem
    assert problem.column_cost == pytest.approx([1_000])


def test_later_payments_are_worth_less() -> None:
    policy = replace(PLAIN, discount_ratio=0.10)
    problem = compile_problem(demand([1] * YEAR), [pool()], [on_demand(6), reserved(4)], [], policy).problem
    assert problem.hour_weight[[0, -1]] == pytest.approx([1, 1.1 ** (-(YEAR - 1) / YEAR)])
    assert problem.column_cost == pytest.approx([4 * problem.hour_weight.sum()])


def test_an_owned_gpu_serves_after_its_lead_time_and_keeps_some_value() -> None:
    owned = offer(
        "owned", Instrument.OWNED, 0, upfront_micros_per_gpu=48_000 * DOLLAR, life_months=48,
        residual_micros_per_gpu=12_000 * DOLLAR, power_watts_per_gpu=1_000, monthly_fee_micros_per_gpu=73 * DOLLAR,
        lead_seconds=730 * 3_600,
    )  # fmt: skip
    policy = replace(PLAIN, power_usage_effectiveness=1.5, energy_micros_per_kwh=100_000)
    compiled = compile_problem(demand([1] * YEAR), [pool()], [on_demand(6), owned], [], policy)
    assert compiled.problem.column_supply.tolist() == [[0.0, 1.0]]
    served = YEAR - 730
    book = 36_000 * (1 - served / (48 * 730))  # what 11 of 48 months have not used up, besides the residual value
    running = (73 / 730 + 1.5 * 0.1) * served
    assert compiled.problem.column_cost == pytest.approx([48_000 - book - 12_000 + running])


def test_what_would_serve_only_after_the_horizon_is_left_out_and_said() -> None:
    late = offer("late", Instrument.CONTRACT, 2, term_seconds=YEAR_SECONDS, lead_seconds=100 * 3_600)
    compiled = compile_problem(demand([1] * 100), [pool()], [on_demand(6), late], [], PLAIN)
    assert not compiled.columns
    assert compiled.notes == ("late: starting in hour 0 it would serve only after the horizon",)


def test_what_is_held_or_queued_serves_in_its_own_hours() -> None:
    held = [
        commitment("old", AT - timedelta(days=300), AT + timedelta(hours=4), gpus=8),
        commitment("queued", AT + timedelta(hours=6), AT + timedelta(days=400), gpus=4, is_queued=True,
                   upfront_micros=500 * DOLLAR),
    ]  # fmt: skip
    problem = compile_problem(demand([1] * 10), [pool()], [on_demand(6)], held, PLAIN).problem
    assert problem.period_of_hour.tolist() == [0] * 4 + [1] * 2 + [2] * 4
    assert problem.held.ravel().tolist() == [8, 0, 4]
    assert problem.fixed_cost == pytest.approx(8 * 4 * 4 + 4 * 4 * 4 + 500)


def test_a_savings_plan_is_a_budget_that_the_plan_held_already_shares() -> None:
    rates = {"h100": 4.0, "a100": 2.0}
    two = replace(demand([1] * 10), pools=("h100", "a100"), gpus={"rigid": np.ones((1, 10, 2))})
    held = commitment(
        "sp", AT - timedelta(days=1), AT + timedelta(days=1), gpus=None, hourly_commitment_micros=5 * DOLLAR,
        instrument=Instrument.SAVINGS_PLAN, pools=("h100", "a100"),
        rate_micros_per_gpu_hour={name: round(rate * DOLLAR) for name, rate in rates.items()},
    )  # fmt: skip
    offers = [on_demand({"h100": 6, "a100": 3}), savings_plan(rates)]
    problem = compile_problem(two, [pool(), pool("a100")], offers, [held], PLAIN).problem
    assert problem.budget_rate.tolist() == [[4, 2]]
    assert problem.held_budget.tolist() == [[5]]
    assert problem.column_budget.tolist() == [0]
    assert problem.column_cost == pytest.approx([10])


def test_spot_serves_the_shares_of_its_classes_at_the_price_of_useful_hours() -> None:
    wanted = replace(
        demand([10, 20]), gpus={"deferrable": np.array([[[10.0], [20]]]), "rigid": np.array([[[5.0], [5]]])}
    )
    policy = replace(PLAIN, spot_goodput_ratio=0.8, spot_share_ratio={"deferrable": 0.5}, spot_gpus={"h100": 10})
    problem = compile_problem(wanted, [pool()], [on_demand(6), spot(2)], [], policy).problem
    assert problem.demand.ravel().tolist() == [15, 25]
    assert problem.spot_price.ravel() == pytest.approx([2.5])
    assert problem.spot_limit.ravel().tolist() == [5, 8]  # half of 20 is 10, but 10 spot GPUs do the work of 8


def test_an_instrument_that_does_not_exist_is_absent() -> None:
    problem = compile_problem(demand([1] * 10), [pool()], [reserved(4)], [], PLAIN).problem
    assert np.isinf(problem.on_demand_price).all()
    assert np.isinf(problem.spot_price).all()
    assert problem.shortfall_price == pytest.approx([12])


def test_a_pool_without_any_price_is_refused() -> None:
    with pytest.raises(UsageError, match="no price of any instrument for h100: ingest prices"):
        compile_problem(demand([1]), [pool()], [on_demand({"a100": 1})], [], PLAIN)


def test_a_policy_for_an_unknown_pool_is_refused() -> None:
    policy = replace(PLAIN, spot_gpus={"b200": 1})
    with pytest.raises(UsageError, match="spot_gpus: found the pools b200, expected one of h100"):
        compile_problem(demand([1]), [pool()], [on_demand(6)], [], policy)


def test_whole_nodes_are_bought() -> None:
    policy = replace(PLAIN, whole_nodes=True)
    problem = compile_problem(demand([1]), [pool(node_gpus=8)], [on_demand(6), reserved(4)], [], policy).problem
    assert problem.column_step.tolist() == [8]
