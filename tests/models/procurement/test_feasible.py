"""Limits that cannot all be kept: which one, and by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.errors import CheckError, UsageError
from models.procurement.feasible import add_columns, keeps_limits, optimum, quiet, require_feasible
from models.procurement.problem import Limit
from tests.models.procurement.problems import a_problem

TWO_POOLS = a_problem(np.ones((1, 2, 2)), column_step=np.array([8.0, 8.0]))
POWER = Limit(name="site power", weights=np.array([700.0, 1000.0]), low=-np.inf, high=70_000.0, unit="watts")
FLOOR = Limit(name="availability", weights=np.ones(2), low=96.0, high=np.inf, unit="GPUs")


def test_limits_that_can_be_kept_are_not_spoken_of() -> None:
    require_feasible(TWO_POOLS)
    require_feasible(replace(TWO_POOLS, limits=(POWER, FLOOR)))
    assert keeps_limits(replace(TWO_POOLS, limits=(POWER, FLOOR)), np.array([100.0, 0.0]))
    assert not keeps_limits(replace(TWO_POOLS, limits=(POWER, FLOOR)), np.array([101.0, 0.0]))
    assert not keeps_limits(replace(TWO_POOLS, column_high=np.array([8.0, 8.0])), np.array([9.0, 0.0]))


def test_the_least_violation_names_the_limit_and_what_is_missing() -> None:
    more = replace(FLOOR, low=101.0)
    with pytest.raises(UsageError) as failed:
        require_feasible(replace(TWO_POOLS, limits=(POWER, more)))
    # One GPU too many needs 700 watts: 1 % of the floor, and 1 % of the power, so either answer is the least.
    assert "availability needs at least 101 GPUs, but 100 can be reached (1 short)" in str(failed.value) or (
        "site power allows at most 70,000 watts, but 70,700 are needed (700 too many)" in str(failed.value)
    )


def test_in_whole_nodes_less_may_be_possible_than_in_parts() -> None:
    limits = (POWER, replace(FLOOR, low=97.0))
    require_feasible(replace(TWO_POOLS, limits=limits))
    with pytest.raises(UsageError, match="in whole units: "):
        require_feasible(replace(TWO_POOLS, limits=limits), whole=True)


def test_nothing_is_printed_by_the_solver(capfd: pytest.CaptureFixture[str]) -> None:
    solver = quiet()
    add_columns(solver, np.array([1.0]), np.array([2.0]), np.array([3.0]))
    values, least = optimum(solver, "a test")
    assert (values.tolist(), least) == ([2], 2)
    assert capfd.readouterr().out == ""


def test_a_program_without_an_optimum_is_an_error_with_its_name() -> None:
    solver = quiet()
    add_columns(solver, np.array([-1.0]), np.array([0.0]), np.array([np.inf]))
    with pytest.raises(CheckError, match="no optimum of the endless program: Unbounded"):
        optimum(solver, "the endless program")
