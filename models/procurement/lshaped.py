"""The L-shaped method (Benders, Kelley's cuts): a small linear program of what to buy, and a cut for each answer to it.

The master holds the units, the limits, and one cost variable a block of hours; serving (``recourse``) answers with the
cost at some units and its slopes, which hold everywhere as a lower bound since the cost is convex. The master's optimum
is a bound on every plan; the best plan served is the answer. They meet, but for the gap that was asked for.

Three things make the rounds few. Blocks: a pool that no budget joins to others has its own cost variable in each period,
and hours that a budget couples are sorted by their demand first, so that each block is nearly linear near the optimum.
Cuts are taken between the best plan and the master's (which then contract in every round) and not at the master's own
far corner. And the first plan comes from a sample of the hours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from models.procurement.feasible import add_columns, add_limits, add_rows, optimum, quiet, require_feasible
from models.procurement.problem import Solution
from models.procurement.recourse import evaluate, groups

if TYPE_CHECKING:
    from models.procurement.problem import Floats, Integers, Problem
    from models.procurement.recourse import Recourse

ROUNDS = 400
STAY = 0.85  # how near to the best plan the next cut is taken
COUPLED_BLOCKS = 60  # into which the hours that a budget couples are split, at least
MOST_BLOCKS = 1_200
SAMPLE_HOURS = 5_000  # of one scenario; problems of more than thrice as many hours start from a sample


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and most units of each column (J)."""

    low: Floats
    high: Floats


def solve(
    problem: Problem,
    *,
    gap: float = 1e-6,
    rounds: int = ROUNDS,
    bounds: Bounds | None = None,
    start: Floats | None = None,
) -> Solution:
    """Find what to buy, any amount of it (``column_step`` is not looked at).

    Args:
      problem: The problem.
      gap: Largest difference of cost and bound, as a part of the cost without ``fixed_cost``.
      rounds: Most rounds; the gap reached by then is in the solution.
      bounds: Bounds of the units, where they are other than 0 and ``column_high``.
      start: Units to start from (J).

    Returns:
      The best plan found and the bound.

    Raises:
      UsageError: The limits cannot all be kept.
      CheckError: HiGHS could not solve a master problem.
    """
    bounds = bounds or Bounds(np.zeros(len(problem.column_cost)), problem.column_high)
    if start is None:
        require_feasible(problem)
    arranged = arrange(problem)
    if start is None:
        start = _first_plan(arranged, gap, bounds)
    found = _rounds(arranged, gap, rounds, bounds, start)
    serving = evaluate(problem, found.units).cost
    cost = problem.objective(found.units, serving)
    return replace(
        found,
        cost=cost,
        bound=min(found.bound, cost),
        scenario_cost=problem.fixed_cost + problem.column_cost @ found.units + serving,
    )


