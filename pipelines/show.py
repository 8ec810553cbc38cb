"""How statements, proofs, findings and closes are laid out for people: tables for a terminal, in text.

Does not belong here: reading or computing any of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.units import format_hours, format_money, format_share
from pipelines.statement import PLATFORM, Statement, in_all, in_whole_cents
from pipelines.terminal import grid

if TYPE_CHECKING:
    from datetime import date

    from rich.table import Table

    from pipelines.ledger import Closed

FINDINGS_SHOWN = 100

FINDINGS = """
select severity, kind, subject, found, expected, cast(first_seen_at as date) as first_seen_day,
  cast(last_seen_at as date) as last_seen_day, explanation
from marts.findings
order by case severity when 'error' then 1 when 'warning' then 2 else 3 end, kind, amount desc, subject
"""
REJECTED = """
select r.batch_id, b.recorded_at, r.source, r.position, r.reason, r.raw_text
from lake.events.rejected as r
join lake.events.batches as b on b.batch_id = r.batch_id
where r.kind = 'rejected'
order by r.batch_id, r.source, r.position
"""


def statement_heading(found: Statement) -> str:
    """What statement this is, and whether it can still change."""
    if found.closed_at is None:
        return f"Statement of {found.month:%Y-%m} · PROVISIONAL: the month is open and its figures may change"
    return f"Statement of {found.month:%Y-%m} · closed on {found.closed_at:%Y-%m-%d %H:%M} UTC"


def statement_rows(found: Statement) -> pl.DataFrame:
    """The statement's lines for a file: each says its month, its currency and whether it is closed."""
    return found.lines.select(
        pl.lit(found.month).alias("statement_month"),
        pl.lit(found.closed_at, pl.Datetime("us", "UTC")).alias("closed_at"),
        pl.exclude("cost", "cost_micros"),
        pl.lit(found.currency).alias("currency"),
        "cost",
        "cost_micros",
    )


def statement_table(found: Statement) -> Table:
    """The statement's lines with their total."""
    body = [
        (
            line["business_unit"],
            line["team"],
            line["project"],
            _line_name(line["line_kind"], line["cost_kind"]),
            f"{line['charge_month']:%Y-%m}",
            format_hours(line["gpu_hours"]),
            format_share(line["idle_ratio"]) if line["line_kind"] == "usage" else "",
            format_money(line["cost"]),
        )
        for line in found.lines.iter_rows(named=True)
    ]
    columns = [
        ("Business unit", False),
        ("Team", False),
        ("Project", False),
        ("Line", False),
        ("Month", False),
        ("GPU-hours", True),
        ("Idle", True),
        (f"Cost ({found.currency})", True),
    ]
    hours = format_hours(found.lines["gpu_hours"].sum())
    total = ("Total", "", "", "", "", hours, "", format_money(found.total()))
    return grid(columns, body, total)


def _line_name(line_kind: str, cost_kind: str) -> str:
    name = cost_kind.replace("_", " ")
    return f"correction of {name}" if line_kind == "correction" else name


def statement_notes(found: Statement) -> list[str]:
    """What stands below the lines: the proof of the month's own lines, and the sum of each month's corrections."""
    notes = [str(found.proof)]
    corrections = found.lines.filter(pl.col("charge_month") != found.month)
    for (month,), lines in corrections.group_by("charge_month", maintain_order=True):
        notes.append(f"corrections of {month:%Y-%m}: {format_money(in_all(lines['cost']))}")
    unknown = found.lines["cost"].null_count()
    if unknown:
        notes.append(f"lines without a known cost (–): {unknown:,}; see gpuledger findings")
    return notes


def proof_table(proofs: pl.DataFrame, currency: str) -> Table:
    """The month and its bills, each with its parts."""
    parts = {
        "charged": "Charged",
        "platform_held": "Platform",
        "on_nodes": "On nodes",
        "unused_commitment": "Unused commitment",
        "shared": "Shared",
        "unmatched": "Unmatched",
    }
    body = []
    for row in proofs.iter_rows(named=True):
        known = {name: int(row[name].scaleb(6)) for name in parts if row[name] is not None}
        shown = dict(zip(known, in_whole_cents(*known.values()), strict=True))
        billed, difference = (*in_whole_cents(int(row["billed"].scaleb(6))), *in_whole_cents(row["difference_micros"]))
        body.append([row["proof_of"], billed, *(shown.get(name, "") for name in parts), difference])
    headers = [f"In {currency}", "Billed", *parts.values(), "Difference"]
    return grid([(header, position > 0) for position, header in enumerate(headers)], body)


def closed_lines(done: Closed, currency: str) -> list[str]:
    """What a close posted."""
    posted, corrected = (*in_whole_cents(done.cost_micros), *in_whole_cents(done.correction_micros))
    return [
        f"{done.month:%Y-%m} is closed.",
        f"  posted: {done.posting_count:,} lines, {posted} {currency}",
        f"  corrections of earlier months: {done.correction_count:,} lines, {corrected} {currency}",
        f"  digest: {done.digest}",
    ]


def findings_table(found: pl.DataFrame) -> Table:
    """The most severe findings, each kind's advice below."""
    shown = found.head(FINDINGS_SHOWN)
    columns = [(name, False) for name in ("Severity", "Kind", "About", "Found", "Expected", "Seen")]
    body = []
    for row in shown.iter_rows(named=True):
        first, last = f"{row['first_seen_day']:%Y-%m-%d}", f"{row['last_seen_day']:%Y-%m-%d}"
        seen = first if first == last else f"{first} to {last}"
        body.append((row["severity"], row["kind"], row["subject"], row["found"], row["expected"], seen))
    advice = [
        f"{kind}: {text}" for kind, text in shown.select("kind", "explanation").unique(maintain_order=True).rows()
    ]
    if found.height > shown.height:
        advice.append(f"{found.height - shown.height:,} more: gpuledger findings --format csv")
    table = grid(columns, body)
    table.caption, table.caption_justify = "\n".join(advice), "left"
    return table


def team_table(teams: pl.DataFrame, month: date, currency: str) -> Table:
    """Teams of one month: see ``pipelines.statement.by_team``."""
    of_month = teams.filter(pl.col("charge_month") == month)
    columns = [("Business unit", False), ("Team", False), ("GPU-hours", True), ("Idle", True)]
    columns += [(f"Cost ({currency})", True), ("Correction", True), ("In all", True)]
    body = [
        (
            row["business_unit"],
            row["team"],
            format_hours(row["gpu_hours"]),
            "" if row["business_unit"] == PLATFORM else format_share(row["idle_ratio"]),
            format_money(row["cost"]),
            format_money(row["correction"]) if row["correction"] else "",
            format_money(row["cost"] + row["correction"]),
        )
        for row in of_month.iter_rows(named=True)
    ]
    cost, correction = in_all(of_month["cost"]), in_all(of_month["correction"])
    hours = format_hours(of_month["gpu_hours"].sum())
    total = ("Total", "", hours, "", format_money(cost), format_money(correction), format_money(cost + correction))
    return grid(columns, body, total, title=f"{month:%B %Y}")
