"""The recommendation: what to buy, why, what it is expected to cost, and against what it is compared.

``plan`` is a function of its arguments alone: the same demand, offers, portfolio and policy give the same plan. Amounts
are whole micros, and a plan's parts add up to its expected cost. Does not belong here: where demand and prices come
from, and the vendors' bill (``billing``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.errors import UsageError
from models.prices import Instrument
from models.procurement.cautions import caps, cliffs
from models.procurement.compile import Compiled, compile_problem
from models.procurement.merge import merged
from models.procurement.reasons import reason, used_ratio
from models.procurement.recourse import CHANNELS, evaluate, serve
from models.procurement.reprice import billed_difference
from models.procurement.solve import solve
from models.units import MICROS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Problem, Solution
    from models.procurement.recourse import Served

ALL_ON_DEMAND, NOTHING_NEW = "all_on_demand", "nothing_new"
BASELINES = {
    ALL_ON_DEMAND: "all GPU-hours at the on-demand price, without any commitment and without spot",
    NOTHING_NEW: "what is held and queued already, spot as in the plan, and nothing new",
}
"""What a saving is measured against, by name."""

SPREAD = (0.05, 0.95)
"""A saving is shown with these quantiles over the scenarios."""

PRICE_CUT_RATIO = 0.44
"""A cut of on-demand prices that happened: AWS's of p5 in June 2025, 98.32 to 55.04 USD an hour."""

