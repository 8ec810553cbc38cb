"""Whole units against every integer plan there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import UsageError
from models.procurement import separable
from models.procurement.feasible import keeps_limits
from models.procurement.problem import Limit, Problem
from models.procurement.recourse import evaluate
from models.procurement.solve import relaxed
from models.procurement.whole import in_whole_units, rounded
from tests.models.procurement.problems import a_problem, best_by_trying


def nodes(seed: int, **changes: object) -> Problem:
    """Two pools wanted by up to 30 GPUs over 24 hours, bought in nodes of eight."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 30, (2, 24, 2)).astype(float)
    return a_problem(demand, column_step=np.full(2, 8.0), column_cost=24 * rng.uniform(0.4, 1.6, 2), **changes)


def cost(problem: Problem, units: np.ndarray) -> float:
    return problem.objective(units, evaluate(problem, units).cost)


def every_plan(problem: Problem) -> list[np.ndarray]:
    """All multiples of the steps up to 40 units that keep the limits."""
    each = [np.arange(0, 41, step) for step in problem.column_step]
    return [units for one in product(*each) if keeps_limits(problem, units := np.array(one, float))]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_pools_on_their_own_get_the_best_whole_units_there_are(seed: int) -> None:
    problem = nodes(seed)
    found = in_whole_units(problem, separable.solve(problem))
    assert found.cost == pytest.approx(best_by_trying(lambda one: cost(problem, one), every_plan(problem)))
    assert (found.units % 8 == 0).all()
    assert found.bound <= found.cost


@given(seed=st.integers(0, 10_000), most=st.sampled_from([8.0, 24.0, 40.0]), least=st.sampled_from([0.0, 8.0]))
@settings(max_examples=20, deadline=None)
def test_limits_are_kept_and_the_plan_is_near_the_best(seed: int, most: float, least: float) -> None:
    limit = Limit(name="nodes", weights=np.array([1.0, 1.0]), low=least, high=most, unit="GPUs")
    problem = nodes(seed, limits=(limit,))
    found = in_whole_units(problem, relaxed(problem))
    best = best_by_trying(lambda one: cost(problem, one), every_plan(problem))
    assert keeps_limits(problem, found.units)
    assert best * (1 - 1e-9) <= found.cost <= best * 1.01
    assert found.bound <= best * (1 + 1e-9)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=6, deadline=None)
def test_a_savings_plan_beside_whole_nodes_is_chosen_anew_for_them(seed: int) -> None:
    plain = nodes(seed)
    problem = a_problem(
        plain.demand,
        budget_rate=np.array([[1.3, 1.4]]),
        column_cost=np.r_[plain.column_cost, 24.0],
        column_step=np.array([8.0, 8.0, 0.0]),
        column_supply=np.ones((3, 1)),
        column_high=np.full(3, np.inf),
    )
    found = in_whole_units(problem, relaxed(problem))
    money = np.arange(0.0, 80.0, 0.5)
    with_plan = [np.r_[one, found.units[2]] for one in every_plan(plain)]
    assert found.cost <= best_by_trying(lambda one: cost(problem, one), with_plan) * 1.001
    same_nodes = [np.r_[found.units[:2], one] for one in money]
    assert found.cost <= best_by_trying(lambda one: cost(problem, one), same_nodes) * (1 + 2e-6)
    assert (found.units[:2] % 8 == 0).all()


def test_limits_that_only_parts_of_nodes_could_keep_are_named() -> None:
    exact = Limit(name="GPUs in all", weights=np.ones(2), low=9.0, high=15.0, unit="GPUs")
    problem = nodes(1, limits=(exact,))
    with pytest.raises(UsageError, match=r"cannot all be kept in whole units: GPUs in all .*1 (short|too many)"):
        in_whole_units(problem, relaxed(problem))


def test_rounding_goes_to_the_nearest_multiples_that_keep_the_limits() -> None:
    spend = Limit(name="spend", weights=np.array([1.0, 3.0]), low=-np.inf, high=40.0, unit="money")
    problem = replace(nodes(1), column_cost=np.array([1.0, 5.0]))
    assert rounded(problem, np.array([13.0, 11.0])).tolist() == [16, 8]
    assert rounded(replace(problem, limits=(spend,)), np.array([13.0, 9.0])).tolist() == [16, 8]
    tighter = replace(spend, high=36.0)
    assert rounded(replace(problem, limits=(tighter,)), np.array([13.0, 9.0])).tolist() == [8, 8]
    few = replace(problem, column_high=np.array([12.0, 4.0]))
    assert rounded(few, np.array([12.0, 4.0])).tolist() == [8, 0]


def test_without_steps_the_relaxed_plan_is_the_plan() -> None:
    problem = replace(nodes(1), column_step=np.zeros(2))
    plan = separable.solve(problem)
    assert in_whole_units(problem, plan) is plan
