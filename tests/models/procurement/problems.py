"""Two-stage problems for the tests of all solvers, and the same problem written down a second time, for another solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from models.procurement.problem import Limit, Problem

if TYPE_CHECKING:
    from collections.abc import Callable


def a_problem(demand: Any, **changes: Any) -> Problem:
    """One column a pool at 1 a GPU-hour, on-demand at 2, no spot, all hours in one period, where nothing else is said.

    ``demand`` is (S, T, P), or (T,) for one pool.
    """
    demand = np.asarray(demand, float)
    demand = demand if demand.ndim == 3 else demand.reshape(1, -1, 1)
    scenarios, hours, pools = demand.shape
    period = np.asarray(changes.get("period_of_hour", np.zeros(hours, int)))
    periods = int(period.max()) + 1
    rate = np.asarray(changes.get("budget_rate", np.empty((0, pools))))
    cost = np.asarray(changes.get("column_cost", np.full(pools, float(hours))), float)
    columns, budgets = len(cost), len(rate)
    usual: dict[str, Any] = {
        "pools": tuple(f"pool {place}" for place in range(pools)),
        "probability": np.full(scenarios, 1 / scenarios),
        "hour_weight": np.ones(hours),
        "spot_limit": np.zeros((1, 1, pools)),
        "spot_price": np.full((1, 1, pools), np.inf),
        "on_demand_price": np.full((1, 1, pools), 2.0),
        "on_demand_limit": np.full(pools, np.inf),
        "shortfall_price": np.full(pools, 50.0),
        "held": np.zeros((periods, pools)),
        "held_budget": np.zeros((periods, budgets)),
        "column_pool": np.r_[np.arange(pools), np.full(budgets, -1)][:columns],
        "column_budget": np.r_[np.full(pools, -1), np.arange(budgets)][:columns],
        "column_supply": np.ones((columns, periods)),
        "column_step": np.zeros(columns),
        "column_high": np.full(columns, np.inf),
    }
    given = {"period_of_hour": period, "budget_rate": rate, "column_cost": cost}
    return Problem(demand=demand, **{**usual, **changes, **given})


def random_problem(
    seed: int, *, budgets: int = 1, tail: bool = False, limits: bool = True, whole: bool = False
) -> Problem:
    """A small problem with windows, ramps, spot, on-demand limits and, where asked for, budgets, limits and a tail."""
    rng = np.random.default_rng(seed)
    scenarios, hours, pools, periods = (int(rng.integers(1, most)) for most in (4, 9, 4, 4))
    period = np.sort(rng.integers(0, min(periods, hours), hours))
    period = np.unique(period, return_inverse=True)[1]
    periods = int(period.max()) + 1
    demand = rng.integers(0, 12, (scenarios, hours, pools)).astype(float)
    on_demand = rng.uniform(1, 4, (1, hours if rng.random() < 0.5 else 1, pools))
    rate = np.where(
        rng.random((budgets, pools)) < 0.8, rng.uniform(0.4, 0.9, (budgets, pools)) * on_demand.min((0, 1)), np.inf
    )
    columns = pools * 2 + budgets
    pool = np.r_[np.arange(pools), np.arange(pools), np.full(budgets, -1)]
    supply = np.where(rng.random((columns, periods)) < 0.7, rng.choice([0.5, 1.0], (columns, periods)), 0.0)
    per_hour = supply[:, period].sum(axis=1)
    price = np.where(pool >= 0, on_demand.mean((0, 1))[np.maximum(pool, 0)] * rng.uniform(0.3, 0.9, columns), 0.9)
    spend = rng.uniform(0.1, 1.0, columns)
    caps = (
        Limit(name="spend", weights=spend, low=-np.inf, high=float(rng.uniform(1, 30)), unit="money"),
        Limit(name="floor", weights=np.ones(columns), low=float(rng.uniform(0, 1)), high=np.inf, unit="GPUs"),
    )
    steps = np.where(pool >= 0, rng.choice([1.0, 2.0, 4.0], columns), 0.0)
    return a_problem(
        demand,
        period_of_hour=period,
        probability=rng.dirichlet(np.ones(scenarios)),
        hour_weight=rng.uniform(0.5, 1.5, hours),
        spot_limit=demand * rng.uniform(0, 0.6, (scenarios, 1, pools)),
        spot_price=on_demand * rng.uniform(0.2, 1.3, pools),
        on_demand_price=on_demand,
        on_demand_limit=np.where(rng.random(pools) < 0.5, rng.uniform(1, 8, pools), np.inf),
        shortfall_price=rng.uniform(5, 20, pools),
        held=rng.integers(0, 4, (periods, pools)).astype(float),
        held_budget=rng.uniform(0, 3, (periods, budgets)),
        budget_rate=rate,
        column_cost=price * per_hour + 0.01,
        column_pool=pool,
        column_budget=np.r_[np.full(2 * pools, -1), np.arange(budgets)],
        column_supply=supply,
        column_step=steps if whole else np.zeros(columns),
        column_high=np.where(rng.random(columns) < 0.3, 4.0, np.inf),
        limits=caps if limits else (),
        fixed_cost=float(rng.uniform(0, 5)),
        tail_weight=0.4 if tail else 0.0,
        tail_level=float(rng.uniform(0.1, 0.9)),
    )


def problems(**given: Any) -> st.SearchStrategy[Problem]:
    """Random small problems, for Hypothesis."""
    return st.integers(0, 2**32 - 1).map(lambda seed: random_problem(seed, **given))


class Written:
    """The problem as the reference states it, hour by hour and by hand: variables by name, rows as they are read."""

    def __init__(self) -> None:
        self.names: dict[Any, int] = {}
        self.cost: list[float] = []
        self.bounds: list[tuple[float | None, float | None]] = []
        self.rows: list[tuple[dict[int, float], float]] = []  # sum <= right-hand side

    def variable(self, name: Any, cost: float = 0.0, most: float = np.inf, least: float | None = 0.0) -> int:
        self.names[name] = len(self.cost)
        self.cost.append(cost)
        self.bounds.append((least, None if np.isinf(most) else most))
        return self.names[name]

    def at_most(self, terms: dict[int, float], most: float) -> None:
        if np.isfinite(most):
            self.rows.append((terms, most))

    def matrix(self) -> tuple[Any, Any]:
        dense = np.zeros((len(self.rows), len(self.cost)))
        for row, (terms, _) in enumerate(self.rows):
            for column, value in terms.items():
                dense[row, column] += value
        return dense, np.array([right for _, right in self.rows])


def written_out(problem: Problem) -> Written:
    """Variables and rows of the whole problem, one at a time."""
    lp = Written()
    bought = [
        lp.variable(("bought", j), problem.column_cost[j], problem.column_high[j])
        for j in range(len(problem.column_cost))
    ]
    for limit in problem.limits:
        lp.at_most({x: w for x, w in zip(bought, limit.weights, strict=True)}, limit.high)  # noqa: C416
        lp.at_most({x: -w for x, w in zip(bought, limit.weights, strict=True)}, -limit.low)
    threshold = lp.variable("threshold", problem.tail_weight, least=None)
    for s, probability in enumerate(problem.probability):
        above = lp.variable(("above", s), problem.tail_weight * probability / (1 - problem.tail_level))
        spent: dict[int, float] = {threshold: -1.0, above: -1.0}
        for t, m in enumerate(problem.period_of_hour):
            _write_hour(lp, problem, (s, t, int(m)), bought, spent)
        if problem.tail_weight:
            lp.at_most(spent, 0.0)
    return lp


def _write_hour(
    lp: Written, problem: Problem, at: tuple[int, int, int], bought: list[int], spent: dict[int, float]
) -> None:
    s, t, m = at
    pays: dict[int, dict[int, float]] = {k: {} for k in range(len(problem.budget_rate))}

    def now(values: Any, p: int) -> float:
        return float(np.broadcast_to(values, problem.demand.shape)[s, t, p])

    def serve(name: str, p: int, price: float, most: float) -> int:
        weighted = price * problem.hour_weight[t]
        found = lp.variable((name, *at, p), (1 - problem.tail_weight) * problem.probability[s] * weighted, most)
        spent[found] = weighted
        return found

    for p in range(len(problem.pools)):
        serving = [serve("short", p, problem.shortfall_price[p], np.inf)]
        if np.isfinite(now(problem.spot_price, p)):
            serving.append(serve("spot", p, now(problem.spot_price, p), now(problem.spot_limit, p)))
        together = [serve("on demand", p, now(problem.on_demand_price, p), np.inf)]
        for k, rates in enumerate(problem.budget_rate):
            if np.isfinite(rates[p]):
                together.append(serve("plan", p, 0.0, np.inf))
                pays[k][together[-1]] = rates[p]
        lp.at_most(dict.fromkeys(together, 1.0), problem.on_demand_limit[p])
        own = {x: -problem.column_supply[j, m] for j, x in enumerate(bought) if problem.column_pool[j] == p}
        lp.at_most(own | dict.fromkeys([*serving, *together], -1.0), problem.held[m, p] - problem.demand[s, t, p])
    for k, terms in pays.items():
        own = {x: -problem.column_supply[j, m] for j, x in enumerate(bought) if problem.column_budget[j] == k}
        lp.at_most(own | terms, problem.held_budget[m, k])


def by_scipy(problem: Problem) -> float:
    """Optimum of the problem as written out, by scipy's own HiGHS."""
    lp = written_out(problem)
    matrix, right = lp.matrix()
    found = linprog(lp.cost, A_ub=matrix, b_ub=right, bounds=lp.bounds, method="highs")
    assert found.status == 0, found.message
    return float(found.fun) + problem.fixed_cost


def best_by_trying(cost: Callable[[float], float], candidates: Any) -> float:
    """Least cost among the candidates."""
    return min(cost(one) for one in candidates)
