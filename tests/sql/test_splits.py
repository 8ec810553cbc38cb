"""The splits of money in SQL, held to ``models.apportion`` over generated weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.apportion import apportion
from pipelines.projections import load, rebuild
from tests.ledgers import CLUSTER, Book, at, bill, gpus, line, node, owner, policy, run

DAY = at(1)
FEW = settings(max_examples=40, deadline=None, derandomize=True)
AMOUNTS = st.integers(-10_000_000_000, 10_000_000_000)


@pytest.fixture(scope="module")
def book() -> Book:
    """A day with a run, a bill and a policy, projected once; each example then changes what a split reads."""
    facts = *node("n1"), *run("1", "A", at(1), at(2), gpus("n1")), *bill(line("n1", "1")), *owner("A", "a")
    return Book(*facts, *policy("distribute", "unallocated", "proportional")).project("core.line_daily")


def split(book: Book, table: str, **inputs: list[tuple[Any, ...]]) -> None:
    """Rebuild one day of a projection over the rows given for the core tables that it reads."""
    for name, rows in inputs.items():
        book.con.execute(f"DELETE FROM core.{name}")
        if rows:
            book.con.executemany(f"INSERT INTO core.{name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    rebuild(book.con, next(one for one in load() if one.name == table), [(at(1), at(2))])


def costs(book: Book, weights: list[list[int]], amounts: list[int]) -> dict[str, int]:
    """Cost of each run of a node's day: ``weights[hour][run]`` in share-seconds and ``amounts[hour]`` in micros."""
    held = [
        (CLUSTER, str(name), at(1), "A", "n1", "A100-40GB", "", at(1, hour), weight, weight)
        for hour, row in enumerate(weights)
        for name, weight in enumerate(row)
        if weight
    ]
    priced = [(CLUSTER, "n1", at(1, hour), amount, None) for hour, amount in enumerate(amounts)]
    split(book, "core.cost_daily", run_hourly=held, bucket_hourly=[], node_cost_hourly=priced)
    return dict(book.con.execute("SELECT run_id, priced_micros FROM core.cost_daily").fetchall())


@FEW
@given(st.integers(0, 10_000_000_000), st.lists(st.integers(1, 50), min_size=1, max_size=9))
def test_an_hour_of_a_node_is_apportioned(book: Book, amount: int, weights: list[int]) -> None:
    assert costs(book, [weights], [amount]) == apportion(amount, {str(name): one for name, one in enumerate(weights)})


@FEW
@given(
    st.lists(st.tuples(AMOUNTS, st.lists(st.integers(1, 15_120_000), min_size=4, max_size=4)), min_size=1, max_size=24)
)
def test_a_day_of_a_node_is_split_whole_and_nobody_is_a_micro_off(
    book: Book, hours: list[tuple[int, list[int]]]
) -> None:
    amounts, weights = [amount for amount, _ in hours], [row for _, row in hours]
    found = costs(book, weights, amounts)
    assert sum(found.values()) == sum(amounts)
    for name in range(4):
        exact = sum(Fraction(amount * row[name], sum(row)) for amount, row in hours)
        assert abs(found[str(name)] - exact) <= 1


@FEW
@given(AMOUNTS, st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 10**12), min_size=1))
def test_a_pool_is_apportioned_to_teams(book: Book, amount: int, weights: dict[str, int]) -> None:
    pool = [(DAY, CLUSTER, "unallocated", 0, amount)]
    owners = [(DAY, CLUSTER, "Research", team, "", weight, 0, 0, 0, None, 0) for team, weight in weights.items()]
    split(book, "core.line_daily", pool_daily=pool, owner_daily=owners)
    rows = book.con.execute("SELECT team, cost_micros FROM core.line_daily WHERE cost_kind = 'unallocated'").fetchall()
    assert dict(rows) == {**apportion(amount, weights), "platform": 0}
