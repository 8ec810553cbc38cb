"""What the example could buy and has bought: read by the ledger's own readers, and in agreement with its bills and assets."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from models.instances import instance_type
from pipelines.sources.procurement_records import read_commitments, read_prices

if TYPE_CHECKING:
    from pathlib import Path

    from examples.organisation import Delivery

Line = dict[str, str]
END = datetime(2026, 11, 1, tzinfo=UTC)
MONTH_ENDS = {"2026-09": "2026-09-30", "2026-10": "2026-10-31"}


def records(folder: Path, pattern: str) -> list[Line]:
    paths = sorted((folder / "records").glob(pattern))
    return [row for path in paths for row in csv.DictReader(path.read_text().splitlines())]


@pytest.fixture(scope="module")
def prices(folder: Path, deliveries: list[Delivery]) -> list[Line]:
    return records(folder, "prices-*.csv")


@pytest.fixture(scope="module")
def commitments(folder: Path, deliveries: list[Delivery]) -> dict[str, Line]:
    return {row["commitment_id"]: row for row in records(folder, "commitments*.csv")}


@pytest.fixture(scope="module")
def bill(folder: Path, deliveries: list[Delivery]) -> list[Line]:
    paths = [folder / "bills" / f"cloud-{month}.csv.gz" for month in MONTH_ENDS]
    return [row for path in paths for row in csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines())]


def newest(prices: list[Line], instrument: str) -> list[Line]:
    return [row for row in prices if row["observed_at"] == "2026-10-31" and row["instrument"] == instrument]


def test_the_ledger_understands_every_line(deliveries: list[Delivery]) -> None:
    readers = {"prices": read_prices, "commitments": read_commitments}
    for one in deliveries:
        for chunk in readers[one.kind](one.files) if one.kind in readers else ():
            assert chunk.rejected.is_empty()
            assert sum(rows.height for rows in chunk.events.values()) == chunk.rows_read > 0


# ---- Prices and bills ------------------------------------------------------------------------------------------------


def test_the_bill_lists_what_the_price_list_says(prices: list[Line], bill: list[Line]) -> None:
    listed = {row["instance_type"]: Decimal(row["hourly_amount"]) for row in newest(prices, "on_demand")}
    billed = {
        line["ChargeDescription"].partition(",")[0]: Decimal(line["ListUnitPrice"])
        for line in bill
        if line["ListUnitPrice"]
    }
    assert {"p5.48xlarge", "p4de.24xlarge", "p4d.24xlarge"} <= set(billed)
    for name in ("p5.48xlarge", "p4de.24xlarge", "p4d.24xlarge"):
        assert billed[name] == 8 * listed[name]
    # The MIG node and the stray are single GPUs of the same kind.
    assert billed["4 x p5.4xlarge"] == 4 * listed["p5.48xlarge"]
    assert billed["p5.4xlarge"] == listed["p5.48xlarge"]


@pytest.mark.parametrize("month", MONTH_ENDS)
def test_spot_read_at_a_months_end_is_what_the_bill_charged_last(
    prices: list[Line], bill: list[Line], month: str
) -> None:
    (read,) = [
        Decimal(row["hourly_amount"])
        for row in prices
        if (row["offer_id"], row["zone"], row["observed_at"])
        == ("aws/us-east-1/p4d.24xlarge/spot", "us-east-1a", MONTH_ENDS[month])
    ]
    lines = [
        line for line in bill if line["PricingCategory"] == "Dynamic" and line["ChargePeriodStart"].startswith(month)
    ]
    last_day = max(line["ChargePeriodStart"] for line in lines)
    charged = [line for line in lines if line["ChargePeriodStart"] == last_day]
    assert charged
    for line in charged:
        assert Decimal(line["BilledCost"]) == 8 * read * Decimal(line["PricingQuantity"])


def test_the_plan_on_the_bill_is_held_at_the_rate_and_for_the_money_billed(
    prices: list[Line], commitments: dict[str, Line], bill: list[Line]
) -> None:
    (plan_id,) = {line["CommitmentDiscountId"] for line in bill} - {""}
    held = commitments[plan_id]
    (rate,) = [Decimal(row["hourly_amount"]) for row in prices if row["offer_id"] == held["offer_id"]]
    used = {Decimal(line["EffectiveCost"]) for line in bill if line["CommitmentDiscountStatus"] == "Used"}
    assert used == {8 * rate}
    purchased = sum(Decimal(line["BilledCost"]) for line in bill if line["ChargeCategory"] == "Purchase")
    assert purchased == Decimal(held["hourly_commitment_amount"]) * (30 + 31) * 24
    # Already there when the bills begin, and gone within a year of their end: a cliff.
    starts_at, ends_at = (datetime.fromisoformat(held[name]).replace(tzinfo=UTC) for name in ("starts_at", "ends_at"))
    assert starts_at < datetime(2026, 9, 1, tzinfo=UTC)
    assert END < ends_at < END + timedelta(days=365)
    assert ends_at - starts_at == timedelta(days=365)


def test_what_is_queued_is_on_no_bill_yet_and_fits_a_node_on_demand(
    deliveries: list[Delivery], prices: list[Line], commitments: dict[str, Line], bill: list[Line]
) -> None:
    (queued,) = [row for row in commitments.values() if row["state"] == "queued"]
    assert datetime.fromisoformat(queued["starts_at"]).replace(tzinfo=UTC) > END
    assert queued["commitment_id"] not in {line["CommitmentDiscountId"] for line in bill}
    on_demand = {
        line["ResourceId"]
        for line in bill
        if line["ChargeDescription"].startswith(f"{queued['instance_type']}, on demand")
    }
    assert 0 < int(queued["gpu_count"]) < 8 * len(on_demand)
    offered = {row["hourly_amount"] for row in prices if row["offer_id"] == queued["offer_id"]}
    assert offered == {queued["hourly_amount"]}
    (delivery,) = [
        one for one in deliveries if one.kind == "commitments" and one.delivered_at > datetime(2026, 10, 1, tzinfo=UTC)
    ]
    assert delivery.delivered_at < END


def test_the_owned_nodes_cost_by_the_hour_what_the_register_says(
    folder: Path, deliveries: list[Delivery], commitments: dict[str, Line]
) -> None:
    owned = [row for row in commitments.values() if row["instrument"] == "owned"]
    nodes = [row for row in records(folder, "assets.csv") if row["node"]]
    assert sum(int(row["gpu_count"]) for row in owned) == 8 * len(nodes)
    assert sum(Decimal(row["upfront_amount"]) for row in owned) == sum(Decimal(row["purchase_amount"]) for row in nodes)
    assert {row["starts_at"] for row in owned} == {row["in_service"] for row in nodes}
    for row in nodes:
        energy = (
            float(row["power_watts"]) / 1_000 * float(row["power_usage_effectiveness"]) * float(row["energy_price"])
        )
        hourly = (float(row["monthly_fee"]) / 730 + energy) / 8
        assert [float(one["hourly_amount"]) for one in owned] == pytest.approx([hourly] * len(owned), abs=1e-6)


# ---- Prices by themselves --------------------------------------------------------------------------------------------


def test_what_does_not_exist_has_no_line(prices: list[Line]) -> None:
    # AWS's price list of 2026 has no reserved p5.
    assert {row["gpu_model"] for row in prices if row["instrument"] == "reserved"} == {"A100-40GB", "A100-80GB"}
    assert {row["instrument"] for row in prices} == {
        "on_demand", "reserved", "savings_plan", "spot", "capacity_block", "contract", "owned"
    }  # fmt: skip
    for row in prices:
        if row["instance_type"]:
            known = instance_type(row["provider"], row["instance_type"])
            assert known is not None
            assert (known.gpu_model, known.gpu_count) == (row["gpu_model"], 8)


def test_all_prices_but_one_are_fresh_at_the_end(prices: list[Line]) -> None:
    last: dict[str, str] = {}
    for row in prices:
        last[row["offer_id"]] = max(row["observed_at"], last.get(row["offer_id"], ""))
    old = [name for name, day in last.items() if END - datetime.fromisoformat(day).replace(tzinfo=UTC) > timedelta(45)]
    assert old == ["aws/us-east-1/p5/instance_savings_plan/1y/no_upfront"]
    assert sorted({row["observed_at"] for row in prices})[1:] == ["2026-08-31", "2026-09-30", "2026-10-31"]


def test_longer_terms_and_payment_upfront_are_cheaper_as_published(prices: list[Line]) -> None:
    on_demand = {row["gpu_model"]: Decimal(row["hourly_amount"]) for row in newest(prices, "on_demand")
                 if row["provider"] == "aws"}  # fmt: skip
    saved: dict[tuple[str, str], Decimal] = {}
    for row in newest(prices, "reserved"):
        hours = Decimal(row["term_seconds"]) / 3_600
        hourly = Decimal(row["hourly_amount"] or 0) + Decimal(row["upfront_amount"] or 0) / hours
        about = "/".join(row["offer_id"].split("/")[-2:])
        saved[row["gpu_model"], about] = 1 - hourly / on_demand[row["gpu_model"]]
    # Medians of AWS's grid: 37.0 and 41.7 % for a year, 56.8 and 62.9 % for three (nothing, all upfront).
    published = {"1y/no_upfront": 0.370, "1y/all_upfront": 0.417, "3y/no_upfront": 0.568, "3y/all_upfront": 0.629}
    assert len(saved) == 2 * len(published)
    for (_, about), ratio in saved.items():
        assert float(ratio) == pytest.approx(published[about], abs=0.01)


def test_spot_of_p5_is_from_a_fifth_of_on_demand_to_all_of_it_by_zone(prices: list[Line]) -> None:
    spot = [Decimal(row["hourly_amount"]) / Decimal("6.88") for row in newest(prices, "spot")
            if row["gpu_model"] == "H100-80GB"]  # fmt: skip
    assert sorted(spot) == [Decimal("0.186"), Decimal("0.48"), 1, 1]


def test_an_owned_node_costs_a_month_what_the_calculation_of_own_against_cloud_takes(prices: list[Line]) -> None:
    (owned,) = newest(prices, "owned")
    assert 8 * Decimal(owned["upfront_amount"]) == Decimal(320_000) * Decimal("1.125")
    power = 8 * float(owned["power_watts"]) / 1_000 * 730 * 1.3 * 0.08
    assert 8 * float(owned["monthly_fee_amount"]) + power == pytest.approx(5_330, abs=1)
    assert int(owned["lead_seconds"]) == timedelta(weeks=12).total_seconds()
