"""Load, order and rebuild the SELECTs of ``sql/projections``: the path is the table, the header its contract.

What a projection reads is parsed from its SQL, never declared. A partitioned one is rebuilt by the day: in one
transaction a window's rows become what the SELECT says, so that twice is the same as once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot
import yaml
from sqlglot import exp

from pipelines.duck import has_table

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

SQL_FOLDER = Path(__file__).resolve().parents[1] / "sql"
LAYERS = ("staged", "core", "marts")
_HEADER = re.compile(r"\A\s*/\*\n(?P<yaml>.*?)\*/\n(?P<select>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Projection:
    """One SELECT file.

    Attributes:
      name: ``layer.table``, from the path.
      select: The SELECT; with ``$start`` and ``$end`` where it is partitioned.
      grain: What one row is.
      keys: Columns that identify a row.
      partition_by: Column whose window is replaced; None: the whole table is replaced.
      is_view: Stored as a view: cheap to define, computed when read or published.
      comments: Comment of each column, where the header gives them.
      units: Meaning of columns whose name does not say it.
      invariants: Queries by name that return offending rows.
      reads: Tables read, ``layer.table``.
    """

    name: str
    select: str
    grain: str
    keys: tuple[str, ...]
    partition_by: str | None
    is_view: bool
    comments: dict[str, str]
    units: dict[str, str]
    invariants: dict[str, str]
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that break an invariant: the first few, and what they break."""

    projection: str
    invariant: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def __str__(self) -> str:
        """Say what broke, where, and show the rows."""
        shown = "; ".join(
            ", ".join(f"{c}={v}" for c, v in zip(self.columns, row, strict=True)) for row in self.rows[:3]
        )
        return f"{self.projection}: {self.invariant.replace('_', ' ')} does not hold: {shown}"


def parse(name: str, text: str) -> Projection:
    """Parse one projection file.

    Raises:
      ValueError: The header is missing or lacks a field; the message names the file and the field.
    """
    found = _HEADER.match(text)
    header: dict[str, Any] = yaml.safe_load(found["yaml"]) if found else {}
    missing = [field for field in ("grain", "keys", "partition_by", "units", "invariants") if field not in header]
    if found is None or missing:
        raise ValueError(f"sql/projections/{name.replace('.', '/')}.sql: header lacks {', '.join(missing)}")
    select = found["select"].strip()
    return Projection(
        name=name,
        select=select,
        grain=header["grain"],
        keys=tuple(header["keys"]),
        partition_by=header["partition_by"],
        is_view=header.get("stored") == "view",
        comments=header.get("columns") or {},
        units=header["units"] or {},
        invariants=header["invariants"] or {},
        reads=tables_read(select),
    )


def tables_read(select: str) -> frozenset[str]:
    """Schema-qualified tables that a SELECT reads."""
    tree = sqlglot.parse_one(select, dialect="duckdb")
    return frozenset(f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.db)


@cache
def load(folder: Path = SQL_FOLDER / "projections") -> tuple[Projection, ...]:
    """All projections, each after those it reads."""
    found = {
        name: parse(name, path.read_text(encoding="utf-8"))
        for layer in LAYERS
        for path in sorted((folder / layer).glob("*.sql"))
        for name in [f"{layer}.{path.stem}"]
    }
    graph = {name: {read for read in one.reads if read in found} for name, one in found.items()}
    return tuple(found[name] for name in TopologicalSorter(graph).static_order())


def rebuild(con: duckdb.DuckDBPyConnection, projection: Projection, windows: list[tuple[datetime, datetime]]) -> int:
    """Rebuild a projection over day windows (start inclusive, end exclusive), each in one transaction.

    Returns:
      Rows that came or went; 0 for a view.
    """
    if projection.is_view:
        con.execute(f"CREATE OR REPLACE VIEW {projection.name} AS {projection.select}")
        return 0
    if projection.partition_by is None:
        con.execute(f"CREATE OR REPLACE TABLE {projection.name} AS {projection.select}")
        return _count(con, f"SELECT count(*) FROM {projection.name}")
    _create_empty(con, projection)
    return sum(_replace(con, projection, {"start": start, "end": end}) for start, end in windows)


