"""Each folder ``<layer>/<table>/<case>`` is a case: what went in, one CSV a table, and what must stand in the table.

``events.<type>.csv`` holds facts; ``<layer>.<table>.csv`` stands in for a projection that would be built from them. A
column that is left out, like an empty field, is NULL (where NULL is not allowed: empty text, or false); "" is empty text. ``expect.csv`` holds all
rows of the table, but only the columns that the case is about. Every projection on the way also keeps its invariants.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from models.events import EVENT_TYPES, columns, table_name
from tests.ledgers import LATER, Book

if TYPE_CHECKING:
    import duckdb

HERE = Path(__file__).parent
NOTHING = {"BOOLEAN": "'false'"}
CASES = sorted(path.parent for path in HERE.glob("*/*/*/expect.csv"))


class Case(Book):
    """A book whose facts are the files of a folder."""

    def __init__(self, folder: Path) -> None:
        """Read the facts."""
        super().__init__()
        self._folder = folder
        told = json.dumps(dict.fromkeys(map(table_name, EVENT_TYPES), ""))
        self.con.execute("UPDATE lake.events.batches SET content_digests = ?", [told])
        for event in EVENT_TYPES:
            path = folder / f"events.{table_name(event)}.csv"
            if path.exists():
                empty = {
                    one.name: NOTHING.get(one.unit.sql_type, "''") for one in columns(event) if not one.is_nullable
                }
                own = {"batch_id": "'1'", "version_at": f"'{LATER.isoformat()}'"}
                insert(self.con, f"lake.events.{table_name(event)}", path, empty | own)
        self._batch = 99

    def substitute(self, table: str) -> None:
        """Put the rows of a table's own file in its place."""
        path = self._folder / f"{table}.csv"
        if path.exists():
            self.con.execute(f"DELETE FROM {table}")
            insert(self.con, table, path, {})


def header(path: Path) -> list[str]:
    with path.open(newline="") as text:
        return next(csv.reader(text))


def insert(con: duckdb.DuckDBPyConnection, table: str, path: Path, otherwise: dict[str, str]) -> None:
    """Insert a CSV file, each field cast to its column's type."""
    types = {row[0]: row[1] for row in con.execute(f"DESCRIBE {table}").fetchall()}
    given = header(path)
    assert not set(given) - set(types), f"{path}: {table} has no column {set(given) - set(types)}"
    fields = [f"CAST(coalesce({name}, {otherwise.get(name, 'NULL')}) AS {types[name]}) AS {name}" for name in given]
    fields += [f"CAST({value} AS {types[name]}) AS {name}" for name, value in otherwise.items() if name not in given]
    con.execute(
        f"INSERT INTO {table} BY NAME SELECT {', '.join(fields)} FROM read_csv('{path}', all_varchar = true, header = true, allow_quoted_nulls = false)"
    )


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: "/".join(folder.relative_to(HERE).parts))
def test_a_case_gives_what_it_expects(folder: Path) -> None:
    layer, table, _ = folder.relative_to(HERE).parts
    case = Case(folder).project(f"{layer}.{table}")
    names = ", ".join(header(folder / "expect.csv"))
    case.con.execute(f"CREATE TEMP TABLE expected AS SELECT {names} FROM {layer}.{table} LIMIT 0")
    insert(case.con, "temp.expected", folder / "expect.csv", {})
    found = case.con.execute(f"SELECT {names} FROM {layer}.{table} ORDER BY ALL").fetchall()
    assert found == case.con.execute("SELECT * FROM temp.expected ORDER BY ALL").fetchall()
