"""A month closes when its facts are complete, once; until then the run fails and says what to bring."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dagster import RunRequest, SkipReason, build_schedule_context

from pipelines.definitions import definitions
from pipelines.publish import query
from tests.dagster_runs import execute, failure, made
from tests.ledgers import append, at, bill, gpus, heard, line, node, run

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from pipelines.settings import Settings

MONTH = "2026-09-01"


def asked_of(settings: Settings) -> RunRequest | SkipReason:
    """What the close's schedule asks for on 3 October 2026."""
    context = build_schedule_context(scheduled_execution_time=datetime(2026, 10, 3, 6, 30, tzinfo=UTC))
    found = definitions(settings).resolve_schedule_def("monthly_close_schedule")(context)
    assert isinstance(found, RunRequest | SkipReason)
    return found


def test_a_close_waits_for_coverage_and_then_closes_once(built: Settings, records: DagsterInstance) -> None:
    append(built, *node("n2", 8, resource_id="i-2"), *run("2", "A", at(1), at(3), gpus("n2", 8, "A100-40GB")))
    assert asked_of(built) == RunRequest(run_key="2026-09 2026-10-03", partition_key=MONTH)
    waiting = execute(built, "monthly_close", records, day=MONTH)
    assert failure(waiting).startswith("2026-09 may not close:")
    assert not {"published.closed_month", "published.ledger"} & set(made(waiting))

    append(built, *bill(line("i-2", "300", at(1), at(3)), billing_account_id="2"), *heard("n2", at(30)))
    closed = made(execute(built, "monthly_close", records, day=MONTH))
    assert closed["published.closed_month"]["closed"] == "by this run"
    assert closed["published.closed_month"]["cost_micros"] == 372_000_000
    assert query(built, "SELECT count(*) FROM marts.period_closed").item() == 1

    again = execute(built, "monthly_close", records, day=MONTH)
    assert made(again)["published.closed_month"] == {"closed": "by an earlier run"}
    skipped = asked_of(built)
    assert isinstance(skipped, SkipReason)
    assert skipped.skip_message == "every month that has ended is closed"