def _replace(con: duckdb.DuckDBPyConnection, projection: Projection, window: dict[str, datetime]) -> int:
    """Make a window's rows what the SELECT says, touching only those that differ; returns how many came or went."""
    table, column = projection.name, projection.partition_by
    held = f"SELECT *, rowid FROM {table} WHERE {column} >= $start AND {column} < $end"
    if con.execute(f"{held} LIMIT 1", window).fetchone() is None:
        # Rows of a day lie side by side, so that a day is found and written out again without touching the month.
        return _count(con, f"INSERT INTO {table} BY NAME SELECT * FROM ({projection.select}) ORDER BY {column}", window)
    con.execute(f"CREATE OR REPLACE TEMP TABLE made AS {projection.select}", window)
    names = [row[0] for row in con.execute("DESCRIBE temp.made").fetchall()]
    same = " AND ".join(f"held.{name} IS NOT DISTINCT FROM made.{name}" for name in names)
    con.execute("BEGIN")
    try:
        gone = f"SELECT rowid FROM ({held}) AS held ANTI JOIN temp.made ON {same}"
        changed = _count(con, f"DELETE FROM {table} WHERE rowid IN ({gone})", window)
        changed += _count(
            con, f"INSERT INTO {table} BY NAME FROM temp.made ANTI JOIN ({held}) AS held ON {same}", window
        )
    except BaseException:
        con.execute("ROLLBACK")
        raise
    con.execute("COMMIT")
    con.execute("DROP TABLE temp.made")
    return changed


def _count(con: duckdb.DuckDBPyConnection, statement: str, window: dict[str, datetime] | None = None) -> int:
    row = con.execute(statement, window).fetchone()
    return int(row[0]) if row else 0


def _create_empty(con: duckdb.DuckDBPyConnection, projection: Projection) -> None:
    """Create a partitioned table without rows, its column types taken from the SELECT."""
    if not has_table(con, projection.name):
        empty = projection.select.replace("$start", "TIMESTAMPTZ '1970-01-01 00:00:00+00'").replace(
            "$end", "TIMESTAMPTZ '1970-01-01 00:00:00+00'"
        )
        con.execute(f"CREATE TABLE {projection.name} AS SELECT * FROM ({empty}) LIMIT 0")


def checks(projection: Projection) -> dict[str, str]:
    """Queries by name that return no row as long as a projection is what its header says."""
    if projection.is_view:
        return projection.invariants
    keys = ", ".join(projection.keys)
    unique = f"SELECT {keys}, count(*) AS found FROM {projection.name} GROUP BY {keys} HAVING count(*) > 1"
    return {**projection.invariants, "keys_are_unique": unique}


def violations(
    con: duckdb.DuckDBPyConnection, projection: Projection, windows: list[tuple[datetime, datetime]]
) -> list[Violation]:
    """Check a projection's unique keys and its invariants, over the windows rebuilt where it is partitioned.

    The days between the first and the last window are checked with them: one query, whatever their number.
    """
    if projection.partition_by and not windows:
        return []
    found = []
    for name, query in checks(projection).items():
        within = _within(query, windows) if projection.partition_by else query
        cursor = con.execute(f"SELECT * FROM ({within}) LIMIT 20")
        rows = cursor.fetchall()
        if rows:
            columns = tuple(str(item[0]) for item in cursor.description or ())
            found.append(Violation(projection.name, name, columns, tuple(rows)))
    return found


def _within(query: str, windows: list[tuple[datetime, datetime]]) -> str:
    """The query with each partitioned projection that it reads cut to the windows' span."""
    partitions = {one.name: one.partition_by for one in load() if one.partition_by}
    start, end = (f"TIMESTAMPTZ '{instant.isoformat()}'" for instant in (windows[0][0], windows[-1][1]))

    def cut(found: re.Match[str]) -> str:
        table = found[0]
        column = partitions.get(table)
        return f"(SELECT * FROM {table} WHERE {column} >= {start} AND {column} < {end})" if column else table

    return re.sub(rf"\b(?:{'|'.join(LAYERS)})\.\w+", cut, query)
