"""Whole units: nodes of eight GPUs are bought as nodes.

The relaxed optimum is rounded to multiples of ``column_step`` that keep the limits; then single steps, and where limits
bind exchanges of two steps, are tried as long as they lower the cost. Slopes say which steps can pay at all: the cost is
convex, so a step against the slope cannot. What may be bought in any amount is then chosen again for the steps found.
The answer is not proved to be the best in whole units; the bound of the relaxed problem says how far from it it can be.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import highspy
import numpy as np

from models.procurement import lshaped
from models.procurement.feasible import (
    SLACK,
    add_columns,
    add_limits,
    add_rows,
    keeps_limits,
    optimum,
    quiet,
    require_feasible,
)
from models.procurement.recourse import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from models.procurement.problem import Floats, Problem, Solution

TRIES = 400
LEAST_GAIN = 1e-7  # part of the cost that a step must promise to be tried
EXCHANGES = 40


def in_whole_units(problem: Problem, relaxed: Solution) -> Solution:
    """Round the relaxed optimum and improve it step by step.

    Args:
      problem: The problem; columns with a ``column_step`` are bought in multiples of it.
      relaxed: The optimum of the relaxed problem.

    Returns:
      A plan in whole units with the relaxed problem's bound; ``rounds`` counts the plans that were served.

    Raises:
      UsageError: The limits cannot be kept in whole units.
    """
    stepped = problem.column_step > 0
    if not stepped.any():
        return relaxed
    units = rounded(problem, relaxed.units)
    units, tries = _search(problem, units)
    settled = stepped.all()
    while not settled and tries < TRIES:
        high = np.where(stepped, units, problem.column_high)
        bounds = lshaped.Bounds(np.where(stepped, units, 0.0), high)
        chosen = lshaped.solve(problem, bounds=bounds, start=units).units
        units, more = _search(problem, chosen)
        tries += more
        settled = (units == chosen).all()
    serving = evaluate(problem, units).cost
    return replace(
        relaxed,
        units=units,
        cost=problem.objective(units, serving),
        scenario_cost=problem.fixed_cost + problem.column_cost @ units + serving,
        method=f"{relaxed.method}, then whole units",
        rounds=relaxed.rounds + tries,
    )


def rounded(problem: Problem, units: Floats) -> Floats:
    """The multiples of each step that keep all limits and are nearest to ``units``, weighed by what a unit costs.

    Raises:
      UsageError: There are none.
    """
    stepped = problem.column_step > 0
    size = np.where(stepped, problem.column_step, 1)
    high = np.where(stepped, np.floor(problem.column_high / size + SLACK), problem.column_high)
    nearest = np.where(stepped, np.minimum(np.round(units / size), high), units)
    if keeps_limits(problem, nearest * size):
        return nearest * size
    require_feasible(problem, whole=True)
    columns = len(units)
    solver, away = quiet(), np.maximum(np.abs(problem.column_cost) * size, 1e-9)
    add_columns(solver, np.zeros(columns), np.zeros(columns), high)
    for column in np.flatnonzero(stepped):
        solver.changeColIntegrality(int(column), highspy.HighsVarType.kInteger)
    scaled = replace(problem, limits=tuple(replace(one, weights=one.weights * size) for one in problem.limits))
    add_limits(solver, scaled)
    add_columns(solver, away / away.max(), np.zeros(columns), np.full(columns, np.inf))
    eye, target = np.eye(columns), units / size
    add_rows(solver, target, np.full(columns, np.inf), np.concatenate([eye, eye], axis=1))
    add_rows(solver, np.full(columns, -np.inf), target, np.concatenate([eye, -eye], axis=1))
    found = optimum(solver, "the nearest purchase in whole units")[0][:columns]
    return np.where(stepped, np.round(found), np.clip(found, 0, high)) * size


def _search(problem: Problem, units: Floats) -> tuple[Floats, int]:
    """Take steps that lower the cost until none does; return the units and how many plans were served."""
    recourse = evaluate(problem, units)
    cost, tries = problem.objective(units, recourse.cost), 1
    better = True
    while better and tries < TRIES:
        better = False
        slopes = np.concatenate([recourse.held_slope, recourse.budget_slope], axis=2)
        by_column = np.einsum("smj,jm->sj", slopes[:, :, problem.column_target()], problem.column_supply)
        slope = problem.column_cost + problem.tail_weights(recourse.cost) @ by_column
        for move in _moves(problem, units, slope, LEAST_GAIN * abs(cost)):
            found = evaluate(problem, units + move)
            tries += 1
            value = problem.objective(units + move, found.cost)
            better = value < cost - 1e-12 * abs(cost)
            if better:
                units, recourse, cost = units + move, found, value
            if better or tries >= TRIES:
                break
    return units, tries


def _moves(problem: Problem, units: Floats, slope: Floats, least_gain: float) -> Iterator[Floats]:
    """Changes of the units that may pay and keep the limits, the most promising first."""
    columns = np.flatnonzero(problem.column_step > 0)
    single = [(column, way * problem.column_step[column]) for column in columns for way in (1.0, -1.0)]
    by_gain = sorted(single, key=lambda one: (slope[one[0]] * one[1], one[0]))
    together = combinations(by_gain, 2) if problem.limits else ()
    pairs = [pair for pair in together if pair[0][0] != pair[1][0] and pair[0][1] * pair[1][1] < 0]
    pairs.sort(key=lambda pair: sum(slope[column] * change for column, change in pair))
    for steps in [*((one,) for one in by_gain), *pairs[:EXCHANGES]]:
        move = np.zeros(len(units))
        for column, change in steps:
            move[column] += change
        if -(slope @ move) > least_gain and keeps_limits(problem, units + move):
            yield move
