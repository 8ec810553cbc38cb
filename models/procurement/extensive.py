"""The whole problem as one linear program, every hour of every scenario written out: the oracle, and the last resort.

Belongs here: building it as sparse arrays and giving it to HiGHS. It needs memory and minutes where ``lshaped`` needs
little of either, so it refuses problems beyond ``MOST_ROWS``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import highspy
import numpy as np

from models.errors import UsageError
from models.procurement.feasible import optimum, quiet, require_feasible
from models.procurement.problem import Solution
from models.procurement.recourse import evaluate

if TYPE_CHECKING:
    from models.procurement.problem import Floats, Integers, Problem

MOST_ROWS = 250_000


@dataclass(slots=True)
class Lp:
    """A linear program that grows by blocks of columns, rows and entries."""

    cost: list[Floats] = field(default_factory=list)
    low: list[Floats] = field(default_factory=list)
    high: list[Floats] = field(default_factory=list)
    row_low: list[Floats] = field(default_factory=list)
    row_high: list[Floats] = field(default_factory=list)
    entries: list[tuple[Integers, Integers, Floats]] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(self, cost: Floats, high: Floats | float = np.inf, low: Floats | float = 0.0) -> Integers:
        """Add columns; return their numbers."""
        self.cost.append(cost)
        self.low.append(np.broadcast_to(low, cost.shape))
        self.high.append(np.broadcast_to(high, cost.shape))
        self.columns += len(cost)
        return np.arange(self.columns - len(cost), self.columns)

    def add_rows(self, low: Floats, high: Floats) -> Integers:
        """Add rows; return their numbers."""
        self.row_low.append(low)
        self.row_high.append(high)
        self.rows += len(low)
        return np.arange(self.rows - len(low), self.rows)

    def enter(self, rows: Integers, columns: Integers, values: Floats | float) -> None:
        """Put values at rows and columns, which are broadcast against each other."""
        row, column, value = np.broadcast_arrays(rows, columns, values)
        self.entries.append((row, column, value))

    def built(self) -> highspy.HighsLp:
        """The program in HiGHS's column-wise form."""
        row, column, value = (np.concatenate(parts) for parts in zip(*self.entries, strict=True))
        kept = np.flatnonzero(value)
        order = kept[np.argsort(column[kept], kind="stable")]
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = (np.concatenate(one) for one in (self.cost, self.low, self.high))
        lp.row_lower_, lp.row_upper_ = np.concatenate(self.row_low), np.concatenate(self.row_high)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.searchsorted(column[order], np.arange(self.columns + 1))
        lp.a_matrix_.index_, lp.a_matrix_.value_ = row[order], value[order]
        return lp


def row_count(problem: Problem) -> int:
    """Rows of the program, at most."""
    hours = len(problem.probability) * len(problem.hour_weight)
    capped = np.isfinite(problem.on_demand_limit) & np.isfinite(problem.budget_rate).any(axis=0)
    return int(hours * (len(problem.pools) + capped.sum() + len(problem.budget_rate)) + len(problem.limits))


def solve(problem: Problem, *, solver: str = "choose") -> Solution:
    """Find what to buy, any amount of it (``column_step`` is not looked at), with the whole program given to HiGHS.

    Args:
      problem: The problem.
      solver: HiGHS's solver: choose, simplex, ipm, pdlp.

    Returns:
      The plan; its cost is what serving it costs (``recourse``, in the vendors' order where several budgets reach one
      pool), its bound the program's optimum.

    Raises:
      UsageError: The program would have more than ``MOST_ROWS`` rows, or the limits cannot all be kept.
      CheckError: HiGHS could not solve it.
    """
    if row_count(problem) > MOST_ROWS:
        raise UsageError(
            f"Written out in full, the problem has {row_count(problem):,} rows; at most {MOST_ROWS:,} are solved that way. "
            "Use fewer scenarios, hours or pools."
        )
    require_feasible(problem)
    lp = build(problem)
    highs = quiet()
    highs.setOptionValue("solver", solver)
    highs.passModel(lp.built())
    values, least = optimum(highs, "the whole program")
    units = np.clip(values[: len(problem.column_cost)], 0, problem.column_high)
    serving = evaluate(problem, units).cost
    return Solution(
        units=units,
        cost=problem.objective(units, serving),
        bound=min(least + problem.fixed_cost, problem.objective(units, serving)),
        scenario_cost=problem.fixed_cost + problem.column_cost @ units + serving,
        method="extensive",
        rounds=int(highs.getInfo().simplex_iteration_count),
    )


