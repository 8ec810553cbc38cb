"""Prices a plan by the vendors' own billing order, so that what the solver hoped for stands beside what would be billed.

A solver gives each hour's commitments to whatever usage saves most over all; a vendor follows its order. The difference is
in what is left on demand, so the hourly cost on demand comes back for the caller to discount as the plan does.

Does not belong here: the order (``billing_order``), and dispatching demand to spot (the caller takes that out first).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError
from models.prices import HOURS_PER_MONTH, Instrument
from models.procurement.bill import MILLION
from models.procurement.billing import bill_hours
from models.procurement.billing_order import BilledCommitment, Kind
from models.procurement.billing_usage import HourlyUsage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from models.prices import Commitment, Pool
    from models.procurement.bill import Bill
    from models.procurement.compile import Column
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """What the vendors would bill, undiscounted, in S scenarios of T hours. What was paid upfront is spread over its term.

    Attributes:
      commitment_micros: Cost of all commitments over the hours, used or not: the same in each scenario.
      unused_micros: What of it was not used, in each scenario (S).
      on_demand_micros: What nothing covers, by hour (S, T).
      total_micros: Everything, in each scenario (S).
      expected_micros: The mean of ``total_micros`` by probability, to the nearest micro.
    """

    commitment_micros: int
    unused_micros: tuple[int, ...]
    on_demand_micros: Integers
    total_micros: tuple[int, ...]
    expected_micros: int


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


def reprice(bills: Iterable[Bill], probability: Floats) -> Repriced:
    """Sum up one bill a scenario, all under the same commitments; one at a time, where ``bills`` is a generator.

    Args:
      bills: Bill of each scenario (S), as ``price_hours`` makes them.
      probability: Of each scenario (S).

    Raises:
      UsageError: There are not as many bills as probabilities, or their commitments differ in cost.
    """
    committed, unused, on_demand, total = set(), [], [], []
    for bill in bills:
        committed.add(int(bill.commitment_micros.sum()))
        unused.append(int(bill.unused_micros.sum()))
        on_demand.append(bill.on_demand_micros.sum(axis=1))
        total.append(bill.total_micros)
    if len(total) != len(probability) or len(committed) != 1:
        raise UsageError(
            f"scenarios: found {len(total)} bills with {len(committed)} costs of the commitments for {len(probability)} "
            "probabilities, expected one bill each under the same commitments"
        )
    return Repriced(
        commitment_micros=committed.pop(),
        unused_micros=tuple(unused),
        on_demand_micros=np.array(on_demand),
        total_micros=tuple(total),
        expected_micros=round(float(probability @ np.array(total, dtype=np.float64))),
    )
