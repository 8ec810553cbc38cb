"""Why a purchase is recommended: how often its last unit is used, from where on it pays, and against what.

Does not belong here: deciding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.prices import Instrument
from models.procurement.recourse import supply

if TYPE_CHECKING:
    from models.procurement.columns import Column
    from models.procurement.compile import Compiled
    from models.procurement.problem import Floats, Problem
    from models.procurement.recourse import Served


@dataclass(frozen=True, slots=True)
class Reason:
    """Why.

    Attributes:
      break_even_ratio: Part of the hours in which the last unit must be used to pay; None where nothing compares.
      text: One sentence.
    """

    break_even_ratio: float | None
    text: str


def used_ratio(compiled: Compiled, units: Floats, served: Served) -> Floats:
    """Part of the hours, over all scenarios, in which the last unit of each column is used while it serves (J).

    Args:
      compiled: The problem and its columns.
      units: Units of each column (J).
      served: Who serves the demand with them.
    """
    problem = compiled.problem
    held, budget = supply(problem, units)
    lost = served.budget_unused
    found = np.zeros(len(units))
    for place, column in enumerate(compiled.columns):
        active = problem.column_supply[place][problem.period_of_hour] > 0
        if not active.any():
            continue
        if column.in_budget:
            number = problem.column_budget[place]
            paid = float(budget[problem.period_of_hour, number] @ problem.hour_weight)
            found[place] = 1 - float(problem.probability @ lost[:, number]) / paid if paid else 0.0
            continue
        pool = problem.column_pool[place]
        level = held[problem.period_of_hour, pool][active]
        reached = problem.demand[:, active, pool] >= level - 1e-9
        found[place] = float(problem.probability @ reached.mean(axis=1))
    return found


def reason(compiled: Compiled, place: int, used: float) -> Reason:
    """Why one column is bought.

    Args:
      compiled: The problem and its columns.
      place: Which column.
      used: Its ``used_ratio``.
    """
    problem, column = compiled.problem, compiled.columns[place]
    if column.in_budget:
        return _shared(problem, column, place, used)
    price, against, name = _prices(problem, compiled, place)
    if not np.isfinite(against) or against <= 0:
        return Reason(None, f"the last GPU is used in {used:.1%} of the hours; nothing else can be had by the hour")
    share = price / against
    text = (
        f"the last GPU is used in {used:.1%} of the hours and pays from {share:.1%} on: {price:,.2f} a GPU-hour whether "
        f"used or not, against {against:,.2f} {name}"
    )
    if column.offer.reference_gpus != 1:
        text += f"; {price / column.offer.reference_gpus:,.2f} a reference GPU-hour"
    if used < share:
        pool = problem.pools.index(column.pools[0])
        short = "more than on demand can give, " if np.isfinite(problem.on_demand_limit[pool]) else ""
        text += f"; it is bought for a limit ({short}capacity held ready, whole nodes), not for its price"
    return Reason(share, text)


def _shared(problem: Problem, column: Column, place: int, used: float) -> Reason:
    """Why of what several pools share, or of money: what it costs while it serves, by what a pool uses of it an hour."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = problem.budget_rate[problem.column_budget[place]] * _per_hour(problem, place)
        ratio = rates / problem.on_demand_price.mean(axis=(0, 1))
    compared = [one for one in ratio.tolist() if np.isfinite(one) and one > 0]
    in_money = column.offer.instrument is Instrument.SAVINGS_PLAN
    said = f"{used:.1%} of the {'commitment' if in_money else 'GPU-hours that the pools share'} is used"
    if not compared:
        return Reason(None, f"{said}; no on-demand price compares")
    low, high = min(compared), max(compared)
    spread = f"{low:.1%}" if high - low < 0.0005 else f"{low:.1%} to {high:.1%}"
    return Reason(
        high, f"{said}; it pays from {spread} on, its {'rates' if in_money else 'price'} against on demand by pool"
    )


def _per_hour(problem: Problem, place: int) -> float:
    """Price of one unit for each hour in which it serves, with what of it is expected to be lost after the horizon."""
    active = problem.column_supply[place][problem.period_of_hour] > 0
    return float(problem.column_cost[place] / problem.hour_weight[active].sum())


def _prices(problem: Problem, compiled: Compiled, place: int) -> tuple[float, float, str]:
    """Price of an hour of one GPU while it serves, what an hour costs otherwise, and what that is."""
    pool = problem.pools.index(compiled.columns[place].pools[0])
    price = _per_hour(problem, place)
    otherwise = float(problem.on_demand_price[..., pool].mean())
    if np.isfinite(otherwise):
        return price, otherwise, "on demand"
    return price, float(problem.shortfall_price[pool]), "for going without"
