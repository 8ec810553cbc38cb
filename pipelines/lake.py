"""The event log: DuckLake tables that are only ever appended to, in batches that commit whole or not at all.

What the log guarantees:

* A row whose natural key and content are already known adds nothing; other content is a later version.
* Each batch records what was read and kept, and a digest chained to the batch before, so that tampering shows.
* Batches are serialised: a second writer waits its turn with a message, and a killed one leaves no lock behind.

Does not belong here: what events mean, and any reading of sources.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import duckdb
from filelock import FileLock, Timeout

from models.errors import LogError
from models.events import EVENT_TYPES, Event, columns, ddl, keys, table_name
from pipelines.duck import catalogue_errors, connect, has_table, make_folder, quoted
from pipelines.sources.base import REJECTED_SCHEMA
from pipelines.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipelines.settings import Settings
    from pipelines.sources.base import Chunk

_ADVISORY_LOCK = 4_200_000_001
_REJECTED = tuple(REJECTED_SCHEMA)


def ddl_by_table(schema: str) -> dict[str, str]:
    """CREATE TABLE of every table of the log by its name, in a schema of the given name."""
    batches = """
      batch_id BIGINT NOT NULL, source VARCHAR NOT NULL, source_window VARCHAR NOT NULL, recorded_at TIMESTAMPTZ NOT NULL,
      rows_read BIGINT NOT NULL, rows_ignored BIGINT NOT NULL, rows_appended BIGINT NOT NULL,
      rows_duplicate BIGINT NOT NULL, rows_rejected BIGINT NOT NULL, rows_set_aside BIGINT NOT NULL,
      content_digests VARCHAR NOT NULL, previous_digest VARCHAR NOT NULL, digest VARCHAR NOT NULL"""
    rejected = ", ".join(f"{name} VARCHAR NOT NULL" for name in _REJECTED) + ", batch_id BIGINT NOT NULL"
    return {
        **{table_name(event): ddl(event, schema) for event in EVENT_TYPES},
        "batches": f"CREATE TABLE {schema}.batches ({batches})",
        "rejected": f"CREATE TABLE {schema}.rejected ({rejected})",
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """One append, as ``events.batches`` keeps it. Row counts are of the source's rows and of event rows appended."""

    batch_id: int
    source: str
    source_window: str
    recorded_at: datetime
    rows_read: int
    rows_ignored: int
    rows_appended: int
    rows_duplicate: int
    rows_rejected: int
    rows_set_aside: int
    content_digests: str
    previous_digest: str

    @property
    def digest(self) -> str:
        """SHA-256 over this batch's record and the digest before it."""
        parts = [
            self.previous_digest,
            self.batch_id,
            self.source,
            self.source_window,
            self.recorded_at.astimezone(UTC).isoformat(),
            self.rows_read,
            self.rows_ignored,
            self.rows_appended,
            self.rows_duplicate,
            self.rows_rejected,
            self.rows_set_aside,
            self.content_digests,
        ]
        return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


