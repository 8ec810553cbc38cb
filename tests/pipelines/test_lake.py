"""The log keeps every batch whole, every fact once, and shows every change made behind its back.

The same tests run on a ledger of one person (files in a folder) and of a team (PostgreSQL and S3).
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import threading
import time
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from models.errors import LogError, SourceError
from models.events import EVENT_TYPES, CheckpointSaved, NodeStateChanged, table_name
from pipelines.duck import INLINED_ROWS
from pipelines.lake import Lake
from pipelines.settings import Settings
from pipelines.sources.base import Chunk, rejected_frame, rejected_row
from tests.ledgers import CLUSTER, append, at, frames, gpus, home, owner, run, samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEAM = pytest.mark.component("postgresql and s3")
KILLS = 3
NUMBERS = count(1)
ELSEWHERE = multiprocessing.get_context("forkserver")
ELSEWHERE.set_forkserver_preload(["tests.ledgers"])


@pytest.fixture(params=["embedded", pytest.param("team", marks=TEAM)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """An empty ledger of each kind."""
    if request.param == "embedded":
        return home(tmp_path)
    empty, name = request.getfixturevalue("empty_team_ledger"), f"ledger_{next(NUMBERS)}"
    create_database(empty.catalog, f"{name} TEMPLATE empty_ledger")
    return replace(empty, home=tmp_path, catalog=empty.catalog.replace("empty_ledger", name))


@pytest.fixture(scope="session")
def empty_team_ledger(postgres_dsn: str, s3_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A database with an empty log, from which each test's own is copied."""
    create_database(postgres_dsn, "empty_ledger")
    made = Settings(
        tmp_path_factory.mktemp("team"),
        catalog=postgres_dsn.replace("dbname=postgres", "dbname=empty_ledger"),
        data_path="s3://ledger/",
        s3_endpoint=s3_endpoint,
        s3_key_id="test",
        s3_secret="test",  # noqa: S106 - of a server of our own
    )
    Lake(made).con.close()
    return made


def create_database(dsn: str, name: str) -> None:
    with duckdb.connect() as con:
        con.execute("LOAD postgres_scanner")
        con.execute(f"ATTACH '{dsn.replace('empty_ledger', 'postgres')}' AS server (TYPE postgres)")
        con.execute(f"CALL postgres_execute('server', 'CREATE DATABASE {name}', use_transaction := false)")


@pytest.fixture
def lake(settings: Settings) -> Iterator[Lake]:
    """An empty log, open."""
    with Lake(settings) as opened:
        yield opened


def told(lake: Lake, *facts: Any, **more: Any) -> tuple[int, int]:
    """Append facts as one batch: how many rows were new, how many known."""
    batch = lake.append("test", "facts", [Chunk(frames(*facts), rows_read=len(facts))], **more)
    return batch.rows_appended, batch.rows_duplicate


def rows(lake: Lake, table: str, *names: str) -> list[tuple[Any, ...]]:
    return lake.con.execute(f"SELECT {', '.join(names) or 'count(*)'} FROM lake.events.{table} ORDER BY ALL").fetchall()


# What is known


def test_the_same_facts_add_nothing(lake: Lake) -> None:
    assert told(lake, *owner("A", "vision")) == (1, 0)
    assert told(lake, *owner("A", "vision"), *owner("B", "robots")) == (1, 1)
    assert told(lake, *owner("C", "audio"), *owner("C", "audio")) == (1, 1)


def test_other_content_of_a_fact_is_a_later_version(lake: Lake) -> None:
    told(lake, *owner("A", "vision"))
    assert told(lake, *owner("A", "robots")) == (1, 0)
    assert rows(lake, "ownership_assigned", "team", "batch_id") == [("robots", 2), ("vision", 1)]


def test_the_newest_word_wins_where_the_source_states_no_order(lake: Lake) -> None:
    """To say again what was said first, after something else was said, is to take the something back."""
    for team in ("vision", "robots", "vision"):
        assert told(lake, *owner("A", team)) == (1, 0)


def test_stated_versions_may_come_in_any_order(lake: Lake) -> None:
    assert told(lake, *owner("A", "robots"), at=at(2)) == (1, 0)
    assert told(lake, *owner("A", "vision"), at=at(1)) == (1, 0)
    assert told(lake, *owner("A", "vision"), at=at(1)) == (0, 1)
    assert told(lake, *owner("A", "vision"), at=at(3)) == (1, 0)


