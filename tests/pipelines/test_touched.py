"""New facts touch the days they are about, however old, and no others."""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

import pytest

from models.events import CheckpointSaved, PriceObserved, RunInterrupted
from pipelines.touched import days_between, windows
from tests.ledgers import (
    CLUSTER,
    Book,
    Fact,
    asset,
    at,
    bill,
    gpus,
    line,
    node,
    owner,
    policy,
    rate,
    run,
    samples,
    state,
)

HISTORY = [*run("old", "A", at(1), at(11), gpus("n1")), *bill(line("n1", "10", at(1), at(11)))]


RUN = {"cluster": CLUSTER, "run_id": "old"}
PRICE = {
    "offer_id": "spot",
    "gpu_model": "H100-80GB",
    "region": "",
    "zone": "",
    "observed_at": at(2),
    "instrument": "spot",
    "provider": "aws",
    "gpu_count": 8,
    "scope": "global",
    "has_capacity": False,
    "hourly_amount": Decimal("2.5"),
    "currency": "USD",
    "price_source": "quote",
}


def touched(*news: Fact) -> list[int]:
    """Days of September that news touch in a ledger that knows the first ten."""
    book = Book(*HISTORY, delivered=at(11)).build().tell(*news, delivered=at(11))
    days = book.prepared()
    assert days == sorted(set(days))
    return [day.day for day in days]


@pytest.mark.parametrize(
    ("news", "days"),
    [
        ([(RunInterrupted, {"started_at": at(3), "interrupted_at": at(5, 2), "cause": "preempted", **RUN})], [3, 4, 5]),
        ([(CheckpointSaved, {"saved_at": at(6, 2), **RUN})], [6]),
        ([(PriceObserved, PRICE)], []),
    ],
    ids=["interruption", "checkpoint", "price"],
)
def test_procurement_touches_only_days_on_which_runs_were_touched(news: list[Fact], days: list[int]) -> None:
    assert touched(*news) == days


def test_a_price_comes_into_the_book_without_any_day_rebuilt() -> None:
    book = Book(*HISTORY, delivered=at(11)).build().tell((PriceObserved, PRICE), delivered=at(11))
    book.build()
    assert book.ask("SELECT offer_id, hourly_micros FROM core.offer") == [("spot", 2_500_000)]


@pytest.mark.parametrize(
    ("news", "days"),
    [
        (run("1", "A", at(3, 22), at(5, 2), gpus("n1")), [3, 4, 5]),
        (run("1", "A", at(9), None, gpus("n1")), [9, 10]),
        (samples("GPU-1", at(4, 5), [1]), [4]),
        (state("n1", at(8), "down"), [*range(1, 11)]),
        (owner("A", "vision", start=at(6)), [*range(1, 11)]),
        (policy("mig_weight", "", "compute"), [*range(1, 11)]),
        (rate("EUR", "1.1"), [*range(1, 11)]),
        (asset("n1", "10", 3, start=at(5)), [*range(1, 11)]),
        (node("n1", start=at(7)), [*range(1, 11)]),
        (bill(line("n1", "5", at(2), at(4)), billing_account_id="2"), [1, 2, 3, 4]),
        (bill(line("n1", "11", at(1), at(11))), [*range(1, 11)]),
    ],
    ids=["run", "running", "sample", "state", "owner", "policy", "rate", "asset", "node", "bill", "restated"],
)
def test_news_touch_their_days(news: list[Fact], days: list[int]) -> None:
    assert set(days) <= set(touched(*news))
    if len(days) < 10:
        assert touched(*news) == days


def test_a_new_version_of_a_run_touches_the_days_of_the_old_one() -> None:
    """It is said now to have ended on the 2nd: the days up to the 10th must forget it."""
    assert touched(*run("old", "A", at(1), at(2), gpus("n1"))) == [*range(1, 11)]


def test_what_goes_on_touches_the_days_that_came_since() -> None:
    """Its first ten days are known; what is told of the 13th shows that it went on until then."""
    book = Book(*HISTORY, *run("going", "A", at(9), None, gpus("n1")), delivered=at(11)).build()
    book.tell(*samples("GPU-1", at(12, 5), [1]), delivered=at(13))
    assert [day.day for day in book.prepared()] == [11, 12]


def test_what_is_owned_costs_from_the_first_of_the_month_however_late_the_first_run() -> None:
    book = Book(*node("n1"), *asset("n1", "30", 1), *run("1", "A", at(5), at(6), gpus("n1"))).build()
    assert book.ask("SELECT min(day(cost_day)), max(day(cost_day)), sum(cost_micros) FROM core.asset_daily") == [
        (1, 5, 5_000_000)
    ]


def test_a_fact_before_all_others_brings_the_days_between() -> None:
    book = Book(*HISTORY, delivered=at(11)).build()
    book.tell(*run("0", "A", at(30, month=8), at(31, month=8), gpus("n1")), delivered=at(11))
    assert book.prepared() == days_between(at(1, month=8), at(1))


def test_an_empty_log_knows_no_days() -> None:
    book = Book()
    assert book.build().ask("SELECT use_day FROM marts.bucket_daily") == []


def test_windows_join_days_that_follow_each_other_up_to_a_month() -> None:
    days = [at(1) + timedelta(days=number) for number in range(40)]
    assert windows(days) == [(days[0], days[31]), (days[31], days[39] + timedelta(days=1))]
    assert windows([]) == []
    assert all(start.tzinfo is UTC for start, _ in windows(days))
