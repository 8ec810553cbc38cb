"""From sacct's bytes to a frame of text cells: files, delimiters, line breaks inside fields, unfinished last lines.

Nothing here knows what a cell means, except how the cells that nobody types (ids, times, states) look: that is what
tells where a delimiter inside a job name ends. Meaning is read in ``slurm.py`` and ``slurm_tres.py``.
"""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, cast

import polars as pl

from models.errors import SourceError
from pipelines.sources.base import rejected_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SOURCE = "slurm"
BLOCK_BYTES = 8 * 2**20
LONGEST_LINE_BYTES = 8 * BLOCK_BYTES
LONGEST_RECORD_LINES = 100
UNFINISHED = "unfinished last line: the file ends within it; read it again once it is whole"

COLUMNS = (
    "jobidraw", "jobid", "jobname", "user", "account", "partition", "qos", "state", "submit", "eligible", "start",
    "end", "elapsedraw", "elapsed", "suspended", "alloctres", "allocgres", "nodelist", "exitcode",
)  # fmt: skip
"""sacct fields that are read, where a dump has them."""

FREE_TEXT = ("jobname", "comment", "submitline", "admincomment", "systemcomment", "workdir", "reason", "extra", "wckey")
"""sacct fields that people write, and so may hold the delimiter; the likeliest first."""

_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*|\d+|Unknown|None|)"
_TRES = r"(\(null\)|[\w./:+-]+=[^,=]*(,[\w./:+-]+=[^,=]*)*|)"
_SHAPES = {
    "jobidraw": r"\d+\S*", "jobid": r"\d+\S*", "state": r"[A-Z][A-Z_]*( by \w+)?\+?", "exitcode": r"(\d+:\d+|)",
    "submit": _TIME, "eligible": _TIME, "start": _TIME, "end": _TIME, "alloctres": _TRES, "reqtres": _TRES,
    "elapsed": r"[\d:.-]*", "suspended": r"[\d:.-]*", "elapsedraw": r"\d*", "nnodes": r"\d*", "ncpus": r"\d*",
    "uid": r"\d*", "gid": r"\d*", "reqcpus": r"\d*",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """How one dump is written.

    Attributes:
      names: Lower-case names of its columns, in order.
      delimiter: Text between two cells.
      header: The header line, or empty when the names were given.
    """

    names: tuple[str, ...]
    delimiter: str
    header: str = ""

    @property
    def joints(self) -> int:
        """Delimiters in a whole record."""
        return len(self.names) - 1

    def looks_right(self, cells: Sequence[str]) -> bool:
        """Whether the cells that nobody types look as sacct writes them."""
        return all(
            re.fullmatch(_SHAPES[name], cell) for name, cell in zip(self.names, cells, strict=True) if name in _SHAPES
        )


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of a dump.

    Attributes:
      frame: ``line`` (number of the record's first line), ``raw_text`` and ``cells`` (list of text, in order).
      rejected: Lines that are no record.
    """

    frame: pl.DataFrame
    rejected: list[dict[str, str]]


@dataclass(slots=True)
class _Found:
    """What a run of irregular lines turned out to be: records by line number, and lines that are none."""

    records: list[tuple[int, str, list[str]]] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)


class Dump:
    """Bytes of one dump, read no further than the size a file had when opened, so that a growing file has an end."""

    def __init__(self, raw: IO[bytes], size: int | None = None) -> None:
        """Wrap an open stream; a size of None reads to its end."""
        self._raw, self._left = raw, size

    def read(self, size: int) -> bytes:
        """Next bytes, at most ``size``; none at the end."""
        data = self._raw.read(size if self._left is None else min(size, self._left))
        if self._left is not None:
            self._left -= len(data)
        return data

    def is_growing(self) -> bool:
        """Whether there is more than there was at opening; asked once all of that is read."""
        return self._left == 0 and bool(self._raw.read(1))


@contextmanager
def open_dump(path: Path) -> Iterator[Dump]:
    """Open a plain or gzipped dump for reading.

    Raises:
      SourceError: The file is missing, cannot be read, or is a damaged or truncated gzip file.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as raw:
            if raw.peek(2)[:2] == b"\x1f\x8b":
                yield Dump(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)))
            else:
                yield Dump(raw, size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"{path}: the gzip file is damaged or cut off ({error}); copy it again, whole") from error
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error


