"""Order statistics against brute force, the slot rule, the screening curve, and the whole linear program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from models.procurement import extensive, separable
from models.procurement.problem import Limit, Problem
from tests.models.procurement.problems import a_problem, problems, random_problem


def test_2000_newsvendors_buy_what_brute_force_and_the_slot_rule_buy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(2_000):
        hours = int(rng.integers(1, 40))
        demand = rng.integers(0, 15, hours).astype(float)
        on_demand, committed = rng.uniform(1, 5), rng.uniform(0.2, 6)
        problem = a_problem(
            demand,
            on_demand_price=np.full((1, 1, 1), on_demand),
            column_cost=np.array([committed * hours]),
            shortfall_price=np.array([99.0]),
        )
        found = separable.solve(problem)
        tried = [committed * hours * k + on_demand * np.clip(demand - k, 0, None).sum() for k in range(16)]
        assert found.cost == pytest.approx(min(tried), rel=1e-12)
        # The slot rule: the k-th GPU is bought iff the share of hours that want it exceeds the price ratio.
        slots = sum((demand >= k).mean() > committed / on_demand for k in range(1, 16))
        assert found.units[0] == slots


@given(problem=problems(budgets=0, limits=False))
@settings(max_examples=80, deadline=None)
def test_order_statistics_have_the_optimum_of_the_whole_program(problem: Problem) -> None:
    window = problem.column_supply[:1].repeat(len(problem.column_cost), axis=0)
    steady = replace(problem, column_supply=np.where(window > 0, 1.0, 0.0))
    assert separable.is_separable(steady)
    found = separable.solve(steady)
    assert found.cost == pytest.approx(extensive.solve(steady).bound, rel=1e-9)
    assert found.bound == found.cost


def test_on_a_year_with_spot_and_growth_it_equals_the_program_to_nine_places() -> None:
    rng = np.random.default_rng(11)
    demand = rng.poisson(60, (2, 400, 4)).astype(float) * rng.uniform(0.5, 1.5, (2, 1, 4))
    problem = a_problem(
        demand,
        hour_weight=1.1 ** (-np.arange(400) / 8760),
        spot_limit=0.3 * demand,
        spot_price=np.full((1, 1, 4), 1.1),
        column_cost=np.full(4, 400 * 1.3),
        on_demand_limit=np.array([np.inf, 20.0, 5.0, np.inf]),
    )
    assert separable.solve(problem).cost == pytest.approx(extensive.solve(problem).bound, rel=1e-9)


def test_the_mix_is_the_lower_envelope_over_the_load_duration_curve() -> None:
    # The k-th GPU is wanted in a share of hours; each instrument costs its fixed price plus its price by use, and the
    # cheapest serves it. Reserved has no price by use, and of two terms the cheaper one stands on the envelope.
    rng = np.random.default_rng(5)
    demand = rng.integers(0, 60, 500).astype(float)
    problem = a_problem(
        demand,
        on_demand_price=np.full((1, 1, 1), 4.0),
        column_cost=np.array([2.2 * 500, 1.4 * 500, 3.0 * 500]),
        column_pool=np.zeros(3, int),
        column_budget=np.full(3, -1),
        column_supply=np.ones((3, 1)),
        column_step=np.zeros(3),
        column_high=np.array([np.inf, 12.0, np.inf]),
    )
    used = np.array([(demand >= k).sum() for k in range(1, 61)])
    fixed = np.where(np.arange(1, 61) <= 12, 1.4, 2.2) * 500
    envelope = np.minimum(fixed, 4.0 * used)
    found = separable.solve(problem)
    assert found.cost == pytest.approx(envelope.sum())
    assert found.units.tolist() == [(4.0 * used > 500 * 2.2).sum() - 12, 12, 0]


def test_columns_in_windows_apart_are_chosen_window_by_window() -> None:
    problem = a_problem(
        [5.0, 5.0, 1.0, 1.0],
        period_of_hour=np.array([0, 0, 1, 1]),
        column_cost=np.array([2.0, 2.0]),
        column_pool=np.zeros(2, int),
        column_budget=np.full(2, -1),
        column_supply=np.eye(2),
        column_step=np.zeros(2),
        column_high=np.full(2, np.inf),
    )
    assert separable.is_separable(problem)
    assert separable.solve(problem).units.tolist() == [5, 1]


def test_what_couples_pools_hours_or_scenarios_is_not_separable() -> None:
    problem = a_problem(np.ones((2, 4, 2)), period_of_hour=np.array([0, 0, 1, 1]))
    ramp, overlap = np.array([[1.0, 2.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    limit = Limit(name="spend", weights=np.ones(2), low=-np.inf, high=1.0, unit="money")
    assert separable.is_separable(problem)
    assert not separable.is_separable(replace(problem, limits=(limit,)))
    assert not separable.is_separable(replace(problem, tail_weight=0.1))
    assert not separable.is_separable(replace(problem, column_supply=ramp))
    assert not separable.is_separable(replace(problem, column_supply=overlap, column_pool=np.zeros(2, int)))
    assert not separable.is_separable(random_problem(1, budgets=1))


def test_a_column_that_earns_money_is_bought_up_to_its_limit() -> None:
    problem = a_problem([1.0, 1.0], column_cost=np.array([-1.0]), column_high=np.array([7.0]))
    assert separable.solve(problem).units.tolist() == [7]


@pytest.mark.parametrize("size", [1, 7, 5_000])
def test_the_quantile_by_bins_is_the_one_by_sorting(size: int) -> None:
    rng = np.random.default_rng(size)
    values, weights = rng.integers(1, 50, size) * 0.37, rng.uniform(0, 1, size)
    for price in rng.uniform(0, weights.sum() * 1.1, 40):
        candidates = [0.0, *np.unique(values)]
        smallest = next(one for one in candidates if weights[values > one].sum() <= price)
        assert separable.quantile(values, weights, price) == smallest


def test_zero_demand_buys_nothing() -> None:
    found = separable.solve(a_problem(np.zeros((2, 5, 3))))
    assert found.units.tolist() == [0, 0, 0]
    assert (found.cost, found.gap_ratio) == (0, 0)


@pytest.mark.parametrize("hours", range(1, 60))
def test_what_costs_as_much_as_it_is_worth_is_decided_however_sums_are_rounded(hours: int) -> None:
    # The worth of a GPU is added up of spot at 4 / 0.85 and of the rest up to 9 on demand; reserved, it costs 9 an hour.
    problem = a_problem(
        np.full(hours, 5.0),
        on_demand_price=np.full((1, 1, 1), 9.0),
        spot_price=np.full((1, 1, 1), 4 / 0.85),
        spot_limit=np.full((1, 1, 1), 4.0),
        column_cost=np.array([9.0 * hours]),
    )
    assert separable.solve(problem).cost == pytest.approx(hours * (4 * 4 / 0.85 + 9))
