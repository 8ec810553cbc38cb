"""When what runs by itself: jobs, and the schedules that start them.

Each source has a run of its own, from the source to the published file: one that does not answer holds up no other.
Runs may overlap; each waits its turn at the log and at the working file.
"""

# No "from __future__ import annotations": Dagster resolves the annotations of what it calls.

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster import (
    AssetChecksDefinition,
    AssetSelection,
    DagsterInstance,
    DefaultScheduleStatus,
    RunConfig,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    define_asset_job,
    schedule,
)

from pipelines.assets.decisions import PLAN
from pipelines.assets.log import EVENT_KEYS, LOG_FILES
from pipelines.assets.projections import OP_NAME, PROJECTION_KEYS, Rebuild
from pipelines.assets.publication import CLOSED_MONTH, PUBLISHED
from pipelines.assets.sources import READ_UNTIL, Deliveries, Window, op_name, source_key
from pipelines.inbox import deliveries
from pipelines.ingest import Source, declared_sources
from pipelines.plan_settings import PLAN_FILE
from pipelines.publish import query
from pipelines.settings import Settings

Job = Any
"""What ``define_asset_job`` returns; Dagster does not export its type."""

LOOK_BACK = timedelta(hours=2)
"""Read again before the hour that has passed: scrapes and the ends of runs arrive late."""

BILLS_CHANGE_FOR = timedelta(days=62)
"""A bill is restated until about the fifth of the month after; older files of the inbox are not read every day."""

_AFTER_SOURCES = [*EVENT_KEYS, *PROJECTION_KEYS, PUBLISHED]


def ledger_jobs(settings: Settings, intact: AssetChecksDefinition) -> dict[str, Job]:
    """Jobs by name."""
    sources = declared_sources(settings)
    reading = {
        "hourly": [one for one in sources if not one.inbox],
        "daily_bills": [one for one in sources if one.inbox and one.kind == "focus"],
        "inbox": [one for one in sources if one.inbox],
    }
    check = AssetSelection.checks(intact)
    jobs = [
        define_asset_job(name, AssetSelection.assets(*map(source_key, of), *_AFTER_SOURCES) - check)
        for name, of in reading.items()
    ]
    jobs += [
        define_asset_job("monthly_close", AssetSelection.assets(CLOSED_MONTH, PUBLISHED)),
        define_asset_job("daily_proof_of_log", check),
        define_asset_job("weekly_plan", AssetSelection.assets(PLAN)),
        define_asset_job("weekly_upkeep", AssetSelection.assets(LOG_FILES)),
    ]
    return {job.name: job for job in jobs}


def run_of(source: Source, at: datetime, config: Window | Deliveries, run_key: str | None = None) -> RunRequest:
    """A run from one source to the published file, filed under a day: it rebuilds the days that new facts touch."""
    return RunRequest(
        run_key=run_key,
        partition_key=f"{at:%Y-%m-%d}",
        asset_selection=[source_key(source), *_AFTER_SOURCES],
        run_config=RunConfig(ops={op_name(source): config, OP_NAME: Rebuild(only_news=True)}),
        tags={"source": source.name},
    )


def ledger_schedules(settings: Settings, jobs: dict[str, Job]) -> list[ScheduleDefinition]:
    """All schedules, in UTC. Only the close waits for a person to turn it on: what it posts stays posted."""
    running = DefaultScheduleStatus.RUNNING
    return [
        _hourly(settings, jobs["hourly"]),
        _daily_bills(settings, jobs["daily_bills"]),
        _monthly_close(settings, jobs["monthly_close"]),
        ScheduleDefinition(job=jobs["daily_proof_of_log"], cron_schedule="40 3 * * *", default_status=running),
        _weekly_plan(settings, jobs["weekly_plan"]),
        ScheduleDefinition(job=jobs["weekly_upkeep"], cron_schedule="20 2 * * 0", default_status=running),
    ]


def _hourly(settings: Settings, job: Job) -> ScheduleDefinition:
    @schedule(cron_schedule="5 * * * *", job=job, default_status=DefaultScheduleStatus.RUNNING)
    def hourly_schedule(context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        """Telemetry and scheduler, from where each source was last read to the hour that has passed."""
        live = [one for one in declared_sources(settings) if not one.inbox]
        if not live:
            yield SkipReason("sources.yaml declares no system that is asked: nothing to read")
        end = context.scheduled_execution_time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        for source in live:
            start = min(_read_until(context.instance, source) or end, end - timedelta(hours=1)) - LOOK_BACK
            window = Window(start=start.isoformat(), end=end.isoformat())
            yield run_of(source, end - timedelta(seconds=1), window, f"{source.name} {end.isoformat()}")

    return hourly_schedule


def _read_until(instance: DagsterInstance, source: Source) -> datetime | None:
    event = instance.get_latest_materialization_event(source_key(source))
    known = event.asset_materialization.metadata.get(READ_UNTIL) if event and event.asset_materialization else None
    return datetime.fromtimestamp(float(str(known.value)), UTC) if known else None


def _daily_bills(settings: Settings, job: Job) -> ScheduleDefinition:
    @schedule(cron_schedule="30 4 * * *", job=job, default_status=DefaultScheduleStatus.RUNNING)
    def daily_bills_schedule(context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        """Bills of the inbox that may still be restated, whether or not the sensor saw them come."""
        at = context.scheduled_execution_time.astimezone(UTC)
        recent = [
            (source, [one.name for one in deliveries(settings, source) if one.changed_at > at - BILLS_CHANGE_FOR])
            for source in declared_sources(settings)
            if source.inbox and source.kind == "focus"
        ]
        if not any(names for _, names in recent):
            yield SkipReason(f"no bill in {settings.inbox_path} that changed within {BILLS_CHANGE_FOR.days} days")
        for source, names in recent:
            if names:
                yield run_of(source, at, Deliveries(names=names), f"{source.name} {at.isoformat()}")

    return daily_bills_schedule


def _monthly_close(settings: Settings, job: Job) -> ScheduleDefinition:
    @schedule(cron_schedule="30 6 3-31 * *", job=job, default_status=DefaultScheduleStatus.STOPPED)
    def monthly_close_schedule(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        """The earliest open month, tried each day from the third until its coverage suffices."""
        if not settings.published_path.is_file():
            return SkipReason("nothing is published yet, so no month is known")
        at = context.scheduled_execution_time.astimezone(UTC)
        month = query(
            settings,
            "SELECT min(charge_month) FROM marts.proof_monthly "
            f"WHERE charge_month < DATE '{at:%Y-%m}-01' AND NOT EXISTS "
            "(SELECT 1 FROM marts.period_closed WHERE period_month >= charge_month)",
        ).item()
        if month is None:
            return SkipReason("every month that has ended is closed")
        return RunRequest(run_key=f"{month:%Y-%m} {at:%Y-%m-%d}", partition_key=month.isoformat())

    return monthly_close_schedule


def _weekly_plan(settings: Settings, job: Job) -> ScheduleDefinition:
    @schedule(cron_schedule="10 6 * * 1", job=job, default_status=DefaultScheduleStatus.RUNNING)
    def weekly_plan_schedule(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        """The plan of what to buy, on Monday morning, from what is published by then."""
        if not (settings.home / PLAN_FILE).is_file():
            return SkipReason(f"there is no {PLAN_FILE} in {settings.home}, so nobody asked for a plan")
        if not settings.published_path.is_file():
            return SkipReason("nothing is published yet, so nothing can be planned")
        return RunRequest(run_key=f"{context.scheduled_execution_time:%Y-%m-%d}")

    return weekly_plan_schedule
