"""Dagster in tests: a small ledger of three days with its facts in the log, and its jobs run in this process."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pipelines.definitions import definitions
from tests.ledgers import append, at, bill, gpus, home, line, node, owner, run

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance, ExecuteInProcessResult

    from pipelines.settings import Settings

DAYS = (at(1), at(2), at(3))
RUN = run("1", "A", at(1), at(3), gpus("n1", 1, "A100-40GB"))
BILL = bill(*(line("i-1", "24", day, day + timedelta(days=1)) for day in DAYS))


def ledger(folder: Path) -> Settings:
    """A ledger of one node that costs 24 a day for three days, and of a run that held half of it for two."""
    settings = home(folder)
    append(settings, *node("n1", 2, resource_id="i-1"), *RUN, *BILL, *owner("A", "vision"))
    return settings


def execute(
    settings: Settings,
    job: str,
    records: DagsterInstance,
    *,
    day: str | None = None,
    days: tuple[str, str] | None = None,
    config: dict[str, Any] | None = None,
) -> ExecuteInProcessResult:
    """Run a job for a day, for days from one to another, or for none; a failure is a result too."""
    span = zip(("start", "end"), days or (), strict=False)
    return (
        definitions(settings)
        .resolve_job_def(job)
        .execute_in_process(
            instance=records,
            partition_key=day,
            tags={f"dagster/asset_partition_range_{name}": value for name, value in span},
            run_config={"ops": {op: {"config": given} for op, given in (config or {}).items()}},
            raise_on_error=False,
        )
    )


def made(result: ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """Metadata of each asset that a run materialised, by ``layer.table``."""
    return {
        ".".join(event.materialization.asset_key.path): {
            name: one.value for name, one in event.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
        if event.materialization
    }


def failure(result: ExecuteInProcessResult) -> str:
    """What the one step that failed says to a person."""
    [step] = [event for event in result.all_events if event.is_step_failure]
    data = step.step_failure_data
    said = data.user_failure_data.description if data.user_failure_data else data.error_display_string
    return said or ""
