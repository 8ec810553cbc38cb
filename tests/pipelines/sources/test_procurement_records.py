"""Prices, commitments, interruptions and checkpoints from files: what a line says, and what a bad one is told."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.events import CheckpointSaved, CommitmentRecorded, PriceObserved, RunInterrupted, polars_schema
from models.instances import instance_type
from pipelines.sources import procurement_records as records
from pipelines.sources.record_columns import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from models.events import Event
    from pipelines.sources.base import Chunk

YEAR = 31_536_000
READERS: dict[str, tuple[Callable[..., Iterator[Chunk]], type[Event]]] = {
    "prices": (records.read_prices, PriceObserved),
    "commitments": (records.read_commitments, CommitmentRecorded),
    "interruptions": (records.read_interruptions, RunInterrupted),
    "checkpoints": (records.read_checkpoints, CheckpointSaved),
}
ON_DEMAND = {
    "offer_id": "aws/us-east-1/p5.48xlarge/on_demand",
    "gpu_model": "H100-80GB",
    "region": "us-east-1",
    "observed_at": "2026-09-01",
    "instrument": "on_demand",
    "provider": "aws",
    "instance_type": "p5.48xlarge",
    "gpu_count": "8",
    "scope": "region",
    "has_capacity": "false",
    "hourly_amount": "6.88",
    "currency": "USD",
    "price_source": "price list",
}
RESERVED = ON_DEMAND | {
    "offer_id": "aws/us-east-1/p4d.24xlarge/reserved/1yr/partial_upfront",
    "instrument": "reserved",
    "term_seconds": str(YEAR),
    "payment_option": "partial_upfront",
    "upfront_amount": "7500",
    "hourly_amount": "0.9",
}
SPOT = ON_DEMAND | {"offer_id": "spot", "instrument": "spot", "scope": "zone", "zone": "us-east-1a"}
BLOCK = ON_DEMAND | {
    "offer_id": "block",
    "instrument": "capacity_block",
    "has_capacity": "true",
    "term_seconds": str(14 * 86_400),
    "upfront_amount": "1744",
    "hourly_amount": "",
}
OWNED = ON_DEMAND | {
    "offer_id": "dgx",
    "instrument": "owned",
    "provider": "nvidia",
    "has_capacity": "true",
    "upfront_amount": "45000",
    "hourly_amount": "",
    "residual_amount": "6750",
    "life_months_count": "48",
    "power_watts": "1275",
    "monthly_fee_amount": "666.25",
    "lead_seconds": str(90 * 86_400),
}
PLAN = {
    "commitment_id": "sp-1",
    "instrument": "savings_plan",
    "provider": "aws",
    "scope": "global",
    "has_capacity": "false",
    "starts_at": "2026-01-01",
    "ends_at": "2027-01-01",
    "hourly_commitment_amount": "120",
    "payment_option": "no_upfront",
    "currency": "USD",
    "state": "active",
}
RESERVATION = PLAN | {
    "commitment_id": "ri-1",
    "instrument": "reserved",
    "scope": "zone",
    "region": "us-east-1",
    "zone": "us-east-1a",
    "has_capacity": "true",
    "gpu_model": "A100-40GB",
    "gpu_count": "16",
    "hourly_commitment_amount": "",
}
HELD_BLOCK = RESERVATION | {
    "instrument": "capacity_block",
    "starts_at": "2026-09-01T11:30:00Z",
    "ends_at": "2026-09-15T11:30:00Z",
    "payment_option": "all_upfront",
    "upfront_amount": "20000",
}


class Read:
    """What reading lines of a kind gave."""

    def __init__(self, folder: Path, kind: str, *lines: dict[str, str]) -> None:
        reader, event = READERS[kind]
        header = [field.name for field in FIELDS[kind]]
        assert all(set(line) <= set(header) for line in lines)
        path = folder / f"{kind}.csv"
        texts = [",".join(line.get(name, "") for name in header) for line in lines]
        path.write_text("\n".join([",".join(header), *texts, ""]), encoding="utf-8")
        (chunk,) = reader([path])
        assert chunk.events[event].schema == polars_schema(event)
        self.events = chunk.events[event]
        self.rejected = chunk.rejected

    def row(self) -> dict[str, Any]:
        assert self.rejected.is_empty(), self.rejected["reason"].to_list()
        (row,) = self.events.to_dicts()
        return row

    @property
    def reason(self) -> str:
        return str(self.rejected["reason"].item())


def test_every_column_of_an_event_can_be_told() -> None:
    for kind, (_, event) in READERS.items():
        assert [field.name for field in FIELDS[kind]] == list(polars_schema(event)), kind


def test_a_price_says_what_it_is_and_nothing_more(tmp_path: Path) -> None:
    row = Read(tmp_path, "prices", ON_DEMAND | {"gpu_model": "NVIDIA H100 80GB HBM3"}).row()
    assert (row["gpu_model"], row["hourly_amount"], row["gpu_count"]) == ("H100-80GB", Decimal("6.88"), 8)
    assert row["observed_at"] == datetime(2026, 9, 1, tzinfo=UTC)
    assert (row["zone"], row["upfront_amount"], row["term_seconds"], row["reference_gpu_quantity"]) == (
        "",
        None,
        None,
        None,
    )


@pytest.mark.parametrize("line", [RESERVED, SPOT, BLOCK, OWNED], ids=lambda line: line["instrument"])
def test_each_instrument_is_read(tmp_path: Path, line: dict[str, str]) -> None:
    row = Read(tmp_path, "prices", line).row()
    assert row["instrument"] == line["instrument"]
    assert row["has_capacity"] is (line["has_capacity"] == "true")


def test_one_plan_has_a_rate_for_each_model(tmp_path: Path) -> None:
    plan = RESERVED | {
        "offer_id": "sp",
        "instrument": "savings_plan",
        "scope": "global",
        "region": "",
        "upfront_amount": "",
    }
    read = Read(tmp_path, "prices", plan | {"payment_option": "all_upfront"}, plan | {"gpu_model": "H200"})
    assert read.events.select("offer_id", "gpu_model").rows() == [("sp", "H100-80GB"), ("sp", "H200-141GB")]
    assert read.rejected.is_empty()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ON_DEMAND | {"hourly_amount": ""}, "hourly_amount: found no price above 0"),
        (ON_DEMAND | {"hourly_amount": "0.00"}, "hourly_amount: found no price above 0"),
        (ON_DEMAND | {"hourly_amount": "-6.88"}, "hourly_amount: found '-6.88', expected a number such as 1234.56"),
        (ON_DEMAND | {"currency": "Dollar"}, "currency: found 'Dollar', expected a three-letter ISO 4217 code"),
        (ON_DEMAND | {"instrument": "lease"}, "instrument: found 'lease', expected one of on_demand"),
        (ON_DEMAND | {"gpu_count": "0"}, "gpu_count: found '0', expected 1 or more"),
        (ON_DEMAND | {"price_source": ""}, "price_source: found nothing"),
        (ON_DEMAND | {"region": ""}, "region: found nothing, expected a value: the scope is a region"),
        (ON_DEMAND | {"term_seconds": "60"}, "term_seconds: found 60, expected nothing: on_demand binds for no term"),
        (
            ON_DEMAND | {"upfront_amount": "1"},
            "upfront_amount: found 1, expected nothing: on_demand is paid by the hour",
        ),
        (ON_DEMAND | {"residual_amount": "1"}, "residual_amount: found 1, expected nothing: only what is owned has it"),
        (ON_DEMAND | {"valid_until_at": "2026-09-01"}, "valid_until_at: expected an instant after valid_from_at"),
        (ON_DEMAND | {"reference_gpu_quantity": "0"}, "reference_gpu_quantity: found '0', expected a number above 0"),
        (ON_DEMAND | {"has_capacity": ""}, "has_capacity: found nothing"),
        (RESERVED | {"term_seconds": ""}, "term_seconds: found nothing, expected the term of a reserved"),
        (RESERVED | {"has_capacity": "true"}, "only a reservation in one zone holds capacity"),
        (RESERVED | {"payment_option": "all_upfront"}, "hourly_amount: found 0.9, expected 0 or nothing"),
        (RESERVED | {"payment_option": "no_upfront"}, "upfront_amount: found 7500, expected 0 or nothing"),
        (SPOT | {"has_capacity": "true"}, "has_capacity: found true, expected false of spot"),
        (SPOT | {"zone": ""}, "zone: found nothing, expected a value: the scope is a zone"),
        (BLOCK | {"has_capacity": "false"}, "has_capacity: found false, expected true of capacity_block"),
        (BLOCK | {"term_seconds": str(15 * 86_400)}, "found a block of 15 days, expected 1 to 14 days, or whole weeks"),
        (BLOCK | {"term_seconds": str(189 * 86_400)}, "found a block of 189 days"),
        (BLOCK | {"term_seconds": "3600"}, "found a block of 0.0416667 days"),
        (BLOCK | {"hourly_amount": "5"}, "a block is paid at the start"),
        (OWNED | {"upfront_amount": "", "hourly_amount": "1"}, "upfront_amount: found nothing"),
        (OWNED | {"life_months_count": ""}, "life_months_count: found nothing"),
        (OWNED | {"residual_amount": "45001"}, "residual_amount: expected no more than upfront_amount"),
    ],
)
def test_a_price_that_cannot_be_is_kept_aside_with_the_reason(
    tmp_path: Path, line: dict[str, str], reason: str
) -> None:
    read = Read(tmp_path, "prices", line)
    assert read.events.is_empty()
    assert reason in read.reason


@pytest.mark.parametrize("days", [1, 14, 21, 182])
def test_a_capacity_block_has_one_of_the_lengths_that_are_sold(tmp_path: Path, days: int) -> None:
    assert Read(tmp_path, "prices", BLOCK | {"term_seconds": str(days * 86_400)}).row()["term_seconds"] == days * 86_400


def test_two_prices_of_an_offer_at_one_time_contradict_each_other(tmp_path: Path) -> None:
    january = ON_DEMAND | {"observed_at": "2026-01-01", "valid_until_at": "2026-03-01"}
    february = ON_DEMAND | {"observed_at": "2026-02-01", "hourly_amount": "12.29"}
    march = ON_DEMAND | {"observed_at": "2026-03-01", "hourly_amount": "7"}
    again = ON_DEMAND | {"observed_at": "2026-02-15"}
    read = Read(tmp_path, "prices", march, february, again, january)
    assert read.rejected["position"].to_list() == ["prices.csv:3"]
    assert read.reason == (
        "found another price of the same offer in the time of prices.csv:5, which holds until 2026-03-01T00:00:00Z: "
        "expected one price at a time"
    )
    assert sorted(read.events["hourly_amount"]) == [Decimal("6.88"), Decimal("6.88"), 7]


def test_prices_of_other_models_zones_and_times_do_not_contradict(tmp_path: Path) -> None:
    first = SPOT | {"valid_until_at": "2026-10-01"}
    others = [{"zone": "us-east-1b"}, {"gpu_model": "A100-40GB"}, {"observed_at": "2026-10-01", "valid_until_at": ""}]
    lines = [first | other | {"hourly_amount": "9"} for other in others]
    assert Read(tmp_path, "prices", first, *lines).rejected.is_empty()


def test_commitments_are_of_gpus_or_of_money(tmp_path: Path) -> None:
    plan = Read(tmp_path, "commitments", PLAN).row()
    assert (plan["hourly_commitment_amount"], plan["gpu_count"], plan["gpu_model"], plan["region"]) == (
        120,
        None,
        None,
        None,
    )
    reservation = Read(tmp_path, "commitments", RESERVATION).row()
    assert (reservation["gpu_count"], reservation["has_capacity"], reservation["zone"]) == (16, True, "us-east-1a")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (PLAN | {"ends_at": "2026-01-01"}, "ends_at: expected an instant after starts_at"),
        (PLAN | {"hourly_commitment_amount": ""}, "gpu_count: found no size, expected either gpu_count or"),
        (PLAN | {"gpu_count": "8"}, "gpu_count: found gpu_count and hourly_commitment_amount, expected either"),
        (PLAN | {"hourly_commitment_amount": "-1"}, "hourly_commitment_amount: found '-1'"),
        (PLAN | {"instrument": "spot"}, "instrument: found 'spot', expected one of on_demand, reserved"),
        (PLAN | {"state": "expired"}, "state: found 'expired', expected one of active, queued, cancelled"),
        (PLAN | {"has_capacity": "true"}, "has_capacity: found true, expected false of savings_plan"),
        (RESERVATION | {"gpu_model": ""}, "gpu_model: found nothing, expected the model of the GPUs"),
        (RESERVATION | {"zone": ""}, "zone: found nothing"),
        (RESERVATION | {"scope": "region"}, "only a reservation in one zone holds capacity"),
        (
            HELD_BLOCK | {"starts_at": "2026-09-01", "ends_at": "2026-09-15"},
            "starts_at: found 00:00, expected 11:30 UTC",
        ),
        (HELD_BLOCK | {"ends_at": "2026-09-16T11:30:00Z"}, "found a block of 15 days"),
        (HELD_BLOCK | {"payment_option": "no_upfront", "upfront_amount": ""}, "a block is paid at the start"),
    ],
)
def test_a_commitment_that_cannot_be_is_kept_aside(tmp_path: Path, line: dict[str, str], reason: str) -> None:
    assert reason in Read(tmp_path, "commitments", line).reason


def test_a_block_that_is_held_is_read(tmp_path: Path) -> None:
    assert Read(tmp_path, "commitments", HELD_BLOCK).row()["upfront_amount"] == 20_000


def test_an_interruption_is_of_an_attempt(tmp_path: Path) -> None:
    line = {"cluster": "alps", "run_id": "7", "started_at": "2026-09-01T00:00:00Z", "cause": "spot_reclaimed"}
    row = Read(
        tmp_path, "interruptions", line | {"interrupted_at": "2026-09-01T05:00:00Z", "notice_seconds": "120"}
    ).row()
    assert (row["cause"], row["notice_seconds"], row["gpu_count"]) == ("spot_reclaimed", 120, None)
    early = Read(tmp_path, "interruptions", line | {"interrupted_at": "2026-08-31T23:59:59Z"})
    assert early.reason == "interrupted_at: expected an instant not before started_at"


def test_a_checkpoint_says_how_long_the_run_stood_still(tmp_path: Path) -> None:
    line = {
        "cluster": "alps",
        "run_id": "7",
        "saved_at": "2026-09-01T01:00:00Z",
        "blocking_seconds": "45",
        "size_mib": "1e3",
    }
    assert "size_mib: found '1e3'" in Read(tmp_path, "checkpoints", line).reason
    assert Read(tmp_path, "checkpoints", line | {"size_mib": "1536.5"}).row()["size_mib"] == 1536.5


# Published prices, mapped onto the format


def published(folder: Path, name: str) -> list[dict[str, str]]:
    return pl.read_csv(folder / "prices" / name, infer_schema_length=0).to_dicts()


def per_gpu(amount: str, gpus: int, hours: int = 1) -> str:
    return f"{Decimal(amount) / gpus / hours:.12f}"


def offered(provider: str, line: dict[str, str], name: str, observed: str) -> dict[str, str] | None:
    """What the offers of one instance type in one region share; None where its GPU is not known."""
    kind = instance_type(provider, line[name])
    if kind is None:
        return None
    return ON_DEMAND | {
        "gpu_model": kind.gpu_model,
        "region": line["region"],
        "observed_at": observed,
        "provider": provider,
        "instance_type": kind.name,
        "gpu_count": str(kind.gpu_count),
        "price_source": "published",
    }


def aws_offers(folder: Path) -> list[dict[str, str]]:
    """On demand and 1-year reserved without upfront, January 2026."""
    lines = []
    for line in published(folder, "aws_gpu_on_demand_reserved_2026-01.csv"):
        about = offered("aws", line, "instance_type", "2026-01-21")
        if about is None:
            continue
        where = f"aws/{line['region']}/{line['instance_type']}"
        for column, more in (
            ("on_demand_usd_h", {"offer_id": f"{where}/on_demand"}),
            (
                "reserved_usd_h",
                {"offer_id": f"{where}/reserved/1yr", "instrument": "reserved", "term_seconds": str(YEAR)},
            ),
        ):
            if line[column]:
                lines.append(about | more | {"hourly_amount": per_gpu(line[column], int(about["gpu_count"]))})
    return lines


def test_aws_sells_no_reservation_of_its_newest_gpus(tmp_path: Path, shared_data: Path) -> None:
    read = Read(tmp_path, "prices", *aws_offers(shared_data))
    assert read.rejected.is_empty()
    family = pl.col("instance_type").str.split(".").list.first()
    instruments = dict(read.events.group_by(family).agg(pl.col("instrument").unique().sort()).rows())
    assert {name for name, found in instruments.items() if found == ["on_demand"]} == {
        "p2", "p3", "p5", "p5en", "p6-b200", "p6-b300", "g7e",
    }  # fmt: skip
    assert instruments["p4d"] == instruments["p4de"] == instruments["p3dn"] == ["on_demand", "reserved"]
    assert "p5e" not in instruments


def test_a_years_reservation_in_the_united_states_is_35_to_37_per_cent_off(tmp_path: Path, shared_data: Path) -> None:
    events = Read(tmp_path, "prices", *aws_offers(shared_data)).events
    ours = events.filter(
        pl.col("region").str.contains(r"^us-(east|west)-\d$"), pl.col("instance_type").str.contains(r"^(p4|g5|g6)")
    )
    price = ours.pivot("instrument", index=["instance_type", "region"], values="hourly_amount").drop_nulls()
    discount = 1 - price["reserved"].cast(pl.Float64) / price["on_demand"].cast(pl.Float64)
    assert price.height == 77
    assert (round(discount.min(), 3), round(discount.max(), 3)) == (0.349, 0.37)


def gcp_history(folder: Path) -> list[dict[str, str]]:
    """On demand, spot and 1- and 3-year commitments (quoted by the month of 730 hours), 2022 to 2026."""
    lines = []
    for line in published(folder, "gcp_gpu_price_history.csv"):
        about = offered("gcp", line, "machine_type", line["observed_at"])
        if about is None:
            continue
        where, gpus = f"gcp/{line['region']}/{line['machine_type']}", int(about["gpu_count"])
        for column, hours, more in (
            ("on_demand_usd_h", 1, {"offer_id": f"{where}/on_demand"}),
            ("spot_usd_h", 1, {"offer_id": f"{where}/spot", "instrument": "spot"}),
            (
                "cud_1y_usd_month",
                730,
                {"offer_id": f"{where}/1y", "instrument": "committed_use", "term_seconds": str(YEAR)},
            ),
            (
                "cud_3y_usd_month",
                730,
                {"offer_id": f"{where}/3y", "instrument": "committed_use", "term_seconds": str(3 * YEAR)},
            ),
        ):
            if line[column]:
                lines.append(about | more | {"hourly_amount": per_gpu(line[column], gpus, hours)})
    return lines


def test_the_spot_price_of_an_a3_falls_to_a_third_and_comes_back(tmp_path: Path, shared_data: Path) -> None:
    read = Read(tmp_path, "prices", *gcp_history(shared_data))
    assert read.rejected.is_empty()
    of_node = read.events.filter(pl.col("offer_id") == "gcp/us-central1/a3-highgpu-8g/spot").sort("observed_at")
    series = of_node.select("observed_at", (pl.col("hourly_amount") * 8).cast(pl.Float64).round(2)).rows()
    assert series[0] == (datetime(2024, 5, 17, 12, 0, 33, tzinfo=UTC), 61.95)
    assert min(price for _, price in series) == 20.37
    assert series[-1] == (datetime(2026, 7, 22, 14, 23, 37, tzinfo=UTC), 50.61)
    assert len(series) == 26


def test_the_spot_advisor_gives_prices_beside_the_price_list(tmp_path: Path, shared_data: Path) -> None:
    """It states savings; one region sells p5 dearer on spot than on demand."""
    on_demand = {
        (line["region"], line["instance_type"]): line
        for line in aws_offers(shared_data)
        if line["instrument"] == "on_demand"
    }
    advised = published(shared_data, "aws_spot_advisor_gpu.csv")
    lines = []
    for line in advised:
        listed = on_demand.get((line["region"], line["instance_type"]))
        if listed:
            left = (100 - Decimal(line["savings_pct_vs_on_demand"])) / 100
            spot = {"offer_id": f"{listed['offer_id']}/spot", "instrument": "spot"}
            lines.append(listed | spot | {"hourly_amount": f"{Decimal(listed['hourly_amount']) * left:.12f}"})
    read = Read(tmp_path, "prices", *lines)
    assert (len(advised), read.events.height, read.rejected.height) == (658, 600, 0)
    dearer = [line for line in advised if int(line["savings_pct_vs_on_demand"]) < 0]
    assert [(one["region"], one["instance_type"], one["savings_pct_vs_on_demand"]) for one in dearer] == [
        ("ca-central-1", "p5.48xlarge", "-62")
    ]
