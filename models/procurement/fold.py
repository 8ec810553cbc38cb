"""What could be bought at an instant in the past, and what a choice cost on the hours that then came.

A fold is shorter than the term of a commitment. A purchase is therefore charged its price per hour (what recurs, and
the upfront part over the term) for the hours of the fold alone, as if it could be returned at its end: the policy's
``later_use_ratio`` is 1 and its ``discount_ratio`` 0. That is the same for every way of choosing, so that folds compare;
it does not say what a wrong commitment costs after the fold. Nodes are whole where the policy says so. The policy's
limits (budget, exposure, ladder, power, capacity for inference) and its weight on the tail are left out, since the
baselines do not know them: what is compared is money.

Does not belong here: choosing (``baselines``), and comparing (``backtest``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from models.prices import BY_THE_HOUR
from models.procurement.compile import Compiled, compile_problem
from models.procurement.recourse import CHANNELS, evaluate, serve
from models.procurement.solve import solve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Problem, Solution

HELD, BUDGET, ON_DEMAND = (CHANNELS.index(name) for name in ("held", "budget", "on_demand"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What can be had, what is held, and the policy of a fold."""

    pools: Sequence[Pool]
    offers: Sequence[Offer]
    portfolio: Sequence[Commitment]
    policy: PlanPolicy

    def compiled(self, wanted: Scenarios, offers: Sequence[Offer] | None = None) -> Compiled:
        """The problem of buying for a demand, from all offers or from some."""
        chosen = self.offers if offers is None else offers
        return compile_problem(wanted, self.pools, chosen, self.portfolio, self.policy)

    def best(
        self, wanted: Scenarios, offers: Sequence[Offer] | None = None
    ) -> tuple[Compiled, Solution, dict[str, float]]:
        """The problem, its solution, and the units of each offer."""
        compiled = self.compiled(wanted, offers)
        solution = solve(compiled.problem)
        return compiled, solution, bought(compiled, solution.units)


def fold_policy(policy: PlanPolicy) -> PlanPolicy:
    """The policy as folds use it: see the module's docstring."""
    return replace(
        policy,
        discount_ratio=0.0,
        later_use_ratio=1.0,
        start_months=(0,),
        inference_availability_ratio=None,
        power_cap_watts=None,
        budget_micros=None,
        exposure_micros=None,
        ladder_ratio=None,
        tail_weight_ratio=0.0,
    )


def bought(compiled: Compiled, units: Floats) -> dict[str, float]:
    """Units by offer, without those that are not bought."""
    return {
        column.offer.offer_id: float(count) for column, count in zip(compiled.columns, units, strict=True) if count > 0
    }


def as_units(compiled: Compiled, purchases: Mapping[str, float]) -> Floats:
    """Units of each column (J); 0 for what is not bought."""
    return np.array([purchases.get(column.offer.offer_id, 0.0) for column in compiled.columns], dtype=np.float64)


