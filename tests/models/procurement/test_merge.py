"""Fewer budgets: never dearer than the true problem, and the same where rates differ by one factor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from models.procurement import extensive
from models.procurement.merge import merged
from models.procurement.problem import Problem  # noqa: TC001  Hypothesis reads it
from models.procurement.recourse import evaluate
from tests.models.procurement.problems import a_problem, problems, random_problem


@given(problem=problems(budgets=3, limits=False))
@settings(max_examples=20, deadline=None)
def test_the_smaller_problem_has_a_bound_of_the_true_one(problem: Problem) -> None:
    smaller = merged(problem)
    assert len(smaller.budget_rate) <= len(problem.budget_rate)
    assert extensive.solve(smaller).bound <= extensive.solve(problem).bound * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_plans_that_differ_by_one_factor_for_all_pools_are_exactly_one(seed: int) -> None:
    plain = random_problem(seed, budgets=2, limits=False)
    rate = np.linspace(0.4, 0.8, len(plain.pools))
    problem = replace(plain, budget_rate=np.stack([rate, 0.7 * rate]), on_demand_limit=np.full(len(rate), np.inf))
    smaller = merged(problem)
    assert len(smaller.budget_rate) == (len(rate) > 1)
    assert extensive.solve(smaller).bound == pytest.approx(extensive.solve(problem).bound, rel=1e-9)


def test_money_for_one_pool_is_gpus() -> None:
    problem = a_problem(np.full((1, 2, 2), 9.0), budget_rate=np.array([[2.0, np.inf]]), held_budget=np.array([[6.0]]))
    assert merged(problem).held.tolist() == [[3, 0]]
    assert merged(problem).budget_rate.shape == (0, 2)


def test_where_gpus_may_be_refused_the_smaller_problem_is_a_bound() -> None:
    # Three GPUs paid for by money, and four that can be had on demand, those among them: nine are wanted.
    problem = a_problem(
        np.full((1, 1, 1), 9.0),
        budget_rate=np.array([[2.0]]),
        held_budget=np.array([[6.0]]),
        on_demand_limit=np.array([4.0]),
    )
    nothing = np.zeros(len(problem.column_cost))
    # Held beside the four: 9 - 3 = 6, two of them go without. Truly one of the four is left: 9 - 4 = 5 go without.
    assert evaluate(merged(problem), nothing).cost[0] == pytest.approx(4 * 2 + 2 * 50)
    assert evaluate(problem, nothing).cost[0] == pytest.approx(1 * 2 + 5 * 50)
