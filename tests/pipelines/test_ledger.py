"""Closing: post what is computed less what is posted, so that a closed month never changes and a correction names it.

One ledger's story is told once and looked at from several sides: September is billed, closed, and restated; October closes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from models.errors import CheckError, UsageError
from pipelines.build import build, opened
from pipelines.ledger import Closed, close, replayed
from tests.ledgers import append, at, bill, gpus, heard, home, line, node, owner, rate, run

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Settings

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
MONTH = at(1), at(31)
NEXT = at(1, month=10), at(1, month=11)
POSTED = "SELECT charge_month, posted_month, team, cost_kind, cost_micros FROM core.posting ORDER BY ALL"
PROOF = "SELECT charge_month, billed, difference FROM marts.proof_monthly ORDER BY ALL"


@dataclass
class Story:
    """What was seen on the way: the closes, and answers by moment."""

    settings: Settings
    closes: list[Closed]
    posted: list[list[tuple[Any, ...]]]
    proof: list[list[tuple[Any, ...]]]
    refused: list[str]

    def look(self) -> None:
        with opened(self.settings) as builder:
            self.posted.append(builder.con.execute(POSTED).fetchall())
            self.proof.append(builder.con.execute(PROOF).fetchall())

    def close(self, month: date, now: datetime) -> None:
        self.closes.append(close(self.settings, month, now=lambda: now))
        self.look()

    def refuse(self, month: date, now: datetime) -> None:
        with pytest.raises(UsageError) as refused:
            close(self.settings, month, now=lambda: now)
        self.refused.append(str(refused.value))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """September for 720.00, half of it used, closed on 5 October, restated to 730.00 on the 14th; October for 744.00."""
    story = Story(home(tmp_path_factory.mktemp("home")), [], [], [], [])
    used = run("1", "A", at(1), at(16), gpus("n1"))
    first = *node("n1"), *used, *owner("A", "vision"), *bill(line("n1", "720", *MONTH)), *heard("n1", at(30))
    append(story.settings, *first, recorded=at(3, month=10))
    story.refuse(SEPTEMBER, at(30))
    story.refuse(date(2026, 8, 1), at(5, month=10))
    story.close(SEPTEMBER, at(5, month=10))
    append(story.settings, *bill(line("n1", "730", *MONTH)), recorded=at(14, month=10))
    october = bill(line("n1", "744", *NEXT), month=OCTOBER)
    append(story.settings, *october, *heard("n1", at(31, month=10)), recorded=at(2, month=11))
    build(story.settings)
    story.look()
    story.refuse(SEPTEMBER, at(5, month=11))
    story.close(OCTOBER, at(5, month=11))
    return story


def test_the_first_close_posts_the_month(story: Story) -> None:
    assert story.posted[0] == [
        (SEPTEMBER, SEPTEMBER, "platform", "unallocated", 360_000_000),
        (SEPTEMBER, SEPTEMBER, "vision", "usage", 360_000_000),
    ]
    first = story.closes[0]
    assert (first.posting_count, first.cost_micros, first.correction_count) == (2, 720_000_000, 0)


def test_a_restatement_changes_no_posted_row(story: Story) -> None:
    """azure-docs #51759, reply-fr SPA #84: closed months changed daily, and a bill was complete only on the 14th."""
    assert story.posted[1] == story.posted[0]
    assert set(story.posted[0]) <= set(story.posted[2])


def test_the_next_close_posts_the_difference_and_names_the_month_it_corrects(story: Story) -> None:
    assert set(story.posted[2]) - set(story.posted[1]) == {
        (SEPTEMBER, OCTOBER, "platform", "unallocated", 5_000_000),
        (SEPTEMBER, OCTOBER, "vision", "usage", 5_000_000),
        (OCTOBER, OCTOBER, "platform", "unallocated", 744_000_000),
    }
    second = story.closes[1]
    assert (second.cost_micros, second.correction_count, second.correction_micros) == (744_000_000, 2, 10_000_000)


def test_what_is_posted_is_what_is_computed_after_each_close(story: Story) -> None:
    for posted, proof in ((story.posted[0], story.proof[0]), (story.posted[2], story.proof[2])):
        billed = sum(row[1] for row in proof)
        assert sum(row[4] for row in posted) == billed * 1_000_000
    assert story.proof[2] == [(SEPTEMBER, 730, 0), (OCTOBER, 744, 0)]


def test_every_close_keeps_the_proof(story: Story) -> None:
    assert all(difference == 0 for proof in story.proof for _, _, difference in proof)


def test_closes_have_their_order(story: Story) -> None:
    early, unknown, again = story.refused
    assert early == "2026-09 has not ended yet"
    assert "2026-08 has no costs or usage; months known: 2026-09" in unknown
    assert again.startswith("2026-09 is closed already")


@pytest.mark.parametrize(
    ("instant", "billed", "posted"),
    [
        (at(4, month=10), [(SEPTEMBER, Decimal(720), 0)], 0),
        (at(6, month=10), [(SEPTEMBER, Decimal(720), 0)], 2),
        (at(15, month=10), [(SEPTEMBER, Decimal(730), 0)], 2),
    ],
)
def test_the_books_can_be_read_as_of_an_instant(
    story: Story, instant: datetime, billed: list[Any], posted: int
) -> None:
    with replayed(story.settings, instant) as con:
        assert con.execute(PROOF).fetchall() == billed
        assert con.execute("SELECT count(*) FROM core.posting").fetchone() == (posted,)


def test_a_month_of_unknown_cost_may_not_close(tmp_path: Path) -> None:
    """A missing rate, a node that nobody billed, four weeks without a fact: each is named, with what to do."""
    settings = home(tmp_path)
    facts = *node("n1"), *run("1", "A", at(1), at(3), gpus("n1")), *bill(line("n2", "10", currency="EUR"))
    append(settings, *facts, recorded=at(2, month=10))
    with pytest.raises(CheckError) as refused:
        close(settings, SEPTEMBER, now=lambda: at(5, month=10))
    assert "no exchange rate for EUR: ingest an fx file" in str(refused.value)
    assert "only 0.0% of allocated GPU time has a known cost" in str(refused.value)
    assert "known only until 2026-09-02: ingest those of the days up to 2026-09-30" in str(refused.value)
    late = *rate("EUR", "1.10"), *bill(line("n1", "10", *MONTH), billing_account_id="2"), *heard("n1", at(30))
    append(settings, *late)
    assert close(settings, SEPTEMBER, now=lambda: at(5, month=10)).cost_micros == 21_000_000


def test_a_ledger_keeps_the_currency_that_its_months_were_closed_in(story: Story) -> None:
    with pytest.raises(UsageError, match="says JPY, but this ledger closed its months in USD: set it to USD"):
        build(replace(story.settings, reporting_currency="JPY"))
    assert build(story.settings).days == []
