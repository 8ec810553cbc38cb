"""Bring the projections up to date with the log, or replay the log as it was at an instant.

The projections live in one working DuckDB file of the ledger's home. It is derived: delete it, and a build makes it again.
One build at a time holds its lock; another waits its turn with a message.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from models.errors import CheckError
from models.events import EVENT_TYPES, table_name
from models.findings import FINDING_KINDS
from models.gpus import MIG_PROFILES, mig_weight_rows, named_compute_shares
from models.policies import POLICIES
from pipelines.duck import connect
from pipelines.lake import Lake
from pipelines.projections import Projection, Violation, load, rebuild, violations
from pipelines.touched import known_span, touched_days, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    import duckdb

    from pipelines.settings import Settings

BUCKETS = ("active", "allocated_idle", "allocated_unmeasured", "unallocated", "down", "stranded", "over_subscribed")

_HORIZON = frozenset({"reference.hour", "reference.day", "reference.ledger"})
"""What changes when the ledger comes to know of other days."""


@dataclass(slots=True)
class Report:
    """What a build did.

    Attributes:
      batch_id: Last batch of the log that the projections now show.
      days: UTC days rebuilt.
      rows: Rows written by projection.
    """

    batch_id: int
    days: list[datetime] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)


class Builder:
    """The working file, opened for one build."""

    def __init__(self, con: duckdb.DuckDBPyConnection, cut: int, settings: Settings) -> None:
        """Take an open connection with the log attached, and the last batch to see."""
        self.con, self.cut, self._settings = con, cut, settings
        self._changed: set[str] | None = None

    def prepare(self, *, full: bool, asked: tuple[datetime, datetime] | None = None) -> list[datetime]:
        """Set up schemas, event views and reference tables.

        Args:
          full: Forget all projections.
          asked: Window of whole days to rebuild in any case.

        Returns:
          The days to rebuild: those that new batches touch, and those of ``asked`` that the ledger knows.
        """
        digest = _code_digest(self._settings)
        for schema in ("build", "events", "reference", "staged", "core", "marts"):
            self.con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self.con.execute(
            "CREATE TABLE IF NOT EXISTS build.progress "
            "(batch_id BIGINT, known_from_at TIMESTAMPTZ, known_until_at TIMESTAMPTZ, code_digest VARCHAR)"
        )
        row = self.con.execute(
            "SELECT batch_id, known_from_at, known_until_at, code_digest FROM build.progress"
        ).fetchone()
        if full or row is None or row[3] != digest or row[0] > self.cut:
            self._forget()
            row = None
        after, known = (row[0], (row[1], row[2])) if row else (0, (None, None))
        for name in (*map(table_name, EVENT_TYPES), "rejected", "batches"):
            self.con.execute(
                f"CREATE OR REPLACE VIEW events.{name} AS SELECT * FROM lake.events.{name} WHERE batch_id <= {self.cut}"
            )
        span = known_span(self.con)
        self._fill_reference(span)
        fresh = self._fresh(after) if row else {f"events.{table_name(event)}" for event in EVENT_TYPES}
        self._changed = None if row is None or asked else fresh | (set(_HORIZON) if known != span else set())
        if span is None:
            return []
        days = set(touched_days(self.con, after, span, known[1], fresh)) if fresh else set()
        if asked:
            first, end = max(asked[0], span[0]), min(asked[1], span[1])
            days |= {first + timedelta(days=number) for number in range((end - first).days)}
        return sorted(days)

    def _fresh(self, after: int) -> set[str]:
        """Event tables that batches after ``after`` brought rows to."""
        rows = self.con.execute("SELECT content_digests FROM events.batches WHERE batch_id > ?", [after]).fetchall()
        fresh = {f"events.{table}" for row in rows for table in json.loads(row[0])}
        if "events.policy_set" in fresh:
            fresh.add("reference.policy_now")
        return fresh | {"events.batches"} if rows else fresh

    def _forget(self) -> None:
        for schema in ("staged", "core", "marts"):
            self.con.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            self.con.execute(f"CREATE SCHEMA {schema}")
        self.con.execute("DELETE FROM build.progress")

    def _fill_reference(self, span: tuple[datetime, datetime] | None) -> None:
        start, end = span or (None, None)
        named = {one.profile: named_compute_shares(one.profile) for one in MIG_PROFILES}
        tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
            "mig_weight": (
                "gpu_model VARCHAR, mig_profile VARCHAR, max_shares BIGINT, compute_shares BIGINT",
                list(mig_weight_rows()),
            ),
            "named_weight": ("mig_profile VARCHAR, compute_shares BIGINT", list(named.items())),
            "policy_default": ("policy VARCHAR, value VARCHAR", [(one.name, one.default) for one in POLICIES]),
            "bucket": ("bucket VARCHAR", [(one,) for one in BUCKETS]),
            "finding_kind": (
                "kind VARCHAR, severity VARCHAR, unit VARCHAR, expected VARCHAR, explanation VARCHAR",
                [(one.kind, one.severity, one.unit, one.expected, one.explanation) for one in FINDING_KINDS],
            ),
            "ledger": (
                "reporting_currency VARCHAR, known_from_at TIMESTAMPTZ, known_until_at TIMESTAMPTZ",
                [(self._settings.reporting_currency, start, end)],
            ),
        }
        for name, (columns, rows) in tables.items():
            self.con.execute(f"CREATE OR REPLACE TABLE reference.{name} ({columns})")
            self.con.executemany(f"INSERT INTO reference.{name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for name, column, step in (("hour", "use_hour", "1 HOUR"), ("day", "cost_day", "1 DAY")):
            self.con.execute(
                f"CREATE OR REPLACE TABLE reference.{name} AS SELECT unnest(generate_series("
                f"known_from_at, known_until_at - INTERVAL {step}, INTERVAL {step})) AS {column} FROM reference.ledger"
            )
        self.con.execute(
            "CREATE OR REPLACE VIEW reference.policy_now AS SELECT d.policy, coalesce((SELECT max_by(p.value, "
            "(p.effective_from_at, p.version_at, p.batch_id)) FROM events.policy_set AS p WHERE p.policy = d.policy AND p.subject = ''), "
            "d.value) AS value FROM reference.policy_default AS d"
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
          The projection, the rows written and the invariants that it breaks.

        Raises:
          CheckError: An invariant does not hold; nothing is remembered, so the next build tries again.
        """
        spans = windows(days)
        self.con.execute("CREATE TABLE IF NOT EXISTS build.unfinished (batch_id BIGINT)")
        for projection in load():
            if self._changed is not None and not projection.reads & self._changed:
                yield projection, 0, []
                continue
            if self._changed is not None:
                self._changed.add(projection.name)
            rows = rebuild(self.con, projection, spans)
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
        with Lake(settings, on_wait=on_wait) as lake:
            cut = lake.last_batch_id(as_of)
        with connect(settings, str(path)) as con:
            yield Builder(con, cut, settings)
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
      on_projection: Told of each projection with rows written and broken invariants.
      on_wait: Told that another build is running.

    Raises:
      CheckError: An invariant does not hold.
    """
    with opened(settings, on_wait=on_wait) as builder:
        return builder.project(builder.prepare(full=full), on_projection)


def _code_digest(settings: Settings) -> str:
    """Digest of all that decides what the projections hold besides the log: other code means another build."""
    text = "\n".join(one.select for one in load()) + repr(
        (mig_weight_rows(), POLICIES, BUCKETS, FINDING_KINDS, settings.reporting_currency)
    )
    return hashlib.sha256(text.encode()).hexdigest()
