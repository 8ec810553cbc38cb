"""What a plan would be billed: the vendors' order of applying commitments set beside what the solver hoped for.

A solver gives each hour's commitments to whatever usage saves most over all; a vendor follows its order. Spot and
shortfalls are taken out as the plan dispatches them; the rest is billed hour by hour, and discounted as the plan is, so
that the difference is the order's alone. Does not belong here: the order (``billing_order``).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError
from models.prices import HOURS_PER_MONTH, Instrument
from models.procurement.bill import MILLION
from models.procurement.billing import bill_hours
from models.procurement.billing_order import BilledCommitment, Kind
from models.procurement.billing_usage import HourlyUsage
from models.procurement.recourse import CHANNELS, chunks, groups, rows_of, serve, supply
from models.units import MICROS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from models.demand import Scenarios
    from models.prices import Commitment, Pool
    from models.procurement.bill import Bill
    from models.procurement.columns import Column
    from models.procurement.compile import Compiled
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Problem


def existing_commitment(held: Commitment) -> BilledCommitment:
    """A commitment of the portfolio as the simulator reads it: one unit is a GPU, in whatever pool it serves.

    One in GPUs recurs to the dearest rate of its pools, as the plan counts it. A savings plan costs what it commits each
    hour; what was paid of it upfront is a part of that.

    Raises:
      UsageError: A pool that it reaches has no rate, or it is neither or both in GPUs and in money.
    """
    lacking = [name for name in held.pools if name not in held.rate_micros_per_gpu_hour]
    if lacking:
        raise UsageError(f"{held.commitment_id}: no rate for the pools {', '.join(lacking)} that it reaches")
    rates = {name: held.rate_micros_per_gpu_hour[name] for name in held.pools}
    in_money = held.gpus is None
    return BilledCommitment(
        commitment_id=held.commitment_id,
        provider=held.provider,
        instrument=held.instrument,
        scope=held.scope,
        starts_at=held.starts_at,
        ends_at=held.ends_at,
        rates=rates if in_money else dict.fromkeys(rates, 1),
        units_millionths=None if held.gpus is None else held.gpus * MILLION,
        micros_per_unit_hour=0 if in_money else max(rates.values(), default=0),
        hourly_commitment_micros=held.hourly_commitment_micros,
        upfront_micros=held.upfront_micros,
    )


def purchase(column: Column, units: float, *, start_at: datetime, policy: PlanPolicy) -> BilledCommitment:
    """What a plan buys, as the simulator reads it.

    GPUs are rounded to millionths and money to micros, so that the relaxed plan can be priced as well as whole nodes. An
    owned GPU costs its price less its value at the end, spread over its life, and its power, fees and running cost.

    Args:
      column: What is bought.
      units: GPUs, or units of the currency an hour, as the solver counts them.
      start_at: The plan's first hour, UTC.
      policy: Its policy: power and energy of owned GPUs.
    """
    offer = column.offer
    rates = {name: offer.micros_per_gpu_hour[name] for name in column.pools}
    in_money = offer.instrument is Instrument.SAVINGS_PLAN
    amount = round(units * MILLION)
    upfront = offer.upfront_micros_per_gpu - offer.residual_micros_per_gpu
    watts = offer.power_watts_per_gpu * policy.power_usage_effectiveness
    running = offer.monthly_fee_micros_per_gpu / HOURS_PER_MONTH + watts / 1_000 * policy.energy_micros_per_kwh
    return BilledCommitment(
        commitment_id=f"{offer.offer_id} from hour {column.start_hour}",
        provider=offer.provider,
        instrument=offer.instrument,
        scope=offer.scope,
        starts_at=start_at + timedelta(hours=column.supply_hour),
        ends_at=start_at + timedelta(hours=column.end_hour),
        rates=rates if in_money else dict.fromkeys(rates, 1),
        units_millionths=None if in_money else amount,
        micros_per_unit_hour=0 if in_money else max(rates.values()) + round(running),
        hourly_commitment_micros=amount if in_money else None,
        upfront_micros=0 if in_money else upfront * amount // MILLION,
    )


def price_hours(
    usage_gpus: NDArray[np.generic],
    commitments: Sequence[BilledCommitment],
    pools: Sequence[Pool],
    on_demand_micros: Sequence[int | None],
    *,
    start_at: datetime,
) -> Bill:
    """Bill hourly GPUs of pools under commitments; a pool's provider says whose order applies.

    Args:
      usage_gpus: GPUs used in each hour (T, P), without those on spot; fractions are rounded to millionths of a GPU.
      commitments: Existing ones and purchases; none that is not of these hours does harm.
      pools: The pools (P).
      on_demand_micros: Micros on demand of one GPU-hour of each pool (P); None where there is none.
      start_at: First hour, UTC.

    Raises:
      UsageError: The shapes do not fit, usage is negative or not a number, or usage that nothing covers has no price.
    """
    expected = (len(pools), len(on_demand_micros))
    if usage_gpus.ndim != 2 or expected != (usage_gpus.shape[1],) * 2:
        raise UsageError(
            f"usage: found the shape {usage_gpus.shape} for {expected[0]} pools and {expected[1]} prices, expected (hours, pools)"
        )
    if not np.isfinite(usage_gpus.astype(np.float64)).all():
        raise UsageError("usage: found hours that are not a number, expected GPUs of 0 or more")
    kinds = tuple(Kind(resource=pool.name, region=pool.region, zone=pool.zone) for pool in pools)
    has_price = np.array([price is not None for price in on_demand_micros], dtype=np.bool_)
    prices = np.array([price or 0 for price in on_demand_micros], dtype=np.int64)
    millionths = np.rint(usage_gpus.astype(np.float64) * MILLION).astype(np.int64)
    shape = millionths.shape
    usage = HourlyUsage(kinds, millionths, np.broadcast_to(prices, shape), np.broadcast_to(has_price, shape))
    return bill_hours(usage, commitments, start_at=start_at)


def billed_difference(  # noqa: PLR0913, PLR0917 - as many things bear on a bill
    compiled: Compiled,
    units: Floats,
    scenarios: Scenarios,
    pools: Sequence[Pool],
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
) -> float:
    """Expected discounted money that the vendors' order costs more than the plan's own dispatch; negative: less.

    A pool that has no on-demand price goes without what the order takes from it, at the price of a shortfall.

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
    # Where there is no on-demand, what the order leaves uncovered goes without, at the price of that.
    on_demand = problem.on_demand_price[0, 0]
    otherwise = np.where(np.isfinite(on_demand), on_demand, problem.shortfall_price)
    prices = [round(price * MICROS_PER_UNIT) for price in otherwise.tolist()]
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
