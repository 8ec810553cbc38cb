"""A small published file: three months of two clusters, two of them closed, corrections, pools, findings, a rejected row."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from filelock import FileLock

from models.events import (
    AssetRecorded,
    BillDelivered,
    ChargeBilled,
    Event,
    GpuInventoried,
    GpuSampled,
    NodeStateChanged,
    OwnershipAssigned,
    RunPlaced,
    RunRecorded,
    polars_schema,
)
from pipelines.build import build
from pipelines.lake import Lake
from pipelines.ledger import close
from pipelines.publish import publish
from pipelines.settings import Settings
from pipelines.sources.base import Chunk, Placed, placement_id, rejected_frame, rejected_row
from tests.dashboards import procurement_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

JULY, AUGUST, SEPTEMBER = date(2026, 7, 1), date(2026, 8, 1), date(2026, 9, 1)
NODES = {"a1": 4, "a2": 4, "a3": 4}
OWNERS = {
    "vision": ("Research", "Vision", "segmentation"),
    "vision-big": ("Research", "Vision", "foundation"),
    "speech": ("Research", "Speech", ""),
    "ads": ("Products", "Advertising", "ranking"),
    "search": ("Products", "Search", "ranking"),
}


@pytest.fixture(autouse=True)
def _own_main_module() -> Iterator[None]:
    """Streamlit runs a page as ``__main__`` and leaves it there; processes started later would run that page."""
    own = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = own


def frame(event: type[Event], rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of an event type; columns that a row leaves out are NULL."""
    return pl.DataFrame(rows, schema=polars_schema(event), strict=False)


def at(day: date, hours: float = 0) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hours)


def inventory() -> Chunk:
    common = {"mig_layout": "", "mig_profile": "", "effective_from_at": at(JULY), "slices_per_card_count": 1}
    nodes = [
        {"cluster": "alpha", "node": node, "gpu_model": "H100-80GB", "card_count": cards, **common}
        for node, cards in NODES.items()
    ]
    nodes.append({"cluster": "beta", "node": "b1", "gpu_model": "L40S-48GB", "card_count": 4, **common})
    owners = [
        {
            "cluster": "*",
            "account": account,
            "effective_from_at": at(JULY),
            "business_unit": unit,
            "team": team,
            "project": project or None,
        }
        for account, (unit, team, project) in OWNERS.items()
    ]
    down = [
        {"cluster": "alpha", "node": "a3", "changed_at": at(AUGUST, 48), "state": "down", "reason": "fan"},
        {"cluster": "alpha", "node": "a3", "changed_at": at(AUGUST, 96), "state": "up", "reason": None},
    ]
    asset = {
        "asset_id": "switch-1",
        "cluster": "alpha",
        "in_service_at": at(JULY),
        "life_months_count": 36,
        "purchase_amount": Decimal(36_000),
        "residual_amount": Decimal(0),
        "currency": "USD",
    }
    return Chunk(
        {
            GpuInventoried: frame(GpuInventoried, nodes),
            OwnershipAssigned: frame(OwnershipAssigned, owners),
            NodeStateChanged: frame(NodeStateChanged, down),
            AssetRecorded: frame(AssetRecorded, [asset]),
        },
        rows_read=len(nodes) + len(owners) + 3,
    )


def runs() -> Chunk:
    """Every day each account runs once; vision grows, an account without owner comes in September."""
    rows: list[dict[str, Any]] = []
    placed: dict[str, dict[str, Any]] = {}
    for number in range(92):
        day = JULY + timedelta(days=number)
        for order, (account, node) in enumerate(
            [("vision", "a1"), ("vision-big", "a2"), ("speech", "a3"), ("ads", "a1"), ("search", "b1")]
        ):
            if node == "a3" and AUGUST <= day < date(2026, 8, 6):
                continue
            gpus = 2 if node in {"a1", "a3"} else 4
            hours = 6 + (number * (order + 3)) % 15 + (2 if account == "vision-big" and day >= AUGUST else 0)
            owner = "guest" if account == "ads" and day >= date(2026, 9, 20) else account
            cluster, model = ("beta", "L40S-48GB") if node == "b1" else ("alpha", "H100-80GB")
            devices = Placed(node, "gpu", gpus, model)
            identity = placement_id([devices])
            assert identity is not None
            placed[identity] = {
                "placement_id": identity,
                "node": node,
                "gpu_type": "gpu",
                "gpu_model": model,
                "device_count": gpus,
            }
            rows.append(
                {
                    "cluster": cluster,
                    "run_id": str(1000 + 10 * number + order),
                    "started_at": at(day, 1),
                    "ended_at": at(day, 1 + hours),
                    "account": owner,
                    "user_name": ("ann", "bo", "chi")[number % 3],
                    "state": "COMPLETED" if number % 7 else "FAILED",
                    "is_final": True,
                    "is_from_step": False,
                    "placement_id": identity,
                }
            )
    bad = rejected_frame([rejected_row("slurm", "sacct.txt:17", "Start is 'Unkown', expected a time", "17|gpu|Unkown")])
    return Chunk(
        {RunRecorded: frame(RunRecorded, rows), RunPlaced: frame(RunPlaced, list(placed.values()))},
        bad,
        rows_read=len(rows) + 1,
    )


