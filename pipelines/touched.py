"""Which days new events touch: exactly those are rebuilt, however old they are.

Every event type declares what it touches (``models/events.py``); this module turns that into UTC days. A bill touches the
days of the lines it brings and of the lines it replaces; an attempt the days of all its versions, and those of restart work
in later attempts of its run; a checkpoint the days of the interrupted attempts whose lost work it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from models.events import (
    EVENT_TYPES,
    BillDelivered,
    ChargeBilled,
    CheckpointSaved,
    Event,
    FxRateObserved,
    GpuInventoried,
    PolicySet,
    RunInterrupted,
    RunRecorded,
    keys,
    table_name,
)

if TYPE_CHECKING:
    import duckdb

MOST_WINDOW_DAYS = 31
"""Longest stretch rebuilt in one transaction: bounds memory, whatever the history."""


@dataclass(frozen=True, slots=True)
class Span:
    """The days that a ledger knows.

    Attributes:
      from_at: Start of the month in which the first thing happened: what an owned asset costs counts from there.
      until_at: End of the day in which the last thing happened; what still runs is known to run until then.
    """

    from_at: datetime
    until_at: datetime

    def days_beyond(self, other: Span) -> list[datetime]:
        """Days that the other span does not have."""
        return [day for day in days_between(self.from_at, self.until_at) if not other.from_at <= day < other.until_at]


def days_between(start: datetime, end: datetime) -> list[datetime]:
    """Days from one up to another, exclusive."""
    return [start + timedelta(days=number) for number in range((end - start).days)]


_HAPPENED = {
    "events.run_recorded": "min(started_at), max(coalesce(ended_at, started_at + interval 1 second))",
    "events.gpu_sampled": "min(sampled_at), max(sampled_at) + interval 1 second",
    "events.node_state_changed": "min(changed_at), max(changed_at) + interval 1 second",
    "events.charge_billed": "min(charge_period_start_at), max(charge_period_end_at)",
    "events.run_interrupted": "min(started_at), max(interrupted_at) + interval 1 second",
    "events.checkpoint_saved": "min(saved_at), max(saved_at) + interval 1 second",
}
"""First and last instant of what happened, by the tables that tell of it."""


def known_span(con: duckdb.DuckDBPyConnection, after_batch: int, before: Span | None, fresh: set[str]) -> Span | None:
    """The days known, from those known before and what later batches bring; None of a log without anything.

    Args:
      con: Connection with the ``events`` tables.
      after_batch: Last batch that ``before`` knew; 0: none.
      before: The days known then.
      fresh: Event tables (``events.name``) that later batches brought rows to.
    """
    found = [
        row
        for table, ends in _HAPPENED.items()
        if table in fresh
        for row in con.execute(f"SELECT {ends} FROM {table} WHERE batch_id > ?", [after_batch]).fetchall()
        if row[0] is not None
    ]
    starts = [_midnight(row[0]) for row in found]
    ends = [_midnight(row[1] - timedelta(microseconds=1)) + timedelta(days=1) for row in found]
    if before:
        starts, ends = [*starts, before.from_at], [*ends, before.until_at]
    return Span(min(starts).replace(day=1), max(ends)) if starts else None


def _midnight(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def touched_days(
    con: duckdb.DuckDBPyConnection,
    after_batch: int,
    span: Span,
    fresh: set[str],
) -> list[datetime]:
    """UTC days that batches after ``after_batch`` touch, ascending.

    Args:
      con: Connection with the ``events`` tables, and the projections of the build before.
      after_batch: Last batch that the projections have seen.
      span: Result of ``known_span``.
      fresh: Event tables (``events.name``) that these batches brought rows to; the others are not looked at.
    """
    special = {
        ChargeBilled: [],
        BillDelivered: [_of_bills(after_batch)],
        GpuInventoried: [_of_everything_from(GpuInventoried, "effective_from_at", "effective_until_at", after_batch)],
        CheckpointSaved: [_of_event(CheckpointSaved, after_batch), _of_interrupted(after_batch)],
        RunRecorded: [_of_event(RunRecorded, after_batch), _of_restarts(RunRecorded, _JOB_ID, after_batch)],
        RunInterrupted: [_of_event(RunInterrupted, after_batch), _of_restarts(RunInterrupted, "run_id", after_batch)],
        FxRateObserved: [_of_everything_from(FxRateObserved, "observed_at", "NULL", after_batch)],
    }
    queries = [
        query
        for event in EVENT_TYPES
        if f"events.{table_name(event)}" in fresh
        for query in special.get(event, [_of_event(event, after_batch)] if event.touches else [])
    ]
    if not queries:
        return []
    days = " UNION ".join(
        "SELECT unnest(generate_series(greatest(date_trunc('day', CAST(from_at AS TIMESTAMPTZ)), $first), "
        f"least(CAST(until_at AS TIMESTAMPTZ), $last - INTERVAL 1 DAY), INTERVAL 1 DAY)) AS touched_day FROM ({query})"
        for query in queries
    )
    rows = con.execute(
        f"SELECT DISTINCT touched_day FROM ({days}) ORDER BY touched_day",
        {"first": span.from_at, "last": span.until_at},
    ).fetchall()
    return [row[0].astimezone(UTC) for row in rows]


def windows(days: list[datetime]) -> list[tuple[datetime, datetime]]:
    """Join consecutive days into windows of at most ``MOST_WINDOW_DAYS`` days.

    >>> day = datetime(2026, 9, 1, tzinfo=UTC)
    >>> [(a.day, b.day) for a, b in windows([day, day + timedelta(days=1), day + timedelta(days=5)])]
    [(1, 3), (6, 7)]
    """
    found: list[tuple[datetime, datetime]] = []
    for day in days:
        after = day + timedelta(days=1)
        if found and found[-1][1] == day and day - found[-1][0] < timedelta(days=MOST_WINDOW_DAYS):
            found[-1] = (found[-1][0], after)
        else:
            found.append((day, after))
    return found


_JOB_ID = "CASE WHEN is_from_step THEN split_part(run_id, '.', 1) ELSE run_id END"


def _of_event(event: type[Event], after_batch: int) -> str:
    """Spans (from_at, until_at) of the new rows of an event type, and of all versions of the same facts."""
    start, end = event.touches or ("", None)
    table = f"events.{table_name(event)}"
    until = f"greatest({start}, coalesce({end} - INTERVAL 1 SECOND, $last))" if end else "$last"
    if event.partition_by is None:
        start = f"date_trunc('month', {start})"
    span = f"SELECT DISTINCT {_day(start)} AS from_at, {_day(until)} AS until_at FROM"
    fresh = f"SELECT * FROM {table} WHERE batch_id > {after_batch}"
    spans = [f"{span} ({fresh})"]
    # One semi join each: an OR of conditions would look at every row of the log.
    if end and end not in keys(event) and end != start:
        spans.append(f"{span} {table} SEMI JOIN ({fresh}) AS fresh USING ({', '.join(keys(event))})")
    if event is RunRecorded:
        # A step counts where its job is not known, and together with the other steps of its run: see staged.run.
        steps = f"SELECT *, split_part(run_id, '.', 1) AS job_id FROM {table} WHERE is_from_step"
        spans.append(
            f"{span} ({steps}) SEMI JOIN (SELECT cluster, {_JOB_ID} AS job_id FROM ({fresh})) AS fresh USING (cluster, job_id)"
        )
    return " UNION ".join(spans)


def _day(expression: str) -> str:
    return f"date_trunc('day', {expression})"


def _of_interrupted(after_batch: int) -> str:
    """Attempts known to be interrupted in which a run saved a new checkpoint, or all of a run whose first checkpoints are new.

    What an attempt lost reaches from one day into others. One whose interruption is as new as the checkpoint touches its
    days by itself.
    """
    table = f"events.{table_name(CheckpointSaved)}"
    known = f"SELECT 1 FROM {table} AS k WHERE k.cluster = c.cluster AND k.run_id = c.run_id AND k.batch_id <= {after_batch}"
    until = "greatest(a.started_at, coalesce(a.lost_until_at - INTERVAL 1 SECOND, $last))"
    return (
        f"SELECT DISTINCT {_day('a.started_at')} AS from_at, {_day(until)} AS until_at FROM core.lost_work_attempt AS a "
        f"JOIN (SELECT cluster, run_id, saved_at FROM {table} WHERE batch_id > {after_batch}) AS c "
        "ON c.cluster = a.cluster AND c.run_id = a.run_id WHERE NOT EXISTS "
        f"({known}) OR c.saved_at BETWEEN a.started_at AND coalesce(a.ended_at, a.lost_until_at, $last)"
    )


def _of_restarts(event: type[Event], job_id: str, after_batch: int) -> str:
    """Restart work of the later attempts of a run of which a new row tells: whether the one before was interrupted decides.

    It reaches from an attempt's start as far as any policy ``restart_seconds`` says; without one there is none.

    Args:
      event: RunRecorded or RunInterrupted.
      job_id: Expression for the run that a row of the event is of.
      after_batch: As for ``touched_days``.
    """
    runs = f"SELECT cluster, {_JOB_ID} AS job_id, started_at FROM events.{table_name(RunRecorded)}"
    policy = f"SELECT max(CAST(value AS BIGINT)) AS seconds FROM events.{table_name(PolicySet)} WHERE policy = 'restart_seconds'"
    fresh = (
        f"SELECT cluster, {job_id} AS job_id, min(started_at) AS first_at, max(seconds) AS seconds "
        f"FROM events.{table_name(event)} CROSS JOIN ({policy}) WHERE batch_id > {after_batch} AND seconds > 0 GROUP BY 1, 2"
    )
    until = "r.started_at + INTERVAL 1 SECOND * least(f.seconds, date_diff('second', r.started_at, $last))"
    return (
        f"SELECT DISTINCT {_day('r.started_at')} AS from_at, {_day(until)} AS until_at FROM ({runs}) AS r "
        f"JOIN ({fresh}) AS f ON f.cluster = r.cluster AND f.job_id = r.job_id AND r.started_at > f.first_at"
    )


def _of_bills(after_batch: int) -> str:
    """Lines of every delivery of a bill that was delivered anew, and the bill's first day, where its residue stands."""
    fresh = (
        f"SELECT issuer, billing_account_id, billing_period_month FROM events.{table_name(BillDelivered)} "
        f"WHERE batch_id > {after_batch}"
    )
    same_bill = (
        "fresh.issuer = c.issuer AND fresh.billing_account_id = c.billing_account_id "
        "AND fresh.billing_period_month = c.billing_period_month"
    )
    return (
        f"SELECT DISTINCT {_day('charge_period_start_at')} AS from_at, {_day('charge_period_end_at')} AS until_at "
        f"FROM events.charge_billed AS c WHERE EXISTS (SELECT 1 FROM ({fresh}) AS fresh WHERE {same_bill}) "
        f"UNION SELECT CAST(billing_period_month AS TIMESTAMPTZ), CAST(billing_period_month AS TIMESTAMPTZ) FROM ({fresh})"
    )


def _of_everything_from(event: type[Event], start: str, end: str, after_batch: int) -> str:
    """Spans of an event that also decides where older, longer charges go: widened to the charges it overlaps."""
    table = f"events.{table_name(event)}"
    return (
        f"SELECT least(date_trunc('month', one.{start}), (SELECT min(c.charge_period_start_at) FROM events.charge_billed AS c "
        f"WHERE c.charge_period_end_at > one.{start} AND c.charge_period_start_at < one.{start} "
        f"OR CAST(c.billing_period_month AS TIMESTAMPTZ) = one.{start})) AS from_at, "
        f"coalesce({end}, $last) AS until_at FROM {table} AS one WHERE one.batch_id > {after_batch}"
    )
