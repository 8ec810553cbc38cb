"""Cuts: their bracket holds the optimum, with and without budgets, limits and a tail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import UsageError
from models.procurement import extensive, lshaped
from models.procurement.problem import Limit, Problem
from models.procurement.recourse import evaluate
from tests.models.procurement.problems import a_problem, problems


def bracket_holds(problem: Problem, gap: float | None) -> None:
    """Either both find the limits impossible, or the optimum lies between bound and cost, and these are near."""
    try:
        optimum = extensive.solve(problem)
    except UsageError:
        with pytest.raises(UsageError, match="cannot all be kept"):
            lshaped.solve(problem)
        return
    found = lshaped.solve(problem)
    slack = 1e-6 * (1 + abs(optimum.bound))
    assert found.bound <= optimum.bound + slack
    assert found.cost >= optimum.bound - slack
    if gap is not None:
        assert found.cost - found.bound <= gap * found.cost + slack
    for limit in problem.limits:
        assert limit.low - 1e-6 <= limit.weights @ found.units <= limit.high + 1e-6


@given(problem=problems(budgets=1))
@settings(max_examples=20, deadline=None)
def test_the_bracket_holds_the_optimum_with_a_budget_limits_and_windows(problem: Problem) -> None:
    bracket_holds(problem, gap=1e-6)


@given(problem=problems(budgets=1, tail=True))
@settings(max_examples=12, deadline=None)
def test_the_bracket_holds_the_optimum_with_a_weight_on_the_tail(problem: Problem) -> None:
    bracket_holds(problem, gap=1e-6)


@given(problem=problems(budgets=0))
@settings(max_examples=12, deadline=None)
def test_the_bracket_holds_the_optimum_without_budgets(problem: Problem) -> None:
    bracket_holds(problem, gap=1e-6)


@given(problem=problems(budgets=3))
@settings(max_examples=12, deadline=None)
def test_several_budgets_on_one_pool_may_leave_a_gap_but_never_a_wrong_bound(problem: Problem) -> None:
    bracket_holds(problem, gap=None)


def test_one_savings_plan_over_several_pools_is_what_a_search_in_one_dimension_finds() -> None:
    rng = np.random.default_rng(8)
    demand = rng.integers(0, 30, (1, 60, 3)).astype(float)
    rates, price = np.array([2.0, 1.2, 0.9]), np.array([3.0, 2.5, 1.1])
    problem = a_problem(
        demand,
        on_demand_price=price[None, None],
        budget_rate=rates[None],
        column_cost=np.array([60.0]),
        column_pool=np.array([-1]),
        column_budget=np.array([0]),
        column_supply=np.ones((1, 1)),
        column_step=np.zeros(1),
        column_high=np.array([np.inf]),
    )

    def hour(wanted: np.ndarray, money: float) -> float:
        """The vendor's order by hand: highest saving first until the commitment is used up."""
        paid = 0.0
        for pool in sorted(range(3), key=lambda p: rates[p] / price[p]):
            covered = min(wanted[pool], money / rates[pool])
            money -= covered * rates[pool]
            paid += (wanted[pool] - covered) * price[pool]
        return paid

    # The cost is linear between the hours' own full commitments, so one of them (or nothing) is the optimum.
    order = np.argsort(rates / price)
    kinks = np.concatenate([[0.0], np.cumsum((demand[0] * rates)[:, order], axis=1).ravel()])
    best = min(60 * kink + sum(hour(wanted, kink) for wanted in demand[0]) for kink in np.unique(kinks))
    found = lshaped.solve(problem, gap=1e-9)
    assert found.cost == pytest.approx(best, rel=1e-8)
    assert 0 < found.units[0] < kinks.max()


def test_the_tail_is_the_mean_of_the_dearest_scenarios() -> None:
    # Four scenarios alike but for their level: at level 0.5 the CVaR is the mean of the two dearest, found by enumeration.
    levels = np.array([2.0, 4.0, 8.0, 10.0])
    problem = a_problem(
        np.repeat(levels, 3).reshape(4, 3, 1), tail_weight=1.0, tail_level=0.5, column_cost=np.array([3.5])
    )

    def cvar(units: float) -> float:
        return 3.5 * units + np.sort([3 * 2 * max(level - units, 0) for level in levels])[2:].mean()

    found = lshaped.solve(problem)
    assert found.cost == pytest.approx(min(cvar(k) for k in range(11)), rel=1e-6)
    assert found.cost == pytest.approx(cvar(found.units[0]))
    mean = lshaped.solve(replace(problem, tail_weight=0.0))
    assert mean.units[0] < found.units[0]