def samples() -> Chunk:
    """One sample an hour of each card of alpha; a third of the hours show no activity, a2 misses two days."""
    rows = [
        {
            "cluster": "alpha",
            "node": node,
            "gpu_uuid": f"GPU-{node}-{card}",
            "mig_instance": "",
            "sampled_at": at(JULY, hour),
            "gpu_model": "H100-80GB",
            "interval_seconds": 3600,
            "sm_active_ratio": 0.0 if (hour + card) % 3 == 0 else 0.6,
            "board_power_watts": 400.0,
        }
        for node, cards in NODES.items()
        for card in range(cards)
        for hour in range(92 * 24)
        if not (node == "a2" and 240 <= hour < 288)
    ]
    return Chunk({GpuSampled: frame(GpuSampled, rows)}, rows_read=len(rows))


def bill(month: date, content: str, lines: list[tuple[str | None, str, str | None, str]]) -> Chunk:
    """A delivery: lines are resource, description, commitment status, amount."""
    until = date(month.year, month.month + 1, 1)
    common = {
        "content_id": content,
        "issuer": "Acme Cloud",
        "billing_account_id": "123",
        "billing_period_month": month,
        "currency": "USD",
    }
    charges = [
        common
        | {
            "line_digest": f"{content}-{number}",
            "line_ordinal": 1,
            "charge_category": "Usage",
            "charge_description": what,
            "charge_period_start_at": at(month),
            "charge_period_end_at": at(until),
            "resource_id": resource,
            "commitment_discount_status": status,
            "billed_amount": Decimal(amount),
            "effective_amount": Decimal(amount),
        }
        for number, (resource, what, status, amount) in enumerate(lines)
    ]
    total = sum((line["effective_amount"] for line in charges), Decimal(0))
    delivery = common | {"line_count": len(charges), "billed_amount": total, "effective_amount": total}
    return Chunk(
        {ChargeBilled: frame(ChargeBilled, charges), BillDelivered: frame(BillDelivered, [delivery])},
        rows_read=len(charges),
    )


def lines(price: int) -> list[tuple[str | None, str, str | None, str]]:
    return [
        *((node, "8x H100 server", None, f"{price}.37") for node in NODES),
        ("b1", "L40S server", None, "3100.11"),
        (None, "Reserved hours not used", "Unused", "412.50"),
        (None, "Object storage", None, "260.05"),
    ]


def shared(name: str, factory: pytest.TempPathFactory, worker_id: str, more: Sequence[tuple[str, Chunk]] = ()) -> Path:
    """A published file that parallel workers share: the first of them makes it."""
    base = factory.getbasetemp()
    home = (base if worker_id == "master" else base.parent) / name
    with FileLock(f"{home}.lock"):
        path = home / "published" / "ledger.duckdb"
        return path if path.exists() else write_ledger(home, more)


@pytest.fixture(scope="session")
def published_file(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Path of the small published file, which knows nothing of procurement."""
    return shared("small-ledger", tmp_path_factory, worker_id)


@pytest.fixture(scope="session")
def procurement_file(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The same with prices, commitments, interruptions and a plan."""
    return shared("procurement-ledger", tmp_path_factory, worker_id, procurement_facts.everything())


@pytest.fixture(autouse=True)
def _forget_cached_queries() -> Iterator[None]:
    """Two tests' files may share path and instant."""
    import streamlit as st  # noqa: PLC0415 - slow to import

    yield
    st.cache_data.clear()


def write_ledger(home: Path, more: Sequence[tuple[str, Chunk]] = ()) -> Path:
    settings = Settings(home=home, data_path=str(home / "lake" / "data"))
    clock = iter(datetime(2026, 10, 2, tzinfo=UTC) + timedelta(minutes=n) for n in range(100))

    def append(*batches: tuple[str, Chunk]) -> None:
        with Lake(settings, now=lambda: next(clock)) as lake:
            for source, chunk in batches:
                lake.append(source, f"{source}.csv", [chunk])

    append(
        ("nodes", inventory()),
        ("slurm", runs()),
        ("telemetry", samples()),
        ("focus", bill(JULY, "july-1", lines(9000))),
        ("focus", bill(AUGUST, "august-1", lines(9600))),
    )
    close(settings, JULY, now=lambda: next(clock))
    append(("focus", bill(JULY, "july-2", lines(9010))))
    close(settings, AUGUST, now=lambda: next(clock))
    append(("focus", bill(AUGUST, "august-2", lines(9500))), ("focus", bill(SEPTEMBER, "september-1", lines(9600))))
    append(*more)
    build(settings)
    return publish(settings)