class Lake:
    """The log of one ledger. Use as a context manager; one object a process or thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        database: str = ":memory:",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_wait: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Open the log, making its tables if it is new.

        Args:
          settings: Where the log lives.
          database: DuckDB database beside which the log is attached.
          now: The clock; tests pass their own.
          on_wait: Told, once, that another process is writing and that we wait for it.

        Raises:
          UsageError: A setting is wrong: a folder that cannot be made, a memory limit that is none.
          SourceError: The log's catalogue cannot be opened.
        """
        self.settings, self._now, self._on_wait = settings, now, on_wait
        make_folder(settings.home / "lake", "GPULEDGER_HOME")
        self._lock = FileLock(settings.home / "lake" / "writer.lock")
        with self._turn():
            self.con = connect(settings, database)
            self._create_tables()

    def __enter__(self) -> Self:
        """Return the open log."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close the connection; what was not committed is gone."""
        self.con.close()

    def _create_tables(self) -> None:
        """Make what is lacking: all tables of a new log, those of newer event types in an older one."""
        tables = ddl_by_table("lake.events")
        if has_table(self.con, f"lake.events.{table_name(EVENT_TYPES[-1])}"):  # all were made with it or before it
            return
        with self._writing(), self._transaction():
            self.con.execute("CREATE SCHEMA IF NOT EXISTS lake.events")
            lacking = {name for name in tables if not has_table(self.con, f"lake.events.{name}")}  # may be none by now
            for name in sorted(lacking):
                self.con.execute(tables[name])
            for event in EVENT_TYPES:
                if event.partition_by and table_name(event) in lacking:
                    day = ", ".join(f"{part}({event.partition_by})" for part in ("year", "month", "day"))
                    self.con.execute(f"ALTER TABLE lake.events.{table_name(event)} SET PARTITIONED BY ({day})")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold this home's lock file; the operating system lets go of it when the process dies."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._on_wait(f"another run is writing to {self.settings.home}; waiting for it to finish")
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the one writer's turn: the lock file, and for a shared catalogue an advisory lock in PostgreSQL too."""
        with self._turn():
            if not self.settings.catalog:
                yield
                return
            with duckdb.connect() as turn:
                turn.execute("LOAD postgres_scanner")
                with catalogue_errors(self.settings):
                    turn.execute(f"ATTACH {quoted(self.settings.catalog)} AS team (TYPE postgres)")
                turn.execute("BEGIN")
                turn.execute(f"SELECT * FROM postgres_query('team', 'SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})')")
                yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.con.execute("BEGIN")
        try:
            yield
        except BaseException:
            self.con.execute("ROLLBACK")
            raise
        self.con.execute("COMMIT")

    def append(self, source: str, window: str, chunks: Iterable[Chunk], *, at: datetime | None = None) -> Batch:
        """Append all chunks as one batch, whole or not at all.

        Args:
          source: Name of the reader, such as ``slurm``.
          window: What was read: file names, or a time window.
          chunks: What the source yields; read to the end before the writer's turn is taken.
          at: The source's own order of this version (dump or delivery instant). Without it the newest word wins: a
            row is a duplicate if it equals the newest version known. With it a row is a duplicate only if the same
            content was already said for the same instant, so batches may come in any order.

        Returns:
          The batch as recorded.

        Raises:
          SourceError: From the source; then nothing was appended.
        """
        spool = Spool(self.con)
        try:
            for chunk in chunks:
                spool.add(chunk)
            with self._writing():
                return self._commit(source, window, spool, at)
        finally:
            spool.close()

    def _commit(self, source: str, window: str, spool: Spool, at: datetime | None) -> Batch:
        batch_id, previous, recorded_at = self._next()
        version_at = (at or recorded_at).astimezone(UTC).replace(microsecond=0)
        # What is new is laid aside before the transaction: DuckDB scans what is not committed on one thread.
        appended = incoming = 0
        for event in spool.types:
            fresh, count = self._lay_aside(event, spool.table(event), batch_id, version_at, stated=at is not None)
            incoming, appended = incoming + count, appended + fresh
        rejected, set_aside = self._lay_aside_rejected(spool.rejected, batch_id)
        tables = [*map(table_name, spool.types), "rejected"]
        digests = {name: digest for name in tables if (digest := self._digest_of_fresh(name))}
        batch = Batch(
            batch_id,
            source,
            window,
            recorded_at,
            spool.rows_read,
            spool.rows_ignored,
            appended,
            incoming - appended,
            rejected,
            set_aside,
            json.dumps(digests, sort_keys=True),
            previous,
        )
        with self._transaction():
            for name in digests:
                self.con.execute(f"INSERT INTO lake.events.{name} BY NAME SELECT * FROM temp.fresh_{name}")
            self.con.execute(
                f"INSERT INTO lake.events.batches VALUES ({', '.join('?' * 13)})",
                [*(getattr(batch, name) for name in Batch.__slots__), batch.digest],
            )
        for name in tables:
            self.con.execute(f"DROP TABLE temp.fresh_{name}")
        return batch

    def _next(self) -> tuple[int, str, datetime]:
        last = self.con.execute(
            "SELECT max(batch_id), max_by(digest, batch_id), max(recorded_at) FROM lake.events.batches"
        ).fetchone() or (None,)
        now = self._now().astimezone(UTC).replace(microsecond=0)
        if last[0] is None:
            return 1, "", now
        return last[0] + 1, last[1], max(now, last[2].astimezone(UTC))

    def _lay_aside(
        self, event: type[Event], incoming: str, batch_id: int, version_at: datetime, *, stated: bool
    ) -> tuple[int, int]:
        """Put the rows that say something new into ``temp.fresh_…``; returns how many, and how many came in."""
        table, names, key = f"lake.events.{table_name(event)}", [c.name for c in columns(event)], keys(event)
        listed, on_key = ", ".join(names), " AND ".join(f"known.{name} = incoming.{name}" for name in key)
        pruned = ""
        if event.partition_by:
            low, high = self.con.execute(
                f"SELECT min({event.partition_by}), max({event.partition_by}) FROM {incoming}"
            ).fetchone() or (None, None)
            pruned = f" AND {event.partition_by} BETWEEN '{low}' AND '{high}'" if low else ""
        known = f"SELECT {listed}, batch_id, version_at FROM {table} AS known WHERE EXISTS (SELECT 1 FROM {incoming} AS incoming WHERE {on_key}){pruned}"
        if stated:
            known = f"SELECT {listed} FROM ({known}) WHERE version_at = '{version_at.isoformat()}'"
        else:
            partition = ", ".join(key)
            known = (
                f"SELECT {listed} FROM (SELECT *, row_number() OVER (PARTITION BY {partition} "
                f"ORDER BY version_at DESC, batch_id DESC) AS version_rank FROM ({known})) WHERE version_rank = 1"
            )
        same = " AND ".join(f"known.{name} IS NOT DISTINCT FROM incoming.{name}" for name in names)
        count = self.con.execute(f"SELECT count(*) FROM {incoming}").fetchone()
        fresh = self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE fresh_{table_name(event)} AS "
            f"SELECT DISTINCT {', '.join(f'incoming.{name}' for name in names)}, "
            f"CAST({batch_id} AS BIGINT) AS batch_id, TIMESTAMPTZ '{version_at.isoformat()}' AS version_at "
            f"FROM {incoming} AS incoming ANTI JOIN ({known}) AS known ON {same}"
        ).fetchone()
        return (fresh[0] if fresh else 0), (count[0] if count else 0)

    def _lay_aside_rejected(self, incoming: str, batch_id: int) -> tuple[int, int]:
        """Put the rows not understood that are new into ``temp.fresh_rejected``; returns how many are rejected and set aside."""
        names = ", ".join(_REJECTED)
        known = f"SELECT {names} FROM lake.events.rejected"
        if self.con.execute(f"SELECT 1 FROM {incoming} LIMIT 1").fetchone() is None:
            known = f"SELECT * FROM {incoming}"  # nothing to look for
        same = " AND ".join(f"known.{name} = incoming.{name}" for name in _REJECTED)
        self.con.execute(
            f"CREATE OR REPLACE TEMP TABLE fresh_rejected AS SELECT DISTINCT {', '.join(f'incoming.{n}' for n in _REJECTED)}, "
            f"CAST({batch_id} AS BIGINT) AS batch_id FROM {incoming} AS incoming ANTI JOIN ({known}) AS known ON {same}"
        )
        counts = dict(self.con.execute("SELECT kind, count(*) FROM temp.fresh_rejected GROUP BY kind").fetchall())
        return counts.get("rejected", 0), counts.get("set_aside", 0)

    def _digest_of_fresh(self, table: str) -> str:
        """Digest of what was laid aside for a table; empty of nothing."""
        row = self.con.execute(f"SELECT {_digest_columns(table)} FROM temp.fresh_{table}").fetchone()
        return _digest_text(*row) if row and row[2] else ""

    def verify(self, since: str = "", on_progress: Callable[[float], None] = lambda _done: None) -> tuple[int, str]:
        """Recompute every digest from what is stored.

        Args:
          since: Digest that an earlier check gave: the log must still hold it. Without one, a log whose last batches
            were removed with all their rows looks like one that never had them.
          on_progress: Told the part that is done.

        Returns:
          The number of batches found intact, and the digest of the last one.

        Raises:
          LogError: Naming the first batch that is not what its digest says, or that is missing.
        """
        stored: dict[int, dict[str, str]] = {}
        tables = ["rejected", *map(table_name, EVENT_TYPES)]
        for done, table in enumerate(tables, start=1):
            for batch_id, low, high, count in self.con.execute(
                f"SELECT batch_id, {_digest_columns(table)} FROM lake.events.{table} GROUP BY batch_id"
            ).fetchall():
                stored.setdefault(batch_id, {})[table] = _digest_text(low, high, count)
            on_progress(done / len(tables))
        previous, last_id = "", 0
        rows = self.con.execute("SELECT * FROM lake.events.batches ORDER BY batch_id").fetchall()
        for row in rows:
            batch = Batch(*row[:12])
            if batch.batch_id != last_id + 1:
                raise LogError(f"batch {last_id + 1} is missing from events.batches: expected every number once")
            if batch.previous_digest != previous or batch.digest != row[12]:
                raise LogError(
                    f"batch {batch.batch_id} ({batch.source}, {batch.source_window}): its record was changed after the fact"
                )
            if json.loads(batch.content_digests) != stored.pop(batch.batch_id, {}):
                raise LogError(
                    f"batch {batch.batch_id} ({batch.source}, {batch.source_window}): rows were added, changed or removed after the fact"
                )
            previous, last_id = row[12], batch.batch_id
        if stored:
            raise LogError(f"rows of batches {sorted(stored)} are stored, but events.batches does not know them")
        if since and since not in {row[12] for row in rows}:
            raise LogError(f"no batch has the digest {since}: batches were removed or rewritten since it was noted")
        return len(rows), previous

    def last_batch_id(self, as_of: datetime | None = None) -> int:
        """Number of the last batch recorded at or before an instant; 0 of an empty log."""
        row = self.con.execute(
            "SELECT coalesce(max(batch_id), 0) FROM lake.events.batches WHERE recorded_at <= coalesce(?, recorded_at)",
            [as_of],
        ).fetchone()
        return int(row[0]) if row else 0

    def maintain(self) -> None:
        """Merge small files and remove files that no snapshot needs. As-of answers never depend on old snapshots."""
        with self._turn():
            for call in (
                "ducklake_flush_inlined_data('lake')",
                "ducklake_merge_adjacent_files('lake')",
                "ducklake_expire_snapshots('lake', older_than => now() - INTERVAL 1 DAY)",
                "ducklake_cleanup_old_files('lake', older_than => now() - INTERVAL 1 DAY)",
                "ducklake_delete_orphaned_files('lake', older_than => now() - INTERVAL 1 DAY)",
            ):
                self.con.execute(f"CALL {call}")


def _digest_columns(table: str) -> str:
    """Columns of a table's multiset digest: sums of both halves of each row's md5, and the count.

    A sum does not depend on the order of rows, which files and engines do not keep.
    """
    kinds = {
        table_name(event): [*((c.name, c.unit.sql_type) for c in columns(event)), ("version_at", "TIMESTAMPTZ")]
        for event in EVENT_TYPES
    }
    # An instant as a number is the same text in every time zone, and made in a tenth of the time.
    texts = [
        f"coalesce(CAST({f'epoch_us({name})' if kind == 'TIMESTAMPTZ' else name} AS VARCHAR), chr(30))"
        for name, kind in kinds.get(table, [(name, "VARCHAR") for name in _REJECTED])
    ]
    text = f"concat_ws(chr(31), {', '.join(texts)})"
    return f"coalesce(sum(md5_number_lower({text})), 0), coalesce(sum(md5_number_upper({text})), 0), count(*)"


def _digest_text(low: int, high: int, count: int) -> str:
    return f"{low:x}-{high:x}-{count}"
