"""What each schedule asks for, tick by tick. The close's schedule is tested with the close."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from dagster import (
    AssetMaterialization,
    DagsterInstance,
    DefaultScheduleStatus,
    RunRequest,
    SkipReason,
    build_schedule_context,
)

from pipelines.assets.sources import READ_UNTIL
from pipelines.definitions import definitions
from pipelines.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIVE = """
alps: {kind: prometheus, url: "http://p:9090", cluster: alps}
jobs: {kind: slurm, cluster: alps, timezone: UTC}
"""
BILLS = 'bills: {kind: focus, inbox: "bills/*.csv"}\norganisation: {kind: org, inbox: "org.csv"}\n'


@pytest.fixture
def records(tmp_path: Path) -> Iterator[DagsterInstance]:
    with DagsterInstance.local_temp(str(tmp_path)) as one:
        yield one


def asked(
    home: Path, schedule: str, at: datetime, records: DagsterInstance | None = None
) -> dict[str, tuple[str | None, Any]]:
    """Day and configuration of the run asked for of each source; why, where it is none."""
    context = build_schedule_context(instance=records, scheduled_execution_time=at)
    found = list(definitions(Settings(home)).resolve_schedule_def(schedule)(context))
    runs: dict[str, tuple[str | None, Any]] = {}
    for one in found:
        if isinstance(one, SkipReason):
            runs["skipped"] = (None, one.skip_message)
        else:
            assert isinstance(one, RunRequest)
            name = one.tags["source"]
            runs[name] = (one.partition_key, one.run_config["ops"][f"read_{name}"]["config"])
    return runs


def test_every_hour_each_live_source_is_asked_for_the_hour_that_has_passed(
    tmp_path: Path, records: DagsterInstance
) -> None:
    (tmp_path / "sources.yaml").write_text(LIVE + BILLS)
    runs = asked(tmp_path, "hourly_schedule", datetime(2026, 9, 3, 0, 5, tzinfo=UTC), records)
    window = {"start": "2026-09-02T21:00:00+00:00", "end": "2026-09-03T00:00:00+00:00"}
    assert runs == {"alps": ("2026-09-02", window), "jobs": ("2026-09-02", window)}


def test_hours_that_nobody_read_are_made_up_for(tmp_path: Path, records: DagsterInstance) -> None:
    (tmp_path / "sources.yaml").write_text(LIVE)
    until = datetime(2026, 9, 1, 12, tzinfo=UTC).timestamp()
    records.report_runless_asset_event(AssetMaterialization(["sources", "alps"], metadata={READ_UNTIL: until}))
    runs = asked(tmp_path, "hourly_schedule", datetime(2026, 9, 3, 0, 5, tzinfo=UTC), records)
    assert {name: config["start"] for name, (_, config) in runs.items()} == {
        "alps": "2026-09-01T10:00:00+00:00",
        "jobs": "2026-09-02T21:00:00+00:00",
    }


def test_without_live_sources_the_hour_passes(tmp_path: Path, records: DagsterInstance) -> None:
    runs = asked(tmp_path, "hourly_schedule", datetime(2026, 9, 3, 0, 5, tzinfo=UTC), records)
    assert runs == {"skipped": (None, "sources.yaml declares no system that is asked: nothing to read")}


def test_every_day_the_bills_that_may_still_change_are_read(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(BILLS)
    (tmp_path / "inbox" / "bills").mkdir(parents=True)
    for month, day in ((6, 3), (8, 3), (9, 3)):
        path = tmp_path / "inbox" / "bills" / f"{month}.csv"
        path.touch()
        os.utime(path, (datetime(2026, month, day, tzinfo=UTC).timestamp(),) * 2)
    (tmp_path / "inbox" / "org.csv").touch()
    runs = asked(tmp_path, "daily_bills_schedule", datetime(2026, 9, 10, 4, 30, tzinfo=UTC))
    assert runs == {"bills": ("2026-09-10", {"names": ["bills/8.csv", "bills/9.csv"]})}
    later = asked(tmp_path, "daily_bills_schedule", datetime(2026, 12, 10, 4, 30, tzinfo=UTC))
    assert later["skipped"][1].startswith("no bill in ")


def test_only_the_close_waits_for_a_person_to_turn_it_on(tmp_path: Path) -> None:
    schedules = definitions(Settings(tmp_path)).schedules or []
    stopped = [one.name for one in schedules if one.default_status is not DefaultScheduleStatus.RUNNING]
    assert stopped == ["monthly_close_schedule"]