def layout_of_header(line: str, where: str, delimiter: str | None) -> Layout:
    """Layout that a header line declares; the delimiter is what stands between its first two names, unless given.

    Raises:
      SourceError: The line is no header of ``sacct -P``, or the given delimiter does not part it.
    """
    between = re.match(r"\w+([^\w\s]+|\t)", line)
    used = delimiter or (between[1] if between else "")
    names = line.split(used) if used else [line]
    if len(names) == 1 or not all(re.fullmatch(r"\w*", name) for name in names):
        said = f"the delimiter {delimiter!r}" if delimiter else "names with one delimiter between them"
        raise SourceError(
            f"{where}: expected the header line of `sacct -P` with {said}, found {line[:200]!r}. Export with "
            "`sacct -P`, name the delimiter that was used, or name the columns if the file has no header"
        )
    return Layout(tuple(name.lower() for name in names), used, line)


def layout_of_fields(fields: Sequence[str], first_line: str, where: str, delimiter: str | None) -> Layout:
    """Layout of a dump without a header, from the names of its columns (``JobName`` or ``jobname%40``).

    Raises:
      SourceError: The first line does not contain the delimiter.
    """
    used = delimiter or "|"
    if used not in first_line:
        raise SourceError(
            f"{where}: expected {len(fields)} cells with {used!r} between them, found {first_line[:200]!r}. "
            "Name the delimiter that was used"
        )
    return Layout(tuple(name.partition("%")[0].strip().lower() for name in fields), used)


def read_records(
    dump: Dump, path: str, *, fields: Sequence[str] | None = None, delimiter: str | None = None
) -> Iterator[tuple[Layout, Records]]:
    """Records of one dump, block by block; nothing for an empty one.

    Args:
      dump: The dump's bytes.
      path: Its name, for positions and messages.
      fields: Names of its columns, where it has no header line.
      delimiter: Delimiter, where it cannot be told from the header.

    Raises:
      SourceError: It is not sacct's text.
    """
    layout: Layout | None = None
    number, carried = 1, b""
    while True:
        data = dump.read(BLOCK_BYTES)
        carried += data
        cut = carried.rfind(b"\n") + 1 if data else len(carried)
        if cut == 0 and data and len(carried) <= LONGEST_LINE_BYTES:
            continue
        if cut == 0:
            break
        ending = "whole" if carried[cut - 1 : cut] == b"\n" else "growing" if dump.is_growing() else "open"
        lines = _lines(carried[:cut])
        carried = carried[cut:]
        if layout is None:
            layout, lines, number = _layout_and_rest(lines, path, fields, delimiter)
        kept = _last_regular(lines, layout) if data else len(lines)
        yield layout, _records(lines[:kept], number, layout, path, ending)
        number += kept
        carried = "".join(f"{line}\n" for line in lines[kept:]).encode() + carried
    if carried:
        raise SourceError(f"{path}:{number}: a line longer than {LONGEST_LINE_BYTES} bytes is no sacct text")


def _lines(data: bytes) -> list[str]:
    """Lines of a block. Undecodable bytes become U+FFFD, so that one odd name costs no row."""
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _layout_and_rest(
    lines: list[str], path: str, fields: Sequence[str] | None, delimiter: str | None
) -> tuple[Layout, list[str], int]:
    """Layout, the lines after the header, and the number of the first of them."""
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines) - 1)
    first = lines[start].removeprefix("\ufeff")
    where = f"{path}:{start + 1}"
    if fields is not None:
        return layout_of_fields(fields, first, where, delimiter), [first, *lines[start + 1 :]], start + 1
    return layout_of_header(first, where, delimiter), lines[start + 1 :], start + 2


