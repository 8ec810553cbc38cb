"""Runs that come at once wait for each other: both succeed, and the ledger is as after one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import DagsterInstance
from dagster._core.instance.ref import InstanceRef

from pipelines.instance import INSTANCE_YAML
from pipelines.lake import Lake
from tests.conftest import ROOT
from tests.dagster_runs import execute
from tests.ledgers import home, opened_file, tables

if TYPE_CHECKING:
    from pipelines.settings import Settings

FILES = {
    "organisation.csv": "account,team,business_unit,effective_from\nA,vision,Research,2026-09-01\n",
    "nodes.csv": "cluster,node,gpu_model,gpu_count,effective_from\nalps,n1,A100-40GB,2,2026-09-01\n",
    "runs.txt": "JobIDRaw|Account|User|State|Submit|Start|End|AllocTRES|NodeList|ElapsedRaw\n"
    "1|A|ann|COMPLETED|2026-09-01T00:00:00|2026-09-01T00:00:00|2026-09-02T00:00:00|gres/gpu:a100=1|n1|86400\n",
}
SOURCES = """
organisation: {kind: org, inbox: "organisation.csv"}
nodes: {kind: nodes, inbox: "nodes.csv"}
jobs: {kind: slurm, inbox: "runs.txt", cluster: alps, timezone: UTC}
"""


def ledger(folder: Path) -> Settings:
    """A ledger whose facts all lie in its inbox."""
    settings = home(folder)
    (folder / "sources.yaml").write_text(SOURCES)
    settings.inbox_path.mkdir()
    for name, text in FILES.items():
        (settings.inbox_path / name).write_text(text)
        os.utime(settings.inbox_path / name, (0, 0))
    return settings


def test_two_runs_at_once_both_succeed_and_leave_the_ledger_of_one(tmp_path: Path, records: DagsterInstance) -> None:
    twice, once = ledger(tmp_path / "twice"), ledger(tmp_path / "once")
    (tmp_path / "dagster.yaml").write_text(INSTANCE_YAML)
    # Dagster makes its own tables when first used, and two that do so at once meet.
    DagsterInstance.from_ref(InstanceRef.from_dir(str(tmp_path))).dispose()
    dagster = Path(sys.executable).with_name("dagster")
    command = [dagster, "job", "execute", "--module-name", "pipelines.definitions", "--job", "inbox"]
    environment = os.environ | {"GPULEDGER_HOME": str(twice.home), "DAGSTER_HOME": str(tmp_path)}
    runs = [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert execute(once, "inbox", records).success
    assert [run.wait() for run in runs] == [0, 0]

    with opened_file(twice.build_path) as found, opened_file(once.build_path) as expected:
        assert tables(found) == tables(expected)
    with Lake(twice) as lake:
        assert lake.verify()[0] == 2 * len(FILES)
