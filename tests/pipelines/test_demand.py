"""Demand read from a ledger: each pool's GPUs by hour and class, and never a zero where nothing is known."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from models.demand import UNCLASSIFIED
from models.errors import UsageError
from models.scenarios import draw_scenarios
from pipelines.build import build
from pipelines.demand import Coverage, Origin, coverage, pools_by_origin, read_demand
from pipelines.publish import publish, query
from pipelines.sources.traces import read_trace
from tests.ledgers import CLUSTER, Book, append, at, gpus, home, node, policy, run, state

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from pipelines.statement import Ask

A100, H100 = Origin(CLUSTER, "A100-40GB"), Origin(CLUSTER, "H100-80GB")
POOLS = {"ampere": [A100], "hopper": [H100]}
FACTS = (
    *policy("workload_class", "qos:serve", "inference"),
    *run("1", "A", at(1, 12), at(1, 13), gpus("n1", 2, "A100-40GB"), submitted_at=at(1, 10, 30), qos="serve"),
    *run("2", "B", at(1, 11), at(1, 12, 15), gpus("n2", 8, "H100-80GB")),
    *run("3", "B", at(3, 20), at(3, 21), gpus("n2", 4, "H100-80GB")),
    *run("4", "B", at(1, 11), at(1, 12), gpus("n3", 1, "V100-32GB")),
)
KNOWN = (*FACTS, *node("n1", 8), *node("n2", 8, "H100-80GB"))


def asker(book: Book) -> Ask:
    book.project("marts.demand_hourly", "marts.bucket_daily")

    def ask(sql: str) -> pl.DataFrame:
        return book.con.sql(sql).pl()

    return ask


@pytest.fixture(scope="module")
def ask() -> Ask:
    return asker(Book(*KNOWN))


def test_a_run_that_waited_is_wanted_when_it_was_submitted(ask: Ask) -> None:
    """Submitted 10:30 and held from 12 to 13: half of both GPUs in each of the hours from 10 and from 11."""
    found = read_demand(ask, start=at(1, 10), end=at(1, 14), pools=POOLS)
    assert (found.start_at, found.pools, found.probability.tolist()) == (at(1, 10), ("ampere", "hopper"), [1])
    assert {name: wanted[0].T.tolist() for name, wanted in found.gpus.items()} == {
        "inference": [[1, 1, 0, 0], [0, 0, 0, 0]],
        UNCLASSIFIED: [[0, 0, 0, 0], [0, 8, 2, 0]],
    }


def test_a_pool_may_count_several_models(ask: Ask) -> None:
    found = read_demand(ask, start=at(1), end=at(2), pools={"any": [A100, H100, Origin(CLUSTER, "V100-32GB")]})
    assert found.total().sum() == 2 + 10 + 1
    assert {name: int(one.total().sum()) for name, one in _each(ask).items()} == {
        "alps/A100-40GB": 2,
        "alps/H100-80GB": 10,
        "alps/V100-32GB": 1,
    }


def _each(ask: Ask) -> dict[str, Any]:
    return {
        name: read_demand(ask, start=at(1), end=at(2), pools={name: one}) for name, one in pools_by_origin(ask).items()
    }


def test_a_day_in_which_all_stood_idle_wants_nothing(ask: Ask) -> None:
    """Nobody held a GPU on the 2nd, but the cluster had them."""
    found = read_demand(ask, start=at(2), end=at(3), pools=POOLS)
    assert found.total().shape == (1, 24, 2)
    assert not found.total().any()
    with pytest.raises(UsageError, match="nothing to plan for"):
        draw_scenarios(found, start_at=at(4), hours=24, count=1, seed=0)


def test_hours_of_a_changing_clock_are_hours(ask: Ask) -> None:
    """A window given in local time holds the hours that passed, and no other."""
    east, west = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    start, end = at(1, 10).astimezone(east), at(1, 14).astimezone(west)
    found = read_demand(ask, start=start, end=end, pools=POOLS)
    np.testing.assert_array_equal(found.total(), read_demand(ask, start=at(1, 10), end=at(1, 14), pools=POOLS).total())
    with pytest.raises(UsageError, match=r"start: found .*\+05:30, expected a whole hour in UTC"):
        read_demand(ask, start=datetime.fromisoformat("2026-09-01T00:00:00+05:30"), end=at(3), pools=POOLS)
    with pytest.raises(UsageError, match="end: found 2026-09-03T00:00:00, expected an instant with its zone"):
        read_demand(ask, start=at(1), end=at(3).replace(tzinfo=None), pools=POOLS)
    with pytest.raises(UsageError, match="expected an hour at least"):
        read_demand(ask, start=at(1, 3), end=at(1, 3), pools=POOLS)


def test_one_hour_of_history_is_read_but_nothing_is_drawn_from_it(ask: Ask) -> None:
    hour = read_demand(ask, start=at(1, 11), end=at(1, 12), pools=POOLS)
    with pytest.raises(UsageError, match="the history has 1 hours, expected 24 or more: look back further"):
        draw_scenarios(hour, start_at=at(4), hours=24, count=1, seed=0)


def test_before_and_after_the_runs_nothing_is_known(ask: Ask) -> None:
    asked = "known from 2026-09-01 to 2026-09-03 .* asked for 2026-08-31 23:00 to 2026-09-02 00:00"
    with pytest.raises(UsageError, match=asked):
        read_demand(ask, start=at(31, 23, month=8), end=at(2), pools=POOLS)
    assert read_demand(ask, start=at(3), end=at(4), pools=POOLS).total().sum() == 4
    with pytest.raises(UsageError, match="asked for 2026-09-03 00:00 to 2026-09-04 01:00"):
        read_demand(ask, start=at(3), end=at(4, 1), pools=POOLS)


def test_a_gap_is_not_idleness() -> None:
    """Without the nodes file nobody knows whether the cluster stood idle on the 2nd or its runs are missing."""
    with pytest.raises(UsageError, match="alps: 1 days are not known, first 2026-09-02, last 2026-09-02"):
        read_demand(asker(Book(*FACTS)), start=at(1), end=at(4), pools=POOLS)


def test_a_cluster_that_ran_nothing_has_no_demand_to_read() -> None:
    with pytest.raises(UsageError, match="pools: found alps/A100-40GB, expected some of no runs yet"):
        read_demand(asker(Book(*node("n1"), *state("n1", at(2), "up"))), start=at(1), end=at(2), pools={"a": [A100]})


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ({"a": [A100], "b": [H100, A100]}, "alps/A100-40GB named more than once: its demand would count twice"),
        (
            {"a": [Origin("andes", "B200")]},
            "found andes/B200, expected some of alps/A100-40GB, alps/H100-80GB, alps/V100",
        ),
        ({}, "found none, expected some of alps/A100-40GB"),
    ],
)
def test_pools_that_the_ledger_cannot_fill(ask: Ask, pools: dict[str, list[Origin]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_demand(ask, start=at(1), end=at(2), pools=pools)


def test_how_well_demand_is_known(ask: Ask) -> None:
    """13 GPU-hours on the 1st: 1 in no pool, 10 of 12 unclassified; only the hour from 10 knows all submissions."""
    assert coverage(ask, start=at(1), end=at(2), pools=POOLS) == Coverage(
        wanted_gpu_hours=12, elsewhere_gpu_hours=1, unclassified_ratio=10 / 12, queue_known_ratio=2 / 12
    )
    idle = coverage(ask, start=at(2), end=at(3), pools=POOLS)
    assert (idle.wanted_gpu_hours, idle.unclassified_ratio, idle.queue_known_ratio) == (0, None, None)


def test_what_no_policy_names_is_found() -> None:
    book = Book(*KNOWN)
    assert book.ask("SELECT severity, subject, found FROM marts.findings WHERE kind = 'workload_unclassified'") == [
        ("info", CLUSTER, "15.00 GPU-hours")
    ]


def test_demand_is_published(tmp_path: Path) -> None:
    settings = home(tmp_path)
    append(settings, *KNOWN)
    build(settings)
    publish(settings)

    def ask(sql: str) -> pl.DataFrame:
        return query(settings, sql)

    assert read_demand(ask, start=at(1), end=at(4), pools=POOLS).total().sum() == 16


def test_a_real_clusters_demand_is_all_its_gpu_hours(shared_data: Path) -> None:
    """HeliosData, Venus, September 2020: 118,317.8092 GPU-hours, whose runs hold GPUs of a model that nobody names."""
    path = shared_data / "helios-venus" / "helios_venus_2vc_sept.csv"
    book = Book(
        *(
            (event, row)
            for chunk in read_trace("helios", [path])
            for event, frame in chunk.events.items()
            for row in frame.iter_rows(named=True)
        )
    )
    [(held, wanted)] = book.ask("SELECT sum(held_share_seconds), sum(wanted_share_seconds) FROM marts.demand_hourly")
    assert round(held / 15_120_000, 4) == round(wanted / 15_120_000, 4) == 118_317.8092
    metered = "SELECT use_hour, sum(share_seconds) FROM core.run_hourly GROUP BY ALL"
    hourly = (
        "SELECT use_hour, sum(held_share_seconds) FROM marts.demand_hourly WHERE held_share_seconds > 0 GROUP BY ALL"
    )
    assert book.ask(hourly) == book.ask(metered)
