"""One look for every table: numbers to the right with thousands separators, the currency once, CSV and Excel beside it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from dashboards.published import ledger
from models.ledger import statement_cents

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_ROWS_SHOWN = 15
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@dataclass(frozen=True, slots=True)
class Style:
    """How a kind of value is shown on a page and in Excel; an empty page format is text."""

    page_format: str
    excel_format: str
    has_currency: bool = False


STYLES = {
    "text": Style("", "@"),
    "money": Style("%,.2f", "#,##0.00", has_currency=True),
    "exact_money": Style("%,.6f", "#,##0.000000", has_currency=True),
    "price": Style("%,.4f", "#,##0.0000", has_currency=True),
    "hours": Style("%,.1f", "#,##0.0"),
    "amount": Style("%,.2f", "#,##0.00"),
    "ratio": Style("%.1f %%", "0.0%"),
    "count": Style("%,d", "#,##0"),
    "month": Style("MMM YYYY", "mmm yyyy"),
    "instant": Style("D MMM YYYY, HH:mm", "yyyy-mm-dd hh:mm"),
    "day": Style("D MMM YYYY", "yyyy-mm-dd"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
      label: Its heading.
      style: One of ``STYLES``.
      basis: What the number is and how it comes about, shown on hover.
      width: small, medium or large; None leaves it to the page.
    """

    label: str
    style: str = "text"
    basis: str = ""
    width: str | None = None

    def heading(self, currency: str) -> str:
        """The label in a file, with the currency where the values are money; on a page the title names it once."""
        return f"{self.label} ({currency})" if STYLES[self.style].has_currency else self.label


def show(title: str, frame: pl.DataFrame, columns: Mapping[str, Column], *, file_name: str, note: str = "") -> None:
    """Show a table with its title, downloads and an optional note below the title."""
    _head(title, frame, columns, file_name, note)
    _grid(frame, columns)


def choose(
    title: str, frame: pl.DataFrame, columns: Mapping[str, Column], *, file_name: str, note: str
) -> dict[str, Any] | None:
    """Show a table of which one row may be opened; ``file_name`` tells it from other tables.

    Returns:
      The row that was clicked; None while none is.
    """
    _head(title, frame, columns, file_name, note)
    chosen = _grid(frame, columns, on_select="rerun", selection_mode=["single-row", "single-cell"], key=file_name)
    selection = chosen["selection"]
    # A click anywhere in a row opens it, not only one on its box.
    rows = [*selection.get("rows", []), *(cell[0] for cell in selection.get("cells", []))]
    return frame.row(rows[0], named=True) if rows and rows[0] < frame.height else None


def _head(title: str, frame: pl.DataFrame, columns: Mapping[str, Column], file_name: str, note: str) -> None:
    shown, currency = frame.select(columns.keys()), ledger()["reporting_currency"]
    headings = {name: column.heading(currency) for name, column in columns.items()}
    has_money = any(STYLES[column.style].has_currency for column in columns.values())
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"#### {title}" + (f" :small[:gray[{currency}]]" if has_money else ""), width="stretch")
        for label, ending, mime, content in (
            ("CSV", "csv", "text/csv", lambda: as_csv(shown.rename(headings))),
            ("Excel", "xlsx", EXCEL, lambda: as_excel(shown, columns, currency, title)),
        ):
            st.download_button(
                label,
                content,
                f"{file_name}.{ending}",
                mime,
                key=f"{ending}_{file_name}",
                on_click="ignore",
                icon=":material/download:",
                type="tertiary",
                help=f"Download this table as {label}",
            )
    if note:
        st.caption(note)


def _grid(frame: pl.DataFrame, columns: Mapping[str, Column], **selecting: Any) -> Any:
    return st.dataframe(
        for_page(frame, columns),
        hide_index=True,
        height="content" if frame.height <= MOST_ROWS_SHOWN else 38 + 35 * MOST_ROWS_SHOWN,
        placeholder="–",
        column_config={name: _page_column(column) for name, column in columns.items()},
        **selecting,
    )


