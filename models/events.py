"""Every event type once; DDL, Polars schemas and the data dictionary are derived from here.

An event is a fact that happened and is never changed. A later version of the same fact (same natural key, other
content) is appended beside it; ``sql/projections/staged`` takes the newest version known. Columns that every event
row carries besides its own, added by the log (``pipelines/lake.py``) and never by a source:

* ``batch_id``: the append that brought the row; ascending in the order of recording.
* ``version_at``: the source's own order (delivery, dump or ``--at`` instant), else when the batch was recorded.

The types themselves are frozen dataclasses in ``models/ledger_events.py`` and ``models/procurement_events.py``.
Does not belong here: reading, storing, deciding.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args, get_type_hints

import polars as pl

from models.event_base import Column, Event
from models.ledger_events import (
    AssetRecorded,
    BillDelivered,
    ChargeBilled,
    FxRateObserved,
    GpuInventoried,
    GpuSampled,
    NodeStateChanged,
    OwnershipAssigned,
    PeriodClosed,
    PolicySet,
    PostingMade,
    RunPlaced,
    RunRecorded,
)
from models.procurement_events import (
    CheckpointSaved,
    CommitmentRecorded,
    PlanLineRecommended,
    PlanNoted,
    PlanRecommended,
    PlanSavingEstimated,
    PlanStressEstimated,
    PriceObserved,
    RunInterrupted,
)
from models.units import Unit

__all__ = [
    "EVENT_TYPES",
    "AssetRecorded",
    "BillDelivered",
    "ChargeBilled",
    "CheckpointSaved",
    "Column",
    "CommitmentRecorded",
    "Event",
    "FxRateObserved",
    "GpuInventoried",
    "GpuSampled",
    "NodeStateChanged",
    "OwnershipAssigned",
    "PeriodClosed",
    "PlanLineRecommended",
    "PlanNoted",
    "PlanRecommended",
    "PlanSavingEstimated",
    "PlanStressEstimated",
    "PolicySet",
    "PostingMade",
    "PriceObserved",
    "RunInterrupted",
    "RunPlaced",
    "RunRecorded",
    "columns",
    "ddl",
    "keys",
    "polars_schema",
    "table_name",
]

EVENT_TYPES: tuple[type[Event], ...] = (
    RunRecorded,
    RunPlaced,
    GpuInventoried,
    NodeStateChanged,
    GpuSampled,
    BillDelivered,
    ChargeBilled,
    AssetRecorded,
    FxRateObserved,
    OwnershipAssigned,
    PolicySet,
    PeriodClosed,
    PostingMade,
    PriceObserved,
    CommitmentRecorded,
    RunInterrupted,
    CheckpointSaved,
    PlanRecommended,
    PlanSavingEstimated,
    PlanLineRecommended,
    PlanNoted,
    PlanStressEstimated,
)
"""All event types. A new one goes to the end: a log that has the last one's table has all (``pipelines/lake.py``)."""


def table_name(event: type[Event]) -> str:
    """Table of an event type: its class name in snake case.

    >>> table_name(RunRecorded)
    'run_recorded'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


def _declared(event: type[Event]) -> tuple[Column, ...]:
    hints = get_type_hints(event, include_extras=True)
    found = []
    for item in fields(event):
        parts = [part for part in get_args(hints[item.name]) if part is not type(None)]
        annotated = hints[item.name] if any(isinstance(part, Unit) for part in parts) else parts[0]
        unit = next(part for part in get_args(annotated) if isinstance(part, Unit))
        is_nullable = annotated is not hints[item.name]
        found.append(Column(item.name, unit, item.metadata["key"], is_nullable, item.metadata["doc"]))
    return tuple(found)


_COLUMNS = {event: _declared(event) for event in EVENT_TYPES}


def columns(event: type[Event]) -> tuple[Column, ...]:
    """Declared columns of an event type, in order, without the log's own."""
    return _COLUMNS[event]


def keys(event: type[Event]) -> tuple[str, ...]:
    """Names of the natural key's columns."""
    return tuple(column.name for column in columns(event) if column.is_key)


def polars_schema(event: type[Event]) -> pl.Schema:
    """Schema of a frame of this event type, as sources yield it."""
    return pl.Schema({column.name: column.unit.dtype for column in columns(event)})


def ddl(event: type[Event], schema: str) -> str:
    """CREATE TABLE of an event type, with the log's own columns at the end.

    DuckLake keeps NOT NULL; keys are enforced by the log's append, since DuckLake has no primary keys.
    """
    lines = [
        f"  {column.name} {column.unit.sql_type}{'' if column.is_nullable else ' NOT NULL'}"
        for column in columns(event)
    ]
    lines += ["  batch_id BIGINT NOT NULL", "  version_at TIMESTAMPTZ NOT NULL"]
    return f"CREATE TABLE {schema}.{table_name(event)} (\n" + ",\n".join(lines) + "\n)"
