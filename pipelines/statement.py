"""A month's statement in exact cents, and its proof: from the published file to lines that add up to the invoice.

A closed month's statement is what was posted with it, its own lines and corrections of earlier months. An open month's is
provisional: its lines as computed now, and what its close would correct. Does not belong here: closing, and printing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from models.errors import UsageError
from models.ledger import statement_cents
from models.units import format_money

if TYPE_CHECKING:
    from datetime import date, datetime

Ask = Callable[[str], pl.DataFrame]
"""Answers a query against a published file."""

PLATFORM = "Platform"
_CENTS = pl.Decimal(38, 2)
_LINES = """
select charge_month, business_unit, team, project, line_kind, cost_kind, gpu_hours, idle_ratio, cost_micros
from marts.chargeback_monthly
where {condition}
order by charge_month = date '{month}' desc, charge_month, business_unit = 'Platform', business_unit, team, project,
  cost_kind <> 'usage', cost_kind
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """That a month adds up: what was billed, and who bears it, in micros of the reporting currency.

    Attributes:
      month: Month in which the costs were incurred.
      billed_micros: What bills and the asset register charge to the month.
      charged_micros: Borne by teams.
      held_micros: Held by the platform by policy.
      unmatched_micros: Billed, but matching no node.
    """

    month: date
    billed_micros: int
    charged_micros: int
    held_micros: int
    unmatched_micros: int

    @property
    def difference_micros(self) -> int:
        """Billed less its parts; 0, or the month is not proved."""
        return self.billed_micros - self.charged_micros - self.held_micros - self.unmatched_micros

    def __str__(self) -> str:
        """Say it as an equation in cents that add up as shown."""
        charged, held, unmatched = in_whole_cents(self.charged_micros, self.held_micros, self.unmatched_micros)
        billed, difference = (*in_whole_cents(self.billed_micros), *in_whole_cents(self.difference_micros))
        return (
            f"billed {billed} = charged {charged} + platform {held} + unmatched {unmatched}, "
            f"difference {difference} ({self.difference_micros:,} micros)"
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """One month's statement.

    Attributes:
      month: The month.
      currency: Reporting currency of all money.
      closed_at: When the month was closed; None while the statement is provisional.
      lines: One row a line: charge_month, business_unit, team, project, line_kind, cost_kind, gpu_hours, idle_ratio,
        cost_micros, and cost in whole cents that add up to each charge month's rounded total; NULL where unknown.
      proof: Proof of the month's own lines, without the corrections of earlier months.
    """

    month: date
    currency: str
    closed_at: datetime | None
    lines: pl.DataFrame
    proof: Proof

    def total(self) -> Decimal:
        """Sum of the lines' cents, corrections included."""
        return in_all(self.lines["cost"])

    def of_team(self, team: str) -> Statement:
        """The same statement with one team's lines; its cents and the proof stay those of the whole.

        Raises:
          UsageError: No line is the team's.
        """
        lines = self.lines.filter(pl.col("team") == team)
        if lines.is_empty():
            known = ", ".join(self.lines["team"].unique().sort())
            raise UsageError(f"{self.month:%Y-%m} has no line of team {team!r}; teams in it: {known}")
        return Statement(self.month, self.currency, self.closed_at, lines, self.proof)


def read_statement(ask: Ask, month: date) -> Statement:
    """A month's statement.

    Raises:
      UsageError: The month is unknown, or earlier than the first month closed; the message names the months known.
    """
    currency = ask("select reporting_currency from marts.ledger").item()
    closed = dict(ask("select period_month, closed_at from marts.period_closed").rows())
    if month in closed:
        lines = ask(_LINES.format(month=month, condition=f"posted_month = date '{month}'"))
        billed = ask(f"select billed_micros from marts.period_closed where period_month = date '{month}'").item()
    else:
        lines = ask(_LINES.format(month=month, condition=_provisional(ask, month, max(closed, default=None))))
        billed = _billed_micros(ask, month)
    if lines.is_empty():
        raise UsageError(f"{month:%Y-%m} has no costs or usage; months known: {', '.join(known_months(ask)) or 'none'}")
    corrected = pl.col("charge_month") != month
    lines = lines.with_columns(
        line_kind=pl.when(corrected).then(pl.lit("correction")).otherwise("line_kind"),
        cost=in_cents(lines),
    )
    return Statement(month, currency, closed.get(month), lines, _proof(month, lines.filter(~corrected), billed))


def known_months(ask: Ask) -> list[str]:
    """Months with costs or usage, as YYYY-MM."""
    found = ask("select distinct charge_month from marts.chargeback_monthly order by charge_month")
    return [f"{one:%Y-%m}" for one in found["charge_month"]]


def _provisional(ask: Ask, month: date, last_closed: date | None) -> str:
    """Condition of an open month's lines: its own, and in the first one what its close would post for earlier months.

    Raises:
      UsageError: The month lies before one that is closed, so it has no statement of its own.
    """
    own = f"posted_month is null and charge_month = date '{month}'"
    if last_closed is None:
        return own
    if month < last_closed:
        raise UsageError(
            f"{month:%Y-%m} lies before {last_closed:%Y-%m}, the last month closed, and was not closed itself: "
            "what it costs is posted as a correction when the next month closes"
        )
    later = ask(
        "select charge_month from marts.chargeback_monthly where posted_month is null "
        f"and charge_month > date '{last_closed}' and charge_month < date '{month}' limit 1"
    )
    if not later.is_empty():
        return own
    return f"({own}) or (posted_month is null and charge_month <= date '{last_closed}')"


def _billed_micros(ask: Ask, month: date) -> int:
    found = ask(
        f"select cast(billed * 1000000 as bigint) as m from marts.proof_monthly where charge_month = date '{month}'"
    )
    return int(found.item()) if found.height else 0


def in_cents(lines: pl.DataFrame) -> pl.Series:
    """Cents of each line, so that the lines of each charge month add up to its rounded total."""
    by_month: dict[date, list[int]] = {}
    for position, charge_month in enumerate(lines["charge_month"]):
        by_month.setdefault(charge_month, []).append(position)
    micros: list[int | None] = lines["cost_micros"].to_list()
    found: list[Decimal | None] = [None] * len(micros)
    for positions in by_month.values():
        cents = statement_cents([micros[position] or 0 for position in positions])
        for position, value in zip(positions, cents, strict=True):
            found[position] = None if micros[position] is None else Decimal(value).scaleb(-2)
    return pl.Series("cost", found, _CENTS)


def in_all(money: pl.Series) -> Decimal:
    """Sum of the amounts that are known."""
    return Decimal(money.sum())


def _proof(month: date, lines: pl.DataFrame, billed_micros: int) -> Proof:
    held, unmatched = pl.col("business_unit") == PLATFORM, pl.col("cost_kind") == "unmatched"

    def micros(which: pl.Expr) -> int:
        return int(lines.filter(which)["cost_micros"].sum() or 0)

    return Proof(month, billed_micros, micros(~held), micros(held & ~unmatched), micros(held & unmatched))


def read_proof(ask: Ask, month: date) -> tuple[Proof, pl.DataFrame]:
    """Proof of a month as its costs are known now, corrections included, and of each of its bills.

    Returns:
      The month's proof, and rows of ``marts.proof_by_bill``.

    Raises:
      UsageError: The month is unknown; the message names those known.
    """
    row = ask(
        "select cast(c * 1000000 as bigint) as micros from (select unnest([billed, charged, platform_held, unmatched]) as c "
        f"from marts.proof_monthly where charge_month = date '{month}')"
    )
    if row.is_empty():
        raise UsageError(f"{month:%Y-%m} has no costs or usage; months known: {', '.join(known_months(ask)) or 'none'}")
    bills = ask(f"select * from marts.proof_by_bill where bill like '%/{month:%Y-%m}' order by bill")
    return Proof(month, *row["micros"].to_list()), bills


def by_team(ask: Ask, statements: list[Statement]) -> pl.DataFrame:
    """Per charge month, business unit and team: GPU-hours, idle part, cost, and what later statements corrected.

    Costs are sums of the statements' cents; the idle part is the one known now.
    """
    lines = pl.concat(one.lines.with_columns(posted_month=pl.lit(one.month)) for one in statements)
    corrects = pl.col("charge_month") != pl.col("posted_month")
    keys = ["charge_month", "business_unit", "team"]
    idle = ask(
        "select cast(date_trunc('month', cost_day) as date) as charge_month, business_unit, team, "
        "cast(sum(idle_share_seconds) as double) / nullif(sum(share_seconds) - sum(unmeasured_share_seconds), 0) as idle_ratio "
        "from core.line_daily where cost_kind = 'usage' group by all"
    )
    return (
        lines.group_by(keys)
        .agg(
            gpu_hours=pl.col("gpu_hours").sum(),
            cost=pl.col("cost").filter(~corrects).sum(),
            correction=pl.col("cost").filter(corrects).sum(),
        )
        .join(idle, on=keys, how="left")
        .sort("charge_month", pl.col("business_unit") == PLATFORM, "business_unit", "team")
    )


def proofs_frame(proof: Proof, bills: pl.DataFrame) -> pl.DataFrame:
    """The month's proof and its bills' as rows of one table; NULL where a column is not of that row."""
    money: dict[str, int] = {
        "billed": proof.billed_micros,
        "charged": proof.charged_micros,
        "platform_held": proof.held_micros,
        "unmatched": proof.unmatched_micros,
        "difference": proof.difference_micros,
    }
    whole = pl.DataFrame(
        {
            "proof_of": [f"{proof.month:%Y-%m}"],
            **{
                name: pl.Series([Decimal(micros).scaleb(-6)], dtype=pl.Decimal(38, 6)) for name, micros in money.items()
            },
            "difference_micros": [proof.difference_micros],
        }
    )
    named = bills.rename({"bill": "proof_of", "effective": "billed"}).with_columns(
        pl.col(pl.Decimal).cast(pl.Decimal(38, 6))
    )
    return pl.concat([whole, named], how="diagonal")


def in_whole_cents(*micros: int) -> list[str]:
    """Amounts for people, in cents that add up to their rounded sum."""
    return [format_money(Decimal(cents).scaleb(-2)) for cents in statement_cents(micros)]