def test_large_batches_are_known_too(lake: Lake) -> None:
    """They lie in Parquet files by day, not in the catalogue."""
    hours = INLINED_ROWS // 60 + 20
    facts = [fact for hour in range(hours) for fact in samples("GPU-1", at(1) + timedelta(hours=hour), range(60))]
    assert told(lake, *facts) == (60 * hours, 0)
    assert told(lake, *facts, *samples("GPU-2", at(2), range(3))) == (3, 60 * hours)
    assert lake.verify()[0] == 2


# Batches are whole


def test_a_source_that_breaks_off_appends_nothing(lake: Lake) -> None:
    def broken() -> Iterator[Chunk]:
        yield Chunk(frames(*owner("A", "vision")))
        raise SourceError("file.csv: ends in the middle of a row")

    with pytest.raises(SourceError):
        lake.append("test", "file.csv", broken())
    assert rows(lake, "ownership_assigned") == rows(lake, "batches") == [(0,)]
    assert told(lake, *owner("A", "vision")) == (1, 0)


def test_a_row_that_the_log_refuses_takes_its_batch_with_it(lake: Lake) -> None:
    with pytest.raises(duckdb.Error):
        told(lake, *owner("A", "vision"), (NodeStateChanged, {"cluster": CLUSTER, "node": "n1", "changed_at": at(1)}))
    assert rows(lake, "ownership_assigned") == rows(lake, "batches") == [(0,)]


def test_rejected_rows_are_kept_once(lake: Lake) -> None:
    bad = rejected_frame([rejected_row("test", "a.csv:2", "no currency", "AWS,,10")] * 2)
    batches = [lake.append("test", "a.csv", [Chunk(rejected=bad, rows_read=2)]) for _ in range(2)]
    assert [batch.rows_rejected for batch in batches] == [1, 0]
    assert rows(lake, "rejected", "position", "reason") == [("a.csv:2", "no currency")]


def test_an_empty_batch_is_recorded(lake: Lake) -> None:
    batch = lake.append("test", "empty.csv", [Chunk(rows_read=3, rows_ignored=3)])
    assert (batch.batch_id, batch.rows_read, batch.rows_ignored, batch.rows_appended) == (1, 3, 3, 0)
    assert lake.verify()[0] == 1


def test_a_clock_that_goes_back_keeps_the_order_of_batches(settings: Settings) -> None:
    for recorded in (at(5), at(3)):
        append(settings, *owner(f"A{recorded.day}", "vision"), recorded=recorded)
    with Lake(settings) as lake:
        assert rows(lake, "batches", "batch_id", "recorded_at") == [(1, at(5)), (2, at(5))]
        assert [lake.last_batch_id(instant) for instant in (at(4), at(5), None)] == [0, 2, 2]


# Changes behind its back


