from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ledger import Cost, Coverage, Payer, obstacles, postings, postings_digest, statement_cents

SEPTEMBER = date(2026, 9, 1)
Book = dict[Payer, Cost]


def payer(team: str, cost_kind: str = "usage") -> Payer:
    """Someone who pays for September."""
    return Payer(SEPTEMBER, "Research", team, "", cost_kind)


amounts = st.integers(-(10**12), 10**12)
books = st.dictionaries(st.sampled_from("abcd").map(payer), st.builds(Cost, amounts, amounts))


def added(book: Book, lines: Book) -> Book:
    """The book once the lines are posted."""
    nothing = Cost(0, 0)
    pairs = {who: (book.get(who, nothing), lines.get(who, nothing)) for who in book.keys() | lines.keys()}
    return {who: Cost(a.share_seconds + b.share_seconds, a.micros + b.micros) for who, (a, b) in pairs.items()}


@given(restatements=st.lists(books, min_size=1, max_size=4))
def test_however_often_a_month_is_restated_its_postings_add_up_to_what_is_computed_last(
    restatements: list[Book],
) -> None:
    posted: Book = {}
    for computed in restatements:
        posted = added(posted, postings(computed, posted))
    assert postings(restatements[-1], posted) == {}


def test_a_correction_is_only_the_difference_and_an_unchanged_line_is_not_posted_again() -> None:
    posted = {payer("vision"): Cost(10, 100), payer("speech"): Cost(5, 50), payer("gone"): Cost(1, 7)}
    computed = {payer("vision"): Cost(10, 90), payer("speech"): Cost(5, 50), payer("new"): Cost(2, 3)}
    assert postings(computed, posted) == {
        payer("gone"): Cost(-1, -7),
        payer("new"): Cost(2, 3),
        payer("vision"): Cost(0, -10),
    }


def test_a_digest_is_of_the_lines_and_not_of_their_order() -> None:
    lines = [(payer("vision"), Cost(1, 2)), (payer("speech"), Cost(3, 4))]
    assert postings_digest(lines) == postings_digest(reversed(lines))
    assert postings_digest(lines) != postings_digest([(payer("vision"), Cost(1, 2)), (payer("speech"), Cost(3, 5))])


@given(st.lists(amounts, max_size=20))
def test_a_statement_in_cents_adds_up_to_the_rounded_total_and_no_line_is_a_cent_off(micros: list[int]) -> None:
    cents = statement_cents(micros)
    assert sum(cents) == (sum(micros) + 5_000) // 10_000
    assert all(abs(shown * 10_000 - exact) < 10_000 for shown, exact in zip(cents, micros, strict=True))


LAST_DAY = date(2026, 9, 30)
COMPLETE = Coverage(
    priced_ratio=1.0,
    measured_ratio=0.9,
    missing_rates=(),
    difference_micros=0,
    unproved_bills=(),
    used_until_day=LAST_DAY,
)


@pytest.mark.parametrize(
    ("coverage", "obstacle"),
    [
        ({"difference_micros": -1}, "does not add up"),
        ({"unproved_bills": ("aws/1/2026-09",)}, "aws/1/2026-09"),
        ({"missing_rates": ("EUR",)}, "no exchange rate for EUR"),
        (
            {"priced_ratio": 0.9499},
            "only 94.9% of allocated GPU time has a known cost, policy close_min_priced_ratio asks for 95.0%",
        ),
        (
            {"used_until_day": date(2026, 9, 28)},
            "known only until 2026-09-28: ingest those of the days up to 2026-09-30",
        ),
        ({"measured_ratio": 0.7}, "70.0% of allocated GPU time has telemetry"),
    ],
)
def test_a_month_does_not_close_on_figures_that_cannot_be_proved(coverage: dict[str, object], obstacle: str) -> None:
    facts = {name: getattr(COMPLETE, name) for name in COMPLETE.__slots__} | coverage
    (found,) = obstacles(Coverage(**facts), LAST_DAY, Decimal("0.95"), Decimal("0.80"))
    assert obstacle in found


def test_a_month_closes_when_complete_and_when_nothing_was_allocated_or_nothing_measures() -> None:
    assert obstacles(COMPLETE, LAST_DAY, Decimal("0.95"), Decimal("0.80")) == []
    assert obstacles(Coverage(None, None, (), 0, (), None), LAST_DAY, Decimal("0.95"), Decimal("0.80")) == []
