"""A real Slurm, asked by the command that the ledger uses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest

from models.events import RunPlaced, RunRecorded
from pipelines.sources.slurm import read_sacct, read_sacct_live
from tests.ledgers import Book

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.sources.base import Chunk
    from tests.components import Slurm

GPUS = {"train": 2, "sweep": 1, "stopped": 1}
DUMP = ["sacct", "-D", "-P", "-a", "--format=JobIDRaw,JobID,Account,State,Start,End,AllocTRES,NodeList"]


@pytest.fixture(scope="module")
def worked(slurm: Slurm) -> Slurm:
    """The cluster once it has run one job twice, an array of two, and one that was cancelled."""
    train = slurm.submit("train", GPUS["train"], "sleep ${SLURM_RESTART_COUNT:-60}", "--requeue")
    slurm.wait("train has run a while", lambda: slurm.has_run(train))
    slurm.ask("scontrol", "requeue", train)
    slurm.submit("sweep", GPUS["sweep"], "sleep 1", "--array=0-1")
    stopped = slurm.submit("stopped", GPUS["stopped"], "sleep 60")
    slurm.wait("stopped has run a while", lambda: slurm.has_run(stopped))
    slurm.ask("scancel", stopped)
    slurm.wait("train waits again", lambda: slurm.state(train) == "PENDING")
    slurm.ask("scontrol", "update", f"JobId={train}", "StartTime=now")
    slurm.wait("the queue is empty", lambda: not slurm.ask("squeue", "--noheader"))
    slurm.wait("all five attempts are accounted", lambda: [end != "Unknown" for end in ends(slurm)] == [True] * 5)
    return slurm


def ends(slurm: Slurm) -> list[str]:
    return slurm.ask("sacct", "-D", "-a", "-X", "-n", "-P", "--format=End").splitlines()


def facts(chunks: Iterable[Chunk]) -> Book:
    return Book(
        *((event, row) for chunk in chunks for event, frame in chunk.events.items() for row in frame.to_dicts())
    )


@pytest.mark.component("slurm")
def test_attempts_and_gpu_seconds_are_those_that_slurm_accounts(worked: Slurm) -> None:
    now = datetime.now(UTC)
    reach = ("env", f"SLURM_CONF={worked.environment['SLURM_CONF']}", f"TZ={worked.environment['TZ']}", "sacct")
    window = {"start": now - timedelta(hours=1), "end": now + timedelta(hours=1)}
    [chunk] = read_sacct_live(cluster="trial", timezone=worked.environment["TZ"], **window, command=reach)

    runs = chunk.events[RunRecorded]
    assert (chunk.rejected.height, chunk.rows_ignored) == (0, 0)
    assert sorted(runs.select("run_name", "state", "account", "user_name").rows()) == [
        ("stopped", "CANCELLED", "vision", "root"),
        ("sweep", "COMPLETED", "vision", "root"),
        ("sweep", "COMPLETED", "vision", "root"),
        ("train", "COMPLETED", "vision", "root"),
        ("train", "REQUEUED", "vision", "root"),
    ]
    assert runs.filter(pl.col("run_name") == "train")["run_id"].n_unique() == 1
    assert runs["started_at"].is_between(window["start"], now).all(), "its times are of the cluster's zone"

    placed = chunk.events[RunPlaced].select("placement_id", "node", "gpu_type", "gpu_model", "device_count")
    assert set(placed.select("node", "gpu_type", "gpu_model").rows()) == {(worked.host, "a100", "A100")}
    lasted = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds()
    held = runs.join(placed, on="placement_id").select("run_name", seconds=lasted * pl.col("device_count"))
    own = worked.ask("sacct", "-D", "-a", "-X", "-n", "-P", "--format=JobName,ElapsedRaw").splitlines()
    accounted = [(name, int(seconds) * GPUS[name]) for name, seconds in (line.split("|") for line in own)]
    assert sorted(held.rows()) == sorted(accounted)


@pytest.mark.component("slurm")
def test_a_real_dump_with_steps_makes_the_attempts_of_one_without(worked: Slurm, tmp_path: Path) -> None:
    dumps = {"with": DUMP, "without": [*DUMP, "-X"]}
    for name, command in dumps.items():
        (tmp_path / name).write_text(worked.ask(*command) + "\n")
    both = [
        facts(read_sacct([tmp_path / name], cluster="trial", timezone="Asia/Tokyo")).ask(
            "SELECT run_id, started_at, ended_at, state, is_from_step, placement_id FROM staged.run"
        )
        for name in dumps
    ]
    assert len(both[0]) == 5
    assert both[0] == both[1]
