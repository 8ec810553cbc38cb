"""However the same facts come in, they make the same books: shuffled, split, repeated, late or restated."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.ledgers import (
    Book,
    asset,
    at,
    bill,
    checkpoint,
    gpus,
    interrupted,
    line,
    node,
    owner,
    policy,
    rate,
    run,
    samples,
    state,
    tables,
)

if TYPE_CHECKING:
    from datetime import datetime

    from tests.ledgers import Fact

MONTH = at(1), at(31)
RESTATED = bill(line("n1", "720", *MONTH), line("n2", "90", at(2), at(3), currency="USD"), line(None, "7"))

# Each delivery: what its source says, and as of when. The last two say anew what the first two said.
DELIVERIES: list[tuple[datetime, list[Fact]]] = [
    (at(3, month=10), bill(line("n1", "700", *MONTH), line("gone", "5"))),
    (
        at(2),
        [
            *run("1", "A", at(1, 6), None, gpus("n1"), submitted_at=at(1, 5, 30)),
            *run("2", "B", at(2), at(2, 3), gpus("n2", 3, profile="1g.5gb"), submitted_at=at(31, 22, month=8)),
        ],
    ),
    (at(1), [*node("n1", 2), *node("n2", mig={"1g.5gb": 7}), *asset("n2", "100", 3), *rate("EUR", "1.10")]),
    (
        at(1),
        [
            *owner("A", "vision"),
            *owner("A", "vision", "Product", start=at(2)),
            *policy("distribute", "unallocated", "even"),
            *policy("workload_class", "account:B", "deferrable"),
            *policy("restart_seconds", "", "54000"),  # fifteen hours: past midnight
        ],
    ),
    (
        at(4),
        [*samples("GPU-1", at(1, 7), range(0, 60, 2)), *state("n1", at(2, 12), "down"), *state("n1", at(2, 18), "up")],
    ),
    (at(3, month=10), bill(line("n1", "33.333333", at(1), at(3), currency="EUR"), billing_account_id="2")),
    (at(4), run("3.0", "C", at(1, 20), at(3, 6, 0, 9), gpus("n2", 1, profile="1g.5gb"), is_from_step=True)),
    (at(5), run("3", "C", at(1, 20), at(3, 6), gpus("n2", 1, profile="1g.5gb"))),
    (at(4), [*interrupted("1", at(1, 6), at(2, 9)), *interrupted("2", at(2), at(2, 3))]),
    (at(4), checkpoint("1", at(1, 12), at(1, 23, 30))),
    (at(4), checkpoint("1", at(2, 8), at(3, 1), blocking_seconds=60)),
    (at(5, month=10), RESTATED),
    (at(4), [*run("1", "A", at(1, 6), at(2, 9, 30), gpus("n1")), *run("1", "A", at(2, 10), at(3, 4), gpus("n1", 2))]),
]
BOUGHT = re.compile("price|offer|commitment|plan")  # what is offered, bought and planned touches no day
PIECES = [
    (said, facts[half : half + (len(facts) + 1) // 2])
    for said, facts in DELIVERIES
    for half in (0, (len(facts) + 1) // 2)
]
CLEAN = Book()
for said, facts in DELIVERIES:
    CLEAN.tell(*facts, delivered=said)
EXPECTED = tables(CLEAN.build().con)
FEW = settings(max_examples=5, deadline=None, derandomize=True, phases=[Phase.generate])  # each takes seconds


def test_the_books_of_this_file_are_not_empty() -> None:
    filled = {name for name, rows in EXPECTED.items() if rows}
    expected = {"core.posting", "marts.energy_daily", "core.energy_hourly", "core.bill_residue"}
    assert not {name for name in set(EXPECTED) - filled - expected if not BOUGHT.search(name)}


@FEW
@given(st.permutations(range(len(PIECES))), st.lists(st.integers(0, len(PIECES) - 1), max_size=5))
def test_any_order_and_repetition_makes_the_same_books(order: list[int], again: list[int]) -> None:
    book = Book()
    for number in [*order, *again]:
        said, facts = PIECES[number]
        book.tell(*facts, delivered=said)
    assert tables(book.build().con) == EXPECTED


@FEW
@given(st.permutations(range(len(DELIVERIES))), st.sets(st.integers(0, len(DELIVERIES) - 2), max_size=3))
def test_building_after_some_deliveries_is_building_once(order: list[int], pauses: set[int]) -> None:
    book = Book()
    for place, number in enumerate(order):
        said, facts = DELIVERIES[number]
        book.tell(*facts, delivered=said)
        if place in pauses:
            book.build()
    assert tables(book.build().con) == EXPECTED


def test_a_second_build_does_nothing() -> None:
    before = tables(CLEAN.con)
    assert tables(CLEAN.build().con) == before


def test_a_full_build_is_an_incremental_one() -> None:
    assert tables(CLEAN.build(full=True).con) == EXPECTED


def test_time_that_goes_on_reaches_what_has_not_ended() -> None:
    """A run, a node and an asset that go on count to the end of the last day known, though nobody mentions them again."""
    going = *node("n1", 2), *run("1", "A", at(1), None, gpus("n1")), *asset("n1", "360", 12)
    later = run("2", "B", at(5), at(5) + timedelta(hours=1), gpus("n1"))
    book = Book(*going).build().tell(*later).build()
    assert tables(book.con) == tables(Book(*going, *later).build().con)
    assert book.one("SELECT sum(gpu_hours) FROM marts.usage_daily WHERE account = 'A'") == 5 * 24


def test_a_dump_that_says_less_changes_nothing() -> None:
    """Once a run is over, no other dump, whenever made, sets it running again."""
    over, going = (run("1", "A", at(1), end, gpus("n1")) for end in (at(1, 5), None))
    for first, second in ((over, going), (going, over)):
        book = Book(*first).build().tell(*second, delivered=at(1, month=12)).build()
        assert book.ask("SELECT gpu_hours, final_state FROM marts.run_usage") == [(5, "COMPLETED")]


def test_demand_is_what_metering_says_and_no_less_is_wanted() -> None:
    """Each hour's held time is the metered allocation, hour by hour; only what still runs wants more than it held."""
    metered = CLEAN.ask("SELECT cluster, gpu_model, use_hour, sum(share_seconds) FROM core.run_hourly GROUP BY ALL")
    held = CLEAN.ask(
        "SELECT cluster, gpu_model, use_hour, sum(held_share_seconds) FROM marts.demand_hourly "
        "GROUP BY ALL HAVING sum(held_share_seconds) > 0"
    )
    assert held == metered
    assert CLEAN.one("SELECT sum(wanted_share_seconds) = sum(held_share_seconds) FROM marts.demand_hourly")
    assert CLEAN.one("SELECT min(use_hour) FROM marts.demand_hourly") == at(31, 22, month=8)