@dataclass(frozen=True, slots=True)
class Cells:
    """The hours of scenarios and pools in which more is wanted than is held anyway (N each)."""

    scenario: Integers
    hour: Integers
    pool: Integers
    uncovered: Floats

    def of(self, values: Floats) -> Floats:
        """Values (S or 1, T or 1, P) at the cells."""
        scenarios, hours, _ = values.shape
        one = np.zeros_like(self.pool)
        found: Floats = values[self.scenario if scenarios > 1 else one, self.hour if hours > 1 else one, self.pool]
        return found


def build(problem: Problem) -> Lp:
    """Write the program out: units first, then who serves each cell."""
    lp, period = Lp(), problem.period_of_hour
    uncovered = problem.demand - problem.held[period]
    scenario, hour, pool = np.nonzero(uncovered > 0)
    cells = Cells(scenario, hour, pool, uncovered[uncovered > 0])
    units = lp.add_columns(problem.column_cost, problem.column_high)
    for limit in problem.limits:
        lp.enter(lp.add_rows(np.array([limit.low]), np.array([limit.high])), units, limit.weights)
    serving = lp.add_rows(cells.uncovered, np.full(len(cells.uncovered), np.inf))
    for column in np.flatnonzero(problem.column_pool >= 0):
        mine = np.flatnonzero(cells.pool == problem.column_pool[column])
        lp.enter(serving[mine], np.array([column]), problem.column_supply[column, period[cells.hour[mine]]])
    last = problem.shortfall_price[cells.pool]
    spot, on_demand = cells.of(problem.spot_price), cells.of(problem.on_demand_price)
    most_bought = problem.on_demand_limit[cells.pool]
    on_spot, bought = np.flatnonzero(spot < last), np.flatnonzero(on_demand < last)
    paid = [
        (on_spot, spot[on_spot], cells.of(problem.spot_limit)[on_spot]),
        (bought, on_demand[bought], most_bought[bought]),
        (np.arange(len(last)), last, np.full(len(last), np.inf)),
    ]
    scenario_of, price_of, columns_of = [], [], []
    for served, price, most in paid:
        weighted = price * problem.hour_weight[cells.hour[served]]
        share = (1 - problem.tail_weight) * problem.probability[cells.scenario[served]]
        columns = lp.add_columns(share * weighted, most)
        lp.enter(serving[served], columns, 1.0)
        scenario_of.append(cells.scenario[served])
        price_of.append(weighted)
        columns_of.append(columns)
    if len(problem.budget_rate):
        _add_budgets(lp, problem, cells, serving, (bought, columns_of[1]))
    if problem.tail_weight > 0:
        _add_tail(lp, problem, np.concatenate(scenario_of), np.concatenate(price_of), np.concatenate(columns_of))
    return lp


def _add_budgets(
    lp: Lp, problem: Problem, cells: Cells, serving: Integers, on_demand: tuple[Integers, Integers]
) -> None:
    """What budgets pay for: within the budget of each hour, and with on-demand within its limit."""
    hours, (bought, on_demand_columns) = len(problem.hour_weight), on_demand
    reached = np.isfinite(problem.budget_rate).any(axis=0) & np.isfinite(problem.on_demand_limit)
    capped = np.flatnonzero(reached[cells.pool])
    row_of = np.full(len(cells.pool), -1)
    row_of[capped] = lp.add_rows(np.full(len(capped), -np.inf), problem.on_demand_limit[cells.pool[capped]])
    both = row_of[bought] >= 0
    lp.enter(row_of[bought][both], on_demand_columns[both], 1.0)
    for budget, rates in enumerate(problem.budget_rate):
        served = np.flatnonzero(np.isfinite(rates)[cells.pool])
        columns = lp.add_columns(np.zeros(len(served)))
        lp.enter(serving[served], columns, 1.0)
        within = row_of[served] >= 0
        lp.enter(row_of[served][within], columns[within], 1.0)
        moment, place = np.unique(cells.scenario[served] * hours + cells.hour[served], return_inverse=True)
        period = problem.period_of_hour[moment % hours]
        rows = lp.add_rows(np.full(len(moment), -np.inf), problem.held_budget[period, budget])
        lp.enter(rows[place], columns, rates[cells.pool[served]])
        for column in np.flatnonzero(problem.column_budget == budget):
            lp.enter(rows, np.array([column]), -problem.column_supply[column, period])


def _add_tail(lp: Lp, problem: Problem, scenario: Integers, price: Floats, columns: Integers) -> None:
    """The CVaR of the cost of serving: a threshold, and by how much each scenario is above it."""
    excess_cost = problem.tail_weight * problem.probability / (1 - problem.tail_level)
    threshold = lp.add_columns(np.array([problem.tail_weight]), low=-np.inf)
    excess = lp.add_columns(excess_cost)
    rows = lp.add_rows(np.zeros(len(excess)), np.full(len(excess), np.inf))
    lp.enter(rows, threshold, 1.0)
    lp.enter(rows, excess, 1.0)
    lp.enter(rows[scenario], columns, -price)
