"""The example's checkpoints: within the runs that saved them, and where interrupted runs went on from."""

from __future__ import annotations

import csv
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from examples.company import END, START
from examples.fleet import draw_stays, windows
from examples.scheduling import Attempt, schedule
from examples.workload import draw_requests
from pipelines.sources.procurement_records import read_checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from examples.organisation import Delivery

Run = tuple[str, str]


@pytest.fixture(scope="module")
def attempts() -> dict[Run, list[Attempt]]:
    """Attempts of each run as they were simulated, in their order; seed 7's own streams."""
    fleet, work, waiting = np.random.default_rng(7).spawn(3)
    found = defaultdict(list)
    for one in schedule(draw_requests(work), windows(draw_stays(fleet)), waiting):
        found[one.request.pool.cluster, str(one.run_id)].append(one)
    return found


@pytest.fixture(scope="module")
def saved(folder: Path, deliveries: list[Delivery]) -> dict[Run, list[tuple[int, int]]]:
    """When each run saved, and how many seconds it stood still for it; in order."""
    found = defaultdict(list)
    for path in sorted((folder / "records").glob("checkpoints-*.csv")):
        for row in csv.DictReader(path.read_text().splitlines()):
            at = int(datetime.fromisoformat(row["saved_at"]).timestamp())
            found[row["cluster"], row["run_id"]].append((at, int(row["blocking_seconds"])))
    return found


def of_attempt(saved: list[tuple[int, int]], attempt: Attempt) -> list[int]:
    return [at for at, _ in saved if attempt.started_at < at <= attempt.ended_at]


def test_the_ledger_understands_every_line_and_none_tells_the_future(deliveries: list[Delivery]) -> None:
    found = [one for one in deliveries if one.kind == "checkpoints"]
    assert len(found) == 2
    for one in found:
        for chunk in read_checkpoints(one.files):
            (rows,) = chunk.events.values()
            assert chunk.rejected.is_empty()
            assert rows.height == chunk.rows_read > 1_000
            assert (rows["saved_at"] <= one.delivered_at).all()


def test_each_checkpoint_lies_in_an_attempt_at_even_distances(
    saved: dict[Run, list[tuple[int, int]]], attempts: dict[Run, list[Attempt]]
) -> None:
    for run, found in saved.items():
        assert all(120 <= blocking <= 480 for _, blocking in found)
        placed = [one for one in attempts[run] if one.placed]
        inside = [(one, of_attempt(found, one)) for one in placed]
        assert sum(len(times) for _, times in inside) == len(found)
        steps = {step for one, times in inside for step in np.diff([one.started_at, *times]).tolist()}
        assert len(steps) == 1
        assert 30 * 60 <= steps.pop() <= 90 * 60


def test_a_run_that_spot_took_back_goes_on_after_its_last_checkpoint(
    saved: dict[Run, list[tuple[int, int]]], attempts: dict[Run, list[Attempt]]
) -> None:
    checked = 0
    for run, found in saved.items():
        *cut, last = attempts[run]
        if not cut or last.ended_at > END or last.state in {"PREEMPTED", "NODE_FAIL"}:
            continue
        kept = sum(max(of_attempt(found, one), default=one.started_at) - one.started_at for one in cut)
        assert kept + last.ended_at - last.started_at == last.request.duration_seconds
        checked += any(one.state == "PREEMPTED" for one in cut)
    assert checked > 20


def test_some_runs_tell_of_no_checkpoint(
    saved: dict[Run, list[tuple[int, int]]], attempts: dict[Run, list[Attempt]]
) -> None:
    by_account = defaultdict[str, list[bool]](list)
    for run, found in attempts.items():
        longest = max(min(one.ended_at, END) - one.started_at if one.placed else 0 for one in found)
        if found[0].request.device_count and longest > 90 * 60 and found[0].started_at >= START:
            by_account[found[0].request.account.name].append(run in saved)
    silent = {name for name, told in by_account.items() if not any(told)}
    assert silent == {"eval", "screen", "serve-dev", "serve-prod", "student42"}
    told = [one for name, found in by_account.items() if name not in silent for one in found]
    assert np.mean(told) == pytest.approx(0.85, abs=0.05)
    # So the work that spot destroyed is known of some attempts and unknown of others.
    cut = {run in saved for run, found in attempts.items() for one in found if one.state == "PREEMPTED"}
    assert cut == {True, False}
