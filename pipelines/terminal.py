"""What a person types and sees: months and instants, tables, progress and error messages.

All results go to stdout, all that is said meanwhile to stderr, so that ``--format csv`` can be piped. Kept light: Polars
is only touched by those who pass a frame. Does not belong here: what the rows are.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from models.errors import CheckError, GpuLedgerError, LogError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

UNTERMINATED_WIDTH = 1_000
"""Columns where the output is no terminal: a table keeps its natural width and no line is broken."""


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class PoliteGroup(TyperGroup):
    """Commands whose errors are one message on stderr and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; 1 where a check fell short or storage failed, 2 where the command or its source is wrong."""
        try:
            return super().invoke(ctx)
        except GpuLedgerError as error:
            _say_error(str(error))
            raise typer.Exit(1 if isinstance(error, CheckError | LogError) else 2) from None
        except Exception as error:
            duckdb = sys.modules.get("duckdb")  # if the error is its, it is loaded
            if duckdb is None or not isinstance(error, duckdb.IOException):
                raise
            said = re.sub(r"password\s*=\s*('[^']*'|[^\s\"]+)", "password=…", " ".join(str(error).split()))
            _say_error(
                f"storage failed: {said}; a batch is appended whole or not at all: see to the disk or the server, "
                "then run the command again"
            )
            raise typer.Exit(1) from None


def month(text: str) -> date:
    """First day of a month written YYYY-MM.

    Raises:
      UsageError: It is not one.
    """
    found = re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])", text)
    if found is None:
        raise UsageError(f"expected a month as YYYY-MM, such as 2026-09, found {text!r}")
    return date(int(found[1]), int(found[2]), 1)


def instant(text: str) -> datetime:
    """Instant in UTC: ISO 8601 with its zone, or a date alone, which is its midnight UTC.

    Raises:
      UsageError: It is not one, or its zone is missing.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expected an instant such as 2026-09-05T08:00:00Z or 2026-09-05, found {text!r}") from None
    if re.fullmatch(r"[\dW-]+", text):
        return found.replace(tzinfo=UTC)
    if found.tzinfo is None:
        raise UsageError(f"{text} has no time zone: write {text}Z for UTC, or its offset, such as {text}+02:00")
    return found.astimezone(UTC)


Month = Annotated[date, typer.Argument(parser=month, metavar="MONTH", help="Month as YYYY-MM.")]
Shape = Annotated[Format, typer.Option("--format", help="How rows are printed.")]


def _console(*, stderr: bool) -> Console:
    """A console on the stream as it is now."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream, width=None if stream.isatty() else UNTERMINATED_WIDTH, soft_wrap=True, highlight=False, emoji=False
    )


def say(message: str | Text) -> None:
    """Tell the person something that is no result: to stderr."""
    _console(stderr=True).print(message, markup=False)


def tell(message: str | Text = "") -> None:
    """Print a line of the result: to stdout."""
    _console(stderr=False).print(message, markup=False)


def _say_error(message: str) -> None:
    say(Text.assemble(("error: ", "bold red"), message))


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Show progress on a terminal's stderr, and nothing elsewhere.

    Yields:
      A function to call with ``completed=``, ``advance=`` or ``description=`` as rich's ``Progress.update`` takes.
    """
    shape = [BarColumn(), MofNCompleteColumn()] if total else [TextColumn("{task.completed:,.0f}")]
    columns = [SpinnerColumn(), TextColumn("{task.description}"), *shape, TimeElapsedColumn()]
    with Progress(*columns, console=_console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(title, total=total)
        yield lambda **change: shown.update(task, **change)


def rows(frame: pl.DataFrame, shape: Format, table: Callable[[pl.DataFrame], Table] | None = None) -> None:
    """Print rows as asked; ``table`` makes the table, all columns as they are unless given."""
    match shape:
        case Format.CSV:
            typer.echo(_flat(frame).write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ"), nl=False)
        case Format.JSON:
            typer.echo(frame.write_json())
        case Format.TABLE:
            _console(stderr=False).print((table or plain_table)(frame), soft_wrap=False)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with lists and structs as JSON text, which CSV can hold."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(
        type(frame[name])(
            name, [value if value is None else json.dumps(value, default=str) for value in frame[name].to_list()]
        )
        for name in nested
    )


def plain_table(frame: pl.DataFrame) -> Table:
    """Table of all columns, numbers to the right."""
    numeric = [dtype.is_numeric() for dtype in frame.schema.values()]
    return grid(
        list(zip(frame.columns, numeric, strict=True)), [[cell(value) for value in row] for row in frame.rows()]
    )


def grid(
    columns: Sequence[tuple[str, bool]], body: Sequence[Sequence[str]], total: Sequence[str] = (), title: str = ""
) -> Table:
    """Table of text: columns as (header, is it a number), a section wherever the first column changes, a total."""
    table = Table(
        box=SIMPLE_HEAD,
        title=Text(title, "bold") if title else None,
        title_justify="left",
        show_footer=bool(total),
        pad_edge=False,
    )
    for position, (header, is_number) in enumerate(columns):
        footer = Text(total[position]) if total else ""
        table.add_column(Text(header), footer, justify="right" if is_number else "left", no_wrap=is_number)
    for row in body:
        table.add_row(*map(Text, row))
    return table


def cell(value: object) -> str:
    """A value as a person reads it; unknown is an en dash."""
    match value:
        case None:
            return "–"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case Decimal():
            return f"{value:,}".replace("-", "−")
        case float():
            return f"{value:,.6g}"
        case _:
            return str(value)
