"""Reads the cases that finance people can add up by hand: ``billing_cases/<vendor>.md``, one case a heading.

A table is known by its first words: usage, reserved (capacity held on demand), size, commitment, and line (the bill). A
column that is left out has its usual value. Money is in dollars, quantities in instances or GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from models.prices import Instrument, Scope
from models.procurement.billing import simulate
from models.procurement.billing_order import BilledCommitment, Kind, Size, aws_size, sizes_reached
from models.procurement.billing_usage import USAGE_SCHEMA, CapacityReservation

if TYPE_CHECKING:
    from models.procurement.bill import Bill

HERE = Path(__file__).parent / "billing_cases"
START = datetime(2026, 3, 2, tzinfo=UTC)
KINDS = {
    "zonal reservation": (Instrument.RESERVED, Scope.ZONE),
    "regional reservation": (Instrument.RESERVED, Scope.REGION),
    "EC2 Instance Savings Plan": (Instrument.SAVINGS_PLAN, Scope.FAMILY),
    "Compute Savings Plan": (Instrument.SAVINGS_PLAN, Scope.GLOBAL),
    "capacity block": (Instrument.CAPACITY_BLOCK, Scope.ZONE),
    "resource-based CUD": (Instrument.COMMITTED_USE, Scope.REGION),
    "spend-based CUD": (Instrument.COMMITTED_USE, Scope.GLOBAL),
    "Azure reservation": (Instrument.RESERVED, Scope.REGION),
    "Azure savings plan": (Instrument.SAVINGS_PLAN, Scope.GLOBAL),
}
Row = dict[str, str]


def millionths(text: str) -> int:
    """Millionths of a decimal number: micros of dollars, millionths of instances."""
    value = Decimal(text or 0) * 1_000_000
    assert value == int(value), f"{text} has more than six places"
    return int(value)


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
      name: Its heading.
      vendor: Whose rules: aws, gcp, azure.
      tables: Rows by the first word of each table's head.
    """

    name: str
    vendor: str
    tables: dict[str, list[Row]]

    def usage(self) -> pl.DataFrame:
        """What ran, as the simulator reads it."""
        rows = [
            (
                START + timedelta(hours=int(row.get("hour") or 0)),
                *(self._place(row)[name] for name in ("account", "resource", "region", "zone")),
                millionths(row["count"]),
                millionths(row["on demand"]),
            )
            for row in self.tables["usage"]
        ]
        return pl.DataFrame(rows, schema=USAGE_SCHEMA, orient="row")

    def commitments(self) -> list[BilledCommitment]:
        """What was committed to."""
        return [self._commitment(row) for row in self.tables.get("commitment", [])]

    def reservations(self) -> list[CapacityReservation]:
        """What was held on demand in the first hour."""
        return [
            CapacityReservation(
                kind=Kind(**self._place(row)),
                units_millionths=millionths(row["count"]),
                on_demand_micros=millionths(row["on demand"]),
                starts_at=START,
                ends_at=START + timedelta(hours=1),
            )
            for row in self.tables.get("reserved", [])
        ]

    def bill(self) -> Bill:
        """The bill that comes out, of as many hours as the expected one names."""
        hours = 1 + max(int(row.get("hour") or 0) for row in self.tables["line"])
        return simulate(self.usage(), self.commitments(), start_at=START, hours=hours, reservations=self.reservations())

    def expected(self) -> tuple[list[tuple[object, ...]], int]:
        """The bill that must come out: (hour, commitment, account, what for, quantity, cost) a line, and the total."""
        *lines, total = self.tables["line"]
        assert total["line"] == "total", f"{self.name}: the last line must be the total"
        rows = [
            (
                int(row.get("hour") or 0),
                row["line"],
                row.get("account", ""),
                row["for"],
                millionths(row["quantity"]),
                millionths(row["cost"]),
            )
            for row in lines
        ]
        return sorted(rows), millionths(total["cost"])

    @staticmethod
    def _place(row: Row) -> Row:
        zone = row.get("zone", "")
        region = row.get("region") or zone.rstrip("abc")
        resource = row.get("usage") or row["reserved"]
        return {"account": row.get("account", ""), "resource": resource, "region": region, "zone": zone}

    def _sizes(self, row: Row) -> dict[str, Size]:
        given = {
            one["size"]: Size(family=one["group"], points=int(one["ratio"])) for one in self.tables.get("size", [])
        }
        if given:
            return given
        names = {row["of"], *(one["usage"] for one in self.tables["usage"])}
        is_ec2 = self.vendor == "aws"
        return {name: aws_size(name) if is_ec2 else Size(family=name, points=1) for name in names}

    def _commitment(self, row: Row) -> BilledCommitment:
        instrument, scope = KINDS[row["kind"]]
        in_money = bool(row.get("per hour"))
        if in_money:
            pairs = [pair.strip().rsplit(" ", 1) for pair in row["rates"].split(",")]
            rates, points = {name: millionths(rate) for name, rate in pairs}, 1
        else:
            sizes = self._sizes(row)
            rates, points = sizes_reached(row["of"], sizes, scope), sizes[row["of"]].points
        return BilledCommitment(
            commitment_id=row["commitment"],
            provider=self.vendor,
            instrument=instrument,
            scope=scope,
            account=row.get("account", ""),
            is_shared=row.get("shared") != "no",
            region=row.get("region", ""),
            zone=row.get("zone", ""),
            starts_at=START + timedelta(hours=int(row.get("from hour") or 0)),
            ends_at=START + timedelta(hours=int(row.get("until hour") or 8760)),
            rates=rates,
            unit_points=points,
            units_millionths=None if in_money else millionths(row["units"]),
            micros_per_unit_hour=0 if in_money else millionths(row["price"]),
            hourly_commitment_micros=millionths(row["per hour"]) if in_money else None,
            upfront_micros=millionths(row.get("upfront", "")),
        )


def cells(line: str) -> list[str]:
    """Cells of a table's line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    found = []
    for text in path.read_text().split("\n# ")[1:]:
        name, _, body = text.partition("\n")
        tables = {}
        for block in body.split("\n\n"):
            lines = block.strip().splitlines()
            if lines and lines[0].startswith("|"):
                head = cells(lines[0])
                rows = [dict(zip(head, cells(line), strict=True)) for line in lines[2:]]
                tables[head[0] if head[0] != "hour" else head[1]] = rows
        found.append(Case(name, path.stem, tables))
    return found


CASES = [case for path in sorted(HERE.glob("*.md")) for case in read(path)]
