"""What every source yields, and the small steps they share.

A source is a function that reads one outside system or file and yields ``Chunk`` objects of bounded size. It never
drops a row silently and never raises for a bad row: what it cannot understand goes to ``rejected``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from models.events import Event, RunPlaced, polars_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

REJECTED_SCHEMA = pl.Schema(
    {
        "source": pl.String(),  # which reader, e.g. slurm
        "position": pl.String(),  # file:line, or the key in the outside system
        "kind": pl.String(),  # rejected: bad data · set_aside: understood, and rightly not billed (never started)
        "reason": pl.String(),  # what was found, what was expected
        "raw_text": pl.String(),  # the row as it came, at most RAW_TEXT_LIMIT characters
    }
)
RAW_TEXT_LIMIT = 2_000
CHUNK_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a source, ready to append.

    Attributes:
      events: Frames by event type, with exactly ``polars_schema(type)``.
      rejected: Rows not understood or set aside, with ``REJECTED_SCHEMA``.
      rows_read: Rows the source read for this chunk, whatever became of them.
      rows_ignored: Of these, rows that are no facts of ours (job steps, CPU-only lines, other metrics).
    """

    events: dict[type[Event], pl.DataFrame] = field(default_factory=dict)
    rejected: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REJECTED_SCHEMA))
    rows_read: int = 0
    rows_ignored: int = 0


def rejected_row(source: str, position: str, reason: str, raw_text: str, kind: str = "rejected") -> dict[str, str]:
    """One row for ``REJECTED_SCHEMA``."""
    return {
        "source": source,
        "position": position,
        "kind": kind,
        "reason": reason,
        "raw_text": raw_text[:RAW_TEXT_LIMIT],
    }


def rejected_frame(rows: Iterable[dict[str, str]]) -> pl.DataFrame:
    """Frame of rejected rows."""
    return pl.DataFrame(list(rows), schema=REJECTED_SCHEMA)


@dataclass(frozen=True, slots=True, order=True)
class Placed:
    """Devices of one type on one node, see ``models.events.RunPlaced`` for the meaning of each field."""

    node: str
    gpu_type: str
    device_count: int
    gpu_model: str | None = None
    mig_profile: str | None = None
    device_shares: int | None = None


def placement_id(placed: Iterable[Placed]) -> str | None:
    """Digest of a set of placements, whatever their order; None of the empty set.

    >>> placement_id([Placed("n1", "a100", 4)]) == placement_id([Placed("n1", "a100", 4)])
    True
    """
    lines = sorted(
        f"{one.node}\x1f{one.gpu_type}\x1f{one.device_count}\x1f{one.gpu_model}\x1f{one.mig_profile}\x1f{one.device_shares}"
        for one in placed
    )
    return hashlib.sha256("\x1e".join(lines).encode()).hexdigest()[:32] if lines else None


def placement_frame(sets: dict[str, Iterable[Placed]]) -> pl.DataFrame:
    """Frame of ``run_placed`` rows of sets of placements by their id."""
    rows = [
        {
            "placement_id": identity,
            "node": one.node,
            "gpu_type": one.gpu_type,
            "gpu_model": one.gpu_model,
            "mig_profile": one.mig_profile,
            "device_count": one.device_count,
            "device_shares": one.device_shares,
        }
        for identity, placed in sets.items()
        for one in placed
    ]
    return pl.DataFrame(rows, schema=polars_schema(RunPlaced))
