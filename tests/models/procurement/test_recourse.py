"""Serving an hour: by hand, against a linear program an hour, and its slopes as bounds everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.procurement import recourse
from models.procurement.problem import Problem  # noqa: TC001  Hypothesis reads it
from models.procurement.recourse import CHANNELS, evaluate, groups, serve
from tests.models.procurement.problems import a_problem, by_scipy, problems, random_problem


def at(problem: Problem, units: np.ndarray) -> Problem:
    """The problem with nothing left to choose: ``units`` are bought."""
    held, budget = recourse.supply(problem, units)
    nothing = np.zeros(len(units))
    free = {"held": held, "held_budget": budget, "column_high": nothing, "column_cost": nothing}
    return replace(problem, **free, limits=(), fixed_cost=0.0)


def some_units(problem: Problem, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 4, len(problem.column_cost))


@given(problem=problems(budgets=1), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_serving_costs_what_a_linear_program_of_the_hours_says(problem: Problem, seed: int) -> None:
    units = some_units(problem, seed)
    found = evaluate(problem, units)
    assert problem.probability @ found.cost == pytest.approx(by_scipy(at(problem, units)), rel=1e-8, abs=1e-8)
    assert found.bound == pytest.approx(found.cost, rel=1e-9, abs=1e-9)


@given(problem=problems(budgets=3), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_with_several_budgets_cost_and_bound_enclose_the_linear_program(problem: Problem, seed: int) -> None:
    units = some_units(problem, seed)
    found, expected = evaluate(problem, units), by_scipy(at(problem, units))
    assert problem.probability @ found.bound <= expected + 1e-7
    assert problem.probability @ found.cost >= expected - 1e-7


@given(problem=problems(budgets=2), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_cut_at_one_plan_is_below_the_cost_at_every_other(problem: Problem, seed: int) -> None:
    here, there = some_units(problem, seed), some_units(problem, seed + 1)
    cut, other = evaluate(problem, here), evaluate(problem, there)
    below = (
        cut.bound
        + (cut.held_slope * (other.held - cut.held)).sum((1, 2))
        + (cut.budget_slope * (other.budget - cut.budget)).sum((1, 2))
    )
    assert (below <= other.cost + 1e-6).all()
    assert (cut.held_slope <= 0).all()
    assert (cut.budget_slope <= 0).all()


def test_the_cheaper_of_spot_and_on_demand_comes_first_and_the_rest_is_short() -> None:
    problem = a_problem(
        [10.0],
        spot_limit=np.full((1, 1, 1), 3.0),
        spot_price=np.full((1, 1, 1), 1.0),
        on_demand_limit=np.array([4.0]),
        held=np.array([[2.0]]),
    )
    assert evaluate(problem, np.zeros(1)).cost == [3 * 1 + 4 * 2 + 1 * 50]
    dear_spot = replace(problem, spot_price=np.full((1, 1, 1), 9.0))
    assert evaluate(dear_spot, np.zeros(1)).cost == [4 * 2 + 3 * 9 + 1 * 50]
    no_on_demand = replace(problem, on_demand_price=np.full((1, 1, 1), np.inf))
    assert evaluate(no_on_demand, np.zeros(1)).cost == [3 * 1 + 5 * 50]


def test_a_budget_goes_where_it_saves_most_and_displaces_spot_last() -> None:
    problem = a_problem(
        np.full((1, 1, 2), 4.0),
        on_demand_price=np.array([[[4.0, 3.0]]]),
        spot_price=np.array([[[np.inf, 1.5]]]),
        spot_limit=np.array([[[0.0, 4.0]]]),
        budget_rate=np.array([[2.0, 1.0]]),
        held_budget=np.array([[9.0]]),
        column_cost=np.zeros(0),
    )
    # 4 / 2 a unit of money in the first pool, 1.5 / 1 in the second: 8 go to the first, 1 displaces one GPU on spot.
    assert evaluate(problem, np.zeros(0)).cost == [3 * 1.5]
    assert evaluate(problem, np.zeros(0)).budget_slope.ravel() == pytest.approx([-1.5])
    served = serve(problem, np.zeros(0), np.ones(1))
    hours = dict(zip(CHANNELS, served.gpu_hours[0].tolist(), strict=True))
    assert hours == {"held": [0, 0], "budget": [4, 1], "spot": [0, 3], "on_demand": [0, 0], "shortfall": [0, 0]}
    assert served.money[0, CHANNELS.index("budget")].tolist() == [8, 1]


def test_money_is_not_kept_for_spot_that_does_not_exist() -> None:
    # A shortfall of the first pool costs 40, but nothing of it is short: a GPU of it costs 4 on demand, of the second 5.
    problem = a_problem(
        np.full((1, 1, 2), 3.0),
        on_demand_price=np.array([[[4.0, 5.0]]]),
        shortfall_price=np.array([40.0, 30.0]),
        budget_rate=np.array([[1.0, 1.0]]),
        held_budget=np.array([[3.0]]),
        column_cost=np.zeros(0),
    )
    served = serve(problem, np.zeros(0), np.ones(1))
    assert served.gpu_hours[0, CHANNELS.index("budget")].tolist() == [0, 3]
    assert served.money[0, CHANNELS.index("on_demand")].sum() == evaluate(problem, np.zeros(0)).cost == 3 * 4


@given(problem=problems(budgets=1) | problems(budgets=2), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_what_the_channels_serve_adds_up_to_demand_and_what_is_paid_to_the_cost(problem: Problem, seed: int) -> None:
    units, each = some_units(problem, seed), np.arange(1.0, len(problem.hour_weight) + 1)
    served, found = serve(problem, units, each), evaluate(problem, units)
    assert served.gpu_hours.sum(1) == pytest.approx((problem.demand * each[:, None]).sum(1))
    assert np.delete(served.money, CHANNELS.index("budget"), axis=1).sum((1, 2)) == pytest.approx(found.cost)
    held = (found.held[problem.period_of_hour] * each[:, None]).sum(0)
    assert served.gpu_hours[:, 0] + served.held_unused == pytest.approx(np.broadcast_to(held, served.held_unused.shape))
    committed = (found.budget[problem.period_of_hour] * problem.hour_weight[:, None]).sum()
    used = served.money[:, CHANNELS.index("budget")].sum(1) + served.budget_unused.sum(1)
    assert used == pytest.approx(np.full(len(used), committed))
    assert (served.gpu_hours >= 0).all()


def test_chunks_of_hours_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(12, budgets=2)
    units = some_units(problem, 1)
    whole = evaluate(problem, units)
    monkeypatch.setattr(recourse, "CHUNK_HOURS", 2)
    split = evaluate(problem, units)
    for name in ("cost", "pool_bound", "held_slope", "budget_slope"):
        assert getattr(split, name) == pytest.approx(getattr(whole, name))


def test_pools_are_grouped_by_the_budgets_that_join_them() -> None:
    rate = np.array(
        [[1, np.inf, 1, np.inf, np.inf], [np.inf, np.inf, 2, 2, np.inf], [np.inf, 3, np.inf, np.inf, np.inf]]
    )
    found = groups(a_problem(np.ones((1, 1, 5)), budget_rate=rate))
    assert [(one.pools.tolist(), one.budgets.tolist()) for one in found] == [([4], []), ([0, 2, 3], [0, 1]), ([1], [2])]
