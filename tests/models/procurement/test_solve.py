"""Which problem goes to which solver, and that it does not matter for the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.procurement import lshaped, solve
from models.procurement.extensive import solve as whole_program
from tests.models.procurement.problems import a_problem, by_scipy, random_problem


def test_a_separable_problem_is_solved_by_order_statistics_and_one_with_a_budget_by_cuts() -> None:
    plain = a_problem([1.0, 2.0, 5.0])
    assert solve.solve(plain).method == "order statistics"
    assert solve.solve(replace(plain, tail_weight=0.5)).method == "L-shaped"
    assert solve.solve(replace(plain, column_step=np.array([8.0]))).method == "order statistics, then whole units"
    assert solve.solve(random_problem(1, budgets=1, limits=False)).method == "L-shaped"


def test_two_plans_over_the_same_pools_fall_back_to_the_whole_program_where_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = random_problem(0, budgets=2, limits=False)
    found = solve.solve(problem)
    assert found.method == "extensive"
    assert found.bound == pytest.approx(by_scipy(problem), rel=1e-7)
    assert found.cost <= lshaped.solve(problem).cost
    monkeypatch.setattr(solve, "EXTENSIVE_ROWS", 0)
    honest = solve.solve(problem)
    assert honest.method == "L-shaped"
    assert honest.gap_ratio > 1e-6
    assert honest.bound <= found.bound


def test_plans_put_together_leave_a_gap_that_rounds_with_each_on_its_own_close(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(0, budgets=2, limits=False)
    exact = whole_program(problem)
    monkeypatch.setattr(solve, "EXTENSIVE_ROWS", 0)
    refined = solve.solve(problem)
    monkeypatch.setattr(solve, "REFINED_CELLS", 0)
    coarse = solve.solve(problem)
    assert coarse.bound < refined.bound <= exact.bound * (1 + 1e-7)
    assert refined.gap_ratio < coarse.gap_ratio / 2
    assert refined.cost <= coarse.cost


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_order_statistics_and_cuts_agree(seed: int) -> None:
    problem = random_problem(seed, budgets=0, limits=False)
    problem = replace(problem, column_supply=np.ones_like(problem.column_supply))
    found = solve.solve(problem)
    assert found.method == "order statistics"
    assert lshaped.solve(problem).cost == pytest.approx(found.cost, rel=2e-6)


def test_zero_demand_buys_nothing() -> None:
    problem = random_problem(5, budgets=1, limits=False)
    found = solve.solve(replace(problem, demand=0 * problem.demand, spot_limit=0 * problem.spot_limit))
    assert found.units == pytest.approx(np.zeros(len(found.units)))
    assert found.cost == pytest.approx(problem.fixed_cost)


def test_one_hour_is_a_history_too() -> None:
    found = solve.solve(a_problem([3.0], column_cost=np.array([1.0])))
    assert (found.units.tolist(), found.cost) == ([3], 3)


def test_the_same_problem_has_the_same_answer_to_the_last_bit() -> None:
    problem = random_problem(7, budgets=2, tail=True, whole=True, limits=False)
    first, again = solve.solve(problem), solve.solve(problem)
    assert first.units.tobytes() == again.units.tobytes()
    assert (first.cost, first.bound) == (again.cost, again.bound)


def test_the_scenarios_costs_make_up_the_objective() -> None:
    problem = random_problem(11, budgets=1, limits=False)
    found = solve.solve(problem)
    assert problem.probability @ found.scenario_cost == pytest.approx(found.cost)
    assert found.cost == pytest.approx(whole_program(problem).cost, rel=1e-6)