def hours_of(demand: Scenarios, first: int, end: int, start_at: datetime) -> Scenarios:
    """Some hours of a demand, laid so that they start at an instant."""
    return replace(demand, start_at=start_at, gpus={name: gpus[:, first:end] for name, gpus in demand.gpus.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What could be bought at the fold's start, without a word on what will be wanted.

    Attributes:
      market: Offers, portfolio and policy.
      start_at: The fold's first hour.
      compiled: The problem of the fold's length in which every pool wants something: all columns are in it.
    """

    market: Market
    start_at: datetime
    compiled: Compiled

    @property
    def hours(self) -> int:
        """Length of the fold."""
        return len(self.compiled.problem.hour_weight)

    @property
    def price_per_hour(self) -> Floats:
        """Price of one unit of each column for each hour in which it serves (J)."""
        problem = self.compiled.problem
        served = (problem.column_supply > 0)[:, problem.period_of_hour].sum(axis=1)
        return np.asarray(problem.column_cost / np.maximum(served, 1))

    @property
    def consumption(self) -> Floats:
        """Units that one GPU takes, by column and pool (J, P); inf where the column does not reach."""
        problem = self.compiled.problem
        found = np.full((len(problem.column_cost), len(problem.pools)), np.inf)
        for column, (pool, budget) in enumerate(zip(problem.column_pool, problem.column_budget, strict=True)):
            if pool >= 0:
                found[column, pool] = 1.0
            else:
                found[column] = problem.budget_rate[budget]
        return found

    def cheapest(self) -> list[int | None]:
        """For each pool, the column with the least price per GPU-hour; None where none is below on-demand.

        Only what serves in all hours of the fold: nothing is waited for, and a block that ends within it is not renewed.
        """
        problem = self.compiled.problem
        ready = np.asarray((problem.column_supply > 0).all(axis=1))
        price = np.where(ready[:, None], self.price_per_hour[:, None] * self.consumption, np.inf)
        otherwise = np.minimum(problem.on_demand_price[0, 0], problem.shortfall_price)
        found: list[int | None] = []
        for pool in range(len(problem.pools)):
            least = int(np.argmin(price[:, pool])) if len(price) else None
            found.append(least if least is not None and price[least, pool] < otherwise[pool] else None)
        return found

    def cheapest_offers(self) -> list[Offer]:
        """The cheapest commitment of each pool, and all that is paid by the hour."""
        chosen = {self.compiled.columns[one].offer.offer_id for one in self.cheapest() if one is not None}
        return [one for one in self.market.offers if one.instrument in BY_THE_HOUR or one.offer_id in chosen]

    def realised(self, wanted: Scenarios) -> Problem:
        """The fold with what was wanted in it; a purchase that nothing wants any more is still paid."""
        problem = self.market.compiled(wanted).problem
        return replace(self.compiled.problem, demand=problem.demand, spot_limit=problem.spot_limit)


def shop(market: Market, names: Sequence[str], start_at: datetime, wanted: Scenarios) -> Shop:
    """What can be bought for the pools from an instant on; of ``wanted`` only the shape is looked at."""
    shape = next(iter(wanted.gpus.values())).shape
    anything = replace(
        wanted, start_at=start_at, pools=tuple(names), probability=np.ones(1), gpus={"rigid": np.ones((1, *shape[1:]))}
    )
    return Shop(market=market, start_at=start_at, compiled=market.compiled(anything))


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What a choice cost on the hours that came. Money is in units of the currency.

    Attributes:
      cost: All that was paid, with what is held anyway.
      covered: GPU-hours that commitments served, bought or held before (P).
      on_demand: GPU-hours on demand (P).
      committed: GPU-hours of all commitments; of money, what it paid for, and what was lost of it at the mean rate.
      unused: Those of them that nothing used.
    """

    cost: float
    covered: Floats
    on_demand: Floats
    committed: float
    unused: float


def price(problem: Problem, units: Floats, paid: float = 0.0) -> Priced:
    """Serve the hours of one scenario.

    Args:
      problem: What was wanted, and what is held.
      units: Units bought of each column (J).
      paid: Paid for commitments beside them.
    """
    served = serve(problem, units, np.ones(problem.demand.shape[1]))
    hours = served.gpu_hours[0]
    covered = hours[HELD] + hours[BUDGET]
    reached = np.isfinite(problem.budget_rate)
    mean_rate = np.where(reached, problem.budget_rate, 0).sum(axis=1) / np.maximum(reached.sum(axis=1), 1)
    unused = float(served.held_unused[0].sum() + (served.budget_unused[0] / np.where(mean_rate, mean_rate, 1)).sum())
    cost = problem.fixed_cost + paid + float(units @ problem.column_cost + evaluate(problem, units).cost[0])
    return Priced(
        cost=cost, covered=covered, on_demand=hours[ON_DEMAND], committed=float(covered.sum()) + unused, unused=unused
    )


def without_spot(problem: Problem) -> Problem:
    """The same where nothing may run on spot."""
    return replace(problem, spot_limit=np.zeros((1, 1, len(problem.pools))))


def with_supply(problem: Problem, gpus: Floats, money: Floats) -> Problem:
    """The same with more held in each hour: GPUs (T, P), and units of the budgets (T, K)."""
    period = problem.period_of_hour
    return replace(
        problem,
        period_of_hour=np.arange(len(period), dtype=np.int64),
        held=problem.held[period] + gpus,
        held_budget=problem.held_budget[period] + money,
        column_supply=problem.column_supply[:, period],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What knowing would be worth, and what planning with the spread is worth. Money in units of the currency.

    Attributes:
      expected: Expected cost of the stochastic plan over the scenarios.
      evpi: Expected value of perfect information: that, less the mean cost with each scenario known beforehand.
      vss: Value of the stochastic solution: expected cost of the plan for the mean demand, less that of the plan.
    """

    expected: float
    evpi: float
    vss: float


def value(compiled: Compiled, units: Floats, mean_value: Mapping[str, float]) -> Value:
    """EVPI and VSS of a plan (Birge and Louveaux, Introduction to Stochastic Programming, chapter 4).

    Args:
      compiled: The problem with all scenarios.
      units: The stochastic plan (J).
      mean_value: The plan for the mean demand, by offer.
    """
    problem = compiled.problem

    def expected(at: Floats) -> float:
        return float(problem.fixed_cost + at @ problem.column_cost + problem.probability @ evaluate(problem, at).cost)

    known = sum(
        weight * solve(_alone(problem, number)).cost for number, weight in enumerate(problem.probability.tolist())
    )
    cost = expected(units)
    return Value(expected=cost, evpi=cost - known, vss=expected(as_units(compiled, mean_value)) - cost)


def _alone(problem: Problem, number: int) -> Problem:
    """One scenario for certain."""
    only = {
        name: values[number : number + 1] if len(values := getattr(problem, name)) > 1 else values
        for name in ("demand", "spot_limit", "spot_price", "on_demand_price")
    }
    return replace(problem, probability=np.ones(1), **only)
