from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from models.errors import UsageError
from models.procurement.billing_order import Kind
from models.procurement.billing_usage import USAGE_SCHEMA, CapacityReservation, hourly, with_idle

START = datetime(2026, 3, 2, tzinfo=UTC)


def usage(*rows: tuple[float, str, int, int | None]) -> pl.DataFrame:
    """Rows of hour, resource, millionths and price."""
    full = [(START + timedelta(hours=hour), "", name, "", "", n, price) for hour, name, n, price in rows]
    return pl.DataFrame(full, schema=USAGE_SCHEMA, orient="row")


def test_rows_of_one_hour_and_kind_add_up() -> None:
    found = hourly(usage((1, "y", 2, 7), (0, "x", 1, 5), (1, "y", 3, 7)), START, 3)
    assert found.kinds == (Kind(resource="x"), Kind(resource="y"))
    assert found.millionths.tolist() == [[1, 0], [0, 5], [0, 0]]


def test_a_price_holds_until_the_next_one_and_before_the_first() -> None:
    found = hourly(usage((1, "x", 1, 5), (3, "x", 1, None), (4, "x", 1, 6)), START, 6)
    assert found.on_demand_micros[:, 0].tolist() == [5, 5, 5, 0, 6, 6]
    assert found.has_price[:, 0].tolist() == [True, True, True, False, True, True]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(3, "x", 1, 5)], "expected one of the 3 whole hours"),
        ([(-1, "x", 1, 5)], "expected one of the 3 whole hours"),
        ([(0.5, "x", 1, 5)], "expected one of the 3 whole hours"),
        ([(0, "x", 1, 5), (0, "x", 1, 6)], "several prices of x in one hour"),
        ([(0, "x", 1, 5), (0, "x", 1, None)], "several prices of x in one hour"),
        ([(0, "x", -1, 5), (0, "x", 2, 5)], "found negative hours"),
    ],
)
def test_usage_that_cannot_be_billed_is_refused(rows: list[tuple[float, str, int, int | None]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hourly(usage(*rows), START, 3)


def test_other_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="usage: found the columns"):
        hourly(usage().drop("zone"), START, 3)


def test_idle_capacity_is_what_is_reserved_beyond_what_runs() -> None:
    kind = Kind(resource="x")
    terms = {"kind": kind, "on_demand_micros": 5, "ends_at": START + timedelta(hours=3)}
    held = [
        CapacityReservation(units_millionths=2, starts_at=START, **terms),
        CapacityReservation(units_millionths=3, starts_at=START + timedelta(hours=1), **terms),
    ]
    found = with_idle(hourly(usage((0, "x", 3, 5), (1, "x", 1, 5), (2, "x", 9, 5)), START, 4), held, START)
    assert found.kinds == (kind, Kind(resource="x", is_idle=True))
    assert found.millionths[:, 1].tolist() == [0, 4, 0, 0]
