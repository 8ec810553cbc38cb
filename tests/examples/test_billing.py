"""The example's bills: exact, balanced, and restated by the stated lines."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from examples.billing import ADDED, CHANGED, COSTS, STRAY

if TYPE_CHECKING:
    from pathlib import Path

    from examples.organisation import Delivery

Line = dict[str, str]


def lines_of(path: Path) -> list[Line]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(data.decode().splitlines()))


def total(lines: list[Line], column: str) -> Decimal:
    return sum((Decimal(line[column]) for line in lines), Decimal(0))


@pytest.mark.parametrize(("month", "hours"), [("2026-09", 720), ("2026-10", 744)])
def test_used_and_unused_add_up_to_the_purchase(
    folder: Path, deliveries: list[Delivery], month: str, hours: int
) -> None:
    lines = lines_of(folder / "bills" / f"cloud-{month}.csv.gz")
    assert len(lines) < 20_000
    purchases = [line for line in lines if line["ChargeCategory"] == "Purchase"]
    by_status = {
        status: [line for line in lines if line["CommitmentDiscountStatus"] == status] for status in ("Used", "Unused")
    }
    assert total(purchases, "BilledCost") == 75 * hours
    assert total(purchases, "EffectiveCost") == 0
    assert total([*by_status["Used"], *by_status["Unused"]], "EffectiveCost") == 75 * hours
    assert total(lines, "BilledCost") == total(lines, "EffectiveCost")
    # In September the second node is stopped for thirty hours.
    assert len(by_status["Used"]) == 2 * hours - (30 if month == "2026-09" else 0)
    assert {line["ChargeCategory"] for line in lines} == {"Usage", "Purchase", "Tax", "Credit"}
    assert "Dynamic" in {line["PricingCategory"] for line in lines}


def test_the_restated_bill_differs_by_one_line_changed_one_added_and_one_removed(
    folder: Path, deliveries: list[Delivery]
) -> None:
    assert (folder / "bills/cloud-2026-09.csv.gz").read_bytes() == (
        folder / "bills/cloud-2026-09-again.csv.gz"
    ).read_bytes()
    before, after = (
        Counter(tuple(line.items()) for line in lines_of(folder / "bills" / name))
        for name in ("cloud-2026-09.csv.gz", "cloud-2026-09-restated.csv.gz")
    )
    gone, come = (
        [dict(line) for line in (one - other).elements()] for one, other in ((before, after), (after, before))
    )
    assert sorted(line["ChargeDescription"] for line in come) == sorted([ADDED, CHANGED])
    assert sorted(line["ChargeDescription"] for line in gone) == sorted([STRAY, "p4de.24xlarge, on demand"])
    changed = next(line for line in come if line["ChargeDescription"] == CHANGED)
    replaced = next(line for line in gone if line["ChargeDescription"] != STRAY)
    assert (changed["ResourceId"], changed["ChargePeriodStart"]) == (
        replaced["ResourceId"],
        replaced["ChargePeriodStart"],
    )
    # Less five hours of a node and a day of one GPU, plus the late reading.
    assert total(come, "BilledCost") - total(gone, "BilledCost") == (
        Decimal("412.75") - 5 * Decimal("27.44705") - 24 * Decimal("6.88")
    )
    delivered = {path.name: one.delivered_at for one in deliveries for path in one.files}
    assert delivered["cloud-2026-09-again.csv.gz"] < datetime(2026, 10, 4, tzinfo=UTC)
    assert delivered["cloud-2026-09-restated.csv.gz"] > datetime(2026, 10, 5, 8, tzinfo=UTC)


def test_each_rented_node_is_on_the_bill_and_one_instance_is_known_to_none(
    folder: Path, deliveries: list[Delivery]
) -> None:
    known = {row["resource_id"] for row in lines_of(folder / "records" / "nodes-2026-11-01.csv")} - {""}
    billed = {
        line["ResourceId"]: line
        for month in ("2026-09", "2026-10")
        for line in lines_of(folder / "bills" / f"cloud-{month}.csv.gz")
        if line["ResourceType"] == "Instance"
    }
    assert [line["ChargeDescription"] for name, line in billed.items() if name not in known] == [STRAY]
    assert known <= set(billed)


def test_the_second_bill_is_in_euro_and_has_a_rate(folder: Path, deliveries: list[Delivery]) -> None:
    for month in ("2026-09", "2026-10"):
        assert {line["BillingCurrency"] for line in lines_of(folder / "bills" / f"storage-{month}.csv.gz")} == {"EUR"}
        assert [
            row["currency"] for row in lines_of(folder / "records" / f"fx-{month}.csv") if row["month"] == month
        ] == ["EUR"]


def test_amounts_are_exact_decimals_that_the_ledger_can_hold(folder: Path, deliveries: list[Delivery]) -> None:
    for path in (folder / "bills").iterdir():
        for line, column in product(lines_of(path), COSTS):
            assert re.fullmatch(r"-?\d{1,26}(\.\d{1,12})?", line[column]), (path.name, line[column])
