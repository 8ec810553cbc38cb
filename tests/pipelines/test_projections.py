"""A projection is what its file says: its name from the path, what it reads from its SQL, its contract in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from pipelines.projections import Projection, load, parse, rebuild, tables_read, violations
from tests.ledgers import Book, at, bill, gpus, line, node, run

if TYPE_CHECKING:
    from datetime import datetime

HEADER = "/*\ngrain: one row\nkeys: [use_day]\npartition_by: use_day\nunits: {}\ninvariants: {}\n*/\n"
WEEK = [(at(1), at(4))]
FACTS = (*node("n1"), *run("1", "A", at(1), at(4), gpus("n1")), *bill(line("n1", "30", at(1), at(4))))


@pytest.fixture(scope="module")
def book() -> Book:
    return Book(*FACTS).project("core.cost_daily")


@pytest.fixture(scope="module")
def built() -> Book:
    return Book(*FACTS).build()


def test_what_a_projection_reads_is_what_its_sql_names() -> None:
    sql = "with a as (select 1 from core.run_hourly) select 1 from a join staged.run as r on true"
    assert tables_read(sql) == {"core.run_hourly", "staged.run"}


def test_each_comes_after_those_it_reads() -> None:
    seen: set[str] = set()
    for one in load():
        assert {name for name in one.reads if name.split(".")[0] in {"staged", "core", "marts"}} <= seen, one.name
        seen.add(one.name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select 1", "sql/projections/core/a.sql: header lacks grain, keys, partition_by"),
        (HEADER.replace("grain: one row\n", "") + "select 1", "header lacks grain$"),
        (HEADER.replace("partition_by: use_day\n", "") + "select 1", "header lacks partition_by$"),
    ],
)
def test_a_header_that_lacks_a_field_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse("core.a", text)


@pytest.mark.parametrize("windows", [WEEK, [(at(2), at(3))], [(at(1), at(2)), (at(2), at(3)), (at(3), at(4))]])
def test_twice_is_the_same_as_once_whatever_the_window(book: Book, windows: list[tuple[datetime, datetime]]) -> None:
    for one in load():
        if one.name in {"core.run_hourly", "core.node_cost_hourly", "core.cost_daily"}:
            before = book.con.execute(f"SELECT * FROM {one.name} ORDER BY ALL").fetchall()
            rebuild(book.con, one, windows)
            assert book.con.execute(f"SELECT * FROM {one.name} ORDER BY ALL").fetchall() == before


def test_only_rows_that_differ_are_touched(book: Book) -> None:
    [one] = [one for one in load() if one.name == "core.cost_daily"]
    assert rebuild(book.con, one, WEEK) == 0
    book.con.execute("UPDATE core.cost_daily SET priced_micros = priced_micros + 1 WHERE use_day = '2026-09-02'")
    wrong = book.con.execute("SELECT count(*) FROM core.cost_daily WHERE use_day = '2026-09-02'").fetchone()
    assert wrong is not None
    assert rebuild(book.con, one, WEEK) == 2 * wrong[0] > 0


@pytest.mark.parametrize("projection", load(), ids=lambda one: one.name)
def test_no_projection_compares_all_rows_with_all(projection: Projection, built: Book) -> None:
    """A left join on a condition that is no comparison of columns makes DuckDB try every pair of rows."""
    window = {"start": at(1), "end": at(4)} if projection.partition_by else None
    [(_, plan)] = built.con.execute(f"EXPLAIN {projection.select}", window).fetchall()
    assert "BLOCKWISE_NL_JOIN" not in plan


def test_a_select_that_fails_leaves_the_table_as_it_was(book: Book) -> None:
    select = "select cast('no day' || run_id as timestamptz) as use_day from core.run_hourly where use_hour between $start and $end"
    broken = parse("core.cost_daily", HEADER + select)
    before = book.con.execute("SELECT count(*) FROM core.cost_daily").fetchone()
    with pytest.raises(duckdb.ConversionException, match="no day"):
        rebuild(book.con, broken, WEEK)
    assert book.con.execute("SELECT count(*) FROM core.cost_daily").fetchone() == before


def test_a_broken_invariant_says_where_and_shows_the_rows() -> None:
    book = Book(*FACTS).project("core.cost_daily")
    cost = next(one for one in load() if one.name == "core.cost_daily")
    book.con.execute("UPDATE core.cost_daily SET priced_micros = priced_micros + 1 WHERE use_day = '2026-09-02'")
    [broken] = violations(book.con, cost, WEEK)
    assert str(broken).startswith("core.cost_daily: a node day is split exactly does not hold: cluster=alps, node=n1")
    assert violations(book.con, cost, [(at(3), at(4))]) == []


def test_a_row_twice_breaks_the_keys() -> None:
    book = Book(*FACTS).project("core.cost_daily")
    cost = next(one for one in load() if one.name == "core.cost_daily")
    book.con.execute("INSERT INTO core.cost_daily SELECT * FROM core.cost_daily WHERE use_day = '2026-09-02'")
    assert "keys_are_unique" in {one.invariant for one in violations(book.con, cost, WEEK)}