def test_impossible_limits_are_named_with_what_is_missing() -> None:
    problem = a_problem(np.full((1, 3, 2), 9.0), column_high=np.array([2.0, 3.0]))
    floor = Limit(name="capacity for inference", weights=np.ones(2), low=12.0, high=np.inf, unit="GPUs")
    spend = Limit(name="budget", weights=np.array([1.0, 0.0]), low=-np.inf, high=50.0, unit="money")
    words = r"capacity for inference needs at least 12 GPUs, but 5 can be reached \(7 short\)"
    with pytest.raises(UsageError, match=words) as failed:
        lshaped.solve(replace(problem, limits=(floor, spend)))
    assert "budget" not in str(failed.value)


@given(problem=problems(budgets=1, limits=False), factor=st.sampled_from([0.5, 2.0, 3.0]))
@settings(max_examples=8, deadline=None)
def test_prices_times_a_factor_cost_times_that_factor(problem: Problem, factor: float) -> None:
    names = ("column_cost", "spot_price", "on_demand_price", "shortfall_price")
    dearer = replace(problem, fixed_cost=0.0, **{name: factor * getattr(problem, name) for name in names})
    plain = lshaped.solve(replace(problem, fixed_cost=0.0), gap=1e-8).cost
    assert lshaped.solve(dearer, gap=1e-8).cost == pytest.approx(factor * plain, rel=1e-6)


@given(problem=problems(budgets=1, limits=False))
@settings(max_examples=8, deadline=None)
def test_more_offers_never_cost_more_and_more_demand_never_less(problem: Problem) -> None:
    cost = lshaped.solve(problem).cost
    fewer = replace(problem, column_high=np.where(np.arange(len(problem.column_high)) % 2, problem.column_high, 0.0))
    assert lshaped.solve(fewer).cost >= cost * (1 - 2e-6)
    more = replace(problem, demand=problem.demand + 1)
    assert lshaped.solve(more).cost >= cost * (1 - 2e-6)


def test_hours_side_by_side_by_demand_are_the_same_hours() -> None:
    problem = problems_like_a_plan(seed=2)
    arranged = lshaped.arrange(problem)
    units = np.array([3.0, 2.0, 6.0])
    assert arranged.demand.shape[0] == 1
    assert len(arranged.held) > len(problem.held)
    expected = problem.probability @ evaluate(problem, units).cost
    assert evaluate(arranged, units).cost[0] == pytest.approx(expected)


def test_a_plan_from_a_sample_of_the_hours_is_only_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems_like_a_plan(seed=4)
    plain = lshaped.solve(problem)
    monkeypatch.setattr(lshaped, "SAMPLE_HOURS", 50)
    sampled = lshaped.solve(problem)
    assert sampled.cost == pytest.approx(plain.cost, rel=2e-6)
    assert max(sampled.gap_ratio, plain.gap_ratio) <= 1e-6
    assert sampled.bound <= plain.cost


def test_many_blocks_are_put_together_and_the_answer_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems_like_a_plan(seed=6)
    plain = lshaped.solve(problem)
    monkeypatch.setattr(lshaped, "MOST_BLOCKS", 3)
    assert lshaped.solve(problem).cost == pytest.approx(plain.cost, rel=2e-6)


def problems_like_a_plan(seed: int) -> Problem:
    """Two pools joined by one savings plan, two scenarios of 200 hours in two periods, prices that change by the hour."""
    rng = np.random.default_rng(seed)
    return a_problem(
        rng.poisson(8, (2, 200, 2)).astype(float),
        period_of_hour=np.arange(200) // 100,
        on_demand_price=rng.uniform(1.8, 2.2, (1, 200, 2)),
        spot_price=rng.uniform(0.5, 2.5, (2, 200, 2)),
        spot_limit=np.full((1, 1, 2), 2.0),
        budget_rate=np.array([[1.2, 1.3]]),
        column_cost=np.array([260.0, 270.0, 190.0]),
        column_supply=np.ones((3, 2)),
    )


def test_with_few_rounds_the_gap_that_was_reached_is_told() -> None:
    found = lshaped.solve(problems_like_a_plan(seed=9), rounds=2)
    assert found.rounds == 2
    assert found.bound < found.cost
    assert found.gap_ratio > 1e-6
