"""The limits on what is bought together: capacity held ready for inference, power, budget, ladder, exposure.

Does not belong here: limits of one column alone, and what each hour allows (``compile``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError
from models.prices import HOURS_PER_MONTH, Instrument
from models.procurement.columns import recurring_cost
from models.procurement.problem import Limit
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from models.demand import Scenarios
    from models.prices import Commitment, Pool
    from models.procurement.columns import Column
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers

MONTHS_PER_QUARTER = 3


def limits(  # noqa: PLR0913, PLR0917 - as many things bear on them
    columns: Sequence[Column],
    scenarios: Scenarios,
    floors: Floats,
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
    periods: Integers,
) -> tuple[Limit, ...]:
    """All limits of the policy over the columns.

    Args:
      columns: What may be bought (J).
      scenarios: Demand.
      floors: Capacity to buy for inference (M, P), of ``inference_floors``.
      portfolio: What is held already.
      policy: The organisation's policy.
      periods: First hour of each period and the horizon's end (M + 1).

    Raises:
      UsageError: The ladder allows no purchase in as few quarters as purchases may start in.
    """
    found = list(_inference(columns, scenarios.pools, floors, periods))
    found += _without_capacity(columns, scenarios, portfolio, policy, periods)
    if policy.power_cap_watts is not None:
        watts = [one.offer.power_watts_per_gpu * policy.power_usage_effectiveness for one in columns]
        found.append(_at_most("power of owned GPUs", watts, policy.power_cap_watts, "watts"))
    if policy.budget_micros is not None:
        hours = int(periods[-1])
        spent = [_spent_within(one, hours) for one in columns]
        found.append(
            _at_most("money committed within the horizon", spent, policy.budget_micros / MICROS_PER_UNIT, "money")
        )
    if policy.exposure_micros is not None:
        found += _exposure(columns, scenarios, portfolio, policy.exposure_micros / MICROS_PER_UNIT)
    if policy.ladder_ratio is not None:
        found += _ladder(columns, policy.ladder_ratio)
    return tuple(found)


def _at_most(name: str, weights: Sequence[float] | Floats, high: float, unit: str) -> Limit:
    return Limit(name=name, weights=np.array(weights, dtype=np.float64), low=-np.inf, high=high, unit=unit)


def inference_floors(
    scenarios: Scenarios, pools: Sequence[Pool], portfolio: Sequence[Commitment], policy: PlanPolicy, periods: Integers
) -> Floats:
    """GPUs to buy so that inference fits on capacity held ready, by period and pool (M, P); 0 where none is needed.

    Capacity held ready is to be at least the quantile of inference demand, plus spare nodes.

    Args:
      scenarios: Demand.
      pools: What is known of each pool.
      portfolio: What is held already.
      policy: The availability asked for, and the spare nodes.
      periods: First hour of each period and the horizon's end (M + 1).
    """
    floors = np.zeros((len(periods) - 1, len(scenarios.pools)))
    wanted = scenarios.gpus.get("inference")
    if policy.inference_availability_ratio is None or wanted is None:
        return floors
    node_gpus = {pool.name: pool.node_gpus for pool in pools}
    for number, (start, end) in enumerate(pairwise(periods.tolist())):
        for place, name in enumerate(scenarios.pools):
            hours = wanted[:, start:end, place]
            if not hours.any():
                continue
            needed = _quantile(hours, scenarios.probability, policy.inference_availability_ratio)
            needed += policy.inference_spare_nodes * node_gpus[name]
            ready = sum(_serving(one, name, scenarios, start) for one in portfolio if one.has_capacity)
            floors[number, place] = max(0.0, needed - ready)
    return floors


def _inference(columns: Sequence[Column], names: Sequence[str], floors: Floats, periods: Integers) -> Iterator[Limit]:
    """For each pool and period in which capacity must be held ready: what is bought of it."""
    for number, (start, end) in enumerate(pairwise(periods.tolist())):
        for place, name in enumerate(names):
            if not floors[number, place]:
                continue
            weights = [
                float(
                    one.offer.has_capacity
                    and not one.in_budget
                    and one.pools == (name,)
                    and one.supply_hour <= start < one.end_hour
                )
                for one in columns
            ]
            yield Limit(
                name=f"capacity held ready for inference in {name}, hours {start:,} to {end:,}",
                weights=np.array(weights),
                low=float(floors[number, place]),
                high=np.inf,
                unit="GPUs",
            )


def _without_capacity(
    columns: Sequence[Column],
    scenarios: Scenarios,
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
    periods: Integers,
) -> Iterator[Limit]:
    """Of GPUs that only have a price (regional reservations, committed use), no more than can be had on demand."""
    for start in periods[:-1].tolist():
        for name, most in policy.on_demand_gpus.items():
            weights = [
                float(
                    not one.offer.has_capacity
                    and not one.in_budget
                    and one.pools == (name,)
                    and one.supply_hour <= start < one.end_hour
                )
                for one in columns
            ]
            if any(weights):
                held = sum(_serving(one, name, scenarios, start) for one in portfolio if not one.has_capacity)
                yield _at_most(
                    f"GPUs of {name} that hold no capacity, of those that can be had on demand, from hour {start:,}",
                    weights,
                    max(0.0, most - held),
                    "GPUs",
                )


def _quantile(hours: Floats, probability: Floats, ratio: float) -> float:
    """Least number of GPUs that is enough in at least ``ratio`` of the hours, scenarios (S, T) weighted."""
    weights = np.broadcast_to(probability[:, None], hours.shape).ravel()
    values = hours.ravel()
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reached, ratio - 1e-12)), len(values) - 1)])


def _serving(held: Commitment, pool: str, scenarios: Scenarios, hour: int) -> int:
    """GPUs that a commitment covers for a pool alone in an hour."""
    seconds = hour * SECONDS_PER_HOUR
    start, end = ((one - scenarios.start_at).total_seconds() for one in (held.starts_at, held.ends_at))
    return held.gpus or 0 if held.pools == (pool,) and start <= seconds < end else 0


def _spent_within(column: Column, hours: int) -> float:
    """Undiscounted money of one unit that falls into the horizon: what is paid upfront falls due at once."""
    return column.upfront + column.recurring * (min(column.end_hour, hours) - column.supply_hour)


def _exposure(
    columns: Sequence[Column], scenarios: Scenarios, portfolio: Sequence[Commitment], high: float
) -> Iterator[Limit]:
    """At each start: what is still owed on everything bought until then; nothing new where what is held owes too much."""
    for start in sorted({one.start_hour for one in columns}):
        owed = sum(_owed(one, scenarios, start) for one in portfolio)
        weights = [_still_owed(one, start) if one.start_hour <= start else 0.0 for one in columns]
        yield _at_most(f"money still owed on commitments in hour {start:,}", weights, max(0.0, high - owed), "money")


def _still_owed(column: Column, hour: int) -> float:
    if column.offer.instrument is Instrument.OWNED:
        return 0.0  # bought outright: nothing is owed
    return column.recurring * max(0, column.end_hour - max(hour, column.supply_hour))


def _owed(held: Commitment, scenarios: Scenarios, hour: int) -> float:
    start, end = (
        (one - scenarios.start_at).total_seconds() / SECONDS_PER_HOUR for one in (held.starts_at, held.ends_at)
    )
    left = max(0.0, end - max(hour, start))
    return recurring_cost(held) * left


def _ladder(columns: Sequence[Column], ratio: float) -> Iterator[Limit]:
    """In each quarter, at most a part of all money committed may start."""
    if not columns:
        return
    quarters = [one.start_hour // (HOURS_PER_MONTH * MONTHS_PER_QUARTER) for one in columns]
    least = 1 / len(set(quarters))
    if ratio < least - 1e-9:
        raise UsageError(
            f"ladder_ratio: found {ratio:g}, expected {least:.3g} or more: purchases may start in {len(set(quarters))} "
            "quarters of start_months, so that below it nothing could be bought; add start_months, or raise it"
        )
    for quarter in sorted(set(quarters)):
        weights = [one.committed * ((own == quarter) - ratio) for one, own in zip(columns, quarters, strict=True)]
        yield _at_most(f"purchases that start in quarter {quarter + 1}", weights, 0.0, "money")


def recent_limits(  # noqa: PLR0913, PLR0917 - as many things bear on them
    columns: Sequence[Column],
    names: Sequence[str],
    committed: tuple[Floats, Floats, Floats],
    periods: Integers,
    floors: Floats,
    recent_gpus: Mapping[str, float],
) -> Iterator[Limit]:
    """In no period is more committed than was wanted lately: a history that has ended does not bind the future.

    Args:
      columns: What may be bought (J).
      names: Pools (P).
      committed: GPUs held in each period (M, P); budgets held in each period (M, K); what a GPU-hour consumes of a budget
        (K, P), inf where it does not reach.
      periods: First hour of each period and the horizon's end (M + 1).
      floors: GPUs that may be bought all the same (M, P): for inference, in whole nodes.
      recent_gpus: Most GPUs wanted lately by pool. A budget is capped where all the pools that it reaches are named, with
        the GPUs held and bought for them beside it, at its rates: a reservation and a plan do not both get the same usage.
    """
    held, held_budget, budget_rate = committed
    reached = np.isfinite(budget_rate)
    rates = np.where(reached, budget_rate, 0)
    peaks = np.array([recent_gpus.get(name, np.inf) for name in names])
    allowed = np.maximum(np.maximum(peaks - held, 0), floors)
    of_pool = np.array([[not one.in_budget and one.pools == (name,) for one in columns] for name in names], dtype=bool)
    for number, start in enumerate(periods[:-1].tolist()):
        serving = np.array([one.supply_hour <= start < one.end_hour for one in columns], dtype=bool)
        gpus = (serving & of_pool).astype(np.float64)  # P, J
        for place, name in enumerate(names):
            if np.isfinite(peaks[place]) and gpus[place].any():
                high = float(allowed[number, place])
                yield _at_most(f"GPUs of {name} wanted lately, from hour {start:,}", gpus[place], high, "GPUs")
        for budget, pools in enumerate(reached):
            own = _reached(names, pools)
            money = serving & np.array([one.in_budget and set(one.pools) <= own for one in columns], dtype=bool)
            left = np.where(pools, allowed[number], 0)
            within = held_budget[number, (reached <= pools).all(axis=1)].sum()
            weights = money + rates[budget] @ gpus
            if np.isfinite(left).all() and weights.any() and (money.any() or within):
                yield _at_most(
                    f"commitments that demand wanted lately could use together, from hour {start:,}",
                    weights,
                    max(float(rates[budget] @ left - within), float(rates[budget] @ floors[number])),
                    "money",
                )


def _reached(names: Sequence[str], is_reached: NDArray[np.bool_]) -> set[str]:
    return {name for name, one in zip(names, is_reached.tolist(), strict=True) if one}


def tightened(found: Sequence[Limit], column_count: int) -> tuple[tuple[Limit, ...], Floats]:
    """Limits without those that a tighter one implies, and the most units of each column where one limits it alone (J).

    Periods that differ only in the other columns give the same limit again and again.
    """
    kept: dict[tuple[bytes, bool], Limit] = {}
    for one in found:
        is_most = np.isfinite(one.high)
        name = (one.weights.tobytes(), bool(is_most))
        other = kept.get(name)
        if other is None or (one.high < other.high if is_most else one.low > other.low):
            kept[name] = one
    high = np.full(column_count, np.inf)
    shared = []
    # Beside a floor a cap stays a limit with its name: if the floor cannot be reached, the message tells what holds it back.
    has_floor = any(one.low > 0 for one in kept.values())
    for one in kept.values():
        bound = np.flatnonzero(one.weights)
        if (
            not has_floor
            and len(bound) == 1
            and np.isfinite(one.high)
            and not np.isfinite(one.low)
            and one.weights[bound[0]] > 0
        ):
            high[bound[0]] = min(high[bound[0]], one.high / one.weights[bound[0]])
        elif np.isfinite(one.high) or one.low > 0 or (one.weights < 0).any():
            shared.append(one)
    return tuple(shared), high
