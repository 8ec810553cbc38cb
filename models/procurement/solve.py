"""Choose the method by the problem's structure, and whole units last.

Belongs here: which solver a problem goes to. Order statistics where pools and hours separate; otherwise the L-shaped
method; the extensive program where several budgets reach one pool, the L-shaped bound stays away from the cost, and the
program is small enough to be written out. Budgets are merged first where they can be (``merge``); where that leaves a gap
and the program is large, but not too large, some rounds follow with each budget on its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from models.procurement import extensive, lshaped, separable
from models.procurement.feasible import require_feasible
from models.procurement.merge import merged
from models.procurement.problem import Solution
from models.procurement.recourse import evaluate
from models.procurement.whole import in_whole_units

if TYPE_CHECKING:
    from models.procurement.problem import Problem

EXTENSIVE_ROWS = 60_000  # about 3 s and 200 MB
REFINED_GAP, REFINED_ROUNDS = 1e-4, 10  # with each budget on its own a round takes many times as long: so not for
REFINED_CELLS = 600_000  # more hours of pools and scenarios than this, of which a round takes about 3 s


def solve(problem: Problem, *, gap: float = 1e-6) -> Solution:
    """Find what to buy.

    Args:
      problem: The problem.
      gap: Largest difference of cost and bound before units are made whole, as a part of the cost. Where it cannot be
        reached (several budgets that reach the same pools, in a problem too large to write out) the solution says what
        was: ``Solution.gap_ratio``.

    Returns:
      The plan; ``method`` says how it was found, ``bound`` is that of the relaxed problem.

    Raises:
      UsageError: The limits cannot all be kept; the message names them and by how much.
      CheckError: HiGHS could not solve a program.
    """
    found = relaxed(problem, gap=gap)
    # Whole units are searched with as few budgets as may be, which is quick, and priced with those there are.
    return _priced(problem, in_whole_units(merged(problem), found))


def relaxed(problem: Problem, *, gap: float = 1e-6) -> Solution:
    """Find what to buy if any amount could be bought; see ``solve``."""
    if not len(problem.column_cost):
        return _nothing(problem)
    smaller = merged(problem)
    by_cuts = not separable.is_separable(smaller)
    found = _priced(problem, lshaped.solve(smaller, gap=gap) if by_cuts else separable.solve(smaller))
    variable = abs(found.cost - problem.fixed_cost)
    if found.cost - found.bound <= gap * variable:
        return found
    if extensive.row_count(problem) > EXTENSIVE_ROWS:
        return _refined(problem, found) if problem.demand.size <= REFINED_CELLS else found
    exact = extensive.solve(problem)
    return exact if exact.cost <= found.cost else replace(found, bound=max(found.bound, exact.bound))


def _refined(problem: Problem, found: Solution) -> Solution:
    """The plan with budgets put together, improved with each on its own: fewer rounds than from nothing, a better bound."""
    near = lshaped.solve(problem, gap=REFINED_GAP, rounds=REFINED_ROUNDS, start=found.units)
    best = near if near.cost < found.cost else found
    return replace(
        best, bound=min(max(found.bound, near.bound), best.cost), rounds=found.rounds + near.rounds, method=found.method
    )


def _priced(problem: Problem, found: Solution) -> Solution:
    """A plan for the problem with budgets put together, at what it costs with each on its own."""
    serving = evaluate(problem, found.units).cost
    cost = problem.objective(found.units, serving)
    scenario_cost = problem.fixed_cost + problem.column_cost @ found.units + serving
    return replace(found, cost=cost, bound=min(found.bound, cost), scenario_cost=scenario_cost)


def _nothing(problem: Problem) -> Solution:
    """What serving costs where there is nothing to choose."""
    require_feasible(problem)
    nothing = np.zeros(0)
    served = evaluate(problem, nothing)
    return Solution(
        units=nothing,
        cost=problem.objective(nothing, served.cost),
        bound=problem.objective(nothing, served.bound),
        scenario_cost=problem.fixed_cost + served.cost,
        method="nothing to choose",
        rounds=0,
    )