def arrange(problem: Problem) -> Problem:
    """The same problem with coupled hours of like demand side by side, each stretch of them a period of its own.

    Hours may be exchanged within a period, and without a weight on the tail also between scenarios: they are then hours
    of one scenario, weighted by probability.
    """
    coupled = np.isfinite(problem.budget_rate).any(axis=0)
    if not coupled.any() or problem.tail_weight > 0:
        return problem
    shape = problem.demand.shape
    price = np.minimum(problem.on_demand_price, problem.shortfall_price)
    worth = np.broadcast_to(price, shape)[..., coupled].mean(axis=(0, 1))
    period = np.tile(problem.period_of_hour, shape[0])
    order = np.lexsort(((problem.demand[..., coupled] @ worth).ravel(), period))
    period = period[order]
    counts = np.bincount(period, minlength=len(problem.held))
    parts = -(-COUPLED_BLOCKS // len(counts))
    before = np.cumsum(counts) - counts
    within: Integers = np.arange(len(period)) - before[period]
    _, first, block = np.unique(
        period * parts + within * parts // counts[period], return_index=True, return_inverse=True
    )
    source = period[first]

    def flat(values: Floats) -> Floats:
        if values.shape[:2] == (1, 1):
            return values
        whole = np.broadcast_to(values, shape).reshape(-1, shape[2])
        return np.stack([whole[order, pool] for pool in range(shape[2])]).T[None]  # hours side by side in memory

    return replace(
        problem,
        probability=np.ones(1),
        period_of_hour=block,
        hour_weight=(problem.probability[:, None] * problem.hour_weight).ravel()[order],
        demand=flat(problem.demand),
        spot_limit=flat(problem.spot_limit),
        spot_price=flat(problem.spot_price),
        on_demand_price=flat(problem.on_demand_price),
        held=problem.held[source],
        held_budget=problem.held_budget[source],
        column_supply=problem.column_supply[:, source],
    )


def _first_plan(problem: Problem, gap: float, bounds: Bounds) -> Floats:
    """Units that are best for a sample of the hours, or that cost least where the problem is small."""
    hours = len(problem.hour_weight)
    if hours < 3 * SAMPLE_HOURS or len(problem.probability) > 1:
        return _cheapest(problem, bounds)
    every = hours // SAMPLE_HOURS
    kept = np.arange(every // 2, hours, every)
    total = np.bincount(problem.period_of_hour, problem.hour_weight, len(problem.held))
    sampled = np.bincount(problem.period_of_hour[kept], problem.hour_weight[kept], len(problem.held))
    scale = np.divide(total, sampled, out=np.zeros_like(total), where=sampled > 0)

    def some(values: Floats) -> Floats:
        return values if values.shape[1] == 1 else values[:, kept]

    sample = replace(
        problem,
        period_of_hour=problem.period_of_hour[kept],
        hour_weight=problem.hour_weight[kept] * scale[problem.period_of_hour[kept]],
        demand=some(problem.demand),
        spot_limit=some(problem.spot_limit),
        spot_price=some(problem.spot_price),
        on_demand_price=some(problem.on_demand_price),
    )
    return _rounds(sample, max(gap, 1e-5), ROUNDS, bounds, _cheapest(problem, bounds)).units


def _cheapest(problem: Problem, bounds: Bounds) -> Floats:
    """Units that keep the limits at the least cost, whatever serving then costs."""
    solver = quiet()
    add_columns(solver, problem.column_cost, bounds.low, bounds.high)
    add_limits(solver, problem)
    return optimum(solver, "the cheapest purchase")[0]


def _rounds(problem: Problem, gap: float, rounds: int, bounds: Bounds, start: Floats) -> Solution:
    """Cut until cost and bound meet."""
    units, best, cost, bound = start, start, np.inf, -np.inf
    master: Master | None = None
    for done in range(1, rounds + 1):  # noqa: B007  the last one is told
        recourse = evaluate(problem, units)
        value = problem.objective(units, recourse.cost) - problem.fixed_cost
        better = value < cost
        if better:
            cost, best = value, units
        master = master or Master(problem, bounds, max(abs(value), 1.0) / 1_000)
        news = master.cut(units, recourse)
        proposed, reached = master.solve()
        stuck = not news and not better and reached <= bound
        bound = max(bound, reached)
        if cost - bound <= gap * abs(cost) or stuck:
            break
        # No cut between the two: the cost is what the master says all the way, so the whole step is taken.
        units = STAY * best + (1 - STAY) * proposed if news else proposed
    return Solution(
        units=best,
        cost=cost + problem.fixed_cost,
        bound=min(bound, cost) + problem.fixed_cost,
        scenario_cost=np.empty(0),
        method="L-shaped",
        rounds=done,
    )


class Master:
    """The linear program of what to buy: columns are units, then one cost a block, then the tail's threshold and excesses.

    Args:
      problem: The arranged problem.
      bounds: Bounds of the units.
      scale: Money that counts as 1, so that the solver's tolerances are small parts of the cost.
    """

    def __init__(self, problem: Problem, bounds: Bounds, scale: float) -> None:
        """Set up the columns, the limits and the tail."""
        self.problem, self.scale, self.solver = problem, scale, quiet()
        self.columns = len(problem.column_cost)
        self.groups, self.target = _separate(problem), problem.column_target()
        self.by_scenario = problem.tail_weight > 0
        scenarios = len(problem.probability) if self.by_scenario else 1
        periods, most = len(problem.held), max(1, MOST_BLOCKS // (scenarios * len(self.groups)))
        self.starts = np.unique(np.arange(min(periods, most)) * periods // min(periods, most))
        shape = (scenarios, len(self.groups), len(self.starts))
        self.blocks = self.columns + np.arange(np.prod(shape))
        self.at_proposal = np.zeros(self.columns + len(self.blocks))
        weight = (1 - problem.tail_weight) * (problem.probability if self.by_scenario else np.ones(1))
        add_columns(self.solver, problem.column_cost / scale, bounds.low, bounds.high)
        cost = np.broadcast_to(weight[:, None, None], shape).ravel()
        add_columns(self.solver, cost, np.zeros(len(cost)), np.full(len(cost), np.inf))
        add_limits(self.solver, problem)
        if self.by_scenario:
            excess = problem.tail_weight * problem.probability / (1 - problem.tail_level)
            first = self.columns + len(self.blocks)
            add_columns(self.solver, np.array([problem.tail_weight]), np.array([-np.inf]), np.array([np.inf]))
            add_columns(self.solver, excess, np.zeros(scenarios), np.full(scenarios, np.inf))
            mine = np.repeat(np.eye(scenarios), shape[1] * shape[2], axis=1)
            rows = np.concatenate([-mine, np.ones((scenarios, 1)), np.eye(scenarios)], axis=1)
            index = np.arange(self.columns, first + 1 + scenarios)
            add_rows(self.solver, np.zeros(scenarios), np.full(scenarios, np.inf), rows, index)

    def cut(self, units: Floats, recourse: Recourse) -> bool:
        """Add the cuts at ``units`` that the last proposal does not keep; say whether there were any."""
        value, slope = self._by_block(recourse)
        constant = value - slope @ units
        low, every = constant / self.scale, np.concatenate([-slope / self.scale, np.eye(len(value))], axis=1)
        violated = every @ self.at_proposal[: every.shape[1]] < low - 1e-9
        if violated.any():
            add_rows(self.solver, low[violated], np.full(violated.sum(), np.inf), every[violated])
        return bool(violated.any())

    def solve(self) -> tuple[Floats, float]:
        """The best units for the cuts so far, and the bound."""
        self.at_proposal, value = optimum(self.solver, "the master problem")
        return self.at_proposal[: self.columns], value * self.scale

    def _by_block(self, recourse: Recourse) -> tuple[Floats, Floats]:
        """Bound of each block (B), and its slope in each column (B, J)."""
        pools, supply = len(self.problem.pools), self.problem.column_supply
        budgets = recourse.budget_slope * recourse.budget
        parts = np.concatenate([recourse.pool_bound, budgets], axis=2)
        slopes = np.concatenate([recourse.held_slope, recourse.budget_slope], axis=2)
        if not self.by_scenario:
            probability = self.problem.probability
            parts, slopes = np.tensordot(probability, parts, 1)[None], np.tensordot(probability, slopes, 1)[None]
        by_column = np.add.reduceat(slopes[:, :, self.target] * supply.T, self.starts, axis=1)
        values = np.add.reduceat(parts, self.starts, axis=1)
        value = np.zeros((len(parts), len(self.groups), len(self.starts)))
        slope = np.zeros((*value.shape, self.columns))
        for place, (own, budgets_of) in enumerate(self.groups):
            members = np.concatenate([own, pools + budgets_of])
            value[:, place] = values[:, :, members].sum(axis=2)
            mine = np.isin(self.target, members)
            slope[:, place][..., mine] = by_column[..., mine]
        return value.ravel(), slope.reshape(-1, self.columns)


def _separate(problem: Problem) -> list[tuple[Integers, Integers]]:
    """Pools and budgets that have cost variables of their own: each pool that no budget reaches, each set that is joined."""
    found = []
    for group in groups(problem):
        if len(group.budgets):
            found.append((group.pools, group.budgets))
        else:
            found.extend((np.array([pool]), group.budgets) for pool in group.pools)
    return found
