"""What starts when files arrive."""

# No "from __future__ import annotations": Dagster resolves the annotations of what it calls.

import json
from datetime import UTC, datetime

from dagster import DefaultSensorStatus, SensorDefinition, SensorEvaluationContext, SensorResult, SkipReason, sensor

from pipelines.assets.sources import Deliveries
from pipelines.inbox import SETTLED_SECONDS, deliveries
from pipelines.ingest import declared_sources
from pipelines.schedules import Job, run_of
from pipelines.settings import Settings


def inbox_sensor(settings: Settings, job: Job) -> SensorDefinition:
    """Sensor that starts a run for each source with new or changed deliveries in the inbox.

    Its cursor keeps the mark of each delivery asked for. A run that fails is not asked for again until the delivery
    changes; materialise the source by hand to read all that lies there.
    """

    @sensor(
        name="inbox",
        job=job,
        minimum_interval_seconds=SETTLED_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="New and changed files of the inbox, once they have stopped growing.",
    )
    def inbox(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        known: dict[str, str] = json.loads(context.cursor or "{}")
        now, marks, requests = datetime.now(UTC), {}, []
        for source in declared_sources(settings):
            fresh = []
            for one in deliveries(settings, source) if source.inbox else ():
                name = f"{source.name}:{one.name}"
                if known.get(name) == one.mark:
                    marks[name] = one.mark
                elif (now - one.changed_at).total_seconds() >= SETTLED_SECONDS:
                    marks[name] = one.mark
                    fresh.append(one)
            if fresh:
                key = " ".join([source.name, *(one.mark for one in fresh)])
                requests.append(run_of(source, now, Deliveries(names=[one.name for one in fresh]), key))
        if not requests and marks == known:
            return SkipReason(f"nothing new in {settings.inbox_path}")
        return SensorResult(run_requests=requests, cursor=json.dumps(marks))

    return inbox
