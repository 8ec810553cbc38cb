"""Bring the projections up to date with the log, or replay the log as it was at an instant.

The projections live in one working DuckDB file of the ledger's home. It is derived: delete it, and a build makes it again.
One build at a time holds its lock; another waits its turn with a message.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from models.errors import CheckError, UsageError
from models.findings import FINDING_KINDS
from models.gpus import MIG_PROFILES, mig_weight_rows, named_compute_shares
from models.policies import POLICIES
from pipelines.duck import has_table
from pipelines.lake import Lake, ddl_by_table
from pipelines.projections import LAYERS, Projection, Violation, load, rebuild, violations
from pipelines.touched import Span, days_between, known_span, touched_days, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    import duckdb

    from pipelines.settings import Settings

_HORIZON = frozenset({"reference.hour", "reference.day", "reference.ledger"})
"""What changes when the ledger comes to know of other days."""

_LARGE = frozenset({"run_recorded", "run_placed", "gpu_sampled", "charge_billed", "checkpoint_saved"})
"""Event tables read where they lie. The others are small and read by many queries, each read in place a tenth of a second."""


@dataclass(slots=True)
class Report:
    """What a build did.

    Attributes:
      batch_id: Last batch of the log that the projections now show.
      days: UTC days rebuilt.
      rows: Rows that came or went, by projection.
    """

    batch_id: int
    days: list[datetime] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)


class Builder:
    """The working file, opened for one build."""

    def __init__(self, con: duckdb.DuckDBPyConnection, cut: int, settings: Settings) -> None:
        """Take an open connection with the log attached, and the last batch to see."""
        self.con, self.cut, self._settings = con, cut, settings
        self._span: Span | None = None
        self._changed: set[str] | None = None

    def prepare(self, *, full: bool, asked: tuple[datetime, datetime] | None = None) -> list[datetime]:
        """Set up schemas, event tables and reference tables.

        Args:
          full: Forget all projections.
          asked: Window of whole days to rebuild in any case.

        Returns:
          The days to rebuild: those that new batches touch, and those of ``asked`` that the ledger knows.

        Raises:
          UsageError: Months were closed in another currency than the settings name.
        """
        self._refuse_another_currency()
        self.con.execute("CREATE SCHEMA IF NOT EXISTS build")
        self.con.execute(
            "CREATE TABLE IF NOT EXISTS build.progress (batch_id BIGINT, known_from_at TIMESTAMPTZ, "
            "known_until_at TIMESTAMPTZ, code_digest VARCHAR)"
        )
        row = self.con.execute("SELECT * FROM build.progress").fetchone()
        after, before = 0, None
        if full or row is None or row[-1] != _code_digest(self._settings) or row[0] > self.cut:
            self._forget()
        else:
            after, before = row[0], Span(*(instant.astimezone(UTC) for instant in row[1:3])) if row[1] else None
        fresh = self._show_events(after)
        self._span = span = known_span(self.con, after, before, fresh)
        if before is None or span != before:
            self._fill_calendar()
        if before is None or asked or has_table(self.con, "build.unfinished"):
            self._changed = None
        else:
            self._changed = fresh | (set(_HORIZON) if span != before else set())
        if span is None:
            return []
        if before is None:
            return days_between(span.from_at, span.until_at)
        days = {*touched_days(self.con, after, span, fresh), *span.days_beyond(before)}
        if asked:
            days |= set(days_between(max(asked[0], span.from_at), min(asked[1], span.until_at)))
        return sorted(days)

    def _refuse_another_currency(self) -> None:
        if not has_table(self.con, "reference.ledger"):
            return
        [(before,)] = self.con.execute("SELECT reporting_currency FROM reference.ledger").fetchall()
        now = self._settings.reporting_currency
        if before != now and self.con.execute("SELECT 1 FROM lake.events.period_closed LIMIT 1").fetchone():
            raise UsageError(
                f"GPULEDGER_CURRENCY says {now}, but this ledger closed its months in {before}: set it to {before}; "
                "a ledger keeps its currency once a month is closed"
            )

    def _show_events(self, after: int) -> set[str]:
        """Show the log up to the cut as the schema ``events``; returns the tables that batches after ``after`` brought rows to."""
        written = self.con.execute(
            "SELECT content_digests FROM lake.events.batches WHERE batch_id > ? AND batch_id <= ?", [after, self.cut]
        ).fetchall()
        fresh = {"batches", *(name for row in written for name in json.loads(row[0]))} if written else set[str]()
        for name in sorted(fresh - _LARGE):
            # A build that broke off may have copied some already.
            self.con.execute(
                f"INSERT INTO events.{name} SELECT * FROM lake.events.{name} WHERE batch_id <= $cut "
                f"AND batch_id > (SELECT coalesce(max(batch_id), 0) FROM events.{name})",
                {"cut": self.cut},
            )
        for name in sorted(_LARGE):
            self.con.execute(
                f"CREATE OR REPLACE VIEW events.{name} AS SELECT * FROM lake.events.{name} WHERE batch_id <= {self.cut}"
            )
        derived = {"reference.policy_now"} if "policy_set" in fresh else set()
        return {f"events.{name}" for name in fresh} | derived

    def _forget(self) -> None:
        """Begin anew: no projection, no event, and the reference tables, which depend on nothing but the code."""
        for schema in ("events", "reference", *LAYERS):
            self.con.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            self.con.execute(f"CREATE SCHEMA {schema}")
        self.con.execute("DELETE FROM build.progress")
        for name, statement in ddl_by_table("events").items():
            if name not in _LARGE:
                self.con.execute(statement)
        named = {one.profile: named_compute_shares(one.profile) for one in MIG_PROFILES}
        tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
            "mig_weight": (
                "gpu_model VARCHAR, mig_profile VARCHAR, max_shares BIGINT, compute_shares BIGINT",
                list(mig_weight_rows()),
            ),
            "named_weight": ("mig_profile VARCHAR, compute_shares BIGINT", list(named.items())),
            "policy_default": ("policy VARCHAR, value VARCHAR", [(one.name, one.default) for one in POLICIES]),
            "finding_kind": (
                "kind VARCHAR, severity VARCHAR, unit VARCHAR, expected VARCHAR, explanation VARCHAR",
                [(one.kind, one.severity, one.unit, one.expected, one.explanation) for one in FINDING_KINDS],
            ),
        }
        for name, (columns, rows) in tables.items():
            self.con.execute(f"CREATE TABLE reference.{name} ({columns})")
            marks = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
            self.con.execute(f"INSERT INTO reference.{name} VALUES {marks}", [value for row in rows for value in row])
        self.con.execute(
            "CREATE VIEW reference.policy_now AS SELECT d.policy, coalesce((SELECT max_by(p.value, "
            "(p.effective_from_at, p.version_at, p.batch_id)) FROM events.policy_set AS p WHERE p.policy = d.policy AND p.subject = ''), "
            "d.value) AS value FROM reference.policy_default AS d"
        )

    def _fill_calendar(self) -> None:
        span = astuple(self._span) if self._span else (None, None)
        self.con.execute(
            "CREATE OR REPLACE TABLE reference.ledger AS SELECT ? AS reporting_currency, CAST(? AS TIMESTAMPTZ) AS known_from_at, "
            "CAST(? AS TIMESTAMPTZ) AS known_until_at",
            [self._settings.reporting_currency, *span],
        )
        for name, column, step in (("hour", "use_hour", "1 HOUR"), ("day", "cost_day", "1 DAY")):
            self.con.execute(
                f"CREATE OR REPLACE TABLE reference.{name} AS SELECT unnest(generate_series("
                f"known_from_at, known_until_at - INTERVAL {step}, INTERVAL {step})) AS {column} FROM reference.ledger"
            )

    def finish(self) -> None:
        """Remember what the projections now show."""
        self.con.execute("BEGIN")
        self.con.execute("DELETE FROM build.progress")
        self.con.execute(
            "INSERT INTO build.progress SELECT ?, known_from_at, known_until_at, ? FROM reference.ledger",
            [self.cut, _code_digest(self._settings)],
        )
        self.con.execute("DROP TABLE IF EXISTS build.unfinished")
        self.con.execute("COMMIT")

    def projected(self, days: list[datetime]) -> Iterator[tuple[Projection, int, list[Violation]]]:
        """Rebuild projection by projection over the days and check each; remember once the last is done.

        One that reads nothing that changed keeps its rows: late runs do not lay the month's bills again.
        Until then the table ``build.unfinished`` stands, so that a build that broke off is not published.

        Yields:
          The projection, the rows that came or went and the invariants that it breaks.

        Raises:
          CheckError: An invariant does not hold; nothing is remembered, so the next build tries again.
        """
        spans = windows(days)
        self.con.execute("CREATE TABLE IF NOT EXISTS build.unfinished (batch_id BIGINT)")
        for projection in load():
            if self._changed is not None and not projection.reads & self._changed:
                yield projection, 0, []
                continue
            rows = rebuild(self.con, projection, spans)
            if self._changed is not None and (rows or projection.partition_by is None):
                self._changed.add(projection.name)
            broken = violations(self.con, projection, spans)
            yield projection, rows, broken
            if broken:
                raise CheckError("; ".join(map(str, broken)))
        self.finish()

    def project(
        self, days: list[datetime], on_projection: Callable[[Projection, int, list[Violation]], None]
    ) -> Report:
        """Rebuild every projection over the days; raises what ``projected`` raises."""
        report = Report(self.cut, days)
        for projection, rows, broken in self.projected(days):
            report.rows[projection.name] = rows
            on_projection(projection, rows, broken)
        return report


@contextmanager
def opened(
    settings: Settings,
    *,
    as_of: datetime | None = None,
    database: Path | None = None,
    on_wait: Callable[[str], None] = lambda _message: None,
) -> Iterator[Builder]:
    """Open the working file (or another database for a replay) for one build, with the log cut at ``as_of``."""
    path = database or settings.build_path
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait(f"another run is building {path}; waiting for it to finish")
        lock.acquire()
    try:
        # Asked once it is our turn: whoever was before us may have appended, and a build never goes back.
        with Lake(settings, database=str(path), on_wait=on_wait) as lake:
            cut = lake.last_batch_id(as_of)
            lake.con.execute(f"USE {path.stem}")
            yield Builder(lake.con, cut, settings)
    finally:
        lock.release()


def build(
    settings: Settings,
    *,
    full: bool = False,
    on_projection: Callable[[Projection, int, list[Violation]], None] = lambda *_: None,
    on_wait: Callable[[str], None] = lambda _message: None,
) -> Report:
    """Bring the projections up to date: rebuild exactly the days that new batches touch.

    Args:
      settings: The ledger.
      full: Forget all projections and make them again.
      on_projection: Told of each projection with the rows that came or went and broken invariants.
      on_wait: Told that another build is running.

    Raises:
      CheckError: An invariant does not hold.
    """
    with opened(settings, on_wait=on_wait) as builder:
        return builder.project(builder.prepare(full=full), on_projection)


def _code_digest(settings: Settings) -> str:
    """Digest of all that decides what the projections hold besides the log: other code means another build."""
    text = "\n".join(one.select for one in load()) + repr(
        (mig_weight_rows(), POLICIES, FINDING_KINDS, settings.reporting_currency)
    )
    return hashlib.sha256(text.encode()).hexdigest()
