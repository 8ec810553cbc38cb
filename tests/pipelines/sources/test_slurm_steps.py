"""Jobs of which only steps came: whatever the split and order of a dump, the books are the same."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.sources import slurm_text
from pipelines.sources.slurm import read_sacct
from tests.ledgers import Book, Fact, tables

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobIDRaw|JobID|Account|State|Start|End|AllocTRES|NodeList"


def line(job: str, start: str, end: str, gpus: int = 1) -> str:
    """A job or step of January 2026; times as day and hour."""
    state = "COMPLETED" if end else "RUNNING"
    times = [f"2026-01-{at[:2]}T{at[3:]}" if at else "Unknown" for at in (start, end)]
    return "|".join([job, job, "physics", state, *times, f"gres/gpu={gpus}", "n1"])


REQUEUED = [
    line("7", "05 08:00:00", "05 10:00:00", 4),
    line("7.batch", "05 08:00:00", "05 10:00:20", 4),
    line("7.0", "05 09:59:59", "05 10:00:00"),
    line("7.batch", "05 10:00:40", "06 01:00:00", 4),  # of an attempt whose own row is not there
    line("7.0", "05 23:00:00", "06 03:00:00", 1),
]
ONLY_STEPS = [
    line("8.extern", "05 22:00:00", "05 23:00:00", 2),
    line("8.0", "05 23:00:00", "06 02:00:00", 1),
    line("8.1", "06 04:00:00", "06 05:00:00", 1),
]
RUNNING = [line("9", "05 12:00:00", ""), line("9.0", "06 01:00:00", ""), line("10.0", "06 02:00:00", "")]
LATE_STEP = [line("11", "05 20:00:00", "06 23:59:38"), line("11.batch", "05 20:00:00", "07 00:00:22")]
DUMP = REQUEUED + ONLY_STEPS + RUNNING + LATE_STEP
HOURS = {"7": 2 * 4 + 17 * 4 - 40 / 900, "8": 4 * 2 + 1, "9": 60, "10": 46, "11": 27 + 3_578 / 3_600}


def facts(folder: Path, *lines: str) -> list[Fact]:
    path = folder / "dump"
    path.write_text("\n".join([HEADER, *lines, ""]))
    chunks = read_sacct([path], cluster="c", timezone="UTC")
    return [
        (event, row) for chunk in chunks for event, frame in chunk.events.items() for row in frame.unique().to_dicts()
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@pytest.fixture(scope="module")
def whole(folder: Path) -> Book:
    return Book(*facts(folder, *DUMP)).build()


def attempts(book: Book) -> list[tuple[object, ...]]:
    return [
        *book.ask("SELECT run_id, started_at, ended_at, state, is_from_step, account, placement_id FROM staged.run"),
        *book.con.execute("SELECT known_from_at, known_until_at FROM reference.ledger").fetchall(),
    ]


def test_time_known_only_by_steps_is_billed_once(whole: Book) -> None:
    found = dict(whole.ask("SELECT run_id, sum(gpu_hours) FROM marts.run_usage GROUP BY run_id"))
    assert {run: round(float(hours), 3) for run, hours in found.items()} == {
        run: round(hours, 3) for run, hours in HOURS.items()
    }


def test_a_person_sees_which_accounts_it_concerns(whole: Book) -> None:
    assert whole.ask("SELECT subject, found FROM marts.findings WHERE kind = 'run_known_by_steps'") == [
        ("c/physics", "4.00 runs")
    ]


@settings(max_examples=20, deadline=None)
@given(st.permutations(DUMP), st.sets(st.integers(1, len(DUMP) - 1)))
def test_a_dump_in_any_order_and_split_gives_the_same_attempts(
    folder: Path, whole: Book, order: list[str], cuts: set[int]
) -> None:
    edges = [0, *sorted(cuts), len(order)]
    parts = [order[first:last] for first, last in pairwise(edges)]
    book = Book()
    for part in parts:
        book.tell(*facts(folder, *part))
    assert attempts(book) == attempts(whole)


@pytest.mark.parametrize(
    "order", [range(len(DUMP)), reversed(range(len(DUMP))), [9, 4, 12, 6, 2, 11, 8, 0, 5, 3, 10, 7, 1]]
)
def test_building_after_each_part_is_building_once(folder: Path, whole: Book, order: list[int]) -> None:
    lines = [DUMP[number] for number in order]
    book = Book()
    for part in (lines[:5], lines[5:9], lines[9:]):
        book.tell(*facts(folder, *part)).build()
    assert tables(book.con) == tables(whole.con)


def test_a_job_that_comes_after_its_steps_takes_their_place(folder: Path) -> None:
    book = Book(*facts(folder, line("8.0", "06 01:00:00", "06 02:00:00", 8))).build()
    assert book.one("SELECT sum(gpu_hours) FROM marts.run_usage") == 8
    book.tell(*facts(folder, line("8", "05 23:30:00", "06 02:00:00", 8))).build()
    assert book.ask("SELECT started_at, gpu_hours FROM marts.run_usage") == [
        (datetime(2026, 1, 5, 23, 30, tzinfo=UTC), 20)
    ]
    assert book.one("SELECT count(*) FROM marts.findings WHERE kind = 'run_known_by_steps'") == 0


def test_steps_in_another_block_than_their_job_are_left_out_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, whole: Book
) -> None:
    monkeypatch.setattr(slurm_text, "BLOCK_BYTES", 100)
    assert attempts(Book(*facts(folder, *DUMP))) == attempts(whole)


def test_a_step_repeated_11250_times_is_one_attempt(shared_data: Path) -> None:
    path = shared_data / "slurm-gcm" / "sample-sacct-output-large.txt.gz"
    chunks = list(read_sacct([path], cluster="c", timezone="UTC"))
    assert (sum(one.rows_read for one in chunks), sum(one.rejected.height for one in chunks)) == (11_250, 0)
    told = [(event, row) for one in chunks for event, frame in one.events.items() for row in frame.unique().to_dicts()]
    book = Book(*told).build()
    assert [(run, str(hours)) for run, hours in book.ask("SELECT run_id, gpu_hours FROM marts.run_usage")] == [
        ("35101739", "71.9458")
    ]
