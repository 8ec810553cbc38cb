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

import numpy as np

from models.errors import UsageError

if TYPE_CHECKING:
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
      on_demand_limit: GPUs that can be had on demand at once (P), those that a budget pays for included, since a commitment
        in money reserves no capacity; inf for no limit.
      shortfall_price: Money per GPU-hour that nothing serves (P). A dearer channel is not used.
      held: GPUs held anyway in each period (M, P): existing commitments and owned nodes.
      held_budget: Existing budget in each period (M, K), money (or GPUs) per hour.
      budget_rate: What one GPU-hour of a pool consumes of a budget (K, P); inf where the budget does not reach.
      column_cost: Discounted cost of one unit over the horizon, with what remains of it after the horizon (J); below 0 only
        where ``column_high`` is finite.
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

    def __post_init__(self) -> None:
        """Refuse a problem that no solver could answer.

        Raises:
          UsageError: An array has the wrong shape, a number that is none, or a value outside its range.
        """
        for name, sizes in self._shapes().items():
            values = getattr(self, name)
            if values.ndim != len(sizes) or any(
                size not in allowed for size, allowed in zip(values.shape, sizes, strict=True)
            ):
                wanted = " by ".join(" or ".join(map(str, one)) for one in sizes)
                raise UsageError(f"{name} has the shape {values.shape}; expected {wanted}.")
            if np.isnan(values).any():
                raise UsageError(
                    f"{name} holds a value that is not a number; an unknown value must not reach the solver."
                )
        for wrong, what in self._wrong():
            if wrong:
                raise UsageError(f"The problem cannot be solved as it is: {what}.")

    def _shapes(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Sizes that each array may have, by dimension."""
        pools, hours, scenarios = (len(self.pools),), (len(self.hour_weight),), (len(self.probability),)
        periods, columns, budgets = (len(self.held),), (len(self.column_cost),), (len(self.budget_rate),)
        by_hour = ((*scenarios, 1), (*hours, 1), pools)
        by_column = dict.fromkeys(("column_pool", "column_budget", "column_step", "column_high"), (columns,))
        return {
            "probability": (scenarios,),
            "period_of_hour": (hours,),
            "hour_weight": (hours,),
            "demand": (scenarios, hours, pools),
            **dict.fromkeys(("spot_limit", "spot_price", "on_demand_price"), by_hour),
            **dict.fromkeys(("on_demand_limit", "shortfall_price"), (pools,)),
            "held": (periods, pools),
            "held_budget": (periods, budgets),
            "budget_rate": (budgets, pools),
            "column_cost": (columns,),
            **by_column,
            "column_supply": (columns, periods),
        }

    def _wrong(self) -> tuple[tuple[bool, str], ...]:
        """What may be wrong with the values, and whether it is."""
        period, free = self.period_of_hour, np.isinf(self.column_high)
        amounts = (self.probability, self.hour_weight, self.demand, self.spot_limit, self.on_demand_limit, self.held)
        prices = (self.spot_price, self.on_demand_price, self.shortfall_price)
        bought = (self.held_budget, self.column_supply, self.column_step, self.column_high)
        targets = (self.column_pool >= 0) != (self.column_budget >= 0)
        outside = (self.column_pool >= len(self.pools)) | (self.column_budget >= len(self.budget_rate))
        finite = (self.demand, self.hour_weight, self.held, self.held_budget, self.column_cost, self.column_supply)
        return (
            (not len(period), "it has no hour"),
            (abs(self.probability.sum() - 1) > 1e-9, f"probabilities add up to {self.probability.sum()}, not to 1"),
            (bool((np.diff(period, prepend=0) < 0).any()), "the periods of the hours do not ascend from 0"),
            (len(period) > 0 and period[-1] >= len(self.held), "an hour is in a period that has nothing held"),
            (any((one < 0).any() for one in (*amounts, *bought)), "an amount is negative"),
            (any((one < 0).any() for one in prices), "a price is negative"),
            (any(np.isinf(one).any() for one in finite), "an amount is infinite"),
            (bool(np.isinf(self.shortfall_price).any()), "a shortfall has no price"),
            (bool((self.budget_rate <= 0).any()), "a pool consumes nothing of a budget that reaches it"),
            (not targets.all() or bool(outside.any()), "a column adds neither to one pool nor to one budget"),
            (bool((free & (self.column_cost < 0)).any()), "a column earns money and has no upper limit"),
            (
                any(len(one.weights) != len(self.column_cost) for one in self.limits),
                "a limit has not one weight a column",
            ),
            (any(not one.low <= one.high for one in self.limits), "a limit's low is above its high"),
            (
                not 0 <= self.tail_weight <= 1 or not 0 <= self.tail_level < 1,
                "the tail's weight or level is out of range",
            ),
        )

    def column_target(self) -> Integers:
        """Where each column adds (J): its pool, or the number of pools plus its budget."""
        return np.where(self.column_pool >= 0, self.column_pool, len(self.pools) + self.column_budget)

    def tail_weights(self, serving_cost: Floats) -> Floats:
        """Weight of each scenario in the objective (S), adding up to 1: its probability, moved towards the dearest ones.

        The CVaR at a level is the mean cost of the dearest ``1 - level`` of the probability.
        """
        dearest = np.argsort(-serving_cost, kind="stable")
        before = np.cumsum(self.probability[dearest]) - self.probability[dearest]
        tail = np.empty_like(self.probability)
        tail[dearest] = np.clip(1 - self.tail_level - before, 0, self.probability[dearest]) / (1 - self.tail_level)
        return (1 - self.tail_weight) * self.probability + self.tail_weight * tail

    def objective(self, units: Floats, serving_cost: Floats) -> float:
        """Objective of ``units`` that leave each scenario with ``serving_cost`` (S)."""
        return float(self.fixed_cost + self.column_cost @ units + self.tail_weights(serving_cost) @ serving_cost)


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
