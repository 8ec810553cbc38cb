"""Write tables as an Excel workbook: numbers are numbers, and text is never a formula.

Does not belong here: what the tables hold. The dashboards' downloads have their own look, by column.
"""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

WIDEST = 60
LONGEST_NAME = 31
"""Excel's limit on a sheet's name."""


def write_workbook(path: Path, sheets: Mapping[str, pl.DataFrame]) -> None:
    """Write one sheet a table, with bold headings that stay in sight; an existing file is replaced.

    Raises:
      UsageError: The file cannot be written, or does not end with .xlsx.
    """
    if path.suffix != ".xlsx":
        raise UsageError(f"{path}: expected the name of an Excel file, ending with .xlsx")
    book = Workbook(write_only=True)
    for name, frame in sheets.items():
        sheet = book.create_sheet(name[:LONGEST_NAME].translate(dict.fromkeys(map(ord, r"\/*?:[]"), " ")))
        sheet.freeze_panes = "A2"
        for place, column in enumerate(frame.columns, start=1):
            longest = max((len(str(value)) for value in frame[column].head(200)), default=0)
            sheet.column_dimensions[get_column_letter(place)].width = min(max(len(column), longest) + 2, WIDEST)
        sheet.append([_cell(sheet, column, bold=True) for column in frame.columns])
        for row in frame.iter_rows():
            sheet.append([_cell(sheet, value) for value in row])
    saved = BytesIO()
    book.save(saved)
    try:
        path.write_bytes(saved.getvalue())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _cell(sheet: Any, value: Any, *, bold: bool = False) -> Any:
    if isinstance(value, str):
        value = ILLEGAL_CHARACTERS_RE.sub("", value)
    elif isinstance(value, datetime):
        value = value.replace(tzinfo=None)  # Excel knows no zones; all instants here are in UTC
    cell = WriteOnlyCell(sheet, value=value)
    if isinstance(value, str):
        cell.data_type = "s"
    cell.font = Font(bold=bold)
    return cell
