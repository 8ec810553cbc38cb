"""The whole program against the same problem written down independently, and solved by other solvers."""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from models.errors import UsageError
from models.procurement import extensive
from models.procurement.problem import Problem  # noqa: TC001  Hypothesis reads it
from tests.models.procurement.problems import a_problem, by_scipy, problems, random_problem, written_out


@given(problem=problems(budgets=2, tail=True))
@settings(max_examples=40, deadline=None)
def test_the_program_has_the_optimum_of_the_problem_written_out_by_hand(problem: Problem) -> None:
    try:
        expected = by_scipy(problem)
    except AssertionError:
        with pytest.raises(UsageError, match="cannot all be kept"):
            extensive.solve(problem)
        return
    found = extensive.solve(problem)
    assert found.bound == pytest.approx(min(expected, found.cost), rel=1e-7)
    assert found.cost >= expected * (1 - 1e-7)


@given(problem=problems(budgets=1, tail=True, limits=False))
@settings(max_examples=30, deadline=None)
def test_with_one_budget_serving_the_plan_costs_what_the_program_says(problem: Problem) -> None:
    found = extensive.solve(problem)
    assert found.cost == pytest.approx(by_scipy(problem), rel=1e-7)


def by_clarabel(problem: Problem) -> float:
    """Optimum by an interior-point solver that shares nothing with HiGHS."""
    lp = written_out(problem)
    matrix, right = lp.matrix()
    rows, sides = [matrix], [right]
    for column, (least, most) in enumerate(lp.bounds):
        unit = np.eye(len(lp.cost))[column : column + 1]
        for bound, way in ((least, -1.0), (most, 1.0)):
            if bound is not None:
                rows.append(way * unit)
                sides.append(np.array([way * bound]))
    every, side = sparse.csc_matrix(np.concatenate(rows)), np.concatenate(sides)
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    nothing = sparse.csc_matrix((len(lp.cost), len(lp.cost)))
    cones = [clarabel.NonnegativeConeT(len(side))]
    solver = clarabel.DefaultSolver(nothing, np.array(lp.cost), every, side, cones, settings_)
    return float(solver.solve().obj_val) + problem.fixed_cost


@pytest.mark.parametrize("seed", range(5))
def test_an_interior_point_solver_agrees(seed: int) -> None:
    problem = random_problem(seed, budgets=1, tail=True, limits=False)
    assert extensive.solve(problem).bound == pytest.approx(by_clarabel(problem), rel=1e-6)


def test_a_problem_too_large_to_be_written_out_is_refused_with_its_size() -> None:
    problem = a_problem(np.ones((1, extensive.MOST_ROWS + 1, 1)))
    with pytest.raises(UsageError, match=r"has 250,001 rows; at most 250,000"):
        extensive.solve(problem)


def test_a_limit_raises_the_optimum_by_what_it_keeps_from_being_bought() -> None:
    free = a_problem([4.0, 4.0, 4.0])
    capped = replace(free, column_high=np.array([3.0]))
    assert extensive.solve(free).cost == pytest.approx(12)
    assert extensive.solve(capped).cost == pytest.approx(3 * 3 + 3 * 2)