def for_page(frame: pl.DataFrame, columns: Mapping[str, Column]) -> pl.DataFrame:
    """The columns as the page's grid takes them: decimals as floats, only to be looked at; ratios as per cents."""
    return frame.select(
        (pl.col(name).cast(pl.Float64) * (100 if column.style == "ratio" else 1)).alias(name)
        if column.style in {"money", "exact_money", "price", "hours", "amount", "ratio"}
        else pl.col(name)
        for name, column in columns.items()
    )


def _page_column(column: Column) -> Any:
    style, heading, basis = STYLES[column.style], column.label, column.basis or None
    width: Any = column.width
    match column.style:
        case "text":
            return st.column_config.TextColumn(heading, help=basis, width=width)
        case "month" | "day":
            return st.column_config.DateColumn(heading, help=basis, width=width, format=style.page_format)
        case "instant":
            return st.column_config.DatetimeColumn(
                heading, help=basis, width=width, format=style.page_format, timezone="UTC"
            )
        case _:
            return st.column_config.NumberColumn(
                heading, help=basis, width=width, format=style.page_format, alignment="right"
            )


def in_cents(rows: pl.DataFrame, *groups: tuple[str, ...]) -> pl.DataFrame:
    """Amounts in whole cents; in each row, those of one group add up to the group's rounded sum. Unknown stays unknown."""
    for names in groups:
        shown: list[tuple[Decimal | None, ...]] = []
        for amounts in rows.select(names).iter_rows():
            cents = iter(statement_cents([int(amount.scaleb(6)) for amount in amounts if amount is not None]))
            shown.append(tuple(None if one is None else Decimal(next(cents)).scaleb(-2) for one in amounts))
        rows = rows.with_columns(
            pl.DataFrame(shown, schema=dict.fromkeys(names, pl.Decimal(38, 2)), orient="row").get_columns()
        )
    return rows


def as_csv(frame: pl.DataFrame) -> bytes:
    """CSV in UTF-8 that spreadsheets open right; text that a spreadsheet would run as a formula is quoted with '."""
    text = pl.selectors.string()
    return frame.with_columns(text.str.replace(r"^([=+\-@\t\r])", "'$1")).write_csv(include_bom=True).encode()


def as_excel(frame: pl.DataFrame, columns: Mapping[str, Column], currency: str, title: str) -> bytes:
    """A workbook of one sheet with bold headings that stay in sight; numbers are numbers, text is never a formula."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet(title[:31].translate(dict.fromkeys(map(ord, r"\/*?:[]"), " ")))
    sheet.freeze_panes = "A2"
    headings = [column.heading(currency) for column in columns.values()]
    for place, (name, heading) in enumerate(zip(columns, headings, strict=True), start=1):
        longest = max((len(str(value)) for value in frame[name].head(200)), default=0)
        sheet.column_dimensions[get_column_letter(place)].width = min(max(len(heading), longest) + 2, 60)
    sheet.append([_cell(sheet, heading, "@", bold=True) for heading in headings])
    formats = [STYLES[column.style].excel_format for column in columns.values()]
    for row in frame.iter_rows():
        sheet.append([_cell(sheet, value, form) for value, form in zip(row, formats, strict=True)])
    saved = io.BytesIO()
    book.save(saved)
    return saved.getvalue()


def _cell(sheet: Any, value: Any, number_format: str, *, bold: bool = False) -> Any:
    if isinstance(value, str):
        value = ILLEGAL_CHARACTERS_RE.sub("", value)
    elif isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    elif isinstance(value, Decimal) and not value:
        value = Decimal(0)  # a zero with places, such as 0E-6, is written as text
    cell = WriteOnlyCell(sheet, value=value)
    if isinstance(value, str):
        cell.data_type = "s"
    cell.number_format, cell.font = number_format, Font(bold=bold)
    return cell
