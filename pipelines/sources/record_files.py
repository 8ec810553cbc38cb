"""Reading a small record file: its header, its lines, and what is told of a line that cannot be understood.

Its columns are declared in ``record_columns``. A line that cannot be understood goes to ``rejected`` with its number,
what was found and what was expected. Does not belong here: what a kind of record means.
"""

from __future__ import annotations

import csv
import difflib
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from models.errors import SourceError
from models.events import Event, keys, polars_schema
from pipelines.sources.base import Chunk, rejected_frame, rejected_row
from pipelines.sources.record_columns import FIELDS, Field, columns_help

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Row = dict[str, Any]


class Line(NamedTuple):
    """A line that was understood, with the event rows it says."""

    position: str
    raw_text: str
    rows: list[Row]


def read_records(
    kind: str,
    paths: Sequence[Path],
    event: type[Event],
    to_events: Callable[[Row], list[Row]],
    contradictions: Callable[[list[Line]], dict[str, str]] = lambda _lines: {},
) -> Iterator[Chunk]:
    """Read files of one kind; a later line with an earlier one's key replaces it, and says so in ``rejected``.

    Args:
      kind: Key of ``FIELDS``.
      paths: The files, read as one.
      event: Event type that the lines say.
      to_events: From a line's values to event rows; raises ValueError saying what was expected.
      contradictions: Lines that other lines contradict: reason by position.

    Raises:
      SourceError: A file cannot be read, is empty, or its header is not this kind's.
    """
    newest: dict[tuple[Any, ...], Line] = {}
    rejected, line_count = [], 0
    for path in paths:
        header, lines = table(path)
        _check_header(kind, path, header)
        line_count += len(lines)
        for number, cells in lines:
            position, raw_text = f"{path.name}:{number}", ",".join(cells)
            try:
                rows = to_events(_parsed(kind, header, cells))
            except ValueError as error:
                rejected.append(rejected_row(kind, position, str(error), raw_text))
                continue
            key = tuple(rows[0][name] for name in keys(event) if name not in _WITHIN_A_LINE)
            earlier = newest.pop(key, None)
            if earlier is not None and earlier.rows != rows:
                reason = f"overwritten by {position}, which says otherwise of the same {', '.join(keys(event))}"
                rejected.append(rejected_row(kind, earlier.position, reason, earlier.raw_text))
            newest[key] = Line(position, raw_text, rows)
    reasons = contradictions(list(newest.values()))
    contradicted = [line for line in newest.values() if line.position in reasons]
    rejected += [rejected_row(kind, one.position, reasons[one.position], one.raw_text) for one in contradicted]
    kept = [row for line in newest.values() if line.position not in reasons for row in line.rows]
    schema = polars_schema(event)
    found = [{name: row.get(name) for name in schema} for row in kept]
    yield Chunk({event: pl.DataFrame(found, schema=schema)}, rejected_frame(rejected), rows_read=line_count)


_WITHIN_A_LINE = {"mig_profile"}
"""Key columns in which the events of one line differ."""


def table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header, and the lines that hold anything with their numbers.

    Raises:
      SourceError: The file cannot be read as CSV.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            return header, [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except (OSError, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read as CSV: {error}") from error


def _check_header(kind: str, path: Path, header: Sequence[str]) -> None:
    """Refuse a file of another kind, and a column that looks like a misspelt one: its values would be lost."""
    expected = {field.name: field for field in FIELDS[kind]}
    lacking = [name for name, field in expected.items() if field.is_required and name not in header]
    unknown = [name for name in header if name not in expected]
    absent = [name for name in expected if name not in header]
    misspelt = [name for name in unknown if difflib.get_close_matches(name.lower(), absent, n=1, cutoff=0.8)]
    if lacking or misspelt:
        what = [f"column {', '.join(lacking)} missing"] if lacking else []
        what += [f"column {', '.join(misspelt)} looks misspelt"] if misspelt else []
        raise SourceError(
            f"{path}: {'; '.join(what)}; found {', '.join(header)[:500] or 'an empty file'}; "
            f"expected {columns_help(kind)} (* required)"
        )


def _parsed(kind: str, header: Sequence[str], cells: Sequence[str]) -> Row:
    """Values of one line by column.

    Raises:
      ValueError: Naming the column, what was found and what was expected.
    """
    if len(cells) > len(header):
        raise ValueError(f"found {len(cells)} cells, expected {len(header)} as in the header")
    texts = dict(zip(header, cells, strict=False))
    return {field.name: parsed_cell(field, texts.get(field.name, "").strip()) for field in FIELDS[kind]}


def parsed_cell(field: Field, text: str) -> Any:
    """Value of one cell.

    Raises:
      ValueError: Naming the column, what was found and what was expected.
    """
    if not text:
        if field.is_required:
            raise ValueError(f"{field.name}: found nothing, expected a value")
        return field.default
    try:
        return field.parse(text)
    except ValueError as error:
        raise ValueError(f"{field.name}: found {text!r}, {error}") from None
