"""Procurement for a year of 20 pools in 10 scenarios: our methods, and the same linear programs given whole to HiGHS.

Run: ``python bench/procurement.py [HOURS]``. Each contender has a fresh process. The whole programs are solved for one
scenario and at most 2,190 hours: for a year they take minutes each, for ten scenarios gigabytes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from models.procurement import solve as solvers
from models.procurement.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.procurement.problem import Solution

HOURS, WHOLE_HOURS, POOLS, SCENARIOS, NODE_GPUS = 8_760, 2_190, 20, 10, 8


def problem(hours: int, scenarios: int, *, plan: bool, node: int = 0) -> Problem:
    """Daily and weekly rhythm, growth and decline by scenario, spot for 30 % of demand; with ``plan`` one savings plan."""
    rng = np.random.default_rng(7)
    hour, plans = np.arange(hours), int(plan)
    daily = 1 + 0.25 * np.sin(2 * np.pi * (hour[:, None] / 24 + rng.random(POOLS)))
    weekly = 1 - 0.15 * ((hour // 24) % 7 >= 5)[:, None]
    growth = 1 + rng.uniform(-0.3, 0.6, (scenarios, 1, POOLS)) * hour[:, None] / HOURS
    noise = np.exp(0.25 * rng.standard_normal((scenarios, hours, POOLS)))
    demand = np.round(rng.integers(40, 600, POOLS) * daily * weekly * growth * noise)
    price = rng.uniform(2.5, 7, POOLS)
    reserved, spot, rate = price * rng.uniform([[0.5], [0.35], [0.6]], [[0.68], [0.7], [0.72]], (3, POOLS))
    weight = 1.1 ** (-hour / HOURS)
    return Problem(
        pools=tuple(f"pool {place}" for place in range(POOLS)),
        probability=np.full(scenarios, 1 / scenarios),
        period_of_hour=np.zeros(hours, np.int64),
        hour_weight=weight,
        demand=demand,
        spot_limit=np.floor(0.3 * demand),
        spot_price=spot[None, None],
        on_demand_price=price[None, None],
        on_demand_limit=np.full(POOLS, np.inf),
        shortfall_price=price * 10,
        held=np.zeros((1, POOLS)),
        held_budget=np.zeros((1, plans)),
        budget_rate=rate[None][:plans],
        column_cost=np.r_[reserved, np.ones(plans)] * weight.sum(),
        column_pool=np.r_[np.arange(POOLS), np.full(plans, -1)],
        column_budget=np.r_[np.full(POOLS, -1), np.arange(plans)],
        column_supply=np.ones((POOLS + plans, 1)),
        column_step=np.r_[np.full(POOLS, float(node)), np.zeros(plans)],
        column_high=np.full(POOLS + plans, np.inf),
    )


def through_linopy(given: Problem) -> float:
    """One scenario as a whole program, written in linopy, which hands it to HiGHS."""
    import linopy  # noqa: PLC0415  only this contender pays for it
    import xarray as xr  # noqa: PLC0415

    index = {"hour": np.arange(len(given.hour_weight)), "pool": np.arange(POOLS)}
    dims = ("hour", "pool")
    model = linopy.Model()
    reserved = model.add_variables(lower=0, coords={"pool": index["pool"]}, dims=["pool"], name="reserved")
    limit = xr.DataArray(given.spot_limit[0], coords=index, dims=dims)
    spot = model.add_variables(lower=0, upper=limit, name="spot")
    bought = model.add_variables(lower=0, coords=index, dims=dims, name="on_demand")
    served = reserved + spot + bought
    weight = xr.DataArray(given.hour_weight, coords={"hour": index["hour"]}, dims=["hour"])

    def by_pool(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, coords={"pool": index["pool"]}, dims=["pool"])

    cost = (by_pool(given.column_cost[:POOLS]) * reserved).sum()
    cost += (weight * by_pool(given.spot_price[0, 0]) * spot).sum()
    cost += (weight * by_pool(given.on_demand_price[0, 0]) * bought).sum()
    if len(given.budget_rate):
        money = model.add_variables(lower=0, name="commitment")
        under = model.add_variables(lower=0, coords=index, dims=dims, name="plan")
        model.add_constraints((by_pool(given.budget_rate[0]) * under).sum("pool") - money <= 0, name="budget")
        served += under
        cost += given.column_cost[POOLS] * money
    model.add_constraints(served >= xr.DataArray(given.demand[0], coords=index, dims=dims), name="serve")
    model.add_objective(cost)
    model.solve(solver_name="highs", io_api="direct", output_flag=False)
    return float(model.objective.value)


def through_scipy(given: Problem) -> float:
    """One scenario as a whole program in sparse matrices, solved by scipy's HiGHS."""
    from scipy import sparse  # noqa: PLC0415  only this contender pays for it
    from scipy.optimize import linprog  # noqa: PLC0415

    hours = len(given.hour_weight)
    cells, plans = hours * POOLS, len(given.budget_rate)
    each = sparse.kron(np.ones((hours, 1)), sparse.eye(POOLS))
    eye = sparse.eye(cells)
    weight = given.hour_weight[:, None]
    cost = [given.column_cost, (weight * given.spot_price[0]).ravel(), (weight * given.on_demand_price[0]).ravel()]
    high = [np.full(POOLS + plans, np.inf), given.spot_limit[0].ravel(), np.full(cells, np.inf)]
    blocks = [[-each, *([None] * plans), -eye, -eye, *([-eye] * plans)]]
    right = [-given.demand[0].ravel()]
    if plans:
        use = sparse.kron(sparse.eye(hours), given.budget_rate)
        blocks.append([None, -np.ones((hours, 1)), None, None, use])
        right.append(np.zeros(hours))
        cost.append(np.zeros(cells))
        high.append(np.full(cells, np.inf))
    bounds = np.stack([np.zeros(sum(map(len, high))), np.concatenate(high)], axis=1)
    found = linprog(
        np.concatenate(cost), A_ub=sparse.block_array(blocks, format="csc"), b_ub=np.concatenate(right), bounds=bounds
    )
    return float(found.fun)


