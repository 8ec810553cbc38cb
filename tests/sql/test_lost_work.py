"""Lost work: who pays for what a run did after its last checkpoint, when it was interrupted."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.build import build, opened
from pipelines.ledger import close
from tests.ledgers import (
    Book,
    Fact,
    append,
    at,
    bill,
    checkpoint,
    gpus,
    heard,
    home,
    interrupted,
    line,
    node,
    owner,
    policy,
    run,
    tables,
)

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

START, CUT = at(1, 10), at(1, 10, 50)
SHARES = 4200
SEPTEMBER = date(2026, 9, 1)
FEW = settings(max_examples=5, deadline=None, derandomize=True, phases=[Phase.generate])  # each takes seconds
# Two GPUs of a node at 1.50 an hour each: an attempt of 50 minutes that was interrupted, and beside it another team's day.
KNOWN = [
    *node("n1", 3),
    *bill(line("n1", "108")),
    *owner("A", "a"),
    *owner("B", "b"),
    *run("1", "A", START, CUT, gpus("n1", 2), state="PREEMPTED"),
    *run("2", "B", at(1), at(2), gpus("n1", 1)),
]
SAVED = checkpoint("1", at(1, 10, 30), blocking_seconds=90)
WITHOUT = {("a", "usage"): Decimal("2.50"), ("b", "usage"): 36, ("platform", "unallocated"): Decimal("69.50")}


def test_the_time_since_the_last_checkpoint_is_no_usage() -> None:
    """Forty GPU-minutes at 1.50 an hour leave the team's usage; GPU time and its buckets stay."""
    book = Book(*KNOWN, *SAVED)
    assert book.charged() == {**WITHOUT, ("a", "usage"): Decimal("1.50"), ("platform", "lost_work"): 1}
    assert book.buckets() == Book(*KNOWN).buckets()
    usage = "blocking_seconds, lost_share_seconds, lost_gpu_hours, lost_cost, cost"
    assert book.ask(f"SELECT {usage} FROM marts.run_usage WHERE run_id = '1'") == [
        (90, 2 * 20 * 60 * SHARES, Decimal("0.6667"), 1, Decimal("2.50"))
    ]
    assert book.ask("SELECT lost_gpu_hours, lost_cost FROM marts.run_usage WHERE run_id = '2'") == [(0, 0)]
    assert book.ask(
        "SELECT team, gpu_hours FROM marts.chargeback_monthly WHERE cost_kind IN ('usage', 'lost_work')"
    ) == [
        ("a", Decimal("1.6667")),
        ("b", 24),
        ("platform", 0),
    ]


def test_without_a_checkpoint_nothing_moves_and_the_time_concerned_is_a_finding() -> None:
    book = Book(*KNOWN)
    assert book.charged() == WITHOUT
    assert book.ask("SELECT lost_gpu_hours, lost_cost FROM marts.run_usage WHERE run_id = '1'") == [(None, None)]
    found = book.ask("SELECT subject, severity, amount FROM marts.findings WHERE kind = 'lost_work_unknown'")
    assert found == [("alps/A", "info", pytest.approx(100 / 60))]
    assert "lost_work_unknown" not in Book(*KNOWN, *SAVED).findings()


@pytest.mark.parametrize(
    ("value", "paid"),
    [
        ("platform", {"platform": "1"}),
        ("owner", {"a": "1"}),
        ("even", {"a": "0.5", "b": "0.5"}),
        ("proportional", {"a": "0.064935", "b": "0.935065"}),  # 100 GPU-minutes to 24 hours of that day
        ("fixed", {"b": "1"}),
    ],
)
def test_who_pays_for_lost_work_is_a_policy(value: str, paid: dict[str, str]) -> None:
    book = Book(*KNOWN, *SAVED, *policy("distribute", "lost_work", value), *policy("fixed_weight", "b", "1"))
    lost = {team: cost for (team, kind), cost in book.charged().items() if kind == "lost_work"}
    assert lost == {team: Decimal(cost) for team, cost in paid.items()}


