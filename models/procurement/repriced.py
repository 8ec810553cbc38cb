"""What a plan would be billed: the vendors' order of applying commitments set beside what the solver hoped for.

Spot and shortfalls are taken out as the plan dispatches them; the rest is billed hour by hour. Both costs are discounted
alike, so that their difference is the order's alone. Does not belong here: the order (``billing``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.procurement.recourse import CHANNELS, chunks, groups, rows_of, serve, supply
from models.procurement.reprice import existing_commitment, price_hours, purchase
from models.units import MICROS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Pool
    from models.procurement.compile import Compiled
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Problem


def billed_difference(  # noqa: PLR0913, PLR0917 - as many things bear on a bill
    compiled: Compiled,
    units: Floats,
    scenarios: Scenarios,
    pools: Sequence[Pool],
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
) -> float:
    """Expected discounted money that the vendors' order costs more than the plan's own dispatch; negative: less.

    Args:
      compiled: The problem.
      units: Units bought of each column (J).
      scenarios: Demand, whose first hour is the problem's.
      pools: What is known of each pool.
      portfolio: What is held already.
      policy: The organisation's policy.
    """
    problem = compiled.problem
    known = {pool.name: pool for pool in pools}
    commitments = [existing_commitment(one) for one in portfolio]
    commitments += [
        purchase(column, float(bought), start_at=scenarios.start_at, policy=policy)
        for column, bought in zip(compiled.columns, units, strict=True)
        if bought > 0
    ]
    prices = [
        round(price * MICROS_PER_UNIT) if np.isfinite(price) else None
        for price in problem.on_demand_price[0, 0].tolist()
    ]
    hours = problem.demand.shape[1]
    planned = serve(problem, units, np.ones(hours)).money[:, CHANNELS.index("on_demand")].sum(axis=1)
    found = 0.0
    for number, committed_or_on_demand in enumerate(_billable(problem, units)):
        bill = price_hours(
            committed_or_on_demand,
            commitments,
            [known[name] for name in problem.pools],
            prices,
            start_at=scenarios.start_at,
        )
        billed = float(bill.on_demand_micros.sum(axis=1) @ problem.hour_weight) / MICROS_PER_UNIT
        found += float(problem.probability[number]) * (billed - float(planned[number]))
    return found


def _billable(problem: Problem, units: Floats) -> Iterator[Floats]:
    """GPUs of each hour and pool (T, P) that are neither on spot nor go without, scenario by scenario."""
    supplied = supply(problem, units)
    spot, shortfall = (CHANNELS.index(name) - 2 for name in ("spot", "shortfall"))
    usage = np.zeros(problem.demand.shape[1:])
    last = 0
    for scenario, hours, _, _ in chunks(problem):
        if scenario != last:
            yield usage
            usage, last = np.zeros_like(usage), scenario
        for group in groups(problem):
            rows = rows_of(problem, supplied, group, scenario, hours)
            gpus, _ = rows.after_budgets(rows.paid_by_budgets()).by_channel()
            wanted = problem.demand[scenario, hours][:, group.pools]
            usage[hours, group.pools] = np.maximum(0, wanted - (gpus[spot] + gpus[shortfall]).T)
    yield usage
