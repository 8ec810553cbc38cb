"""A problem that no solver could answer is refused, with what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.errors import UsageError
from models.procurement.problem import Limit, Solution
from tests.models.procurement.problems import a_problem

GOOD = a_problem(np.ones((2, 3, 2)), period_of_hour=np.array([0, 0, 1]))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"demand": np.ones((2, 3, 1))}, r"demand has the shape \(2, 3, 1\); expected 2 by 3 by 2"),
    ({"spot_limit": np.ones((3, 1, 2))}, r"spot_limit has the shape \(3, 1, 2\); expected 2 or 1 by 3 or 1 by 2"),
    ({"demand": np.full((2, 3, 2), np.nan)}, "demand holds a value that is not a number"),
    ({"demand": -np.ones((2, 3, 2))}, "an amount is negative"),
    ({"demand": np.full((2, 3, 2), np.inf)}, "an amount is infinite"),
    ({"on_demand_price": np.full((1, 1, 2), -1.0)}, "a price is negative"),
    ({"shortfall_price": np.array([1.0, np.inf])}, "a shortfall has no price"),
    ({"probability": np.array([0.5, 0.6])}, r"probabilities add up to 1\.1, not to 1"),
    ({"period_of_hour": np.array([0, 1, 0])}, "do not ascend"),
    ({"period_of_hour": np.array([0, 1, 2])}, "in a period that has nothing held"),
    ({"column_pool": np.array([0, 2])}, "adds neither to one pool nor to one budget"),
    ({"column_pool": np.array([0, -1])}, "adds neither to one pool nor to one budget"),
    ({"column_cost": np.array([1.0, -1.0])}, "earns money and has no upper limit"),
    ({"limits": (Limit(name="a", weights=np.ones(3), low=0, high=1, unit="GPUs"),)}, "not one weight a column"),
    ({"limits": (Limit(name="a", weights=np.ones(2), low=2, high=1, unit="GPUs"),)}, "low is above its high"),
    ({"tail_level": 1.0}, "out of range"),
    ({"budget_rate": np.zeros((1, 2)), "held_budget": np.zeros((2, 1))}, "consumes nothing of a budget"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_problem_that_cannot_be_answered_says_why(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(GOOD, **change)


def test_a_problem_without_hours_is_refused() -> None:
    nothing = np.empty((2, 0, 2))
    with pytest.raises(UsageError, match="it has no hour"):
        replace(GOOD, demand=nothing, hour_weight=np.empty(0), period_of_hour=np.empty(0, int))


@pytest.mark.parametrize("level", [0.0, 0.25, 0.5, 0.8])
def test_the_tail_is_the_mean_of_the_dearest_part_of_the_probability(level: float) -> None:
    probability, cost = np.array([0.1, 0.2, 0.3, 0.4]), np.array([9.0, 1.0, 5.0, 7.0])
    problem = a_problem(np.ones((4, 1, 1)), probability=probability, tail_weight=1.0, tail_level=level)
    # The least over every threshold of threshold + mean excess / (1 - level), as Rockafellar and Uryasev have it.
    tried = [at + probability @ np.clip(cost - at, 0, None) / (1 - level) for at in cost]
    assert problem.objective(np.zeros(1), cost) == pytest.approx(min(tried))
    assert problem.tail_weights(cost).sum() == pytest.approx(1)


def test_the_gap_is_a_part_of_the_cost() -> None:
    plan = Solution(units=np.ones(1), cost=100.0, bound=99.0, scenario_cost=np.ones(1), method="x", rounds=1)
    assert plan.gap_ratio == pytest.approx(0.01)
    assert replace(plan, cost=0.0, bound=0.0).gap_ratio == 0