def test_the_policy_in_force_when_the_day_ends_decides() -> None:
    """Lost from 22:00 to 02:00: two hours of each day, of which the owner bears those of the second."""
    facts = *node("n1"), *bill(line("n1", "48", at(1), at(3))), *owner("A", "a")
    cut = run("1", "A", at(1, 21), at(2, 2), gpus("n1"), state="NODE_FAIL")
    book = Book(*facts, *cut, *checkpoint("1", at(1, 22)), *policy("distribute", "lost_work", "owner", start=at(2)))
    charged = book.charged()
    assert (charged["platform", "lost_work"], charged["a", "lost_work"], charged["a", "usage"]) == (2, 2, 1)


def test_lost_work_on_a_node_of_unknown_cost_stays_unknown_usage() -> None:
    facts = *node("n1"), *owner("A", "a"), *run("1", "A", START, CUT, gpus("n1"), state="PREEMPTED"), *SAVED
    book = Book(*facts)
    assert book.charged() == {("a", "usage"): None, ("platform", "unallocated"): None}
    assert book.ask("SELECT lost_share_seconds, lost_cost FROM marts.run_usage") == [(20 * 60 * SHARES, None)]


def test_a_credit_is_moved_like_a_cost() -> None:
    """A day that brings money: what the lost hours brought is the platform's."""
    facts = [fact for fact in KNOWN if fact not in bill(line("n1", "108"))]
    book = Book(*facts, *bill(line("n1", "-108")), *SAVED)
    assert book.charged() == {
        ("a", "usage"): Decimal("-1.50"),
        ("b", "usage"): -36,
        ("platform", "lost_work"): -1,
        ("platform", "unallocated"): Decimal("-69.50"),
    }


@pytest.mark.parametrize("late", ["checkpoint", "first checkpoint", "interruption"])
def test_what_becomes_known_later_changes_the_days_it_is_about(late: str) -> None:
    """An attempt over three days: a build after each of two deliveries is one build of both."""
    attempt = run("1", "A", at(1, 20), at(3, 4), gpus("n1"), submitted_at=at(1, 19))
    cut, saved = interrupted("1", at(1, 20), at(3, 3)), checkpoint("1", at(1, 21))
    first, second = {
        "checkpoint": ([*cut, *saved], checkpoint("1", at(2, 5))),
        "first checkpoint": (cut, checkpoint("1", at(9))),
        "interruption": (saved, cut),
    }[late]
    known = (
        *node("n1"),
        *owner("A", "a"),
        *bill(line("n1", "720", at(1), at(31))),
        *attempt,
        *run("2", "B", at(8), at(9), gpus("n1")),
    )
    book = Book(*known, *first).build().tell(*second).build()
    assert tables(book.con) == tables(Book(*known, *first, *second).build().con)
    lost = book.ask("SELECT cost_day, cost_micros FROM core.pool_daily WHERE pool = 'lost_work'")
    hours = {"checkpoint": {2: 19, 3: 3}, "first checkpoint": {1: 4, 2: 24, 3: 3}, "interruption": {1: 3, 2: 24, 3: 3}}
    assert {day.day: micros / 1_000_000 for day, micros in lost} == hours[late]


def test_a_later_checkpoint_touches_no_attempt_but_its_own() -> None:
    """Not the days of an attempt that was interrupted before, nor of one that goes on."""
    known = [
        *run("1", "A", at(1), at(3), gpus("n1"), state="PREEMPTED"),
        *run("1", "A", at(4), None, gpus("n1")),
        *run("2", "B", at(1), at(10), gpus("n2")),
        *checkpoint("1", at(2)),
    ]
    book = Book(*known).build().tell(*checkpoint("1", at(6, 12)))
    assert [day.day for day in book.prepared()] == [6]


def test_lost_work_known_after_the_close_is_a_correction_that_adds_up_to_nothing(tmp_path: Path) -> None:
    """Ten of thirty days at 24.00 were lost: October's statement moves 240.00 of September, and no GPU-hour."""
    ledger = home(tmp_path)
    cut = run("1", "A", at(1), at(21), gpus("n1"), state="PREEMPTED")
    known = *node("n1"), *owner("A", "a"), *bill(line("n1", "720", at(1), at(31))), *heard("n1", at(30)), *cut
    append(ledger, *known, recorded=at(3, month=10))
    close(ledger, SEPTEMBER, now=lambda: at(5, month=10))
    more = *checkpoint("1", at(11)), *heard("n1", at(31, month=10))
    append(ledger, *more, recorded=at(2, month=11))
    build(ledger)
    close(ledger, date(2026, 10, 1), now=lambda: at(5, month=11))
    asked = (
        "SELECT team, cost_kind, usage_share_seconds, cost_micros FROM core.posting WHERE charge_month < posted_month"
    )
    with opened(ledger) as builder:
        assert sorted(builder.con.execute(asked).fetchall()) == [
            ("a", "usage", 0, -240_000_000),
            ("platform", "lost_work", 0, 240_000_000),
        ]


