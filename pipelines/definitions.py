"""Dagster's code location: merges, nothing else. Loading it reads ``sources.yaml`` if there is one, and makes nothing."""

from __future__ import annotations

from dagster import Definitions, in_process_executor

from pipelines.assets.decisions import recommended_plan
from pipelines.assets.log import event_tables, log_files, log_is_intact
from pipelines.assets.projections import projection_assets
from pipelines.assets.publication import closed_month, published_file
from pipelines.assets.sources import source_assets
from pipelines.schedules import ledger_jobs, ledger_schedules
from pipelines.sensors import inbox_sensor
from pipelines.settings import Settings


def definitions(settings: Settings) -> Definitions:
    """All that Dagster runs for one ledger."""
    intact = log_is_intact(settings)
    jobs = ledger_jobs(settings, intact)
    return Definitions(
        assets=[
            *source_assets(settings),
            event_tables(settings),
            projection_assets(settings),
            closed_month(settings),
            published_file(settings),
            recommended_plan(settings),
            log_files(settings),
        ],
        asset_checks=[intact],
        jobs=list(jobs.values()),
        schedules=ledger_schedules(settings, jobs),
        sensors=[inbox_sensor(settings, jobs["inbox"])],
        # One step after another: the log and the working file admit one writer, and memory is bounded for one.
        executor=in_process_executor,
    )


defs = definitions(Settings.from_environment())
