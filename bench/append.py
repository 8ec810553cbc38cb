"""Append of a batch of 1 M samples: the log's own append, the same batch again, and a bare DuckLake insert of the rows.

Run: ``python bench/append.py [ROWS]``. The bare insert keeps no versions, finds no duplicates and proves nothing.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.metering import INTERVAL_SECONDS
from bench.side_by_side import compare, run_one
from models.events import GpuSampled, ddl, polars_schema
from pipelines.duck import connect
from pipelines.lake import Lake
from pipelines.settings import Settings
from pipelines.sources.base import Chunk

FIRST = datetime(2026, 9, 1, tzinfo=UTC)
GPUS = 1_000


def settings(home: Path) -> Settings:
    """A ledger in a folder."""
    return Settings(home=home, data_path=str(home / "lake" / "data"), memory_limit="3GB")


def write_samples(path: Path, rows: int) -> None:
    """Samples of 1,000 GPUs, one a minute each."""
    number = pl.int_range(rows, eager=True)
    schema = polars_schema(GpuSampled)
    given = {
        "cluster": pl.lit("atlas"),
        "gpu_uuid": pl.format("GPU-{}", (number % GPUS).cast(pl.String).str.zfill(8)),
        "mig_instance": pl.lit(""),
        "sampled_at": pl.lit(FIRST) + pl.duration(minutes=number // GPUS),
        "node": pl.format("atlas-{}", (number % GPUS // 8).cast(pl.String).str.zfill(3)),
        "interval_seconds": pl.lit(INTERVAL_SECONDS),
        "sm_active_ratio": (number * 7_919 % 1_000) / 1_000,
    }
    pl.DataFrame({"number": number}).select(
        given.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in schema.items()
    ).write_parquet(path)


def batch(folder: Path) -> list[Chunk]:
    """The samples as a source yields them."""
    frame = pl.read_parquet(folder / "samples.parquet")
    return [Chunk({GpuSampled: frame}, rows_read=frame.height)]


def bare_insert(folder: Path) -> object:
    """Insert the rows into a DuckLake table of the same layout, and nothing else."""
    with tempfile.TemporaryDirectory(dir=folder) as home, connect(settings(Path(home))) as con:
        con.execute("CREATE SCHEMA lake.events")
        con.execute(ddl(GpuSampled, "lake.events"))
        con.execute(
            "ALTER TABLE lake.events.gpu_sampled SET PARTITIONED BY (year(sampled_at), month(sampled_at), day(sampled_at))"
        )
        con.execute(
            f"INSERT INTO lake.events.gpu_sampled SELECT *, 1, TIMESTAMPTZ '{FIRST + timedelta(days=30)}' "
            f"FROM read_parquet('{folder}/samples.parquet')"
        )
        return con.execute("SELECT count(*) FROM lake.events.gpu_sampled").fetchone()


def append(folder: Path) -> object:
    """Append the batch to a new log: whole or not at all, with keys, versions and digests."""
    with tempfile.TemporaryDirectory(dir=folder) as home, Lake(settings(Path(home))) as lake:
        return lake.append("bench", "samples", batch(folder)).rows_appended


def append_again(folder: Path) -> object:
    """Append a batch that the log has: every row is found and adds nothing."""
    with Lake(settings(folder / "again")) as lake:
        return lake.append("bench", "samples", batch(folder)).rows_duplicate


CONTENDERS = {
    "bare DuckLake insert": bare_insert,
    "ledger: append": append,
    "ledger: the same batch again": append_again,
}


def main() -> None:
    """Write the samples, append them once, and compare."""
    if len(sys.argv) == 3:
        run_one(CONTENDERS, sys.argv[1], Path(sys.argv[2]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) == 2 else 1_000_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_samples(folder / "samples.parquet", rows)
        with Lake(settings(folder / "again")) as lake:
            lake.append("bench", "samples", batch(folder))
        print(f"appending a batch of {rows:,} rows …")
        compare(__file__, CONTENDERS, folder)


if __name__ == "__main__":
    main()