# The first attempt held two GPUs to 10:50; the second goes on ten minutes later.
AGAIN, BACK = [*KNOWN, *run("1", "A", at(1, 11), at(1, 12), gpus("n1", 2), partition="long")], at(1, 11)


def test_restart_work_is_no_usage() -> None:
    """Ten minutes of two GPUs at 1.50 an hour: twenty GPU-minutes, though no checkpoint is known; GPU time stays."""
    book = Book(*AGAIN, *policy("restart_seconds", "", "600"))
    charged = {**WITHOUT, ("platform", "unallocated"): Decimal("66.50")}
    assert book.charged() == {**charged, ("a", "usage"): 5, ("platform", "lost_work"): Decimal("0.50")}
    assert book.buckets() == Book(*AGAIN).buckets()
    usage = "SELECT started_at, lost_share_seconds, lost_cost, cost FROM marts.run_usage WHERE run_id = '1'"
    assert book.ask(usage) == [
        (START, None, None, Decimal("2.50")),
        (BACK, 2 * 10 * 60 * SHARES, Decimal("0.50"), 3),
    ]


def test_restart_work_is_no_part_of_the_time_of_which_too_little_is_known() -> None:
    """Both attempts were interrupted and tell of no checkpoint: 50 minutes and 30 of two GPUs, less 10 of restart."""
    second = run("1", "A", BACK, at(1, 11, 30), gpus("n1", 2), state="NODE_FAIL")
    book = Book(*KNOWN, *second, *policy("restart_seconds", "", "600"))
    [(amount,)] = book.ask("SELECT amount FROM marts.findings WHERE kind = 'lost_work_unknown'")
    assert amount == pytest.approx(2 * (50 + 30 - 10) / 60)


def test_a_restart_of_no_time_leaves_every_table_as_it_is() -> None:
    zero = Book(*AGAIN, *SAVED, *policy("restart_seconds", "", "0")).build()
    assert {**tables(zero.con), "staged.policy": []} == tables(Book(*AGAIN, *SAVED).build().con)


@pytest.mark.parametrize(
    ("policies", "minutes"),
    [
        ([("", "600")], 10),
        ([("", "99999999999")], 60),  # at most all of the attempt
        ([("account:A", "300"), ("", "600")], 5),
        ([("partition:long", "120"), ("account:A", "300"), ("", "600")], 2),
        ([("partition:long", "0"), ("", "600")], 0),
        ([("partition:short", "120"), ("account:B", "300")], 0),
    ],
)
def test_the_most_specific_policy_says_how_long_a_restart_takes(policies: list[tuple[str, str]], minutes: int) -> None:
    book = Book(*AGAIN, *(fact for said in policies for fact in policy("restart_seconds", *said)))
    assert _lost_minutes(book) == ({BACK: 2 * minutes} if minutes else {})


def test_the_restart_policy_in_force_at_the_attempts_start_decides() -> None:
    later = policy("restart_seconds", "", "1200", start=at(1, 11, 1))
    assert _lost_minutes(Book(*AGAIN, *policy("restart_seconds", "", "600"), *later)) == {BACK: 20}


def test_only_an_attempt_after_an_interrupted_one_restarts() -> None:
    """Not the first, nor the third after a second that was done, nor another cluster's of the same number."""
    more = (
        *run("1", "A", at(1, 13), at(1, 14), gpus("n1")),
        *run("1", "A", at(1, 12), at(1, 13), gpus("n1"), cluster="todi"),
    )
    assert _lost_minutes(Book(*AGAIN, *more, *policy("restart_seconds", "", "600"))) == {BACK: 20}


@pytest.mark.parametrize(("saved", "minutes"), [(5, 20), (30, 10), (12, 10 + 8), (None, 20)])
def test_what_is_restart_work_and_lost_counts_once(saved: int | None, minutes: int) -> None:
    """Restarted for 10 minutes, saved (or not), and interrupted anew: after 20 minutes, or 30 where it saved at the end."""
    cut = at(1, 11, 30 if saved == 30 else 20)
    second = run("1", "A", BACK, cut, gpus("n1"), state="PREEMPTED")
    saves = checkpoint("1", *([at(1, 10, 50)] if saved is None else [at(1, 10, 50), at(1, 11, saved)]))
    book = Book(*KNOWN, *second, *saves, *policy("restart_seconds", "", "600"))
    assert _lost_minutes(book) == {BACK: minutes}


