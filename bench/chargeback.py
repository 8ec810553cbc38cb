"""Cost and chargeback of 1 M runs on 10,000 GPUs over 31 days: the month, and the rebuild of one late day, side by side.

Run: ``python bench/chargeback.py [RUNS]``. Both are builds of every projection from the log; the late day is a batch of
runs of one day that arrives after the month was built.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.side_by_side import measured, run_one
from models.events import (
    BillDelivered,
    ChargeBilled,
    Event,
    GpuInventoried,
    OwnershipAssigned,
    RunPlaced,
    RunRecorded,
    polars_schema,
)
from pipelines.build import build
from pipelines.lake import Lake
from pipelines.settings import Settings
from pipelines.sources.base import Chunk, Placed, placement_frame, placement_id

NODES, GPUS_PER_NODE, DAYS = 1_250, 8, 31
FIRST = datetime(2026, 10, 1, tzinfo=UTC)
ACCOUNTS = 40
DAY_COST = Decimal("512.40")
LATE_RUNS = 500


def settings(home: Path) -> Settings:
    """A ledger in a folder, with the memory that the claim is about."""
    return Settings(home=home, data_path=str(home / "lake" / "data"), memory_limit="3GB")


def frame(event: type[Event], **values: object) -> pl.DataFrame:
    """Frame of an event type; columns not given are NULL."""
    schema = polars_schema(event)
    given = pl.select(**values)
    return given.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in given.columns
    ).select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def runs(count: int, first_id: int, first: datetime, days: int, rng: np.random.Generator) -> Chunk:
    """Runs of 1 to 8 GPUs on random nodes: starts spread evenly, durations heavy-tailed (median about 200 s, mean about 6,000 s), which fill 59 % of the month."""
    node = rng.integers(0, NODES, count)
    devices = rng.choice([1, 2, 4, 8], count, p=[0.6, 0.12, 0.11, 0.17])
    start = rng.integers(0, days * 86_400 - 1, count)
    seconds = np.clip(rng.lognormal(5.3, 2.8, count).astype(int), 10, 5 * 86_400)
    sets = {(n, d): [Placed(f"node-{n:04}", "h100", int(d), "H100", None)] for n in range(NODES) for d in (1, 2, 4, 8)}
    ids = {key: placement_id(placed) or "" for key, placed in sets.items()}
    placed = placement_frame({ids[key]: placed for key, placed in sets.items()})
    lookup = pl.DataFrame(
        {"node": [k[0] for k in ids], "devices": [k[1] for k in ids], "placement_id": list(ids.values())}
    ).cast({"node": pl.Int64(), "devices": pl.Int64()})
    drawn = pl.DataFrame({"node": node, "devices": devices}).join(
        lookup, on=["node", "devices"], how="left", maintain_order="left"
    )
    started = pl.Series(start).cast(pl.Int64())
    recorded = frame(
        RunRecorded,
        cluster=pl.lit("atlas"),
        run_id=pl.Series(np.arange(first_id, first_id + count)).cast(pl.String()),
        started_at=pl.lit(first) + pl.duration(seconds=started),
        ended_at=pl.lit(first)
        + pl.duration(seconds=pl.min_horizontal(started + pl.Series(seconds), pl.lit(days * 86_400))),
        account=pl.format("account-{}", pl.Series(rng.integers(0, ACCOUNTS, count))),
        user_name=pl.lit("user"),
        state=pl.Series(rng.choice(["COMPLETED", "CANCELLED", "FAILED"], count)),
        is_final=pl.lit(value=True),
        is_from_step=pl.lit(value=False),
        placement_id=drawn["placement_id"],
    )
    return Chunk({RunRecorded: recorded, RunPlaced: placed}, rows_read=count)


def estate() -> list[Chunk]:
    """1,250 nodes of 8 GPUs, their owners, and a bill of one line a node and day."""
    nodes = pl.Series([f"node-{n:04}" for n in range(NODES)])
    inventory = frame(
        GpuInventoried, cluster=pl.lit("atlas"), node=nodes, gpu_model=pl.lit("H100-80GB"), mig_layout=pl.lit(""),
        mig_profile=pl.lit(""), effective_from_at=pl.lit(FIRST), card_count=pl.lit(GPUS_PER_NODE), slices_per_card_count=pl.lit(1),
    )  # fmt: skip
    owners = frame(
        OwnershipAssigned, cluster=pl.lit("*"), account=pl.Series([f"account-{a}" for a in range(ACCOUNTS)]),
        effective_from_at=pl.lit(FIRST), team=pl.Series([f"team-{a % 12}" for a in range(ACCOUNTS)]),
        business_unit=pl.Series([f"unit-{a % 4}" for a in range(ACCOUNTS)]),
    )  # fmt: skip
    grid = pl.DataFrame({"node": nodes}).join(pl.DataFrame({"day": range(DAYS)}), how="cross")
    start = pl.lit(FIRST) + pl.duration(days=grid["day"])
    lines = frame(
        ChargeBilled, content_id=pl.lit("bench"), line_digest=pl.format("{}/{}", grid["node"], grid["day"]), line_ordinal=pl.lit(1),
        issuer=pl.lit("Cloud"), billing_account_id=pl.lit("1"), billing_period_month=pl.lit(FIRST.date()), charge_category=pl.lit("Usage"),
        charge_period_start_at=start, charge_period_end_at=start + pl.duration(days=1), resource_id=grid["node"],
        billed_amount=pl.lit(DAY_COST), effective_amount=pl.lit(DAY_COST), currency=pl.lit("USD"),
    )  # fmt: skip
    total = DAY_COST * NODES * DAYS
    bill = frame(
        BillDelivered, issuer=pl.lit("Cloud"), billing_account_id=pl.lit("1"), billing_period_month=pl.lit(date(2026, 10, 1)),
        content_id=pl.lit("bench"), line_count=pl.lit(NODES * DAYS), billed_amount=pl.lit(total), effective_amount=pl.lit(total),
        currency=pl.lit("USD"),
    )  # fmt: skip
    return [Chunk({GpuInventoried: inventory, OwnershipAssigned: owners, ChargeBilled: lines, BillDelivered: bill})]


def prepare(home: Path, count: int) -> None:
    """Fill the log."""
    rng = np.random.default_rng(7)
    with Lake(settings(home)) as lake:
        lake.append("bench", "estate", estate())
        lake.append("bench", "runs", [runs(count, 1, FIRST, DAYS, rng)])


def append_late(home: Path) -> None:
    """Runs of one day, late."""
    rng = np.random.default_rng(8)
    chunk = runs(LATE_RUNS, 10_000_000, FIRST + timedelta(days=14), 1, rng)
    with Lake(settings(home)) as lake:
        lake.append("bench", "late runs", [chunk])


def rebuild_month(home: Path) -> object:
    """All projections from the log."""
    return build(settings(home), full=True).batch_id


def rebuild_late_day(home: Path) -> object:
    """All projections after one day's late runs."""
    return build(settings(home)).batch_id


CONTENDERS = {"the month, from the log": rebuild_month, "one late day": rebuild_late_day}


def main() -> None:
    """Fill a log, build the month, append a late day, build again."""
    if len(sys.argv) == 3:
        run_one(CONTENDERS, sys.argv[1], Path(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) == 2 else 1_000_000
    home = Path(tempfile.mkdtemp(prefix="gpuledger-bench-"))
    try:
        print(f"filling the log with {count:,} runs …")
        prepare(home, count)
        month = measured(__file__, "the month, from the log", home)
        append_late(home)
        late = measured(__file__, "one late day", home)
    finally:
        shutil.rmtree(home)
    for name, found in (("the month, from the log", month), ("one late day", late)):
        print(f"{name:44}{found['seconds']:>8.1f} s{found['peak_mib']:>8.0f} MiB")
    print(f"\nmonth / late day {month['seconds'] / late['seconds']:.1f} (at least 15); peak at most 4,096 MiB")


if __name__ == "__main__":
    main()
