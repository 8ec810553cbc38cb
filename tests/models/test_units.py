from __future__ import annotations

from decimal import Decimal

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import units
from models.units import SHARE_SECONDS_PER_GPU_HOUR, SHARES_PER_GPU, Unit, gpu_hours, money

EVERY_UNIT = {
    name: alias.__metadata__[0]
    for name, alias in vars(units).items()
    if isinstance(getattr(alias, "__metadata__", (None,))[0], Unit)
}


def test_common_parts_of_a_gpu_are_whole_shares() -> None:
    assert [SHARES_PER_GPU % parts for parts in (1, 2, 3, 4, 5, 6, 7, 8, 100)] == [0] * 9
    assert SHARE_SECONDS_PER_GPU_HOUR == 15_120_000


def test_ten_thousand_gpus_for_a_century_fit_a_bigint() -> None:
    assert 10_000 * 24 * 366 * 100 * SHARE_SECONDS_PER_GPU_HOUR < 2**63


@pytest.mark.parametrize("name", EVERY_UNIT)
def test_duckdb_and_polars_hold_a_unit_alike(name: str) -> None:
    unit = EVERY_UNIT[name]
    empty = duckdb.sql(f"SELECT CAST(NULL AS {unit.sql_type}) AS x").pl()
    dtype = empty.schema["x"]
    if unit.sql_type == "TIMESTAMPTZ":  # DuckDB says the session's zone, which the log sets to UTC
        dtype = pl.Datetime("us", "UTC")
    assert dtype == unit.dtype


def test_no_two_quantities_share_a_suffix() -> None:
    suffixes = [unit.suffix for unit in EVERY_UNIT.values() if unit.suffix]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix.startswith("_") for suffix in suffixes)


@given(st.integers(-(2**63), 2**63 - 1))
def test_money_is_exact(micros: int) -> None:
    assert money(micros) * 1_000_000 == micros


def test_hours_are_rounded_half_even_at_the_edge_only() -> None:
    assert gpu_hours(SHARE_SECONDS_PER_GPU_HOUR * 24) == 24
    assert gpu_hours(756) == Decimal("0.0000")  # 0.00005 h
    assert gpu_hours(2268) == Decimal("0.0002")  # 0.00015 h


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.format_money(Decimal("-1234.5")), "−1,234.50"),
        (units.format_money(Decimal("0.005")), "0.00"),
        (units.format_money(None), "–"),
        (units.format_hours(-0.25), "−0.2"),
        (units.format_hours(None), "–"),
        (units.format_share(1.0), "100.0 %"),
        (units.format_share(None), "–"),
    ],
)
def test_figures_for_people(shown: str, expected: str) -> None:
    assert shown == expected
