"""Cells of the record files: what a parser takes, and that it rounds nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sources.record_columns import FIELDS, columns_help, instant

AMOUNT = next(field.parse for field in FIELDS["assets"] if field.name == "purchase_amount")
RATE = next(field.parse for field in FIELDS["fx"] if field.name == "rate")


def test_the_help_marks_what_is_required() -> None:
    assert columns_help("fx") == "month*, currency*, rate*"
    assert columns_help("org") == "cluster, account*, project, team*, business_unit*, effective_from*"


@pytest.mark.parametrize(
    "text", ["2026-10-15", "2026-10-15T00:00:00Z", "2026-10-15T02:00:00+02:00", "2026-10-15T00:00:00.9Z"]
)
def test_an_instant_is_in_utc_and_whole_seconds(text: str) -> None:
    assert instant(text) == datetime(2026, 10, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-10-15T00:00:00", "20261015", "2026-W42", "15.10.2026", "2026-02-30", "now", "0001-01-01T00:00:00+05:00"],
)
def test_a_time_without_zone_or_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an instant with its zone"):
        instant(text)


@given(st.decimals(0, Decimal(10) ** 26 - 1, places=12))
def test_an_amount_is_exactly_what_is_written(amount: Decimal) -> None:
    assert AMOUNT(f"{amount:f}") == amount


@pytest.mark.parametrize(
    "text", ["1_0", "1,0", "+1", "-1", "1e3", "nan", "inf", "$1", "1.", ".5", "0.1234567890123", "1" * 27]
)
def test_what_would_be_rounded_or_guessed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number such as"):
        AMOUNT(text)


def test_trailing_zeros_are_no_precision() -> None:
    assert RATE("1.12345678900000") == Decimal("1.123456789")
