"""The code location holds what it should, and loads anywhere without making anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.assets.runs import DAYS, ONE_RUN
from pipelines.definitions import definitions
from pipelines.projections import load
from pipelines.settings import Settings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dagster import AssetKey, Definitions

SOURCES = """
alps: {kind: prometheus, url: "http://p:9090", cluster: alps}
bills: {kind: focus, inbox: "bills/*.csv"}
jobs: {kind: slurm, cluster: alps, timezone: UTC}
organisation: {kind: org, inbox: "org*.csv"}
"""
LISTED = Path(__file__).with_suffix(".txt")
PROJECTIONS = {one.name: one for one in load()}


@pytest.fixture
def defs(tmp_path: Path) -> Definitions:
    """Definitions of a ledger with sources, which need not exist."""
    (tmp_path / "sources.yaml").write_text(SOURCES)
    return definitions(Settings(tmp_path))


def name(key: AssetKey) -> str:
    return ".".join(key.path)


def listed(defs: Definitions) -> Iterator[str]:
    """One line for each asset but the projections, each job, schedule and sensor."""
    graph, repository = defs.resolve_asset_graph(), defs.get_repository_def()
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        if name(key) not in PROJECTIONS:
            days = (
                type(node.partitions_def).__name__.removesuffix("PartitionsDefinition") if node.partitions_def else "–"
            )
            yield f"asset {name(key)} [{days}] ← {', '.join(sorted(map(name, node.parent_keys))) or '–'}"
    for job in sorted(repository.get_all_jobs(), key=lambda one: one.name):
        if not job.name.startswith("__"):
            kept = {name(key) for key in job.asset_layer.selected_asset_keys} - set(PROJECTIONS)
            yield f"job {job.name}: {', '.join(sorted(one for one in kept if not one.startswith('events.'))) or 'a check'}"
    for schedule in repository.schedule_defs:
        yield f"schedule {schedule.name}: {schedule.cron_schedule} → {schedule.job_name}"
    for sensor in repository.sensor_defs:
        yield f"sensor {sensor.name}: {sensor.job_name}"


def test_sources_tables_jobs_and_schedules_are_those_listed(defs: Definitions) -> None:
    assert "\n".join(listed(defs)) + "\n" == LISTED.read_text(encoding="utf-8")


def test_each_projection_is_an_asset_of_a_day_behind_what_it_reads(defs: Definitions) -> None:
    graph = defs.resolve_asset_graph()
    found = {name(key): graph.get(key) for key in graph.get_all_asset_keys() if name(key) in PROJECTIONS}
    assert {table: {name(key) for key in node.parent_keys} for table, node in found.items()} == {
        table: {read for read in one.reads if not read.startswith("reference.")} for table, one in PROJECTIONS.items()
    }
    assert all(node.backfill_policy == ONE_RUN and node.partitions_def == DAYS for node in found.values())
    assert all((node.description or "").lower() == PROJECTIONS[table].grain.lower() for table, node in found.items())


def test_the_workspace_opens_from_anywhere_and_makes_no_ledger(tmp_path: Path) -> None:
    home = tmp_path / "ledger"
    environment = os.environ | {"GPULEDGER_HOME": str(home), "DAGSTER_HOME": str(tmp_path)}
    command = [
        str(Path(sys.executable).with_name("dagster")),
        "definitions",
        "validate",
        "-w",
        str(ROOT / "workspace.yaml"),
    ]
    subprocess.run(command, cwd=ROOT, env=environment | {"DAGSTER_DISABLE_TELEMETRY": "1"}, check=True)
    assert not home.exists()
