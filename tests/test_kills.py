"""Killed at any moment, a run can be run again: the same tables, whole batches, nothing that blocks."""

from __future__ import annotations

import multiprocessing
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.build import build
from pipelines.lake import Lake
from pipelines.publish import publish, query
from tests.ledgers import append, asset, at, bill, gpus, home, line, node, opened_file, owner, run, samples, tables

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Settings
    from tests.ledgers import Fact

LEDGERS, KILLS = 5, 10
LONGEST_SECONDS = 2.0
DELIVERIES: list[list[Fact]] = [
    [*node("n1", 2), *asset("n1", "360", 12), *owner("A", "vision")],
    [*run("1", "A", at(1), None, gpus("n1")), *run("2", "B", at(2), at(3), gpus("n1"))],
    [*bill(line("n2", "30", at(1), at(4))), *samples("GPU-1", at(1, 7), range(60))],
    [*run("1", "A", at(1), at(3, 6), gpus("n1")), *bill(line("n2", "31", at(1), at(4)))],
]
ELSEWHERE = multiprocessing.get_context("forkserver")
ELSEWHERE.set_forkserver_preload(["tests.ledgers", "pipelines.publish"])


def work(settings: Settings, *, full: bool = False) -> None:
    """A run: all that was delivered, the projections, the published file."""
    for number, facts in enumerate(DELIVERIES):
        append(settings, *facts, stated=at(5 + number))
    build(settings, full=full)
    publish(settings)


def work_for_ever(settings: Settings, ready: Any) -> None:
    """A run, and then runs that make everything again."""
    ready.set()
    work(settings)
    while True:
        work(settings, full=True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tables of a run that nobody killed."""
    settings = home(tmp_path_factory.mktemp("clean"))
    work(settings)
    with opened_file(settings.build_path) as con:
        return tables(con)


@pytest.mark.parametrize("seed", range(LEDGERS))
def test_killed_ten_times_and_run_again_it_is_as_if_nothing_had_been(
    seed: int, tmp_path: Path, expected: dict[str, Any]
) -> None:
    settings = home(tmp_path)
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    for _ in range(KILLS):
        ready = ELSEWHERE.Event()
        worker = ELSEWHERE.Process(target=work_for_ever, args=(settings, ready))
        worker.start()
        assert ready.wait(60)
        time.sleep(chance.uniform(0, LONGEST_SECONDS))
        worker.kill()
        worker.join()
        assert worker.exitcode == -9, "it went on until it was killed"
        if settings.published_path.exists():
            assert query(settings, "SELECT count(*) FROM marts.proof_monthly WHERE difference <> 0").item() == 0
    work(settings)
    with opened_file(settings.build_path) as con:
        assert tables(con) == expected
    with Lake(settings) as lake:
        assert lake.verify()[0] == query(settings, "SELECT count(*) FROM marts.batches").item()