@pytest.fixture(scope="module")
def three_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a log of three batches, intact."""
    folder = tmp_path_factory.mktemp("intact")
    with Lake(home(folder)) as lake:
        for account in "ABC":
            told(lake, *owner(account, "vision"))
        assert lake.verify()[0] == 3
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "UPDATE lake.events.ownership_assigned SET team = 'mine' WHERE batch_id = 2",
            "batch 2 .* rows were added, changed",
        ),
        ("DELETE FROM lake.events.ownership_assigned WHERE batch_id = 2", "batch 2 .* removed"),
        (
            "INSERT INTO lake.events.ownership_assigned SELECT * FROM lake.events.ownership_assigned WHERE batch_id = 1",
            "batch 1 .* added",
        ),
        ("UPDATE lake.events.batches SET source = 'other' WHERE batch_id = 2", "batch 2 .* record was changed"),
        (
            "UPDATE lake.events.batches SET recorded_at = recorded_at - INTERVAL 1 DAY WHERE batch_id = 1",
            "batch 1 .* record was changed",
        ),
        ("DELETE FROM lake.events.batches WHERE batch_id = 2", "batch 2 is missing"),
        ("DELETE FROM lake.events.batches WHERE batch_id = 3", r"rows of batches \[3\] are stored"),
    ],
)
def test_a_change_shows(three_batches: Path, tmp_path: Path, change: str, words: str) -> None:
    shutil.copytree(three_batches, tmp_path, dirs_exist_ok=True)
    with Lake(Settings(tmp_path, data_path=str(tmp_path / "lake" / "data"))) as lake:
        lake.con.execute(change)
        with pytest.raises(LogError, match=words):
            lake.verify()


def test_batches_removed_from_the_end_show_against_an_earlier_digest(three_batches: Path, tmp_path: Path) -> None:
    shutil.copytree(three_batches, tmp_path, dirs_exist_ok=True)
    with Lake(Settings(tmp_path, data_path=str(tmp_path / "lake" / "data"))) as lake:
        _, digest = lake.verify()
        assert lake.verify(since=digest) == (3, digest)
        for table in ("batches", "ownership_assigned"):
            lake.con.execute(f"DELETE FROM lake.events.{table} WHERE batch_id = 3")
        assert lake.verify()[0] == 2
        with pytest.raises(LogError, match=f"no batch has the digest {digest}"):
            lake.verify(since=digest)


def test_maintenance_changes_no_fact(lake: Lake) -> None:
    for account in "ABC":
        told(lake, *owner(account, "vision"))
    lake.maintain()
    assert lake.verify()[0] == 3
    assert told(lake, *owner("A", "vision")) == (0, 1)


def test_a_home_may_be_moved(tmp_path: Path) -> None:
    facts = [fact for hour in range(10) for fact in samples("GPU-1", at(1, hour), range(60))]
    append(home(tmp_path / "before"), *facts)
    shutil.move(tmp_path / "before", tmp_path / "after")
    with Lake(Settings(tmp_path / "after", data_path=str(tmp_path / "after" / "lake" / "data"))) as lake:
        assert lake.verify()[0] == 1
        assert rows(lake, "gpu_sampled") == [(600,)]


# Several at once


def test_an_older_log_gets_the_tables_of_newer_event_types(settings: Settings) -> None:
    newer = [table_name(event) for event in EVENT_TYPES[EVENT_TYPES.index(CheckpointSaved) :]]
    with Lake(settings) as lake:
        told(lake, *owner("A", "vision"))
        for name in newer:
            lake.con.execute(f"DROP TABLE lake.events.{name}")
    saved = [(CheckpointSaved, {"cluster": CLUSTER, "run_id": "1", "saved_at": at(1)})]
    with Lake(settings) as lake:
        assert lake.verify()[0] == 1
        assert told(lake, *saved) == (1, 0)
    with Lake(settings) as lake:
        assert lake.verify()[0] == 2
        assert rows(lake, "checkpoint_saved") == [(1,)]


def write(settings: Settings, name: str, times: int, ready: Any) -> None:
    """Append batches of two tables, small and large by turns."""
    for turn in range(times):
        size = 2 * INLINED_ROWS if turn % 3 == 2 else 2
        facts = [
            fact
            for number in range(size)
            for fact in run(f"{name}-{turn}-{number}", name, at(1), at(2), gpus(f"{name}-{turn}-{number}"))
        ]
        append(settings, *facts)
        ready.release()


def test_two_writers_at_once_lose_nothing(settings: Settings) -> None:
    ready = ELSEWHERE.Semaphore(0)
    homes = [settings, replace(settings, home=settings.home / "other") if settings.catalog else settings]
    writers = [
        ELSEWHERE.Process(target=write, args=(one, name, 3, ready)) for name, one in zip("ab", homes, strict=True)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    with Lake(settings) as lake:
        assert lake.verify()[0] == 6
        assert rows(lake, "run_recorded") == rows(lake, "run_placed") == [(2 * (2 + 2 + 2 * INLINED_ROWS),)]


def test_a_writer_that_waits_says_so(settings: Settings) -> None:
    said: list[str] = []
    with Lake(settings) as first, Lake(settings, on_wait=said.append) as second:
        with first._turn():
            waiting = threading.Thread(target=told, args=(second, *owner("A", "vision")))
            waiting.start()
            while not said:
                time.sleep(0.01)
            assert rows(first, "batches") == [(0,)]
        waiting.join(30)
        assert rows(first, "batches") == [(1,)]
    assert said == [f"another run is writing to {settings.home}; waiting for it to finish"]


def test_a_killed_writer_leaves_whole_batches_and_no_lock(settings: Settings) -> None:
    """Killed at some moment of its work, again and again; the next one goes on at once."""
    chance = random.Random(1)  # noqa: S311 - moments, no secrets
    for turn in range(KILLS):
        writer = ELSEWHERE.Process(target=write, args=(settings, f"w{turn}", 1000, ready := ELSEWHERE.Semaphore(0)))
        writer.start()
        assert ready.acquire(timeout=60)
        time.sleep(chance.uniform(0, 1))
        writer.kill()
        writer.join()
    with Lake(settings) as lake:
        by_batch = "SELECT batch_id, count(*) FROM lake.events.{} GROUP BY ALL ORDER BY ALL"
        runs, placed = (lake.con.execute(by_batch.format(name)).fetchall() for name in ("run_recorded", "run_placed"))
        assert runs == placed
        assert lake.verify()[0] == len(runs) >= turn
        assert told(lake, *owner("A", "vision")) == (1, 0)
