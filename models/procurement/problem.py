"""The two-stage problem that every solver reads: buy now, then serve each hour of each scenario as cheaply as possible.

What is bought (the columns) is decided once. In each hour, a pool's demand is first served by the GPUs that are held
anyway (bought or existing); what is left goes to spot as far as it may, to on-demand as far as it can be had, and the
rest is a shortfall with a price. A commitment in money (a savings plan) lowers the price of on-demand hours across
pools until it is used up. Arrays are float64; money is in units of the reporting currency, discounted to the first hour.

Does not belong here: what offers, policies and demand mean (``compile``), and solving (``separable``, ``lshaped``,
``extensive``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One linear limit on what is bought: ``low <= weights @ x <= high``.

    Attributes:
      name: What it limits, in words, for the message when it cannot be kept.
      weights: Per column (J,).
      low: Least value; -inf for none.
      high: Greatest value; inf for none.
      unit: What the weighted sum counts: GPUs, watts, money.
    """

    name: str
    weights: Floats
    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One procurement problem. S scenarios, T hours, P pools, M periods, J columns, K budgets.

    A period is a stretch of hours in which nothing that is held starts or ends. A budget is a commitment in money (or,
    for GPUs that several pools share, in GPUs) that is consumed at a rate by each pool and lost where it is not used.

    Attributes:
      pools: Names (P).
      probability: Of each scenario (S), adding up to 1.
      period_of_hour: Period of each hour (T), ascending from 0.
      hour_weight: Discount factor of each hour times the hours it stands for (T).
      demand: GPUs wanted (S, T, P).
      spot_limit: GPUs of that demand that spot may serve (S or 1, T or 1, P), at most the demand.
      spot_price: Money per useful GPU-hour on spot, that is price / goodput (S or 1, T or 1, P); inf where none exists.
      on_demand_price: Money per GPU-hour (S or 1, T or 1, P); inf where none exists.
      on_demand_limit: GPUs that can be had on demand at once (P), those under a budget in money included; inf for no limit.
      shortfall_price: Money per GPU-hour that nothing serves (P); above every price.
      held: GPUs held anyway in each period (M, P): existing commitments and owned nodes.
      held_budget: Existing budget in each period (M, K), money (or GPUs) per hour.
      budget_rate: What one GPU-hour of a pool consumes of a budget (K, P); inf where the budget does not reach.
      column_cost: Discounted cost of one unit over the horizon, with what remains of it after the horizon (J).
      column_pool: Pool whose GPUs a column adds to (J); -1 for a column that adds to a budget.
      column_budget: Budget that a column adds to (J); -1 for a column that adds GPUs.
      column_supply: GPUs, or money per hour, that one unit adds in each period (J, M).
      column_step: Units are bought in multiples of this (J); 0 for any amount.
      column_high: Most units (J); inf for no limit.
      limits: Limits over several columns.
      fixed_cost: Discounted cost of what is held anyway.
      tail_weight: Weight of the tail in the objective, 0..1: (1 - w) * expected + w * CVaR.
      tail_level: Level of the CVaR, such as 0.95.
    """

    pools: tuple[str, ...]
    probability: Floats
    period_of_hour: Integers
    hour_weight: Floats
    demand: Floats
    spot_limit: Floats
    spot_price: Floats
    on_demand_price: Floats
    on_demand_limit: Floats
    shortfall_price: Floats
    held: Floats
    held_budget: Floats
    budget_rate: Floats
    column_cost: Floats
    column_pool: Integers
    column_budget: Integers
    column_supply: Floats
    column_step: Floats
    column_high: Floats
    limits: tuple[Limit, ...] = ()
    fixed_cost: float = 0.0
    tail_weight: float = 0.0
    tail_level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a solver found.

    Attributes:
      units: Units of each column (J).
      cost: Objective at ``units``, the fixed cost included.
      bound: No plan costs less; for whole nodes it is the bound of the relaxed problem.
      scenario_cost: Cost of each scenario at ``units`` (S), the fixed cost included.
      method: Name of the method: order statistics, L-shaped, extensive.
      rounds: Rounds or iterations.
    """

    units: Floats
    cost: float
    bound: float
    scenario_cost: Floats
    method: str
    rounds: int

    @property
    def gap_ratio(self) -> float:
        """What the plan costs above the bound, as a part of its cost; 0 where it costs nothing."""
        return (self.cost - self.bound) / abs(self.cost) if self.cost else 0.0
