"""Whether the limits on purchases can be kept together; and if not, which one stands in the way and by how much.

Belongs here: the limits as rows of a linear program, and the elastic program that finds the least violation. Does not
belong here: where limits come from (``limits``), and what to buy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import highspy
import numpy as np

from models.errors import CheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.procurement.problem import Floats, Integers, Limit, Problem

SLACK = 1e-7  # part of a limit's size by which rounding may miss it


class _Silent(highspy.Highs):
    """HiGHS writes its banner to standard output while it is made, before an option can be set: so it is set inside."""

    def enableCallbacks(self) -> highspy.HighsStatus:  # noqa: N802  the library's name
        """Turn the output off before the first call that would print."""
        self.setOptionValue("output_flag", False)
        found: highspy.HighsStatus = super().enableCallbacks()  # type: ignore[no-untyped-call]
        return found


def quiet() -> highspy.Highs:
    """A HiGHS that prints nothing and gives the same answer every time."""
    solver = _Silent()  # type: ignore[no-untyped-call]
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    return solver


def optimum(solver: highspy.Highs, what: str) -> tuple[Floats, float]:
    """Run the solver; return its columns and objective.

    Raises:
      CheckError: It found no optimum.
    """
    solver.run()
    status = solver.getModelStatus()
    # With nothing to choose (no column, no limit) there is no model, and the empty choice is the best one.
    if status not in {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty}:
        raise CheckError(f"HiGHS found no optimum of {what}: {solver.modelStatusToString(status)}.")
    return np.array(solver.getSolution().col_value), float(solver.getInfo().objective_function_value)


def add_rows(
    solver: highspy.Highs, low: Floats, high: Floats, coefficients: Floats, columns: Integers | None = None
) -> None:
    """Add dense rows (R, C) over ``columns`` (C), the first ones if none are named; zeros are left out."""
    row, place = np.nonzero(coefficients)
    starts = np.searchsorted(row, np.arange(len(low))).astype(np.int32)
    index = (place if columns is None else columns[place]).astype(np.int32)
    solver.addRows(len(low), low, high, len(index), starts, index, coefficients[row, place])


def add_columns(solver: highspy.Highs, cost: Floats, low: Floats, high: Floats) -> None:
    """Add columns that stand in no row yet."""
    nothing = np.empty(0, np.int32)
    solver.addCols(len(cost), cost, low, high, 0, np.zeros(len(cost), np.int32), nothing, np.empty(0))


def add_limits(solver: highspy.Highs, problem: Problem) -> None:
    """Add the limits as rows over the units, which are the solver's first columns."""
    for limit in problem.limits:
        add_rows(solver, np.array([limit.low]), np.array([limit.high]), limit.weights[None])


def keeps_limits(problem: Problem, units: Floats) -> bool:
    """Whether ``units`` keep all limits and bounds, but for rounding."""
    fine = bool((units >= 0).all() and (units <= problem.column_high * (1 + SLACK)).all())
    for limit in problem.limits:
        value, size = limit.weights @ units, SLACK * (1 + np.abs(limit.weights) @ np.abs(units))
        fine = fine and bool(limit.low - size <= value <= limit.high + size)
    return fine


def require_feasible(problem: Problem, whole: bool = False) -> None:
    """Refuse limits that no purchase keeps.

    Args:
      problem: The problem.
      whole: Whether units must be multiples of their step.

    Raises:
      UsageError: Names each limit that cannot be kept in the least violation, what is needed, what can be reached, and
        the limits that hold it back.
    """
    if not problem.limits:
        return
    columns = len(problem.column_cost)
    solver = quiet()
    size = np.where(problem.column_step > 0, problem.column_step, 1) if whole else np.ones(columns)
    high = np.floor(problem.column_high / size + SLACK) if whole else problem.column_high
    add_columns(solver, np.zeros(columns), np.zeros(columns), high)
    if whole:
        for column in np.flatnonzero(problem.column_step > 0):
            solver.changeColIntegrality(int(column), highspy.HighsVarType.kInteger)
    for place, limit in enumerate(problem.limits):
        # A violation counts as a part of the limit, so that watts and GPUs weigh alike.
        ends = [abs(end) for end in (limit.low, limit.high) if np.isfinite(end)]
        add_columns(solver, np.full(2, 1 / max(ends, default=1) if any(ends) else 1.0), np.zeros(2), np.full(2, np.inf))
        elastic = np.concatenate([limit.weights * size, [1.0, -1.0]])
        index = np.concatenate([np.arange(columns), columns + 2 * place + np.arange(2)])
        add_rows(solver, np.array([limit.low]), np.array([limit.high]), elastic[None], index)
    values, violation = optimum(solver, "the least violation of the limits")
    if violation <= SLACK:
        return
    missed = values[columns:].reshape(-1, 2)
    found = []
    for limit, (below, above) in zip(problem.limits, missed, strict=True):
        if below > SLACK * (1 + abs(limit.low)):
            found.append(
                f"{limit.name} needs at least {limit.low:,.6g} {limit.unit}, but {limit.low - below:,.6g} can be reached "
                f"({below:,.6g} short)"
            )
        if above > SLACK * (1 + abs(limit.high)):
            found.append(
                f"{limit.name} allows at most {limit.high:,.6g} {limit.unit}, but {limit.high + above:,.6g} are needed "
                f"({above:,.6g} too many)"
            )
    holding = _holding_back(problem.limits, values[:columns] * size)
    also = " in whole units" if whole else ""
    raise UsageError(
        f"The limits cannot all be kept{also}: {'; '.join(found)}{holding}. Loosen one of them, or add an offer."
    )


def _holding_back(limits: Sequence[Limit], units: Floats) -> str:
    """Words for the limits that allow no more at these units."""
    full = [
        f"{one.name} (at most {one.high:,.6g} {one.unit})"
        for one in limits
        if np.isfinite(one.high) and abs(one.weights @ units - one.high) <= SLACK * (1 + abs(one.high))
    ]
    return f"; held back by {', '.join(full)}" if full else ""
