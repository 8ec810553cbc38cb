"""What every event type is made of: its base class and how a column is declared.

Belongs here: the form of a declaration. Does not belong here: any event type (``models/ledger_events.py``, ``models/procurement_events.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from models.units import Unit


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an event table.

    Attributes:
      name: Column name; its last word is the unit's suffix where the unit has one.
      unit: SQL type, Polars type and meaning.
      is_key: Part of the natural key: two rows with equal keys are versions of one fact.
      is_nullable: NULL is allowed and means unknown or not applicable, never zero.
      doc: What it says, in one phrase.
    """

    name: str
    unit: Unit
    is_key: bool
    is_nullable: bool
    doc: str


def key(doc: str) -> Any:
    """Declare a column of the natural key."""
    return field(metadata={"doc": doc, "key": True})


def col(doc: str) -> Any:
    """Declare a column that a later version of the fact may change."""
    return field(metadata={"doc": doc, "key": False})


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of all event types.

    Attributes:
      partition_by: Instant column by whose day the table is laid out; None for small tables.
      touches: The instant columns that bound the days whose projections a row affects: (start, end). An end of
        None, or a NULL in the end column, means "until the last day known". None: touches nothing by itself.
    """

    partition_by: ClassVar[str | None] = None
    touches: ClassVar[tuple[str, str | None] | None] = None
