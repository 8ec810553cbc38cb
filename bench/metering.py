"""Metering of 43.2 M samples (1,000 GPUs, one a minute, 30 days, with gaps): the ledger's own SQL, pandas, a bare scan.

Run: ``python bench/metering.py [FOLDER]``. All three read the same Parquet files, one a day as the log lays them out.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.side_by_side import compare, run_one
from pipelines.projections import load

GPUS, DAYS, MINUTES = 1_000, 30, 1_440
FIRST = datetime(2026, 9, 1, tzinfo=UTC)
INTERVAL_SECONDS = 60


def write_samples(folder: Path) -> None:
    """Write a Parquet file a day: 1,000 GPUs on 125 nodes, 3 % of the samples missing in gaps, a third of them idle."""
    rng = np.random.default_rng(7)
    gpu = np.repeat(np.arange(GPUS), MINUTES)
    minute = np.tile(np.arange(MINUTES), GPUS)
    for day in range(DAYS):
        active = np.where(rng.random(gpu.size) < 0.33, 0.0, rng.random(gpu.size).round(3))
        frame = pl.DataFrame({"gpu": gpu, "minute": minute, "sm_active_ratio": active}).select(
            cluster=pl.lit("atlas"),
            gpu_uuid=pl.format("GPU-{}-4d37-8938-0032-f923bad0f716", pl.col("gpu").cast(pl.String).str.zfill(8)),
            mig_instance=pl.lit(""),
            sampled_at=(pl.lit(FIRST + timedelta(days=day)) + pl.duration(minutes="minute")).cast(
                pl.Datetime("us", "UTC")
            ),
            node=pl.format("atlas-{}", (pl.col("gpu") // 8).cast(pl.String).str.zfill(3)),
            gpu_model=pl.lit("H100-80GB"),
            mig_profile=pl.lit(None, dtype=pl.String),
            holder=pl.lit(None, dtype=pl.String),
            interval_seconds=pl.lit(INTERVAL_SECONDS, dtype=pl.Int64),
            sm_active_ratio="sm_active_ratio",
            gr_engine_active_ratio=pl.lit(None, dtype=pl.Float64),
            gpu_util_ratio=pl.lit(None, dtype=pl.Float64),
            board_power_watts=100 + pl.col("sm_active_ratio") * 500,
            batch_id=pl.lit(day + 1, dtype=pl.Int64()),
            version_at=pl.lit(FIRST + timedelta(days=day + 1)).cast(pl.Datetime("us", "UTC")),
        )
        gap = (pl.Series(gpu) % 33 == day % 33) & (pl.Series(minute) < MINUTES)
        frame.filter(~gap).write_parquet(folder / f"day={day:02}.parquet", row_group_size=122_880)


def ledger(folder: Path) -> object:
    """The ledger's projection core.activity_hourly, as a build runs it."""
    projection = next(one for one in load() if one.name == "core.activity_hourly")
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'; SET memory_limit = '3GB'; SET preserve_insertion_order = false")
        con.execute("CREATE SCHEMA events; CREATE SCHEMA core")
        con.execute(f"CREATE VIEW events.gpu_sampled AS SELECT * FROM read_parquet('{folder}/*.parquet')")
        window = {"start": FIRST, "end": FIRST + timedelta(days=DAYS)}
        con.execute(f"CREATE TABLE core.activity_hourly AS {projection.select}", window)
        return con.execute(
            "SELECT sum(bit_count(measured_mask)), sum(bit_count(active_mask)) FROM core.activity_hourly"
        ).fetchone()


def bare_scan(folder: Path) -> object:
    """A DuckDB scan and group by without any gap handling: the floor."""
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'; SET memory_limit = '3GB'; SET preserve_insertion_order = false")
        con.execute(
            "CREATE TABLE usage AS SELECT cluster, node, gpu_uuid, mig_instance, date_trunc('hour', sampled_at) AS use_hour, "
            "avg(sm_active_ratio) AS sm_active_ratio, avg(board_power_watts) AS board_power_watts, count(*) AS sample_count "
            f"FROM read_parquet('{folder}/*.parquet') GROUP BY ALL"
        )
        return con.execute("SELECT count(*) FROM usage").fetchone()


def pandas(folder: Path) -> object:
    """The same job as a careful pandas user writes it: sort, gap to the next sample, group by GPU and hour."""
    import pandas as pd  # noqa: PLC0415  only this contender pays for the import

    names = ["node", "gpu_uuid", "sampled_at", "sm_active_ratio", "board_power_watts"]
    frame = pd.concat([pd.read_parquet(path, columns=names) for path in sorted(folder.glob("*.parquet"))])
    frame = frame.sort_values(["gpu_uuid", "sampled_at"])
    gap = frame.groupby("gpu_uuid")["sampled_at"].shift(-1) - frame["sampled_at"]
    frame["seconds"] = gap.dt.total_seconds().fillna(INTERVAL_SECONDS).clip(upper=INTERVAL_SECONDS)
    frame["active_seconds"] = frame["seconds"].where(frame["sm_active_ratio"] >= 0.01, 0)
    frame["use_hour"] = frame["sampled_at"].dt.floor("h")
    hourly = frame.groupby(["node", "gpu_uuid", "use_hour"], observed=True).agg(
        seconds=("seconds", "sum"),
        active_seconds=("active_seconds", "sum"),
        sm_active_ratio=("sm_active_ratio", "mean"),
        board_power_watts=("board_power_watts", "mean"),
    )
    return hourly["seconds"].sum() / 60, hourly["active_seconds"].sum() / 60


CONTENDERS = {"bare DuckDB scan and group by": bare_scan, "ledger: core.activity_hourly": ledger, "pandas": pandas}


def main() -> None:
    """Write the samples if they are not there, and compare."""
    if len(sys.argv) == 3:
        run_one(CONTENDERS, sys.argv[1], Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) == 2 else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.parquet")):
            print("writing 43.2 M samples …")
            write_samples(folder)
        found = compare(__file__, CONTENDERS, folder)
        scan, ours, theirs = found.values()
        print(
            f"\nledger / bare scan {ours / scan:.2f} (at most 2.5)   pandas / ledger {theirs / ours:.1f} (at least 5)"
        )


if __name__ == "__main__":
    main()
