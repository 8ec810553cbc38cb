"""From demand, offers, portfolio and policy to the problem that the solvers read.

Each offer that binds becomes one column for each month in which it may start (``columns``); each stretch of hours in
which nothing starts or ends becomes a period. Does not belong here: solving, and saying why a purchase is recommended.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.demand import WORKLOAD_CLASSES
from models.errors import UsageError
from models.prices import BY_THE_HOUR, HOURS_PER_MONTH, Instrument
from models.procurement.columns import (
    Column,
    columns_of,
    commitment_hours,
    cost_of,
    discount,
    fixed_cost,
    in_units,
    step_of,
    supply_of,
)
from models.procurement.limits import inference_floors, limits, recent_limits, tightened
from models.procurement.problem import Problem
from models.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The problem, and what its columns stand for.

    Attributes:
      problem: What the solvers read.
      columns: One a column of the problem, in its order (J).
      notes: What was left out and why, in words.
    """

    problem: Problem
    columns: tuple[Column, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Budget:
    """A commitment in money, or in GPUs that several pools share: rates by pool."""

    rates: tuple[float, ...]


def compile_problem(  # noqa: PLR0913 - as many things bear on a purchase
    scenarios: Scenarios,
    pools: Sequence[Pool],
    offers: Sequence[Offer],
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
    *,
    recent_gpus: Mapping[str, float] | None = None,
) -> Compiled:
    """The two-stage problem of buying for the scenarios' demand.

    Args:
      scenarios: Demand by workload class (S, T, P); its pools are the problem's.
      pools: What is known of each pool.
      offers: Everything that can be bought, priced.
      portfolio: What is held or queued already; its usage is taken out before anything is bought.
      policy: The organisation's policy.
      recent_gpus: Most GPUs that a pool wanted lately, beyond which nothing is committed; pools not named are not capped.

    Raises:
      UsageError: A pool has demand but no price at all, or the policy names a pool that does not exist.
    """
    names = scenarios.pools
    known = {pool.name: pool for pool in pools}
    _check_names(names, known, policy)
    hours = next(iter(scenarios.gpus.values())).shape[1]
    demand = scenarios.total()
    columns, notes = columns_of(offers, names, hours, policy)
    columns = [one for one in columns if _has_demand(one, names, demand)]
    periods = _periods(columns, portfolio, scenarios, hours)
    supplied = _supplied(columns, portfolio, scenarios, periods)
    step = np.array([step_of(one, known, policy) for one in columns])
    floors = inference_floors(scenarios, pools, portfolio, policy, periods)
    bound, column_high = tightened(
        (
            *limits(columns, scenarios, floors, portfolio, policy, periods),
            *recent_limits(columns, names, supplied.committed, periods, _in_nodes(floors, step), recent_gpus or {}),
        ),
        len(columns),
    )
    problem = Problem(
        pools=names,
        probability=scenarios.probability,
        period_of_hour=(np.searchsorted(periods, np.arange(hours), side="right") - 1).astype(np.int64),
        hour_weight=discount(policy, np.arange(hours)),
        demand=demand,
        spot_limit=_spot_limit(scenarios, policy),
        **asdict(_prices(offers, names, demand, policy)),
        **asdict(supplied),
        column_cost=np.array([cost_of(one, hours, policy) for one in columns]),
        column_pool=np.array([-1 if one.in_budget else names.index(one.pools[0]) for one in columns], dtype=np.int64),
        column_supply=supply_of(columns, periods).reshape(len(columns), len(periods) - 1),
        column_step=step,
        column_high=column_high,
        limits=bound,
        fixed_cost=sum(fixed_cost(one, scenarios, hours, policy) for one in portfolio),
        tail_weight=policy.tail_weight_ratio,
        tail_level=policy.tail_level_ratio,
    )
    return Compiled(problem=problem, columns=tuple(columns), notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Prices:
    """The problem's arrays of the same names: what an hour costs without any commitment."""

    on_demand_price: Floats
    spot_price: Floats
    on_demand_limit: Floats
    shortfall_price: Floats


def _prices(offers: Sequence[Offer], names: Sequence[str], demand: Floats, policy: PlanPolicy) -> _Prices:
    on_demand = _hourly_price(Instrument.ON_DEMAND, offers, names)
    spot = _hourly_price(Instrument.SPOT, offers, names) / policy.spot_goodput_ratio
    dearest = _dearest(on_demand, spot, offers, names)
    unpriced = [name for place, name in enumerate(names) if not dearest[place] and demand[:, :, place].any()]
    if unpriced:
        raise UsageError(
            f"no price of any instrument for {', '.join(unpriced)}: ingest prices for them, or leave them out of the pools"
        )
    return _Prices(
        on_demand_price=on_demand[None, None, :],
        spot_price=spot[None, None, :],
        on_demand_limit=np.array([policy.on_demand_gpus.get(name, np.inf) for name in names]),
        shortfall_price=dearest * policy.shortfall_factor,
    )


@dataclass(frozen=True, slots=True)
class _Supplied:
    """The problem's arrays of the same names: what is held, and the budgets that columns add to."""

    held: Floats
    held_budget: Floats
    budget_rate: Floats
    column_budget: Integers

    @property
    def committed(self) -> tuple[Floats, Floats, Floats]:
        """GPUs and budgets held, and what a GPU-hour consumes of a budget."""
        return self.held, self.held_budget, self.budget_rate


def _supplied(
    columns: Sequence[Column], portfolio: Sequence[Commitment], scenarios: Scenarios, periods: Integers
) -> _Supplied:
    names = scenarios.pools
    budgets: dict[_Budget, int] = {}
    held, held_budget = _held(portfolio, scenarios, periods, budgets, names)
    own = [budgets.setdefault(_budget_of(one, names), len(budgets)) if one.in_budget else -1 for one in columns]
    return _Supplied(
        held=held,
        held_budget=np.pad(held_budget, ((0, 0), (0, len(budgets) - held_budget.shape[1]))),
        budget_rate=np.array([one.rates for one in budgets]).reshape(len(budgets), len(names)),
        column_budget=np.array(own, dtype=np.int64),
    )


def _in_nodes(floors: Floats, step: Floats) -> Floats:
    """What may be bought to reach the floors: one node more than they need."""
    return np.where(floors > 0, floors + step.max(initial=0), 0)


def _check_names(names: Sequence[str], known: dict[str, Pool], policy: PlanPolicy) -> None:
    lacking = [name for name in names if name not in known]
    if lacking:
        raise UsageError(f"nothing is said about the pools {', '.join(lacking)}; known: {', '.join(known) or 'none'}")
    for field, named in (("spot_gpus", policy.spot_gpus), ("on_demand_gpus", policy.on_demand_gpus)):
        unknown = sorted(set(named) - set(known))
        if unknown:
            raise UsageError(f"{field}: found the pools {', '.join(unknown)}, expected one of {', '.join(known)}")


def _hourly_price(instrument: Instrument, offers: Sequence[Offer], names: Sequence[str]) -> Floats:
    """Least price of an instrument that does not bind (P); inf where it does not exist."""
    prices = np.full(len(names), np.inf)
    for offer in offers:
        if offer.instrument is instrument:
            for name, micros in offer.micros_per_gpu_hour.items():
                if name in names:
                    place = names.index(name)
                    prices[place] = min(prices[place], in_units(micros))
    return prices


def _dearest(on_demand: Floats, spot: Floats, offers: Sequence[Offer], names: Sequence[str]) -> Floats:
    """Dearest price per GPU-hour of any instrument of each pool (P); 0 where there is none."""
    dearest = np.maximum(np.where(np.isfinite(on_demand), on_demand, 0), np.where(np.isfinite(spot), spot, 0))
    for offer in offers:
        hours = (offer.term_seconds or offer.life_months * HOURS_PER_MONTH * SECONDS_PER_HOUR) / SECONDS_PER_HOUR
        for name, micros in offer.micros_per_gpu_hour.items():
            if name in names and offer.instrument not in BY_THE_HOUR and hours:
                place = names.index(name)
                dearest[place] = max(dearest[place], in_units(micros + offer.upfront_micros_per_gpu / hours))
    return dearest


def _has_demand(column: Column, names: Sequence[str], demand: Floats) -> bool:
    return any(demand[:, :, names.index(name)].any() for name in column.pools)


def _periods(columns: Sequence[Column], portfolio: Sequence[Commitment], scenarios: Scenarios, hours: int) -> Integers:
    """First hour of each period, ascending from 0, and the horizon's end."""
    edges = {0, hours}
    for column in columns:
        edges |= {column.supply_hour, min(column.end_hour, hours)}
    for held in portfolio:
        edges |= {min(max(hour, 0), hours) for hour in commitment_hours(held, scenarios)}
    return np.array(sorted(edges), dtype=np.int64)


def _held(
    portfolio: Sequence[Commitment],
    scenarios: Scenarios,
    periods: Integers,
    budgets: dict[_Budget, int],
    names: Sequence[str],
) -> tuple[Floats, Floats]:
    """GPUs held in each period (M, P), and budgets held in each period (M, K)."""
    held = np.zeros((len(periods) - 1, len(names)))
    held_budget = np.zeros((len(periods) - 1, 0))
    for one in portfolio:
        reached = [name for name in one.pools if name in names]
        start, end = commitment_hours(one, scenarios)
        active = (periods[:-1] >= start) & (periods[:-1] < end)
        if not reached or not active.any():
            continue
        if one.gpus is not None and len(reached) == 1:
            held[active, names.index(reached[0])] += one.gpus
            continue
        if one.gpus is not None:
            budget, amount = _Budget(tuple(1.0 if name in reached else np.inf for name in names)), float(one.gpus)
        else:
            rates = (in_units(one.rate_micros_per_gpu_hour[name]) if name in reached else np.inf for name in names)
            budget, amount = _Budget(tuple(rates)), in_units(one.hourly_commitment_micros or 0)
        place = budgets.setdefault(budget, len(budgets))
        held_budget = np.pad(held_budget, ((0, 0), (0, len(budgets) - held_budget.shape[1])))
        held_budget[active, place] += amount
    return held, held_budget


def _budget_of(column: Column, names: Sequence[str]) -> _Budget:
    in_money = column.offer.instrument is Instrument.SAVINGS_PLAN
    rates = column.offer.micros_per_gpu_hour
    return _Budget(
        tuple((in_units(rates[name]) if in_money else 1.0) if name in column.pools else np.inf for name in names)
    )


def _spot_limit(scenarios: Scenarios, policy: PlanPolicy) -> Floats:
    """GPUs of demand that spot may serve (S, T, P): the classes' shares, and what can be had at once, both useful GPUs."""
    shared = [
        scenarios.gpus[name] * policy.spot_share_ratio[name]
        for name in WORKLOAD_CLASSES
        if policy.spot_share_ratio.get(name) and name in scenarios.gpus
    ]
    first = next(iter(scenarios.gpus.values()))
    most = np.array([policy.spot_gpus.get(name, np.inf) for name in scenarios.pools]) * policy.spot_goodput_ratio
    return np.minimum(np.sum(shared, axis=0), most) if shared else np.zeros((1, 1, first.shape[2]))