def ours(given: Problem) -> Solution:
    """The method that fits."""
    return solvers.solve(given)


Contender = tuple["Callable[[Problem], Solution | float]", int, dict[str, int]]
FULL: dict[str, Contender] = {
    "separable, 10 scenarios: order statistics": (ours, SCENARIOS, {"plan": False}),
    "a savings plan, 10 scenarios: L-shaped": (ours, SCENARIOS, {"plan": True}),
    "the same in whole nodes of 8": (ours, SCENARIOS, {"plan": True, "node": NODE_GPUS}),
}
SIDES: dict[str, Contender] = {
    f"{kind}, 1 scenario: {name}": (solver, 1, {"plan": kind != "separable"})
    for kind in ("separable", "a savings plan")
    for name, solver in (("ours", ours), ("whole, linopy", through_linopy), ("whole, scipy", through_scipy))
}


def run_one(name: str, hours: int) -> None:
    """Run one contender; print its seconds, this process's peak memory, cost and gap as JSON."""
    solver, scenarios, shape = (FULL | SIDES)[name]
    given = problem(hours, scenarios, **shape)
    start, used = time.perf_counter(), time.process_time()
    found = solver(given)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost, gap = (found, 0.0) if isinstance(found, float) else (found.cost, found.gap_ratio)
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_mib": peak, "cost": cost, "gap_ratio": gap}))


def main() -> None:
    """Measure all contenders; print times, memory, gaps, and how much slower the whole programs are."""
    if len(sys.argv) == 3:
        run_one(sys.argv[1], int(sys.argv[2]))
        return
    from bench.side_by_side import measured  # noqa: PLC0415  a contender's process shall not carry what it imports

    hours = int(sys.argv[1]) if len(sys.argv) == 2 else HOURS
    print(f"{'':46}{'time':>10}{'CPU':>10}{'peak':>12}{'gap to the bound':>20}")
    found = {}
    for names, at in ((FULL, hours), (SIDES, min(hours, WHOLE_HOURS))):
        print(f"{POOLS} pools, {at:,} hours")
        for name in names:
            one = found[name] = measured(__file__, name, Path(str(at)))
            print(
                f"  {name:44}{one['seconds']:>8.2f} s{one['cpu_seconds']:>8.2f} s{one['peak_mib']:>8.0f} MiB{one['gap_ratio']:>20.2g}",
                flush=True,
            )
    print()
    for kind in ("separable", "a savings plan"):
        own, *others = (found[f"{kind}, 1 scenario: {name}"] for name in ("ours", "whole, linopy", "whole, scipy"))
        apart = max(abs(other["cost"] / own["cost"] - 1) for other in others)
        linopy, scipy = (other["seconds"] / own["seconds"] for other in others)
        print(
            f"{kind}: linopy / ours {linopy:.0f}, scipy / ours {scipy:.0f} (at least 10); costs differ by {apart:.1g}"
        )


if __name__ == "__main__":
    main()
