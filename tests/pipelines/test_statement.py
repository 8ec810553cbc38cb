"""A statement's cents add up to the invoice; a closed one never changes, an open one says so and shows what it will correct."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from models.errors import UsageError
from pipelines.statement import Ask, by_team, proofs_frame, read_proof, read_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

AUGUST, SEPTEMBER, OCTOBER, NOVEMBER = (date(2026, month, 1) for month in (8, 9, 10, 11))
CLOSED_AT = datetime(2026, 10, 5, 8, tzinfo=UTC)
VISION, ADS, HELD = ("Research", "vision"), ("Products", "ads"), ("Platform", "platform")


class File:
    """A published file of a few lines, in memory."""

    def __init__(self) -> None:
        self.con = duckdb.connect()
        self.con.execute(
            "SET TimeZone = 'UTC'; CREATE SCHEMA marts; CREATE SCHEMA core;"
            "CREATE TABLE marts.ledger AS SELECT 'EUR' AS reporting_currency;"
            "CREATE TABLE marts.period_closed (period_month DATE, closed_at TIMESTAMPTZ, billed_micros BIGINT);"
            "CREATE TABLE marts.chargeback_monthly (charge_month DATE, posted_month DATE, business_unit VARCHAR, team VARCHAR,"
            " project VARCHAR, line_kind VARCHAR, cost_kind VARCHAR, gpu_hours DECIMAL(18, 4), idle_ratio DOUBLE, cost_micros BIGINT);"
            "CREATE TABLE marts.proof_monthly (charge_month DATE, billed DECIMAL(18, 6), charged DECIMAL(18, 6),"
            " platform_held DECIMAL(18, 6), unmatched DECIMAL(18, 6));"
            "CREATE TABLE marts.proof_by_bill (bill VARCHAR, effective DECIMAL(18, 6), on_nodes DECIMAL(18, 6), difference_micros BIGINT);"
            "CREATE TABLE core.line_daily (cost_day TIMESTAMPTZ, business_unit VARCHAR, team VARCHAR, cost_kind VARCHAR,"
            " share_seconds BIGINT, idle_share_seconds BIGINT, unmeasured_share_seconds BIGINT)"
        )

    def __call__(self, query: str) -> Any:
        return self.con.sql(query).pl()

    def line(
        self, charged: date, posted: date | None, payer: tuple[str, str], micros: int | None, kind: str = "usage"
    ) -> None:
        shown = "correction" if posted and posted != charged else kind
        row = [charged, posted, *payer, "", shown, kind, Decimal(10), 0.5 if kind == "usage" else None, micros]
        self.con.execute(f"INSERT INTO marts.chargeback_monthly VALUES ({', '.join('?' * len(row))})", row)

    def closed(self, month: date, billed_micros: int) -> None:
        self.con.execute("INSERT INTO marts.period_closed VALUES (?, ?, ?)", [month, CLOSED_AT, billed_micros])

    def proof(self, month: date, *parts: str) -> None:
        self.con.execute("INSERT INTO marts.proof_monthly VALUES (?, ?, ?, ?, ?)", [month, *map(Decimal, parts)])


@pytest.fixture
def file() -> Iterator[File]:
    found = File()
    yield found
    found.con.close()


def costs(ask: Ask, month: date) -> list[tuple[Any, ...]]:
    return read_statement(ask, month).lines.select("charge_month", "team", "line_kind", "cost").rows()


def test_the_cents_of_a_month_add_up_to_its_rounded_total(file: File) -> None:
    for team in "abc":
        file.line(SEPTEMBER, None, ("Research", team), 3_333_333)
    file.proof(SEPTEMBER, "9.999999", "9.999999", "0", "0")
    statement = read_statement(file, SEPTEMBER)
    assert statement.lines["cost"].to_list() == [Decimal("3.34"), Decimal("3.33"), Decimal("3.33")]
    assert statement.total() == Decimal("10.00")
    assert str(statement.proof) == (
        "billed 10.00 = charged 10.00 + platform 0.00 + unmatched 0.00, difference 0.00 (0 micros)"
    )


def test_one_teams_lines_have_the_same_cents_as_in_the_whole(file: File) -> None:
    for team in "abc":
        file.line(SEPTEMBER, None, ("Research", team), 3_333_333)
    whole = read_statement(file, SEPTEMBER)
    assert [whole.of_team(team).total() for team in "abc"] == whole.lines["cost"].to_list()
    with pytest.raises(UsageError, match="no line of team 'd'; teams in it: a, b, c"):
        whole.of_team("d")


def test_the_platforms_pools_come_last_and_are_no_charge(file: File) -> None:
    file.line(SEPTEMBER, None, HELD, 5_000_000, "unallocated")
    file.line(SEPTEMBER, None, HELD, 1_000_000, "unmatched")
    file.line(SEPTEMBER, None, VISION, 4_000_000)
    file.proof(SEPTEMBER, "10", "4", "5", "1")
    statement = read_statement(file, SEPTEMBER)
    assert statement.lines["business_unit"].to_list() == ["Research", "Platform", "Platform"]
    proof = statement.proof
    assert (proof.charged_micros, proof.held_micros, proof.unmatched_micros) == (4_000_000, 5_000_000, 1_000_000)


def test_a_closed_month_is_proved_against_what_was_billed_when_it_closed(file: File) -> None:
    file.line(SEPTEMBER, SEPTEMBER, VISION, 4_000_000)
    file.line(SEPTEMBER, OCTOBER, VISION, -1_000_000)
    file.closed(SEPTEMBER, 4_000_000)
    file.proof(SEPTEMBER, "3", "3", "0", "0")
    statement = read_statement(file, SEPTEMBER)
    assert (statement.closed_at, statement.total(), statement.proof.difference_micros) == (CLOSED_AT, Decimal(4), 0)
    assert read_proof(file, SEPTEMBER)[0].billed_micros == 3_000_000


def test_a_difference_shows_in_the_proof(file: File) -> None:
    file.line(SEPTEMBER, SEPTEMBER, VISION, 4_000_000)
    file.closed(SEPTEMBER, 4_010_001)
    assert str(read_statement(file, SEPTEMBER).proof).endswith("difference 0.01 (10,001 micros)")


def test_corrections_stand_in_the_statement_that_carries_them_and_name_their_month(file: File) -> None:
    file.line(OCTOBER, OCTOBER, VISION, 9_000_000)
    file.line(SEPTEMBER, OCTOBER, VISION, -1_000_000)
    file.closed(OCTOBER, 9_000_000)
    assert costs(file, OCTOBER) == [
        (OCTOBER, "vision", "usage", Decimal(9)),
        (SEPTEMBER, "vision", "correction", Decimal(-1)),
    ]
    statement = read_statement(file, OCTOBER)
    assert (statement.total(), statement.proof.difference_micros) == (Decimal(8), 0)


def test_pending_corrections_stand_in_the_first_open_month_only(file: File) -> None:
    file.closed(SEPTEMBER, 4_000_000)
    file.line(SEPTEMBER, SEPTEMBER, VISION, 4_000_000)
    file.line(SEPTEMBER, None, VISION, -1_000_000)
    file.line(AUGUST, None, ADS, 2_000_000)
    assert costs(file, OCTOBER) == [
        (AUGUST, "ads", "correction", Decimal(2)),
        (SEPTEMBER, "vision", "correction", Decimal(-1)),
    ]
    file.line(OCTOBER, None, VISION, 5_000_000)
    file.line(NOVEMBER, None, VISION, 6_000_000)
    assert [month for month, *_ in costs(file, OCTOBER)] == [OCTOBER, AUGUST, SEPTEMBER]
    assert costs(file, NOVEMBER) == [(NOVEMBER, "vision", "usage", Decimal(6))]
    with pytest.raises(UsageError, match="2026-08 lies before 2026-09"):
        read_statement(file, AUGUST)


def test_an_unknown_cost_stays_unknown(file: File) -> None:
    file.line(SEPTEMBER, None, VISION, None)
    file.line(SEPTEMBER, None, ADS, 1_005_000)
    assert costs(file, SEPTEMBER) == [
        (SEPTEMBER, "ads", "usage", Decimal("1.01")),
        (SEPTEMBER, "vision", "usage", None),
    ]


def test_an_unknown_month_names_those_known(file: File) -> None:
    file.line(SEPTEMBER, None, VISION, 1)
    for read in (read_statement, read_proof):
        with pytest.raises(UsageError, match="2026-10 has no costs or usage; months known: 2026-09"):
            read(file, OCTOBER)


def test_a_proof_has_the_bills_of_its_month(file: File) -> None:
    file.proof(SEPTEMBER, "10", "4", "5", "1")
    file.con.execute("INSERT INTO marts.proof_by_bill VALUES ('AWS/1/2026-09', 10, 10, 0), ('AWS/1/2026-10', 7, 7, 0)")
    proofs = proofs_frame(*read_proof(file, SEPTEMBER))
    assert proofs.select("proof_of", "billed", "charged", "on_nodes").rows() == [
        ("2026-09", Decimal(10), Decimal(4), None),
        ("AWS/1/2026-09", Decimal(10), None, Decimal(10)),
    ]


def test_a_teams_month_is_its_cost_and_what_was_corrected_since(file: File) -> None:
    file.closed(SEPTEMBER, 4_000_000)
    file.closed(OCTOBER, 9_000_000)
    file.line(SEPTEMBER, SEPTEMBER, VISION, 4_000_000)
    file.line(SEPTEMBER, OCTOBER, VISION, -1_000_000)
    file.line(OCTOBER, OCTOBER, VISION, 9_000_000)
    file.con.execute("INSERT INTO core.line_daily VALUES ('2026-09-02', 'Research', 'vision', 'usage', 100, 20, 60)")
    teams = by_team(file, [read_statement(file, month) for month in (SEPTEMBER, OCTOBER)])
    assert teams.select("charge_month", "cost", "correction", "idle_ratio").rows() == [
        (SEPTEMBER, Decimal(4), Decimal(-1), 0.5),
        (OCTOBER, Decimal(9), Decimal(0), None),
    ]
