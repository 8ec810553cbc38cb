"""Fixtures of all asset tests: a ledger that the hourly job has built and published once, and copies of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from dagster import DagsterInstance

from pipelines.settings import Settings
from tests.dagster_runs import execute, ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dagster import ExecuteInProcessResult


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, ExecuteInProcessResult]:
    """A ledger, and the run that built and published it. Only to look at."""
    folder = tmp_path_factory.mktemp("built")
    settings = ledger(folder / "ledger")
    with DagsterInstance.ephemeral() as records:
        return settings, execute(settings, "hourly", records, day="2026-09-03")


@pytest.fixture
def built(first_run: tuple[Settings, ExecuteInProcessResult], tmp_path: Path) -> Settings:
    """A built and published ledger of the test's own."""
    home = tmp_path / "ledger"
    shutil.copytree(first_run[0].home, home)
    return Settings(home, data_path=str(home / "lake" / "data"))


@pytest.fixture
def records() -> Iterator[DagsterInstance]:
    """Dagster's records of the test's own, in memory: on disk, they take longer than the build."""
    with DagsterInstance.ephemeral() as one:
        yield one
