"""Close a month, read a statement and its proof, replay the books as of an instant: the I/O around ``models/ledger.py``."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from models.errors import CheckError, UsageError
from models.events import PeriodClosed, PostingMade, polars_schema
from models.ledger import Cost, Coverage, Payer, obstacles, postings, postings_digest
from pipelines.build import build, opened
from pipelines.lake import Lake
from pipelines.sources.base import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from pipelines.settings import Settings


@dataclass(frozen=True, slots=True)
class Closed:
    """What a close posted.

    Attributes:
      month: The month closed.
      posting_count: Lines posted for the month itself.
      correction_count: Lines posted for earlier months.
      cost_micros: Sum posted for the month itself.
      correction_micros: Sum posted for earlier months.
      digest: Digest of all lines posted.
    """

    month: date
    posting_count: int
    correction_count: int
    cost_micros: int
    correction_micros: int
    digest: str


def close(
    settings: Settings,
    month: date,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    on_wait: Callable[[str], None] = lambda _message: None,
) -> Closed:
    """Close a month: post it, and post what changed in earlier closed months as corrections.

    Raises:
      UsageError: The month is closed already, an earlier one with costs is open, or it has not ended.
      CheckError: Coverage is below the policy's bound or something does not add up; the message lists every reason.
    """
    build(settings, on_wait=on_wait)
    with opened(settings, on_wait=on_wait) as builder:
        con = builder.con
        _refuse_wrong_order(con, month, now())
        reasons = obstacles(coverage(con, month), _end_of(month).date() - timedelta(days=1), *_bounds(con, month))
        if reasons:
            raise CheckError(f"{month:%Y-%m} may not close:\n" + "\n".join(f"  • {reason}" for reason in reasons))
        lines = postings(
            _costs(con, "core.line_monthly", "share_seconds", month),
            _costs(con, "core.posting", "usage_share_seconds", month),
        )
        billed = con.execute(
            "SELECT CAST(billed * 1000000 AS BIGINT) FROM marts.proof_monthly WHERE charge_month = ?", [month]
        ).fetchone()
        with Lake(settings, now=now, on_wait=on_wait) as lake:
            if lake.last_batch_id() != builder.cut:
                raise CheckError(
                    "new facts came in while the month was being closed; nothing was posted: close it again"
                )
            lake.append(
                "close", f"{month:%Y-%m}", [_closing(month, lines, builder.cut, int(billed[0]) if billed else 0, now())]
            )
    build(settings, on_wait=on_wait)
    return _summary(month, lines)


def _refuse_wrong_order(con: duckdb.DuckDBPyConnection, month: date, now: datetime) -> None:
    done = [row[0] for row in con.execute("SELECT period_month FROM events.period_closed ORDER BY 1").fetchall()]
    if month in done:
        raise UsageError(f"{month:%Y-%m} is closed already; later differences are posted when the next month closes")
    if done and month < done[-1]:
        raise UsageError(f"{month:%Y-%m} lies before {done[-1]:%Y-%m}, which is closed: months close in order")
    if now < _end_of(month):
        raise UsageError(f"{month:%Y-%m} has not ended yet")
    months = [
        row[0] for row in con.execute("SELECT DISTINCT charge_month FROM core.line_monthly ORDER BY 1").fetchall()
    ]
    if month not in months:
        raise UsageError(
            f"{month:%Y-%m} has no costs or usage; months known: {', '.join(f'{m:%Y-%m}' for m in months) or 'none'}"
        )
    open_before = [m for m in months if m < month and m not in done and (not done or m > done[-1])]
    if open_before:
        raise UsageError(f"{open_before[0]:%Y-%m} is still open: close it first, months close in order")


def _end_of(month: date) -> datetime:
    return datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)


def _bounds(con: duckdb.DuckDBPyConnection, month: date) -> tuple[Decimal, Decimal]:
    names = ("close_min_priced_ratio", "close_min_measured_ratio")
    found = {
        row[0]: Decimal(row[1])
        for row in con.execute(
            "SELECT d.policy, coalesce((SELECT max_by(p.value, p.from_at) FROM staged.policy AS p WHERE p.policy = d.policy "
            "AND p.from_at < CAST($month AS TIMESTAMPTZ) + INTERVAL 1 MONTH), d.value) FROM reference.policy_default AS d "
            "WHERE d.policy IN ('close_min_priced_ratio', 'close_min_measured_ratio')",
            {"month": month},
        ).fetchall()
    }
    return found[names[0]], found[names[1]]


def coverage(con: duckdb.DuckDBPyConnection, month: date) -> Coverage:
    """How complete the facts of a month are, from the working file."""
    row = con.execute(
        """
        with measurable as (select distinct cluster from core.activity_hourly),
        usage as (
          select o.share_seconds, o.unpriced_share_seconds, o.unmeasured_share_seconds, m.cluster is not null as is_measurable
          from core.owner_daily as o left join measurable as m on m.cluster = o.cluster
          where o.use_day >= cast($month as timestamptz) and o.use_day < cast($month as timestamptz) + interval 1 month)
        select 1 - sum(unpriced_share_seconds) / sum(share_seconds),
          1 - sum(unmeasured_share_seconds) filter (where is_measurable) / sum(share_seconds) filter (where is_measurable)
        from usage
        """,
        {"month": month},
    ).fetchone() or (None, None)
    rates = con.execute(
        "SELECT DISTINCT currency FROM staged.charge WHERE fx_rate IS NULL AND billing_period_month = ? ORDER BY 1",
        [month],
    ).fetchall()
    difference = con.execute(
        "SELECT difference_micros FROM marts.proof_monthly WHERE charge_month = ?", [month]
    ).fetchone()
    bills = con.execute("SELECT bill FROM marts.proof_by_bill WHERE difference_micros <> 0 ORDER BY 1").fetchall()
    used = con.execute("""
        select cast(max(used_until_at) - interval 1 second as date) from (
          select max(coalesce(ended_at, started_at + interval 1 second)) as used_until_at from staged.run
          union all select max(use_hour) + interval 1 hour from core.activity_hourly
          union all select max(changed_at) + interval 1 second from events.node_state_changed)
    """).fetchone()
    return Coverage(
        row[0],
        row[1],
        tuple(one[0] for one in rates),
        int(difference[0]) if difference else 0,
        tuple(one[0] for one in bills),
        used[0] if used else None,
    )


def _costs(con: duckdb.DuckDBPyConnection, table: str, share_seconds: str, until: date) -> dict[Payer, Cost]:
    rows = con.execute(
        f"SELECT charge_month, business_unit, team, project, cost_kind, sum({share_seconds}), coalesce(sum(cost_micros), 0) "
        f"FROM {table} WHERE charge_month <= ? GROUP BY ALL",
        [until],
    ).fetchall()
    return {Payer(*row[:5]): Cost(int(row[5]), int(row[6])) for row in rows}


def _closing(month: date, lines: dict[Payer, Cost], cut: int, billed_micros: int, closed_at: datetime) -> Chunk:
    """The events of a close: its postings, and that the month is closed."""
    posted = [
        {
            "charge_month": payer.charge_month,
            "posted_month": month,
            "business_unit": payer.business_unit,
            "team": payer.team,
            "project": payer.project,
            "cost_kind": payer.cost_kind,
            "usage_share_seconds": cost.share_seconds,
            "cost_micros": cost.micros,
        }
        for payer, cost in lines.items()
    ]
    period = {
        "period_month": month,
        "closed_at": closed_at.replace(microsecond=0),
        "log_batch_id": cut,
        "billed_micros": billed_micros,
        "postings_digest": postings_digest(lines.items()),
    }
    frames = {
        PostingMade: pl.DataFrame(posted, schema=polars_schema(PostingMade)),
        PeriodClosed: pl.DataFrame([period], schema=polars_schema(PeriodClosed)),
    }
    return Chunk(frames, rows_read=len(posted) + 1)


def _summary(month: date, lines: dict[Payer, Cost]) -> Closed:
    own = [cost.micros for payer, cost in lines.items() if payer.charge_month == month]
    earlier = [cost.micros for payer, cost in lines.items() if payer.charge_month != month]
    return Closed(month, len(own), len(earlier), sum(own), sum(earlier), postings_digest(lines.items()))


@contextmanager
def replayed(
    settings: Settings, as_of: datetime, on_wait: Callable[[str], None] = lambda _m: None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The projections as they would have been built from what was known at an instant, in a temporary file."""
    with (
        tempfile.TemporaryDirectory(prefix="gpuledger-as-of-") as folder,
        opened(settings, as_of=as_of, database=Path(folder) / "ledger.duckdb", on_wait=on_wait) as builder,
    ):
        builder.project(builder.prepare(full=True), lambda *_: None)
        yield builder.con