def _last_regular(lines: list[str], layout: Layout) -> int:
    """Lines up to the last that is a record by itself: what follows may go on in the next block."""
    for index in range(len(lines), max(0, len(lines) - LONGEST_RECORD_LINES), -1):
        if lines[index - 1].count(layout.delimiter) == layout.joints:
            return index
    return len(lines) if len(lines) > LONGEST_RECORD_LINES else 0


def _records(lines: list[str], number: int, layout: Layout, path: str, ending: str) -> Records:
    """Records among some lines; ``ending`` says whether the last line is whole, open, or still being written."""
    frame = pl.DataFrame(
        {"line": pl.int_range(number, number + len(lines), eager=True), "raw_text": lines},
        schema={"line": pl.Int64(), "raw_text": pl.String()},
    )
    last = number + len(lines) - 1
    found = _Found()
    if ending == "growing" and lines:
        frame = frame.head(-1)
        found.rejected.append((last, UNFINISHED, lines[-1]))
    if layout.header:
        frame = frame.filter(pl.col("raw_text") != layout.header)  # dumps put end to end repeat it
    joints = pl.col("raw_text").str.count_matches(layout.delimiter, literal=True)
    regular = frame.filter(joints == layout.joints).with_columns(cells=pl.col("raw_text").str.split(layout.delimiter))
    for run in _runs(frame.filter(joints != layout.joints)):
        _mend(run, layout, found)
    if found.records:
        mended = pl.DataFrame(found.records, schema=regular.schema, orient="row")
        regular = pl.concat([regular, mended]).sort("line")
    rejected = [
        rejected_row(SOURCE, f"{path}:{line}", UNFINISHED if ending == "open" and line == last else reason, text)
        for line, reason, text in found.rejected
    ]
    return Records(regular, rejected)


def _runs(irregular: pl.DataFrame) -> Iterator[list[tuple[int, str]]]:
    """Irregular lines, grouped into runs of neighbours."""
    run: list[tuple[int, str]] = []
    for line, text in irregular.iter_rows():
        if run and line != run[-1][0] + 1:
            yield run
            run = []
        run.append((line, text))
    if run:
        yield run


def _mend(run: list[tuple[int, str]], layout: Layout, found: _Found) -> None:
    """Join the lines of a broken record, part a record with too many delimiters, reject the rest."""
    index = 0
    while index < len(run):
        line, text = run[index]
        joints = text.count(layout.delimiter)
        taken = 1
        if joints > layout.joints:
            cells = _absorb(text.split(layout.delimiter), layout)
            if cells is None:
                reason = f"too many cells: {joints + 1} where {len(layout.names)} were expected, and no way to tell"
                found.rejected.append((line, f"{reason} which delimiter belongs to a name", text))
            else:
                found.records.append((line, text, cells))
        elif text.strip():
            taken = _lines_of_record(run[index : index + LONGEST_RECORD_LINES], layout)
            whole = "\n".join(part for _, part in run[index : index + taken])
            if taken > 1:
                found.records.append((line, whole, whole.split(layout.delimiter)))
            else:
                found.rejected.append((line, f"too few cells: {joints + 1} of {len(layout.names)}", text))
        index += taken


def _lines_of_record(run: list[tuple[int, str]], layout: Layout) -> int:
    """How many lines make one whole record; 1 where no number does."""
    joints = 0
    for taken, (_, text) in enumerate(run, start=1):
        joints += text.count(layout.delimiter)
        if joints >= layout.joints:
            return taken if joints == layout.joints else 1
    return 1


def _absorb(cells: list[str], layout: Layout) -> list[str] | None:
    """Give all surplus delimiters to one free-text column, if what else is read comes out the same whichever it is."""
    surplus = len(cells) - len(layout.names)
    readings: dict[tuple[str, ...], list[str]] = {}
    for name in FREE_TEXT:
        if name not in layout.names:
            continue
        at = layout.names.index(name)
        tried = [*cells[:at], layout.delimiter.join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]
        if layout.looks_right(tried):
            facts = tuple(cell for name, cell in zip(layout.names, tried, strict=True) if name not in FREE_TEXT)
            readings.setdefault(facts, tried)
    return next(iter(readings.values())) if len(readings) == 1 else None
