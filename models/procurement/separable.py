"""The best purchase by order statistics, where pools and hours do not touch each other: exact, without a solver.

Belongs here: problems without budgets, without limits over several columns and without a weight on the tail, where all
columns of a pool supply the same hours or none in common. Everything else: ``lshaped``.

Serving what R GPUs leave over costs ``Σ_i step_i · (D − θ_i − R)+``: each step is what the next channel costs more than
the one before, and θ_i is how much the channels before it serve. So the k-th GPU is worth buying iff it costs less than
the weighted share of hours in which a "virtual demand" ``D − θ_i`` exceeds it, times that step: a newsvendor quantile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.procurement.problem import Solution
from models.procurement.recourse import evaluate

if TYPE_CHECKING:
    from models.procurement.problem import Floats, Integers, Problem

BINS = 4_096


def is_separable(problem: Problem) -> bool:
    """Whether order statistics are exact for this problem."""
    if problem.tail_weight > 0 or problem.limits or len(problem.budget_rate):
        return False
    active = problem.column_supply > 0
    most = problem.column_supply.max(axis=1, initial=0)
    steady = (problem.column_supply == np.where(active, most[:, None], 0)).all()
    same = active[:, None, :] == active[None, :, :]
    apart = ~(active[:, None, :] & active[None, :, :]).any(axis=2)
    rivals = problem.column_pool[:, None] == problem.column_pool[None, :]
    return bool(steady and (same.all(axis=2) | apart | ~rivals).all())


def solve(problem: Problem) -> Solution:
    """Buy, pool by pool, the GPUs that are worth it.

    Args:
      problem: A problem for which ``is_separable`` holds.

    Returns:
      The exact optimum of the relaxed problem (``column_step`` is not looked at); cost and bound are equal.
    """
    units = np.zeros(len(problem.column_cost))
    supply = problem.column_supply.max(axis=1, initial=0)
    useful = (supply > 0) & (problem.column_high > 0)
    units[~useful & (problem.column_cost < 0)] = problem.column_high[~useful & (problem.column_cost < 0)]
    patterns = {(int(problem.column_pool[j]), (problem.column_supply[j] > 0).tobytes()) for j in np.flatnonzero(useful)}
    for pool, pattern in sorted(patterns):
        active = np.frombuffer(pattern, dtype=bool)
        mine = [
            j
            for j in np.flatnonzero(useful & (problem.column_pool == pool))
            if ((problem.column_supply[j] > 0) == active).all()
        ]
        demand, weight = virtual_demand(problem, pool, active)
        bought = 0.0
        for j in sorted(mine, key=lambda j: (problem.column_cost[j] / supply[j], j)):
            price = problem.column_cost[j] / supply[j]
            worth = np.inf if price < 0 else quantile(demand, weight, price)
            units[j] = np.clip((worth - bought) / supply[j], 0, problem.column_high[j])
            bought += units[j] * supply[j]
    serving = evaluate(problem, units).cost
    cost = problem.objective(units, serving)
    return Solution(
        units=units,
        cost=cost,
        bound=cost,
        scenario_cost=problem.fixed_cost + problem.column_cost @ units + serving,
        method="order statistics",
        rounds=1,
    )


def virtual_demand(problem: Problem, pool: int, active: Floats | Integers) -> tuple[Floats, Floats]:
    """Virtual demands of one pool and what each is worth, over the hours of the active periods; demands of 0 left out."""
    hours = np.flatnonzero(active[problem.period_of_hour])
    inside = slice(None) if len(hours) == len(problem.hour_weight) else hours

    def of_pool(values: Floats) -> Floats:
        """Scenarios by hours, or 1 where they are all the same."""
        return values[:, inside if values.shape[1] > 1 else slice(None), pool]

    demand = of_pool(problem.demand) - problem.held[problem.period_of_hour[hours], pool]
    weight = problem.probability[:, None] * problem.hour_weight[hours]
    last = problem.shortfall_price[pool]
    spot = np.minimum(of_pool(problem.spot_price), last)
    on_demand = np.minimum(of_pool(problem.on_demand_price), last)
    spot_limit, limit = of_pool(problem.spot_limit), problem.on_demand_limit[pool]
    first, second = np.minimum(spot, on_demand), np.maximum(spot, on_demand)
    steps = [(np.zeros((1, 1)), first), (np.where(spot < on_demand, spot_limit, limit), second - first)]
    if np.isfinite(limit):
        steps.append((spot_limit + limit, last - second))
    values, weights = [], []
    for served, step in steps:
        value, worth = demand - served, weight * step
        kept = (value > 0) & (worth > 0)
        values.append(value[kept])
        weights.append(worth[kept])
    return np.concatenate(values), np.concatenate(weights)


def quantile(values: Floats, weights: Floats, price: float) -> float:
    """The smallest R ≥ 0 for which the weight of all values above R is at most ``price``.

    Values are first counted into bins, so that only those of one bin are sorted.

    >>> import numpy as np
    >>> quantile(np.array([5.0, 3.0, 8.0]), np.array([1.0, 1.0, 1.0]), 1.5)
    5.0
    """
    if weights.sum() <= price:
        return 0.0
    top = values.max()
    slot = np.minimum((values * (BINS / top)).astype(np.int64), BINS - 1)
    by_slot = np.bincount(slot, weights, BINS)
    above = by_slot[::-1].cumsum()[::-1] - by_slot  # weight of all later bins
    dearer = np.flatnonzero(above + by_slot > price)
    if not len(dearer):  # the first unit costs what it is worth, but for the order in which weights are added up
        return 0.0
    here = int(dearer[-1])
    inside = slot == here
    order = np.argsort(-values[inside], kind="stable")
    ranked, weight = values[inside][order], above[here] + np.cumsum(weights[inside][order])
    crossed = np.flatnonzero(weight > price)
    return float(ranked[crossed[0]]) if len(crossed) else float(ranked[-1])