@pytest.mark.parametrize("late", ["interruption", "attempt before", "attempt between", "policy", "next"])
def test_restart_work_known_later_changes_the_days_it_is_about(late: str) -> None:
    """Restarted at 20:00 for thirty hours, over three days: a build after each of two deliveries is one build of both."""
    first = run("1", "A", at(1, 1), at(1, 2), gpus("n1"))
    told = {
        "interruption": interrupted("1", at(1, 1), at(1, 2)),
        "attempt before": run("1", "A", at(1, 3), at(1, 4), gpus("n1"), state="NODE_FAIL"),
        "attempt between": run("1", "A", at(2, 1), at(2, 2), gpus("n1")),
        "policy": policy("restart_seconds", "", "108000"),
        "next": run("1", "A", at(3, 20), None, gpus("n1")),
    }
    known = [*node("n1"), *owner("A", "a"), *bill(line("n1", "720", at(1), at(31))), *heard("n1", at(12)), *first]
    known += [fact for name in ("policy", "next") if name != late for fact in told[name]]
    known += [] if late in {"interruption", "attempt before"} else told["interruption"]
    book = Book(*known).build()
    before = book.ask("SELECT cost_day, cost_micros FROM core.pool_daily WHERE pool = 'lost_work'")
    book.tell(*told[late]).build()
    assert tables(book.con) == tables(Book(*known, *told[late]).build().con)
    lost = book.ask("SELECT cost_day, cost_micros FROM core.pool_daily WHERE pool = 'lost_work'")
    of_next, of_between = {3: 4, 4: 24, 5: 2}, {2: 1}
    found = [{day.day: micros / 1_000_000 for day, micros in rows} for rows in (before, lost)]
    assert found == ([of_next, of_between] if late == "attempt between" else [{}, of_next])


def _lost_minutes(book: Book) -> dict[datetime, int]:
    """GPU-minutes of lost and restart work by attempt of run 1."""
    rows = book.ask(
        "SELECT started_at, sum(lost_share_seconds) FROM core.lost_work_hourly WHERE run_id = '1' GROUP BY ALL"
    )
    return {start: int(share_seconds) // (60 * SHARES) for start, share_seconds in rows if start > START}


MINUTES = st.integers(0, 3000)
ATTEMPT = st.tuples(
    st.integers(0, 1500), st.integers(1, 1500), st.booleans(), st.integers(1, 3), st.lists(MINUTES, max_size=4)
)


@FEW
@given(st.lists(ATTEMPT, min_size=4, max_size=8), st.sampled_from(["platform", "owner", "proportional", "even"]))
def test_lost_time_is_what_counting_gives_and_no_micro_is_lost(
    attempts: list[tuple[int, int, bool, int, list[int]]], value: str
) -> None:
    """Counted minute by minute; the proof of the books must hold under each policy."""
    facts: list[Fact] = [*node("n1", 3 * len(attempts)), *bill(line("n1", "777.777777", at(1), at(4)))]
    expected = {}
    for number, (begin, length, is_cut, count, saved) in enumerate(attempts):
        state = "PREEMPTED" if is_cut else "COMPLETED"
        facts += run(str(number), f"A{number}", _minute(begin), _minute(begin + length), gpus("n1", count), state=state)
        facts += [*checkpoint(str(number), *map(_minute, saved)), *owner(f"A{number}", f"a{number % 3}")]
        inside = [minute for minute in saved if begin <= minute <= begin + length]
        lost = [minute for minute in range(begin, begin + length) if minute >= max(inside, default=begin)]
        expected[str(number)] = (len(lost) * 60 * count * SHARES if saved else None) if is_cut else 0
    book = Book(*facts, *policy("distribute", "lost_work", value))
    assert dict(book.ask("SELECT run_id, lost_share_seconds FROM marts.run_usage")) == expected
    assert sum(book.charged().values()) == Decimal("777.777777")


def _minute(number: int) -> datetime:
    return at(1) + timedelta(minutes=number)
