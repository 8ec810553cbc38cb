from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import openpyxl
import polars as pl
import pytest

from models.errors import UsageError
from pipelines.workbook import write_workbook

if TYPE_CHECKING:
    from pathlib import Path

FRAME = pl.DataFrame(
    {
        "team": ["vision", "=1+1", "a\x01b", None],
        "cost": [1.5, 2.0, None, 4.0],
        "day": [date(2026, 9, 1)] * 4,
        "at": [datetime(2026, 9, 1, 8, tzinfo=UTC)] * 4,
    }
)


def test_each_table_is_a_sheet_whose_numbers_are_numbers_and_whose_text_is_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "tables.xlsx"
    write_workbook(path, {"First/second": FRAME, "x" * 40: FRAME.head(0)})
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["First second", "x" * 31]
    cells = list(book["First second"].iter_rows())
    assert [cell.value for cell in cells[0]] == FRAME.columns
    assert cells[0][0].font.bold
    assert [cell.value for cell in cells[1]] == ["vision", 1.5, datetime(2026, 9, 1), datetime(2026, 9, 1, 8)]  # noqa: DTZ001
    assert (cells[2][0].value, cells[2][0].data_type) == ("=1+1", "s")
    assert [cells[3][0].value, cells[3][1].value, cells[4][0].value] == ["ab", None, None]


def test_a_name_that_is_no_workbook_or_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ending with \.xlsx"):
        write_workbook(tmp_path / "tables.csv", {"a": FRAME})
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        write_workbook(tmp_path / "absent" / "tables.xlsx", {"a": FRAME})
