"""From demand, offers, portfolio and policy to the problem that the solvers read.

Each offer that binds becomes one column for each month in which it may start; each stretch of hours in which nothing
starts or ends becomes a period. What an obligation costs beyond the horizon is charged for the part that the policy does
not expect to be worth its price, so that a three-year term is not free after the first year.

Does not belong here: solving, and saying why a purchase is recommended.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from models.demand import WORKLOAD_CLASSES
from models.errors import UsageError
from models.prices import HOURS_PER_MONTH, Instrument
from models.procurement.limits import limits, recent_limits, tightened
from models.procurement.problem import Problem
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers

HOURS_PER_YEAR = 8_760
BY_THE_HOUR = (Instrument.ON_DEMAND, Instrument.SPOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Something that may be bought: one unit is one GPU, or of a commitment in money one unit of it an hour.

    Attributes:
      offer: What is bought.
      pools: Names of the pools it serves.
      start_hour: First hour of its term, counted from the plan's first hour.
      supply_hour: First hour in which it serves; later than ``start_hour`` by the lead time.
      end_hour: End of its term, exclusive; beyond the horizon where the obligation is longer.
      committed: Money that one unit commits within its whole term, undiscounted, in units of the currency.
      in_budget: Whether it adds to a budget rather than to one pool's GPUs.
    """

    offer: Offer
    pools: tuple[str, ...]
    start_hour: int
    supply_hour: int
    end_hour: int
    committed: float
    in_budget: bool


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
    on_demand = _hourly_price(Instrument.ON_DEMAND, offers, names)
    spot = _hourly_price(Instrument.SPOT, offers, names) / policy.spot_goodput_ratio
    columns, notes = _columns(offers, names, hours, policy)
    columns = [one for one in columns if _has_demand(one, names, demand)]
    dearest = _dearest(on_demand, spot, offers, names)
    unpriced = [name for place, name in enumerate(names) if not dearest[place] and demand[:, :, place].any()]
    if unpriced:
        raise UsageError(
            f"no price of any instrument for {', '.join(unpriced)}: ingest prices for them, or leave them out of the pools"
        )
    periods = _periods(columns, portfolio, scenarios, hours)
    budgets: dict[_Budget, int] = {}
    held, held_budget = _held(portfolio, scenarios, periods, budgets, names)
    column_budget = [
        budgets.setdefault(_budget_of(one, names), len(budgets)) if one.in_budget else -1 for one in columns
    ]
    held_budget = np.pad(held_budget, ((0, 0), (0, len(budgets) - held_budget.shape[1])))
    rates = np.array([one.rates for one in budgets]).reshape(len(budgets), len(names))
    bound, column_high = tightened(
        (
            *limits(columns, scenarios, pools, portfolio, policy, periods),
            *recent_limits(columns, names, held, held_budget, rates, periods, recent_gpus or {}),
        ),
        len(columns),
    )
    discount = _discount(policy, np.arange(hours))
    problem = Problem(
        pools=names,
        probability=scenarios.probability,
        period_of_hour=(np.searchsorted(periods, np.arange(hours), side="right") - 1).astype(np.int64),
        hour_weight=discount,
        demand=demand,
        spot_limit=_spot_limit(scenarios, policy),
        spot_price=spot[None, None, :],
        on_demand_price=on_demand[None, None, :],
        on_demand_limit=np.array([policy.on_demand_gpus.get(name, np.inf) for name in names]),
        shortfall_price=dearest * policy.shortfall_factor,
        held=held,
        held_budget=held_budget,
        budget_rate=rates,
        column_cost=np.array([_cost(one, hours, policy) for one in columns]),
        column_pool=np.array([-1 if one.in_budget else names.index(one.pools[0]) for one in columns], dtype=np.int64),
        column_budget=np.array(column_budget, dtype=np.int64),
        column_supply=_supply(columns, periods).reshape(len(columns), len(periods) - 1),
        column_step=np.array([_step(one, known, policy) for one in columns]),
        column_high=column_high,
        limits=bound,
        fixed_cost=sum(_fixed_cost(one, scenarios, hours, policy) for one in portfolio),
        tail_weight=policy.tail_weight_ratio,
        tail_level=policy.tail_level_ratio,
    )
    return Compiled(problem=problem, columns=tuple(columns), notes=tuple(notes))


def _check_names(names: Sequence[str], known: dict[str, Pool], policy: PlanPolicy) -> None:
    lacking = [name for name in names if name not in known]
    if lacking:
        raise UsageError(f"nothing is said about the pools {', '.join(lacking)}; known: {', '.join(known) or 'none'}")
    for field, named in (("spot_gpus", policy.spot_gpus), ("on_demand_gpus", policy.on_demand_gpus)):
        unknown = sorted(set(named) - set(known))
        if unknown:
            raise UsageError(f"{field}: found the pools {', '.join(unknown)}, expected one of {', '.join(known)}")


def in_units(micros: float) -> float:
    """Micros in units of the currency, as the solvers count."""
    return micros / MICROS_PER_UNIT


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


