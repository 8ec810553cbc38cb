"""What a source yields, held in DuckDB's temporary tables (which spill to disk) until it is this writer's turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.events import Event, columns, table_name
from pipelines.sources.base import REJECTED_SCHEMA

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from pipelines.sources.base import Chunk


class Spool:
    """What a source yielded, kept in DuckDB's temporary tables (which spill to disk) until the writer's turn comes."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        """Start empty, in the connection that will append."""
        self._con = con
        self.types: list[type[Event]] = []
        self.rejected = "temp.spool_rejected"
        self.rows_read = self.rows_ignored = 0
        listed = ", ".join(f"{name} VARCHAR" for name in REJECTED_SCHEMA)
        con.execute(f"CREATE OR REPLACE TEMP TABLE spool_rejected ({listed})")

    def table(self, event: type[Event]) -> str:
        """Name of the temporary table of an event type."""
        return f"temp.spool_{table_name(event)}"

    def add(self, chunk: Chunk) -> None:
        """Take a chunk in."""
        self.rows_read += chunk.rows_read
        self.rows_ignored += chunk.rows_ignored
        for event, frame in chunk.events.items():
            if event not in self.types:
                listed = ", ".join(f"{c.name} {c.unit.sql_type}" for c in columns(event))
                self._con.execute(f"CREATE OR REPLACE TEMP TABLE spool_{table_name(event)} ({listed})")
                self.types.append(event)
            self._insert(self.table(event), frame)
        self._insert(self.rejected, chunk.rejected)

    def _insert(self, table: str, frame: pl.DataFrame) -> None:
        if frame.height:
            self._con.register("spool_frame", frame.to_arrow())
            self._con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM temp.spool_frame")
            self._con.unregister("spool_frame")

    def close(self) -> None:
        """Drop what is held."""
        for name in ("spool_rejected", *(f"spool_{table_name(event)}" for event in self.types)):
            self._con.execute(f"DROP TABLE IF EXISTS temp.{name}")
