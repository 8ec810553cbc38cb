"""Usage as the billing simulator reads it: hours and kinds, and capacity that is held ready and not used.

Does not belong here: what covers the usage (``billing_order``), and what it costs (``billing``, ``bill``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.errors import UsageError
from models.procurement.billing_order import Kind
from models.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from models.procurement.problem import Integers

USAGE_SCHEMA = pl.Schema(
    {
        "hour_at": pl.Datetime("us", "UTC"),
        "account": pl.String(),
        "resource": pl.String(),
        "region": pl.String(),
        "zone": pl.String(),
        "usage_millionths": pl.Int64(),
        "on_demand_micros": pl.Int64(),
    }
)
"""Columns of a frame of usage. ``usage_millionths``: millionths of unit-hours used in the hour that starts at
``hour_at``; rows of one hour and kind add up. ``on_demand_micros``: micros on demand for one unit-hour, the list price;
NULL where the vendor sells none on demand. Usage on spot does not belong in it: no commitment covers it."""

_KIND = ["account", "resource", "region", "zone"]
_HOUR = SECONDS_PER_HOUR * 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservation:
    """Capacity held ready at the price on demand, used or not (AWS ODCR, Azure and Google reservations).

    It gives capacity, no discount. What of it is not used in an hour is billed as if it ran, so regional reservations and
    savings plans apply to it, after running usage; zonal ones do not (EC2 user guide, capacity-reservations-pricing-billing).

    Attributes:
      kind: Account, resource, region and zone that it holds ready.
      units_millionths: Millionths of units held ready in each hour.
      on_demand_micros: Micros on demand for one unit-hour.
      starts_at: First instant; it counts in the hours that begin within.
      ends_at: End, exclusive.
    """

    kind: Kind
    units_millionths: int
    on_demand_micros: int
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class HourlyUsage:
    """Usage as arrays over T hours and U kinds.

    Attributes:
      kinds: Kinds of usage, each once (U).
      millionths: Millionths of unit-hours (T, U).
      on_demand_micros: Price on demand of one unit-hour (T, U); 0 where there is none.
      has_price: Whether there is one (T, U).
    """

    kinds: tuple[Kind, ...]
    millionths: Integers
    on_demand_micros: Integers
    has_price: NDArray[np.bool_]


def hourly(usage: pl.DataFrame, start_at: datetime, hours: int) -> HourlyUsage:
    """A frame of usage as arrays over ``hours`` hours. A price holds until its kind's next one, and before its first one.

    Raises:
      UsageError: The columns are not as expected, a row lies outside the hours or not on a whole hour, usage is negative,
        or an hour has two prices for one kind.
    """
    if usage.schema != USAGE_SCHEMA:
        raise UsageError(f"usage: found the columns {dict(usage.schema)}, expected {dict(USAGE_SCHEMA)}")
    since = (pl.col("hour_at") - start_at).dt.total_microseconds()
    rows = usage.with_columns(since.alias("since"))
    off = rows.filter((pl.col("since") % _HOUR != 0) | (pl.col("since") < 0) | (pl.col("since") >= hours * _HOUR))
    if off.height:
        raise UsageError(
            f"usage: found the hour {off['hour_at'][0]}, expected one of the {hours} whole hours from {start_at}"
        )
    cells = (
        rows.group_by("since", *_KIND)
        .agg(
            pl.col("usage_millionths").sum(),
            pl.col("usage_millionths").min().alias("least"),
            pl.col("on_demand_micros").first(),
            pl.col("on_demand_micros").n_unique().alias("prices"),
        )
        .sort(*_KIND, "since")
    )
    several = cells.filter(pl.col("prices") > 1)
    if several.height:
        raise UsageError(f"usage: found several prices of {several['resource'][0]} in one hour, expected one")
    if cells.filter(pl.col("least") < 0).height:
        raise UsageError("usage: found negative hours, expected 0 or more")
    kinds = tuple(Kind(**row) for row in cells.select(_KIND).unique(maintain_order=True).iter_rows(named=True))
    places = cells.select(pl.struct(_KIND).rle_id()).to_series().to_numpy()
    at = (cells["since"] // _HOUR).to_numpy()
    shape = (hours, len(kinds))
    millionths = np.zeros(shape, dtype=np.int64)
    millionths[at, places] = cells["usage_millionths"].to_numpy()
    prices = np.full(shape, -2, dtype=np.int64)
    prices[at, places] = cells["on_demand_micros"].fill_null(-1).to_numpy()
    filled = (
        pl.DataFrame(prices, orient="row")
        .with_columns(pl.all().replace(-2, None).forward_fill().backward_fill())
        .to_numpy()
    )
    has_price = filled >= 0
    return HourlyUsage(kinds, millionths, np.where(has_price, filled, 0).reshape(shape), has_price.reshape(shape))


def with_idle(usage: HourlyUsage, reservations: Sequence[CapacityReservation], start_at: datetime) -> HourlyUsage:
    """Usage with what reservations hold ready beyond it, as kinds of its own."""
    hours = len(usage.millionths)
    columns: dict[Kind, tuple[Integers, Integers]] = {}
    begins = np.arange(hours) * SECONDS_PER_HOUR
    running = {kind: usage.millionths[:, place] for place, kind in enumerate(usage.kinds)}
    for one in sorted(reservations, key=lambda found: (found.kind, found.starts_at)):
        first, last = ((at - start_at).total_seconds() for at in (one.starts_at, one.ends_at))
        ready = np.where((begins >= first) & (begins < last), one.units_millionths, 0)
        idle = Kind(**{name: getattr(one.kind, name) for name in _KIND}, is_idle=True)
        before, _ = columns.get(idle, (np.zeros(hours, dtype=np.int64), None))
        columns[idle] = (before + ready, np.full(hours, one.on_demand_micros))
    kinds, parts = list(usage.kinds), [usage.millionths]
    prices, known = [usage.on_demand_micros], [usage.has_price]
    for idle, (ready, price) in columns.items():
        used = running.get(Kind(**{name: getattr(idle, name) for name in _KIND}), np.zeros(hours, dtype=np.int64))
        kinds.append(idle)
        parts.append(np.maximum(ready - used, 0)[:, None])
        prices.append(price[:, None])
        known.append(np.ones((hours, 1), dtype=bool))
    return HourlyUsage(tuple(kinds), np.hstack(parts), np.hstack(prices), np.hstack(known))
