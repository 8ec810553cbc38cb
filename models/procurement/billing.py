"""The billing simulator: what hourly usage costs under commitments, by the vendors' own order, in whole micros.

It never optimises. Commitments that lie idle in an hour are lost in that hour and are shown; what no commitment covers is
billed on demand. Quantities are whole millionths of a unit-hour (an instance, or a GPU, for one hour), so a plan that runs
out within an instance covers a part of it. Each step of the order is one operation over all hours.

Hours are hours of UTC: a local day of 23 or 25 hours has as many. Does not belong here: the order itself
(``billing_order``), and adding up what comes out (``bill``).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError
from models.procurement.bill import MILLION, Bill, Cover, rounded_up
from models.procurement.billing_order import application_order
from models.procurement.billing_usage import hourly, with_idle
from models.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import polars as pl

    from models.procurement.billing_order import BilledCommitment, Pair
    from models.procurement.billing_usage import CapacityReservation, HourlyUsage
    from models.procurement.problem import Integers

_LARGEST = 2**62


def simulate(
    usage: pl.DataFrame,
    commitments: Sequence[BilledCommitment],
    *,
    start_at: datetime,
    hours: int,
    reservations: Sequence[CapacityReservation] = (),
) -> Bill:
    """Bill the usage of ``hours`` hours from ``start_at`` under the commitments.

    Args:
      usage: Usage, with the columns of ``USAGE_SCHEMA``.
      commitments: All that is held, queued or expired; each counts in the hours of its term.
      start_at: First hour, UTC.
      hours: Number of hours; commitments cost in all of them, with usage or without.
      reservations: Capacity held ready on demand.

    Raises:
      UsageError: The columns are not as expected, a row lies outside the hours or not on a whole hour, usage is negative,
        an hour has two prices for one kind, or usage that nothing covers has no price on demand.
    """
    return bill_hours(with_idle(hourly(usage, start_at, hours), reservations, start_at), commitments, start_at=start_at)


def bill_hours(usage: HourlyUsage, commitments: Sequence[BilledCommitment], *, start_at: datetime) -> Bill:
    """Bill usage that is given as arrays; otherwise as ``simulate``.

    Raises:
      UsageError: Two commitments have one name, an amount is too large to count exactly, or usage that nothing covers has
        no price on demand.
    """
    held = tuple(sorted(commitments, key=lambda one: one.commitment_id))
    names = [one.commitment_id for one in held]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"commitments: found {', '.join(twice)} more than once, expected each name once")
    _check_size(usage, held)
    active = _active(held, start_at, len(usage.millionths))
    covers, left = _apply(usage, held, active)
    unpriced = (left > 0) & ~usage.has_price
    if unpriced.any():
        hour, place = (int(where[0]) for where in np.nonzero(unpriced))
        kind = usage.kinds[place]
        raise UsageError(
            f"{kind.resource} {kind.zone or kind.region}: {left[hour, place] / MILLION:,.6f} unit-hours at "
            f"{start_at + timedelta(hours=hour)} are covered by no commitment and have no price on demand; "
            "take them out of the usage, or add the commitment that served them"
        )
    return Bill(start_at=start_at, usage=usage, commitments=held, active=active, covers=covers, left_millionths=left)


def _active(held: Sequence[BilledCommitment], start_at: datetime, hours: int) -> Integers:
    """1 in the hours that begin within each commitment's term (T, K), else 0."""
    begins = np.arange(hours) * SECONDS_PER_HOUR
    ends = [tuple((at - start_at).total_seconds() for at in (one.starts_at, one.ends_at)) for one in held]
    columns = [((begins >= first) & (begins < last)).astype(np.int64) for first, last in ends]
    return np.stack(columns, axis=1) if columns else np.zeros((hours, 0), dtype=np.int64)


def _apply(
    usage: HourlyUsage, held: Sequence[BilledCommitment], active: Integers
) -> tuple[dict[tuple[int, int], Cover], Integers]:
    """What each commitment covers of each kind, and what is left of the usage (T, U)."""
    full = [one.hourly_commitment_micros if one.is_money else _points(one) for one in held]
    room = active * np.array(full, dtype=np.int64)
    left = usage.millionths.copy()
    covers: dict[tuple[int, int], Cover] = {}
    for rows, prices in _stretches(usage):
        for pair in application_order(held, usage.kinds, prices):
            wanted, offered = left[rows, pair.kind], room[rows, pair.commitment]
            if wanted.any() and offered.any():
                taken, used = _take(wanted, offered, pair, is_money=held[pair.commitment].is_money)
                left[rows, pair.kind] -= taken
                room[rows, pair.commitment] -= used
                cover = covers.setdefault((pair.commitment, pair.kind), Cover.none(len(left)))
                cover.millionths[rows], cover.used[rows] = taken, used
                cover.rate[rows] = pair.rate
    return dict(sorted(covers.items())), left


def _points(held: BilledCommitment) -> int:
    return (held.units_millionths or 0) * held.unit_points


def _take(wanted: Integers, offered: Integers, pair: Pair, *, is_money: bool) -> tuple[Integers, Integers]:
    """Millionths covered, and what that uses of the commitment: micros, or millionths of points.

    Where a commitment runs out within a unit-hour, what it covers is rounded down to a millionth and all of it is used.
    """
    if pair.rate == 0:
        fits = np.where(offered > 0, wanted, 0)
    else:
        fits = offered * MILLION // pair.rate if is_money else offered // pair.rate
    taken = np.minimum(wanted, fits)
    used = rounded_up(taken, pair.rate) if is_money else taken * pair.rate
    return taken, np.where((wanted > fits) & (taken > 0), offered, used)


def _stretches(usage: HourlyUsage) -> list[tuple[Integers, list[int | None]]]:
    """The hours that share all on-demand prices, and those prices: the order is the same within each."""
    known = np.where(usage.has_price, usage.on_demand_micros, -1)
    if not known.size:
        return []
    if (known == known[:1]).all():
        return [(np.arange(len(known)), [None if price < 0 else int(price) for price in known[0]])]
    prices, stretch = np.unique(known, axis=0, return_inverse=True)
    return [
        (np.flatnonzero(stretch == place), [None if price < 0 else int(price) for price in row])
        for place, row in enumerate(prices)
    ]


def _check_size(usage: HourlyUsage, held: Sequence[BilledCommitment]) -> None:
    """Refuse amounts whose products do not fit 64 bits; wrong silently otherwise."""
    if usage.millionths.size and (usage.millionths.min() < 0 or usage.on_demand_micros.min() < 0):
        raise UsageError("usage: found negative hours or prices, expected 0 or more")
    most = int(usage.millionths.max(initial=0))
    dearest = int(usage.on_demand_micros.max(initial=0))
    for one in held:
        rate = max(one.rates.values(), default=0)
        room = (one.hourly_commitment_micros or 0) * MILLION if one.is_money else _points(one)
        products = (
            room,
            most * rate // (MILLION if one.is_money else 1),
            _points(one) * one.micros_per_unit_hour // MILLION,
        )
        if max(products) >= _LARGEST:
            raise UsageError(f"{one.commitment_id}: too large to count in whole micros; are its amounts in micros?")
    if most * dearest // MILLION >= _LARGEST:
        raise UsageError(
            f"usage: found a price of {dearest:,} micros, too large to count; are prices in micros per hour?"
        )
