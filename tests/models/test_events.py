from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from models.events import EVENT_TYPES, Event, columns, ddl, keys, polars_schema, table_name

GOLDEN = Path(__file__).with_name("events.sql")
each_event = pytest.mark.parametrize("event", EVENT_TYPES, ids=table_name)


def every_table() -> str:
    """All event tables as they are created."""
    return "".join(f"{ddl(event, 'events')};\n\n" for event in EVENT_TYPES)


def test_a_change_of_the_log_is_seen_in_review() -> None:
    assert GOLDEN.read_text() == every_table(), (
        "the event tables changed: logs that exist keep the old ones, so add a nullable column or a new type, "
        "then run .venv/bin/python tests/models/test_events.py"
    )


@each_event
def test_a_frame_of_a_source_fits_its_table(event: type[Event]) -> None:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute("CREATE SCHEMA events")
        con.execute(ddl(event, "events"))
        stored = con.sql(f"SELECT * EXCLUDE (batch_id, version_at) FROM events.{table_name(event)}").pl()
    assert stored.schema == polars_schema(event)


@each_event
def test_a_key_is_never_unknown_and_every_column_is_explained(event: type[Event]) -> None:
    assert keys(event)
    for column in columns(event):
        assert column.doc
        assert not (column.is_key and column.is_nullable)
    assert [column.is_key for column in columns(event)] == sorted((c.is_key for c in columns(event)), reverse=True)


@each_event
def test_the_days_an_event_touches_are_instants_of_its_own(event: type[Event]) -> None:
    named = {event.partition_by, *(event.touches or ())} - {None}
    assert all(polars_schema(event)[name] == pl.Datetime("us", "UTC") for name in named if name)


def test_tables_and_the_columns_of_the_log_do_not_collide() -> None:
    assert len(set(map(table_name, EVENT_TYPES))) == len(EVENT_TYPES)
    assert set(Event.__subclasses__()) == set(EVENT_TYPES)
    assert not any({"batch_id", "version_at"} & polars_schema(event).keys() for event in EVENT_TYPES)


if __name__ == "__main__":
    GOLDEN.write_text(every_table())
    sys.stdout.write(f"{GOLDEN}: written\n")
