"""What stands on a statement, a proof and a list of findings, as a person reads it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.console import Console

from pipelines import show
from pipelines.ledger import Closed
from pipelines.statement import Proof, Statement, proofs_frame

if TYPE_CHECKING:
    from rich.table import Table

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
LINES = pl.DataFrame(
    [
        (
            OCTOBER,
            "Research",
            "vision",
            "seg",
            "usage",
            "usage",
            Decimal("1234.5"),
            0.25,
            1_234_560_000,
            Decimal("1234.56"),
        ),
        (OCTOBER, "Platform", "platform", "", "unused_commitment", "unused_commitment", Decimal(0), None, None, None),
        (SEPTEMBER, "Research", "vision", "seg", "correction", "usage", Decimal(0), None, -1_000_000, Decimal("-1.00")),
    ],
    schema={
        "charge_month": pl.Date,
        "business_unit": pl.String,
        "team": pl.String,
        "project": pl.String,
        "line_kind": pl.String,
        "cost_kind": pl.String,
        "gpu_hours": pl.Decimal(18, 4),
        "idle_ratio": pl.Float64,
        "cost_micros": pl.Int64,
        "cost": pl.Decimal(38, 2),
    },
    orient="row",
)
STATEMENT = Statement(OCTOBER, "EUR", None, LINES, Proof(OCTOBER, 1_234_560_000, 1_234_560_000, 0, 0))


def printed(table: Table) -> list[list[str]]:
    """Cells of each printed line, without the lines that only rule."""
    console = Console(width=300)
    with console.capture() as capture:
        console.print(table)
    lines = (line.strip() for line in capture.get().splitlines())
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines if line.strip(" ─")]


def test_a_statement_names_its_currency_once_and_the_month_of_each_correction() -> None:
    assert printed(show.statement_table(STATEMENT)) == [
        ["Business unit", "Team", "Project", "Line", "Month", "GPU-hours", "Idle", "Cost (EUR)"],
        ["Research", "vision", "seg", "usage", "2026-10", "1,234.5", "25.0 %", "1,234.56"],
        ["Platform", "platform", "unused commitment", "2026-10", "0.0", "–"],
        ["Research", "vision", "seg", "correction of usage", "2026-09", "0.0", "−1.00"],
        ["Total", "1,234.5", "1,233.56"],
    ]
    assert show.statement_notes(STATEMENT) == [
        "billed 1,234.56 = charged 1,234.56 + platform 0.00 + unmatched 0.00, difference 0.00 (0 micros)",
        "corrections of 2026-09: −1.00",
        "lines without a known cost (–): 1; see gpuledger findings",
    ]


def test_a_statement_says_on_top_whether_it_can_still_change() -> None:
    assert "PROVISIONAL" in show.statement_heading(STATEMENT)
    closed = Statement(OCTOBER, "EUR", datetime(2026, 11, 5, 8, tzinfo=UTC), LINES, STATEMENT.proof)
    assert show.statement_heading(closed) == "Statement of 2026-10 · closed on 2026-11-05 08:00 UTC"


def test_a_statement_for_a_file_says_everything_in_each_row() -> None:
    first = show.statement_rows(STATEMENT).row(0, named=True)
    assert (first["statement_month"], first["currency"], first["closed_at"], first["cost"]) == (
        OCTOBER,
        "EUR",
        None,
        Decimal("1234.56"),
    )


def test_a_proof_shows_each_bill_below_its_month() -> None:
    bills = pl.DataFrame(
        {
            "bill": ["AWS/1/2026-10"],
            "effective": [Decimal(12)],
            "unused_commitment": [Decimal(2)],
            "shared": [Decimal(0)],
        }
        | {name: [Decimal(5)] for name in ("on_nodes", "unmatched")}
        | {"difference": [Decimal(0)], "difference_micros": [0]}
    )
    proofs = printed(show.proof_table(proofs_frame(STATEMENT.proof, bills), "EUR"))
    assert [line[0] for line in proofs] == ["In EUR", "2026-10", "AWS/1/2026-10"]
    assert proofs[2] == ["AWS/1/2026-10", "12.00", "5.00", "2.00", "0.00", "5.00", "0.00"]


def test_a_teams_month_has_what_was_corrected_since() -> None:
    teams = pl.DataFrame(
        {"charge_month": [OCTOBER, SEPTEMBER], "business_unit": ["Research"] * 2, "team": ["vision"] * 2}
        | {"gpu_hours": [Decimal(9), Decimal(5)], "cost": [Decimal(90), Decimal(50)]}
        | {"correction": [Decimal(0), Decimal(-2)], "idle_ratio": [None, 0.5]}
    )
    assert printed(show.team_table(teams, SEPTEMBER, "EUR")) == [
        ["September 2026"],
        ["Business unit", "Team", "GPU-hours", "Idle", "Cost (EUR)", "Correction", "In all"],
        ["Research", "vision", "5.0", "50.0 %", "50.00", "−2.00", "48.00"],
        ["Total", "5.0", "50.00", "−2.00", "48.00"],
    ]


def test_a_close_says_what_it_posted() -> None:
    done = Closed(OCTOBER, 12, 3, 6_000_000_000, -50_000_000, "d1")
    text = "\n".join(show.closed_lines(done, "EUR"))
    assert "12 lines, 6,000.00 EUR" in text
    assert "3 lines, −50.00 EUR" in text


@pytest.mark.parametrize("count", [1, show.FINDINGS_SHOWN + 5])
def test_findings_give_each_kinds_advice_once(count: int) -> None:
    day = date(2026, 10, 3)
    row = ("info", "telemetry_gap", "alps/n1", "2.00 GPU-hours", "telemetry", day, day, "Look at the exporter.")
    names = ["severity", "kind", "subject", "found", "expected", "first_seen_day", "last_seen_day", "explanation"]
    lines = printed(show.findings_table(pl.DataFrame([row] * count, schema=names, orient="row")))
    assert lines[1] == ["info", "telemetry_gap", "alps/n1", "2.00 GPU-hours", "telemetry", "2026-10-03"]
    assert sum(line[0] == "telemetry_gap: Look at the exporter." for line in lines) == 1
    assert any("5 more" in line[0] for line in lines) == (count > show.FINDINGS_SHOWN)
