"""Every unit once: SQL type, Polars type, name suffix, meaning; and the only conversions and formatting.

Belongs here: what a number means and how it is shown. Does not belong here: where a number comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated

import polars as pl

SHARES_PER_GPU = 4_200
"""Parts of one GPU: lcm(1..8, 100), so sevenths, eighths, 1 to 8 slices and whole per cents are integers."""

SECONDS_PER_HOUR = 3_600
SHARE_SECONDS_PER_GPU_HOUR = SHARES_PER_GPU * SECONDS_PER_HOUR
MICROS_PER_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """What a column holds.

    Attributes:
      sql_type: DuckDB type; also valid in Spark after translation.
      dtype: The same type in Polars.
      suffix: The last word of every column with this unit; empty where the name is free.
      meaning: One phrase for the data dictionary.
    """

    sql_type: str
    dtype: pl.DataType
    suffix: str
    meaning: str


_INSTANT = pl.Datetime("us", "UTC")

Text = Annotated[str, Unit("VARCHAR", pl.String(), "", "text")]
Flag = Annotated[bool, Unit("BOOLEAN", pl.Boolean(), "", "true or false")]
Count = Annotated[int, Unit("BIGINT", pl.Int64(), "_count", "a number of things")]
Ordinal = Annotated[int, Unit("BIGINT", pl.Int64(), "", "a position, counted from 1")]
Instant = Annotated[datetime, Unit("TIMESTAMPTZ", _INSTANT, "_at", "instant in UTC, whole seconds")]
Seed = Annotated[int, Unit("BIGINT", pl.Int64(), "", "seed of random numbers: the same seed, the same numbers")]
Month = Annotated[date, Unit("DATE", pl.Date(), "_month", "first day of a month")]
Seconds = Annotated[int, Unit("BIGINT", pl.Int64(), "_seconds", "seconds")]
Shares = Annotated[int, Unit("BIGINT", pl.Int64(), "_shares", "parts of a GPU, 4,200 to one GPU")]
ShareSeconds = Annotated[int, Unit("BIGINT", pl.Int64(), "_share_seconds", "1/4,200 of a GPU for one second")]
Micros = Annotated[int, Unit("BIGINT", pl.Int64(), "_micros", "millionths of the reporting currency")]
Amount = Annotated[Decimal, Unit("DECIMAL(38,12)", pl.Decimal(38, 12), "_amount", "money in the source's currency")]
Quantity = Annotated[
    Decimal, Unit("DECIMAL(38,12)", pl.Decimal(38, 12), "_quantity", "a quantity in the source's unit")
]
Effectiveness = Annotated[
    Decimal, Unit("DECIMAL(38,12)", pl.Decimal(38, 12), "_effectiveness", "facility power / IT power")
]
Rate = Annotated[Decimal, Unit("DECIMAL(18,9)", pl.Decimal(18, 9), "_rate", "factor between two currencies")]
Ratio = Annotated[float, Unit("DOUBLE", pl.Float64(), "_ratio", "0 to 1; names its counter")]
Watts = Annotated[float, Unit("DOUBLE", pl.Float64(), "_watts", "watts")]
Joules = Annotated[float, Unit("DOUBLE", pl.Float64(), "_joules", "joules")]
Mebibytes = Annotated[float, Unit("DOUBLE", pl.Float64(), "_mib", "mebibytes")]


def gpu_hours(share_seconds: int) -> Decimal:
    """Whole-GPU hours, to four places, of a number of share-seconds.

    >>> gpu_hours(15_120_000)
    Decimal('1.0000')
    """
    return (Decimal(share_seconds) / SHARE_SECONDS_PER_GPU_HOUR).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)


def money(micros: int) -> Decimal:
    """The reporting currency's units, exact to six places, of a number of micros.

    >>> money(1_257_600_000)
    Decimal('1257.600000')
    """
    return Decimal(micros).scaleb(-6)


def format_money(amount: Decimal | None) -> str:
    """Money for people: thousands separators, two places, a true minus sign; an en dash where unknown.

    >>> format_money(Decimal("1234567.891"))
    '1,234,567.89'
    >>> format_money(None)
    '–'
    """
    return "–" if amount is None else f"{amount:,.2f}".replace("-", "−")


def format_hours(hours: Decimal | float | None) -> str:
    """GPU-hours for people: one place, thousands separators; an en dash where unknown.

    >>> format_hours(Decimal("118317.8092"))
    '118,317.8'
    """
    return "–" if hours is None else f"{hours:,.1f}".replace("-", "−")


def format_share(ratio: float | None) -> str:
    """A ratio as a per cent; an en dash where unknown.

    >>> format_share(0.257)
    '25.7 %'
    """
    return "–" if ratio is None else f"{ratio * 100:.1f} %"