DISPATCH_SCHEMA = pl.Schema(
    {"pool": pl.String(), "channel": pl.String(), "gpu_hours": pl.Float64(), "cost_micros": pl.Int64()}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One purchase.

    Attributes:
      offer: What to buy.
      pools: Pools it serves.
      starts_at: Start of its term: when to buy it, lead time included.
      ends_at: End of its term, exclusive; may lie beyond the horizon.
      gpus: GPUs; None for a commitment in money.
      hourly_commitment_micros: Money committed for each hour; None for GPUs.
      cost_micros: Discounted cost within the plan.
      upfront_micros: Paid at the start.
      committed_micros: All that it obliges to pay over its term, undiscounted.
      break_even_ratio: Part of the hours in which the last unit must be used to pay; None where nothing compares.
      used_ratio: Part of the hours in which the last unit is used, over all scenarios.
      reason: Why, in one sentence.
    """

    offer: Offer
    pools: tuple[str, ...]
    starts_at: datetime
    ends_at: datetime
    gpus: float | None
    hourly_commitment_micros: int | None
    cost_micros: int
    upfront_micros: int
    committed_micros: int
    break_even_ratio: float | None
    used_ratio: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Against one named baseline: expected, and its spread over the scenarios.

    Attributes:
      baseline: Name in ``BASELINES``.
      baseline_cost_micros: Expected cost of the baseline; None where it cannot serve the demand at a known price.
      saving_micros: Expected saving; negative where the plan costs more.
      low_micros: 5th percentile over the scenarios.
      high_micros: 95th percentile over the scenarios.
    """

    baseline: str
    baseline_cost_micros: int | None
    saving_micros: int | None
    low_micros: int | None
    high_micros: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stress:
    """The same purchases in another world.

    Attributes:
      name: What happens, in words.
      cost_micros: Expected cost of the plan then.
      without_micros: Expected cost then without the plan's purchases.
    """

    name: str
    cost_micros: int
    without_micros: int

    @property
    def loss_micros(self) -> int:
        """What the purchases would have cost too much; negative where they still save."""
        return self.cost_micros - self.without_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A recommendation with its proof.

    Attributes:
      start_at: First hour of the horizon.
      end_at: End of the horizon, exclusive.
      lines: Purchases, the dearest first.
      dispatch: Expected GPU-hours and discounted cost by pool and channel, ``DISPATCH_SCHEMA``.
      held_cost_micros: Cost of what is held and queued already.
      scenario_cost_micros: Cost of each scenario.
      cvar_cost_micros: Mean cost of the worst scenarios, at the policy's level.
      bound_cost_micros: No plan costs less than this in expectation (or in the policy's objective, with a tail weight).
      objective_cost_micros: The objective that the bound belongs to; the expected cost where the tail has no weight.
      repriced_cost_micros: Expected cost when billed by the vendors' own order of applying commitments.
      savings: Against each baseline.
      stresses: The same purchases in other worlds.
      prices_from_at: Oldest price used.
      prices_until_at: Newest price used.
      method: How it was solved.
      rounds: Rounds of the method.
      notes: What was left out, and warnings, in words.
    """

    start_at: datetime
    end_at: datetime
    lines: tuple[PlanLine, ...]
    dispatch: pl.DataFrame
    held_cost_micros: int
    scenario_cost_micros: tuple[int, ...]
    cvar_cost_micros: int
    bound_cost_micros: int
    objective_cost_micros: int
    repriced_cost_micros: int
    savings: tuple[Saving, ...]
    stresses: tuple[Stress, ...]
    prices_from_at: datetime
    prices_until_at: datetime
    method: str
    rounds: int
    notes: tuple[str, ...]

    @property
    def expected_cost_micros(self) -> int:
        """Sum of its parts: purchases, what is held, and what each channel costs."""
        return (
            sum(one.cost_micros for one in self.lines) + self.held_cost_micros + int(self.dispatch["cost_micros"].sum())
        )


def plan(  # noqa: PLR0913 - as many things bear on a purchase
    scenarios: Scenarios,
    pools: Sequence[Pool],
    offers: Sequence[Offer],
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
    *,
    recent_gpus: Mapping[str, float] | None = None,
) -> Plan:
    """What to buy for the demand that may come.

    Args:
      scenarios: Demand by workload class; its first hour is the plan's.
      pools: What is known of each pool.
      offers: Everything that can be bought, priced.
      portfolio: What is held or queued already.
      policy: The organisation's policy.
      recent_gpus: Most GPUs that a pool wanted lately; no more is committed than that. Pools not named are not capped.

    Raises:
      UsageError: None of the offers prices a pool, or one that has demand.
      UsageError: The policy's limits cannot all be kept; names the one that binds and by how much.
    """
    used = [one for one in offers if any(name in one.micros_per_gpu_hour for name in scenarios.pools)]
    if not used:
        raise UsageError(f"no price of any instrument for {', '.join(scenarios.pools)}: ingest prices for them")
    compiled = compile_problem(scenarios, pools, offers, portfolio, policy, recent_gpus=recent_gpus)
    solution = solve(compiled.problem)
    units = solution.units
    served = serve(compiled.problem, units, np.ones(compiled.problem.demand.shape[1]))
    lines = _lines(compiled, units, served, scenarios)
    observed = [one.observed_at for one in used]
    end_at = scenarios.start_at + timedelta(hours=compiled.problem.demand.shape[1])
    dispatch = _dispatch(compiled.problem, served.gpu_hours, served.money)
    held_cost = micros(compiled.problem.fixed_cost)
    expected = sum(one.cost_micros for one in lines) + held_cost + int(dispatch["cost_micros"].sum())
    return Plan(
        start_at=scenarios.start_at,
        end_at=end_at,
        lines=lines,
        dispatch=dispatch,
        held_cost_micros=held_cost,
        scenario_cost_micros=tuple(micros(cost) for cost in solution.scenario_cost.tolist()),
        cvar_cost_micros=micros(
            tail_mean(solution.scenario_cost, compiled.problem.probability, policy.tail_level_ratio)
        ),
        bound_cost_micros=micros(solution.bound),
        objective_cost_micros=micros(solution.cost),
        repriced_cost_micros=expected + micros(billed_difference(compiled, units, scenarios, pools, portfolio, policy)),
        savings=_savings(compiled.problem, solution),
        stresses=_stresses(compiled, units, (scenarios, pools, offers, portfolio, policy)),
        prices_from_at=min(observed),
        prices_until_at=max(observed),
        method=solution.method,
        rounds=solution.rounds,
        notes=(*compiled.notes, *caps(recent_gpus or {}), *cliffs(lines, portfolio, pools, scenarios.start_at, end_at)),
    )


def micros(money: float) -> int:
    """Units of the currency as whole micros, half to even."""
    return round(money * MICROS_PER_UNIT)


def tail_mean(cost: Floats, probability: Floats, level: float) -> float:
    """CVaR: the mean of the worst ``1 - level`` of a distribution, its atom at the border counted in part.

    Source: Rockafellar and Uryasev, Optimization of Conditional Value-at-Risk (2000).

    >>> tail_mean(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25), 0.5)
    3.5
    """
    order = np.argsort(-cost)
    tail = 1 - level
    taken = np.minimum(probability[order], np.maximum(0, tail - np.cumsum(probability[order]) + probability[order]))
    return float((cost[order] * taken).sum() / tail)


def _lines(compiled: Compiled, units: Floats, served: Served, scenarios: Scenarios) -> tuple[PlanLine, ...]:
    problem, found = compiled.problem, []
    used = used_ratio(compiled, units, served)
    for place, column in enumerate(compiled.columns):
        bought = float(units[place])
        if bought <= 0:
            continue
        why = reason(compiled, place, used[place])
        in_money = column.offer.instrument is Instrument.SAVINGS_PLAN
        found.append(
            PlanLine(
                offer=column.offer,
                pools=column.pools,
                starts_at=scenarios.start_at + timedelta(hours=column.start_hour),
                ends_at=scenarios.start_at + timedelta(hours=column.end_hour),
                gpus=None if in_money else bought,
                hourly_commitment_micros=micros(bought) if in_money else None,
                cost_micros=micros(problem.column_cost[place] * bought),
                upfront_micros=micros(column.upfront * bought),
                committed_micros=micros(column.committed * bought),
                break_even_ratio=why.break_even_ratio,
                used_ratio=float(used[place]),
                reason=why.text,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.cost_micros, one.offer.offer_id, one.starts_at)))


def _dispatch(problem: Problem, gpu_hours: Floats, money: Floats) -> pl.DataFrame:
    """Expected over the scenarios, by pool and channel; a budget's money is in the lines, so it costs nothing here."""
    mean_hours, mean_money = (np.tensordot(problem.probability, one, axes=1) for one in (gpu_hours, money))
    rows = [
        {
            "pool": pool,
            "channel": channel,
            "gpu_hours": float(mean_hours[place, number]),
            "cost_micros": 0 if channel in {"held", "budget"} else micros(mean_money[place, number]),
        }
        for number, pool in enumerate(problem.pools)
        for place, channel in enumerate(CHANNELS)
    ]
    return pl.DataFrame(rows, schema=DISPATCH_SCHEMA)


def _savings(problem: Problem, solution: Solution) -> tuple[Saving, ...]:
    nothing = np.zeros(len(problem.column_cost))
    return (
        _saving(ALL_ON_DEMAND, on_demand_cost(problem), solution, problem.probability),
        _saving(NOTHING_NEW, evaluate(problem, nothing).cost + problem.fixed_cost, solution, problem.probability),
    )


def on_demand_cost(problem: Problem) -> Floats | None:
    """Discounted cost of each scenario (S) with all GPU-hours on demand; None where a pool with demand has no such price."""
    wanted = problem.demand.any(axis=(0, 1))
    price = np.where(wanted, problem.on_demand_price, 0.0)
    if not np.isfinite(price).all():
        return None
    return np.asarray((problem.demand * price).sum(axis=2) @ problem.hour_weight)


def _saving(name: str, cost: Floats | None, solution: Solution, probability: Floats) -> Saving:
    if cost is None:
        return Saving(baseline=name, baseline_cost_micros=None, saving_micros=None, low_micros=None, high_micros=None)
    saved = cost - solution.scenario_cost
    low, high = (micros(float(_quantile(saved, probability, ratio))) for ratio in SPREAD)
    baseline, planned = micros(float(probability @ cost)), micros(float(probability @ solution.scenario_cost))
    return Saving(
        baseline=name,
        baseline_cost_micros=baseline,
        saving_micros=baseline - planned,
        low_micros=low,
        high_micros=high,
    )


def _quantile(values: Floats, probability: Floats, ratio: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(probability[order])
    return float(values[order][min(int(np.searchsorted(reached, ratio - 1e-12)), len(values) - 1)])


def _stresses(
    compiled: Compiled,
    units: Floats,
    given: tuple[Scenarios, Sequence[Pool], Sequence[Offer], Sequence[Commitment], PlanPolicy],
) -> tuple[Stress, ...]:
    """What the purchases would cost after a price cut, with less demand, without spot, and with owned GPUs worth nothing."""
    problem = compiled.problem
    worlds = {
        f"on-demand prices fall by {PRICE_CUT_RATIO:.0%}": replace(
            problem, on_demand_price=problem.on_demand_price * (1 - PRICE_CUT_RATIO)
        ),
        "demand falls by 30%": replace(problem, demand=problem.demand * 0.7, spot_limit=problem.spot_limit * 0.7),
        "spot cannot be had": replace(problem, spot_limit=np.zeros_like(problem.spot_limit)),
    }
    if any(units[place] and one.offer.residual_micros_per_gpu for place, one in enumerate(compiled.columns)):
        scenarios, pools, offers, portfolio, policy = given
        worthless = [replace(one, residual_micros_per_gpu=0) for one in offers]
        worlds["owned GPUs have no residual value"] = compile_problem(
            scenarios, pools, worthless, portfolio, policy
        ).problem
    return tuple(_stress(name, world, units) for name, world in worlds.items())


def _stress(name: str, world: Problem, units: Floats) -> Stress:
    world = merged(world)  # to see what would happen: what is recommended and billed is counted exactly elsewhere

    def cost(bought: Floats) -> int:
        return micros(
            float(world.probability @ evaluate(world, bought).cost + world.column_cost @ bought + world.fixed_cost)
        )

    return Stress(name=name, cost_micros=cost(units), without_micros=cost(np.zeros_like(units)))
