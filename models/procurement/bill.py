"""A bill: who covered what in each hour, what that costs, what lay idle, and the sums that people compare.

All money is in whole micros. A commitment's cost in an hour is split over what it covered and what it did not use, and the
list price of usage over the parts that paid for it, so that the parts add up to the whole: each part is the difference of
two rounded running totals (the largest remainder, in the order of the parts).

Does not belong here: deciding who covers what (``billing``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from models.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from polars.datatypes import DataType, DataTypeClass

    from models.procurement.billing_order import BilledCommitment
    from models.procurement.billing_usage import HourlyUsage
    from models.procurement.problem import Integers

MILLION = 1_000_000
_LARGEST = 2**62


def micros_of(millionths: Integers, rate: Integers | int) -> Integers:
    """Micros of millionths of units at a rate in micros, to the nearest, halves up; products stay within 64 bits."""
    whole, rest = np.divmod(millionths, MILLION)
    return np.asarray(whole * rate + (rest * rate + MILLION // 2) // MILLION)


def rounded_up(millionths: Integers, rate: int) -> Integers:
    """Micros of millionths of units at a rate in micros, rounded up."""
    whole, rest = np.divmod(millionths, MILLION)
    return np.asarray(whole * rate - (-(rest * rate) // MILLION))


@dataclass(frozen=True, slots=True)
class Cover:
    """What one commitment covers of one kind of usage.

    Attributes:
      millionths: Millionths of unit-hours covered (T).
      used: What of the commitment that takes (T): micros of one in money, millionths of points of one in units.
      rate: Rate between the two (T): micros, or points, for one unit-hour.
    """

    millionths: Integers
    used: Integers
    rate: Integers

    @classmethod
    def none(cls, hours: int) -> Cover:
        """Nothing covered in any hour."""
        return cls(*(np.zeros(hours, dtype=np.int64) for _ in fields(cls)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A bill's sums, in the terms of Azure's benefit recommendations; None where the list price is unknown.

    Attributes:
      average_utilization_percentage: What was used of the commitments, of what they cost; None without commitments.
      benefit_cost_micros: Cost of the commitments, used or not; what was paid upfront counts in the hours it was paid for.
      commitment_amount_micros: The same for an hour, on average over the bill's hours, rounded to the nearest.
      cost_without_benefit_micros: The usage at list prices.
      coverage_percentage: List price of the usage that commitments covered, of all usage; None without usage.
      overage_cost_micros: What no commitment covered, at the price on demand.
      savings_amount_micros: ``cost_without_benefit`` less ``total_cost``.
      savings_percentage: The same, of ``cost_without_benefit``.
      total_cost_micros: ``benefit_cost`` and ``overage_cost``.
      wastage_cost_micros: What of the commitments' cost was not used.
      effective_savings_ratio: (list - effective) / list: the Effective Savings Rate.
    """

    average_utilization_percentage: float | None
    benefit_cost_micros: int
    commitment_amount_micros: int
    cost_without_benefit_micros: int | None
    coverage_percentage: float | None
    overage_cost_micros: int
    savings_amount_micros: int | None
    savings_percentage: float | None
    total_cost_micros: int
    wastage_cost_micros: int
    effective_savings_ratio: float | None


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What usage costs. T hours, U kinds of usage, K commitments.

    Attributes:
      start_at: First hour, UTC.
      usage: The usage.
      commitments: By name (K).
      active: 1 in the hours in which each commitment counts (T, K).
      covers: By commitment and kind, as places in their lists.
      left_millionths: Millionths of unit-hours that nothing covered (T, U).
    """

    start_at: datetime
    usage: HourlyUsage
    commitments: tuple[BilledCommitment, ...]
    active: Integers
    covers: Mapping[tuple[int, int], Cover]
    left_millionths: Integers

    @cached_property
    def upfront_micros(self) -> Integers:
        """What was paid upfront, spread over the hours of the term (T, K); the hours of a whole term add up to it."""
        return self._by_commitment([self._spread(one) for one in self.commitments])

    @cached_property
    def commitment_micros(self) -> Integers:
        """Cost of each commitment in each hour, used or not (T, K)."""
        recurring = [
            one.hourly_commitment_micros
            if one.hourly_commitment_micros is not None
            else ((one.units_millionths or 0) * one.micros_per_unit_hour + MILLION // 2) // MILLION
            for one in self.commitments
        ]
        in_units = np.array([not one.is_money for one in self.commitments], dtype=np.int64)
        return self.active * np.array(recurring, dtype=np.int64) + self.upfront_micros * in_units

    @cached_property
    def on_demand_micros(self) -> Integers:
        """Cost of what nothing covers (T, U)."""
        return micros_of(self.left_millionths, self.usage.on_demand_micros)

    @cached_property
    def list_micros(self) -> Integers:
        """All usage at list prices (T, U); 0 where ``usage.has_price`` is false, where it is unknown."""
        return micros_of(self.usage.millionths, self.usage.on_demand_micros)

    @cached_property
    def cover_micros(self) -> dict[tuple[int, int], tuple[Integers, Integers]]:
        """Cost, and list price, of what each commitment covers of each kind (T) each."""
        spent: dict[int, Integers] = {}
        paid = self.left_millionths.copy()
        found = {}
        for (place, kind), cover in self.covers.items():
            held, price = self.commitments[place], self.usage.on_demand_micros[:, kind]
            listed = micros_of(paid[:, kind] + cover.millionths, price) - micros_of(paid[:, kind], price)
            paid[:, kind] += cover.millionths
            if held.is_money:
                cost = cover.used
            else:
                before = spent.get(place, np.zeros_like(cover.used))
                spent[place] = before + cover.used
                cost = self._share(place, spent[place]) - self._share(place, before)
            found[place, kind] = cost, listed
        return found

    @cached_property
    def unused_micros(self) -> Integers:
        """Cost of what each commitment did not use (T, K)."""
        unused = self.commitment_micros.copy()
        for (place, _), (cost, _) in self.cover_micros.items():
            unused[:, place] -= cost
        return unused

    @property
    def total_micros(self) -> int:
        """Everything that is due for the hours, what was paid upfront for them included."""
        return int(self.commitment_micros.sum()) + int(self.on_demand_micros.sum())

    @property
    def hourly_micros(self) -> Integers:
        """The same by hour (T)."""
        return np.asarray(self.commitment_micros.sum(axis=1) + self.on_demand_micros.sum(axis=1))

    def lines(self) -> pl.DataFrame:
        """The bill's lines, by hour: what each commitment covers of each usage, the rest on demand, and what is unused.

        Columns: ``hour_at``; ``line`` (committed, on_demand, unused); ``commitment_id`` (NULL on demand); ``account``,
        ``resource``, ``region``, ``zone`` and ``is_idle`` of the usage (NULL on an unused line); ``quantity_millionths``
        of the usage; ``rate_micros`` for one unit-hour, with its share of what was paid upfront; ``cost_micros``;
        ``list_micros`` (NULL where no list price is known, or no usage).
        """
        nobody, nothing = len(self.commitments), len(self.usage.kinds)
        parts = [np.zeros((8, 0), dtype=np.int64)]
        for (place, kind), cover in self.covers.items():
            cost, listed = self.cover_micros[place, kind]
            parts.append(_part(0, place, kind, cover.millionths, self._rate(place, kind), cost, listed))
        for kind in range(nothing):
            cost, price = self.on_demand_micros[:, kind], self.usage.on_demand_micros[:, kind]
            parts.append(_part(1, nobody, kind, self.left_millionths[:, kind], price, cost, cost))
        for place in range(nobody):
            none, cost = np.zeros(len(self.active), dtype=np.int64), self.unused_micros[:, place]
            parts.append(_part(2, place, nothing, none, none, cost, none))
        rows = np.concatenate(parts, axis=1)
        return self._named(rows[:, np.argsort(rows[0], kind="stable")])

    def by_commitment(self) -> pl.DataFrame:
        """One row a commitment, with what it cost, what of it was used, and what it saved.

        Columns: ``commitment_id``; ``cost_micros`` = ``used_micros`` + ``unused_micros``, and also = ``recurring_micros``
        + ``upfront_micros``, the part paid upfront for these hours; ``cash_micros``, which recurs in these hours or is
        paid upfront in them; ``utilisation_ratio`` (NULL outside its term); ``covered_list_micros``, the list price of
        what it covered, and ``coverage_ratio``, its part of all usage's list price; ``savings_micros`` =
        ``covered_list_micros`` - ``cost_micros``. NULL where a list price is unknown.
        """
        listed = self._list_total()
        rows = []
        for place, held in enumerate(self.commitments):
            mine = [key for key in self.covers if key[0] == place]
            used = sum(int(self.covers[key].used.sum()) for key in mine)
            room = (
                (held.hourly_commitment_micros or 0)
                if held.is_money
                else (held.units_millionths or 0) * held.unit_points
            )
            room *= int(self.active[:, place].sum())
            cost, upfront = int(self.commitment_micros[:, place].sum()), int(self.upfront_micros[:, place].sum())
            unused = int(self.unused_micros[:, place].sum())
            is_known = all(self.usage.has_price[self.covers[key].millionths > 0, key[1]].all() for key in mine)
            covered = sum(int(self.cover_micros[key][1].sum()) for key in mine) if is_known else None
            starts = 0 <= (held.starts_at - self.start_at).total_seconds() < len(self.active) * SECONDS_PER_HOUR
            rows.append(
                {
                    "commitment_id": held.commitment_id,
                    "cost_micros": cost,
                    "recurring_micros": cost - upfront,
                    "upfront_micros": upfront,
                    "cash_micros": cost - upfront + held.upfront_micros * starts,
                    "used_micros": cost - unused,
                    "unused_micros": unused,
                    "utilisation_ratio": used / room if room else None,
                    "covered_list_micros": covered,
                    "coverage_ratio": covered / listed if covered is not None and listed else None,
                    "savings_micros": None if covered is None else covered - cost,
                }
            )
        return pl.DataFrame(rows, schema=_BY_COMMITMENT)

    def summary(self) -> Summary:
        """The bill's sums."""
        benefit, overage = int(self.commitment_micros.sum()), int(self.on_demand_micros.sum())
        wasted, listed = int(self.unused_micros.sum()), self._list_total()
        saved = None if listed is None else listed - benefit - overage
        return Summary(
            average_utilization_percentage=100 * (benefit - wasted) / benefit if benefit else None,
            benefit_cost_micros=benefit,
            commitment_amount_micros=round(Fraction(benefit, len(self.active))) if len(self.active) else 0,
            cost_without_benefit_micros=listed,
            coverage_percentage=100 * (listed - overage) / listed if listed else None,
            overage_cost_micros=overage,
            savings_amount_micros=saved,
            savings_percentage=100 * saved / listed if listed and saved is not None else None,
            total_cost_micros=benefit + overage,
            wastage_cost_micros=wasted,
            effective_savings_ratio=saved / listed if listed and saved is not None else None,
        )

    def _list_total(self) -> int | None:
        is_known = bool((self.usage.has_price | (self.usage.millionths == 0)).all())
        return int(self.list_micros.sum()) if is_known else None

    def _by_commitment(self, columns: list[Integers]) -> Integers:
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.active), 0), dtype=np.int64)

    def _term(self, held: BilledCommitment) -> tuple[int, int]:
        """First hour that begins within the term, counted from the bill's first, and the number of such hours."""
        first, end = (
            -int(-((at - self.start_at).total_seconds()) // SECONDS_PER_HOUR) for at in (held.starts_at, held.ends_at)
        )
        return first, end - first

    def _spread(self, held: BilledCommitment) -> Integers:
        first, hours = self._term(held)
        index = np.clip(np.arange(len(self.active) + 1) - first, 0, hours)
        whole, rest = divmod(held.upfront_micros, max(hours, 1))
        return np.diff(whole * index + rest * index // max(hours, 1))

    def _share(self, place: int, used: Integers) -> Integers:
        """Cost of the first ``used`` millionths of points of a commitment in units (T): all of them cost all of it."""
        held = self.commitments[place]
        units = used // held.unit_points
        upfront = self.upfront_micros[:, place]
        whole = held.units_millionths or 0
        # A running total may be coarse, as long as it ends at the whole: this keeps its product within 64 bits.
        step = int(upfront.max(initial=0)) * whole // _LARGEST + 1
        return micros_of(units, held.micros_per_unit_hour) + upfront * (units // step) // max(whole // step, 1)

    def _rate(self, place: int, kind: int) -> Integers:
        """Micros for one unit-hour of a kind under a commitment (T)."""
        held, cover = self.commitments[place], self.covers[place, kind]
        if held.is_money:
            return cover.rate
        unit = held.micros_per_unit_hour + Fraction(
            held.upfront_micros * MILLION, (held.units_millionths or 1) * max(self._term(held)[1], 1)
        )
        rate = held.rates[self.usage.kinds[kind].resource]
        return np.full(len(self.active), round(unit * rate / held.unit_points))

    def _named(self, rows: Integers) -> pl.DataFrame:
        """Lines with names in the place of numbers."""
        hour, line, place, kind, quantity, rate, cost, listed = rows
        kinds = [*self.usage.kinds, None]
        known = np.pad(self.usage.has_price, ((0, 0), (0, 1)))[hour, kind]
        columns: dict[str, Any] = {
            "hour_at": pl.Series(hour * (SECONDS_PER_HOUR * MILLION)).cast(pl.Duration("us")) + self.start_at,
            "line": pl.Series(["committed", "on_demand", "unused"]).gather(line),
            "commitment_id": pl.Series(
                [*(one.commitment_id for one in self.commitments), None], dtype=pl.String
            ).gather(place),
        }
        for name in ("account", "resource", "region", "zone", "is_idle"):
            columns[name] = pl.Series([getattr(one, name, None) for one in kinds], dtype=_LINES[name]).gather(kind)
        columns |= {"quantity_millionths": quantity, "rate_micros": rate, "cost_micros": cost, "list_micros": listed}
        is_usage, has_list = pl.Series(kind < len(kinds) - 1), pl.Series(known)
        return pl.DataFrame(columns, schema_overrides=_LINES).with_columns(
            pl.when(is_usage).then(pl.col("quantity_millionths", "rate_micros")),
            pl.when(has_list).then(pl.col("list_micros")),
        )


def _part(line: int, place: int, kind: int, *values: Integers) -> Integers:
    """Lines of one commitment and kind, (8, hours in which there is something)."""
    quantity, _, cost, _ = values
    rows = np.flatnonzero((quantity != 0) | (cost != 0))
    same = [np.full(len(rows), number) for number in (line, place, kind)]
    return np.stack([rows, *same, *(value[rows] for value in values)])


_LINES: dict[str, DataType | DataTypeClass] = {
    "hour_at": pl.Datetime("us", "UTC"),
    "line": pl.String,
    "commitment_id": pl.String,
    "account": pl.String,
    "resource": pl.String,
    "region": pl.String,
    "zone": pl.String,
    "is_idle": pl.Boolean,
    "quantity_millionths": pl.Int64,
    "rate_micros": pl.Int64,
    "cost_micros": pl.Int64,
    "list_micros": pl.Int64,
}
_BY_COMMITMENT: dict[str, DataType | DataTypeClass] = {
    "commitment_id": pl.String,
    "cost_micros": pl.Int64,
    "recurring_micros": pl.Int64,
    "upfront_micros": pl.Int64,
    "cash_micros": pl.Int64,
    "used_micros": pl.Int64,
    "unused_micros": pl.Int64,
    "utilisation_ratio": pl.Float64,
    "covered_list_micros": pl.Int64,
    "coverage_ratio": pl.Float64,
    "savings_micros": pl.Int64,
}
