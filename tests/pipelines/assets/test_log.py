"""The log's tables stand behind the sources that feed them; a log that was changed fails its proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.assets.log import FEEDS
from pipelines.ingest import FILE_READERS, LIVE_READERS
from pipelines.lake import Lake
from tests.dagster_runs import execute, made

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult

    from pipelines.settings import Settings


def test_every_kind_of_source_says_which_tables_it_feeds() -> None:
    assert set(FEEDS) == {*FILE_READERS, *LIVE_READERS}


def test_each_table_shows_the_batch_that_last_changed_it(first_run: tuple[Settings, ExecuteInProcessResult]) -> None:
    tables = made(first_run[1])
    assert tables["events.run_recorded"] == tables["events.batches"] == {"last_batch": 1}
    assert tables["events.gpu_sampled"] == {}


@pytest.mark.parametrize(("tamper", "passes"), [("", True), ("DELETE FROM lake.events.charge_billed", False)])
def test_the_proof_of_the_log_fails_once_it_was_changed(
    built: Settings, records: DagsterInstance, tamper: str, passes: bool
) -> None:
    with Lake(built) as lake:
        lake.con.execute(tamper)
    result = execute(built, "daily_proof_of_log", records)
    [check] = result.get_asset_check_evaluations()
    assert (result.success, check.passed) == (passes, passes)
    assert passes or "batch 1" in (check.description or "")


def test_upkeep_changes_no_answer(built: Settings, records: DagsterInstance) -> None:
    assert execute(built, "weekly_upkeep", records).success
    with Lake(built) as lake:
        assert lake.verify()[0] == 1
