from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
from openpyxl import load_workbook

from dashboards.tables import Column, as_csv, as_excel, for_page, in_cents

FRAME = pl.DataFrame(
    {
        "team": ["Vision", "=1+1", "bell\x07"],
        "cost": [Decimal("1234567.89"), None, Decimal("-0.50")],
        "idle_ratio": [0.257, None, 1.0],
        "at": [datetime(2026, 9, 1, 12, 30, tzinfo=UTC)] * 3,
        "month": [date(2026, 9, 1)] * 3,
    }
)
COLUMNS = {
    "team": Column("Team"),
    "cost": Column("Cost", "money"),
    "idle_ratio": Column("Idle", "ratio"),
    "at": Column("At", "instant"),
    "month": Column("Month", "month"),
}


def test_the_page_shows_ratios_as_per_cents_and_leaves_unknown_empty() -> None:
    shown = for_page(FRAME, COLUMNS)
    assert shown["idle_ratio"].to_list() == [25.7, None, 100.0]
    assert shown["cost"].to_list() == [1234567.89, None, -0.5]


def test_excel_has_numbers_with_their_format_and_text_that_is_never_a_formula() -> None:
    book = load_workbook(io.BytesIO(as_excel(FRAME, COLUMNS, "USD", "By team: 1/2")))
    sheet = book.active
    assert sheet is not None
    assert sheet.title == "By team  1 2"
    assert [cell.value for cell in sheet[1]] == ["Team", "Cost (USD)", "Idle", "At", "Month"]
    assert sheet.freeze_panes == "A2"
    first, second, third = (list(sheet[number]) for number in (2, 3, 4))
    assert (first[1].value, first[1].number_format) == (1234567.89, "#,##0.00")
    assert (first[2].value, first[2].number_format) == (0.257, "0.0%")
    assert first[3].value == datetime(2026, 9, 1, 12, 30)  # noqa: DTZ001 - Excel knows no zones
    assert (second[0].value, second[0].data_type, second[1].value) == ("=1+1", "s", None)
    assert third[0].value == "bell"


def test_an_exact_zero_is_a_number_in_excel() -> None:
    frame = pl.DataFrame({"difference": [Decimal("0.000000")]})
    book = load_workbook(
        io.BytesIO(as_excel(frame, {"difference": Column("Difference", "exact_money")}, "USD", "Proof"))
    )
    assert book.active is not None
    assert book.active["A2"].value == 0


def test_csv_keeps_exact_amounts_and_disarms_formulas() -> None:
    text = as_csv(FRAME.select("team", "cost")).decode("utf-8-sig")
    assert text == "team,cost\nVision,1234567.89\n'=1+1,\nbell\x07,-0.50\n"


def test_a_file_names_the_currency_in_the_heading_of_money_only() -> None:
    assert Column("Cost", "money").heading("EUR") == "Cost (EUR)"
    assert Column("GPU-hours", "hours").heading("EUR") == "GPU-hours"


def test_the_amounts_of_a_proof_add_up_in_cents() -> None:
    thirds = pl.DataFrame(
        {"a": ["0.333333", None], "b": ["0.333333", "0.005000"], "c": ["0.333334", "0.001000"]}
    ).select(pl.all().cast(pl.Decimal(18, 6)))
    found = in_cents(thirds, ("a", "b", "c"))
    assert found.rows() == [
        (Decimal("0.33"), Decimal("0.33"), Decimal("0.34")),
        (None, Decimal("0.01"), Decimal("0.00")),
    ]
