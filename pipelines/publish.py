"""Publish the marts to one DuckDB file that dashboards and analysts open read-only.

Written aside, checked, renamed over the old one: a reader keeps the file it opened and is never blocked by a run, and a
run never by a reader. Does not belong here: computing anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from models.errors import CheckError, UsageError
from models.events import EVENT_TYPES, columns, table_name
from pipelines.build import opened
from pipelines.duck import has_table, quoted
from pipelines.projections import Projection, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    import polars as pl

    from pipelines.settings import Settings

EXTRA_TABLES = (
    "staged.ownership",
    "staged.gpu_inventory",
    "staged.commitment",
    "staged.interruption",
    "staged.checkpoint",
    "core.offer",
    "core.line_daily",
    "core.owner_daily",
)
"""Tables besides the marts that pages drill into and plans are made from."""


def publish(
    settings: Settings,
    *,
    on_table: Callable[[str], None] = lambda _name: None,
    on_wait: Callable[[str], None] = lambda _message: None,
) -> Path:
    """Write the published file from the working file.

    Returns:
      Its path.

    Raises:
      CheckError: A month does not add up; the old file stays.
    """
    with opened(settings, on_wait=on_wait) as builder:
        return write_published(builder.con, settings.published_path, on_table)


def write_published(
    con: duckdb.DuckDBPyConnection, target: Path, on_table: Callable[[str], None] = lambda _name: None
) -> Path:
    """Write the marts of an open working file to ``target``, by way of a file beside it."""
    known = con.execute("SELECT batch_id FROM build.progress").fetchone() if has_table(con, "build.progress") else None
    if known is None:
        raise UsageError("nothing is built yet: run gpuledger build first")
    if has_table(con, "build.unfinished"):
        raise CheckError("the last build broke off, so its tables do not fit together: run gpuledger build first")
    unproved = con.execute("SELECT charge_month FROM marts.proof_monthly WHERE difference_micros <> 0").fetchall()
    if unproved:
        raise CheckError(f"months that do not add up are not published: {', '.join(str(row[0]) for row in unproved)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_suffix(".writing")
    aside.unlink(missing_ok=True)
    con.execute(f"ATTACH {quoted(str(aside))} AS published")
    try:
        for projection in load():
            if projection.name.startswith("marts.") or projection.name in EXTRA_TABLES:
                on_table(projection.name)
                _copy(con, projection)
        con.execute("CREATE SCHEMA IF NOT EXISTS published.marts")
        con.execute(
            "CREATE TABLE published.marts.ledger AS SELECT r.reporting_currency, r.known_from_at, r.known_until_at, "
            "p.batch_id, (SELECT max(recorded_at) FROM events.batches) AS recorded_until_at FROM reference.ledger AS r, build.progress AS p"
        )
        con.execute("CREATE TABLE published.marts.period_closed AS SELECT * FROM events.period_closed")
        con.execute("CREATE TABLE published.marts.batches AS SELECT * FROM events.batches")
        con.execute("CREATE TABLE published.marts.rejected AS SELECT * FROM events.rejected")
        _comment_extras(con)
    finally:
        con.execute("DETACH published")
    aside.replace(target)
    return target


def _copy(con: duckdb.DuckDBPyConnection, projection: Projection) -> None:
    layer, _ = projection.name.split(".")
    con.execute(f"CREATE SCHEMA IF NOT EXISTS published.{layer}")
    order = ", ".join(projection.keys)
    con.execute(f"CREATE TABLE published.{projection.name} AS SELECT * FROM {projection.name} ORDER BY {order}")
    con.execute(f"COMMENT ON TABLE published.{projection.name} IS {_quoted(projection.grain)}")
    for column, comment in comments(
        projection, [row[0] for row in con.execute(f"DESCRIBE {projection.name}").fetchall()]
    ).items():
        con.execute(f"COMMENT ON COLUMN published.{projection.name}.{column} IS {_quoted(comment)}")


def comments(projection: Projection, names: list[str]) -> dict[str, str]:
    """Comment of each column: from the header, else the event column of that name, else its unit.

    Raises:
      CheckError: A column has no comment anywhere.
    """
    # Of columns that several events have, the first event's words: those of the ledger come before procurement's.
    declared = {column.name: column.doc for event in reversed(EVENT_TYPES) for column in columns(event)}
    found = {
        name: projection.comments.get(name) or projection.units.get(name) or declared.get(name) or _SHARED.get(name, "")
        for name in names
    }
    lacking = [name for name, comment in found.items() if not comment]
    if lacking:
        raise CheckError(f"{projection.name}: no comment for {', '.join(lacking)}; add it under columns: in the header")
    return found


_SHARED = {
    "from_at": "in force from",
    "until_at": "in force until (exclusive)",
    "use_day": "UTC day",
    "cost_day": "UTC day",
    "cost_kind": "usage, or the pool that the cost comes from",
    "share_seconds": "1/4200 of a GPU for one second",
    "idle_share_seconds": "allocated and measured without activity",
    "unmeasured_share_seconds": "allocated without telemetry",
    "unpriced_share_seconds": "on nodes without a known cost",
    "cost_micros": "millionths of the reporting currency",
    "profile_rank": "order of the profile within its layout",
}
_EXTRAS = {
    "ledger": (
        "one row: what this file shows",
        {
            "reporting_currency": "currency of all cost columns",
            "known_from_at": "start of the month in which the first thing happened",
            "known_until_at": "end of the last day of what happened",
            "batch_id": "last batch of the event log that this file shows",
            "recorded_until_at": "when that batch was recorded",
        },
    ),
    "batches": (
        "one row per append to the event log",
        {
            "batch_id": "number, ascending",
            "source": "reader",
            "source_window": "what was read",
            "recorded_at": "when we learned it",
            "rows_read": "rows read",
            "rows_ignored": "rows that are no facts of ours (job steps, other metrics)",
            "rows_appended": "event rows added",
            "rows_duplicate": "event rows already known",
            "rows_rejected": "rows not understood",
            "rows_set_aside": "rows understood and rightly not billed",
            "content_digests": "digest of the rows added, by table",
            "previous_digest": "digest of the batch before",
            "digest": "SHA-256 of this record and the digest before it",
        },
    ),
    "rejected": (
        "one row per source row that was not understood or rightly not billed",
        {
            "source": "reader",
            "position": "file:line, or key in the outside system",
            "kind": "rejected or set_aside",
            "reason": "what was found and expected",
            "raw_text": "the row as it came",
            "batch_id": "batch that brought it",
        },
    ),
}


def _comment_extras(con: duckdb.DuckDBPyConnection) -> None:
    closed = next(event for event in EVENT_TYPES if table_name(event) == "period_closed")
    docs = {column.name: column.doc for column in columns(closed)} | {
        "batch_id": "batch that recorded it",
        "version_at": "when it was recorded",
    }
    for table, (comment, named) in {**_EXTRAS, "period_closed": ("one row per closed month", docs)}.items():
        con.execute(f"COMMENT ON TABLE published.marts.{table} IS {_quoted(comment)}")
        for column, text in named.items():
            con.execute(f"COMMENT ON COLUMN published.marts.{table}.{column} IS {_quoted(text)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def query(settings: Settings, sql: str) -> pl.DataFrame:
    """Run a query against the published file, read-only.

    Raises:
      UsageError: Nothing is published, or the query is wrong (the database's own words are kept).
    """
    path = settings.published_path
    if not path.is_file():
        raise UsageError(f"{path} does not exist: run gpuledger build and gpuledger publish first, or gpuledger demo")
    try:
        with duckdb.connect(str(path), read_only=True) as con:
            con.execute("SET TimeZone = 'UTC'")
            found = con.sql(sql)
            if found is None:
                raise UsageError("the query returns no rows: the published file is only read, with a SELECT")
            return found.project(", ".join(_kept_exact(found))).pl()
    except duckdb.Error as error:
        raise UsageError(f"the query failed: {error}") from error


def _kept_exact(found: duckdb.DuckDBPyRelation) -> Iterator[str]:
    """Each column as Polars can hold it: a sum of integers would become a float, and an interval is none of its types."""
    types = {"HUGEINT": "DECIMAL(38, 0)", "INTERVAL": "VARCHAR"}
    for position, (name, dtype) in enumerate(zip(found.columns, found.types, strict=True), start=1):
        quoted = name.replace('"', '""')
        exact = types.get(str(dtype))
        yield f'CAST(#{position} AS {exact}) AS "{quoted}"' if exact else f'#{position} AS "{quoted}"'


def published_at(settings: Settings) -> datetime | None:
    """When the log was last written to, as the published file shows it; None when nothing is published."""
    if not settings.published_path.is_file():
        return None
    found: datetime | None = query(settings, "SELECT recorded_until_at FROM marts.ledger").item()
    return found