def _columns(
    offers: Sequence[Offer], names: Sequence[str], hours: int, policy: PlanPolicy
) -> tuple[list[Column], list[str]]:
    columns, notes = [], []
    for offer in offers:
        reached = tuple(name for name in names if name in offer.micros_per_gpu_hour)
        if offer.instrument in BY_THE_HOUR or not reached:
            continue
        in_budget = offer.instrument is Instrument.SAVINGS_PLAN or len(reached) > 1
        term = _term_hours(offer)
        for start in (month * HOURS_PER_MONTH for month in policy.start_months):
            supply = start + -(-offer.lead_seconds // SECONDS_PER_HOUR)
            if supply >= hours:
                notes.append(f"{offer.offer_id}: starting in hour {start:,} it would serve only after the horizon")
                continue
            committed = in_units(offer.upfront_micros_per_gpu) + _recurring(offer, reached) * term
            columns.append(
                Column(
                    offer=offer,
                    pools=reached,
                    start_hour=start,
                    supply_hour=supply,
                    end_hour=supply + term,
                    committed=committed,
                    in_budget=in_budget,
                )
            )
    return columns, notes


def _term_hours(offer: Offer) -> int:
    if offer.instrument is Instrument.OWNED:
        return offer.life_months * HOURS_PER_MONTH
    if offer.term_seconds is None:
        raise UsageError(
            f"{offer.offer_id}: a {offer.instrument} needs a term, found none: add term_seconds to its price"
        )
    return offer.term_seconds // SECONDS_PER_HOUR


def _recurring(offer: Offer, reached: Sequence[str]) -> float:
    """Money an hour that one unit costs; a unit of a commitment in money is one unit of it."""
    if offer.instrument is Instrument.SAVINGS_PLAN:
        return 1.0
    return in_units(max(offer.micros_per_gpu_hour[name] for name in reached))


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


def commitment_hours(held: Commitment, scenarios: Scenarios) -> tuple[int, int]:
    """First hour and end of a commitment's term, counted from the plan's first hour; the first may be negative."""
    start, end = (int((instant - scenarios.start_at).total_seconds()) for instant in (held.starts_at, held.ends_at))
    return start // SECONDS_PER_HOUR, -(-end // SECONDS_PER_HOUR)


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


def _discount(policy: PlanPolicy, hours: Integers | int) -> Floats:
    """Value now of one unit of money in each hour: (1 + rate) ** (-hour / 8760)."""
    return np.asarray((1 + policy.discount_ratio) ** (-np.asarray(hours, dtype=np.float64) / HOURS_PER_YEAR))


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


def _supply(columns: Sequence[Column], periods: Integers) -> Floats:
    """What one unit of each column adds in each period (J, M)."""
    starts = [start for start, _ in pairwise(periods.tolist())]
    rows = [[float(one.supply_hour <= start < one.end_hour) for start in starts] for one in columns]
    return np.array(rows, dtype=np.float64)


def _step(column: Column, known: dict[str, Pool], policy: PlanPolicy) -> float:
    if not policy.whole_nodes or column.offer.instrument is Instrument.SAVINGS_PLAN:
        return 0.0
    return float(max([column.offer.node_gpus, *(known[name].node_gpus for name in column.pools)]))


def _cost(column: Column, hours: int, policy: PlanPolicy) -> float:
    """Discounted cost of one unit: what falls into the horizon, and the part of the rest that is not expected to be used."""
    offer, lost = column.offer, 1 - policy.later_use_ratio
    end = min(column.end_hour, hours)
    term = column.end_hour - column.supply_hour
    within = (end - column.supply_hour) / term
    upfront = in_units(offer.upfront_micros_per_gpu) * float(_discount(policy, column.start_hour))

    def present(first: int, last: int) -> float:
        return float(_discount(policy, np.arange(first, last)).sum())

    if offer.instrument is Instrument.OWNED:
        residual = in_units(offer.residual_micros_per_gpu)
        book = (in_units(offer.upfront_micros_per_gpu) - residual) * (1 - within)
        kept = (policy.later_use_ratio * book + residual) * float(_discount(policy, end))
        watts = offer.power_watts_per_gpu * policy.power_usage_effectiveness
        running = in_units(
            max(offer.micros_per_gpu_hour.values())
            + offer.monthly_fee_micros_per_gpu / HOURS_PER_MONTH
            + watts / 1_000 * policy.energy_micros_per_kwh
        )
        return upfront - kept + running * present(column.supply_hour, end)
    recurring = _recurring(offer, column.pools)
    beyond = present(end, column.end_hour) if column.end_hour > hours else 0.0
    return upfront * (within + (1 - within) * lost) + recurring * (present(column.supply_hour, end) + lost * beyond)


def _fixed_cost(held: Commitment, scenarios: Scenarios, hours: int, policy: PlanPolicy) -> float:
    """Discounted cost of a commitment within the horizon; what was paid before it is spent whatever the plan."""
    start, end = commitment_hours(held, scenarios)
    first, last = min(max(start, 0), hours), min(max(end, 0), hours)
    if last <= first:
        return 0.0
    hourly: Callable[[], float] = lambda: float(_discount(policy, np.arange(first, last)).sum())  # noqa: E731
    recurring = (
        in_units(held.hourly_commitment_micros)
        if held.hourly_commitment_micros is not None
        else in_units((held.gpus or 0) * max(held.rate_micros_per_gpu_hour.values(), default=0))
    )
    # Upfront money of a commitment in money is a part of what it commits each hour.
    is_due = held.is_queued and start >= 0 and held.gpus is not None
    upfront = in_units(held.upfront_micros) * float(_discount(policy, start)) if is_due else 0.0
    return recurring * hourly() + upfront
