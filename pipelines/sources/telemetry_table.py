"""Telemetry as a table: CSV, CSV.gz or Parquet whose columns are named like those of ``gpu_sampled``.

For any monitoring that can export a table. Read batch by batch through Arrow, so a file may be larger than memory.
"""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from models.errors import SourceError
from models.events import GpuSampled, columns, polars_schema
from models.gpus import canonical_model
from pipelines.sources.base import Chunk, rejected_frame, rejected_row
from pipelines.sources.dcgm import VALUE_COLUMNS, fault, first_of_each, rejections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SOURCE = "telemetry_table"

_BATCH_ROWS = 250_000
_BLOCK_BYTES = 32 << 20
_LAST_SECOND = 100_000_000_000  # year 5138: what is later is milliseconds, and is not guessed at
_REQUIRED = ("node", "gpu_uuid", "sampled_at")
_SCHEMA = polars_schema(GpuSampled)
_NEVER_NULL = tuple(column.name for column in columns(GpuSampled) if not column.is_nullable)
_EXPECTED = {
    "sampled_at": "ISO 8601 with its offset or Z, or seconds since 1970: a time without zone is ambiguous",
    "interval_seconds": "whole seconds, 1 or more",
}


def read_table(
    paths: Iterable[Path], *, cluster: str | None = None, interval_seconds: int | None = None
) -> Iterator[Chunk]:
    """Read tables of samples. Columns that ``gpu_sampled`` does not have are ignored; those a table lacks are NULL.

    ``sampled_at`` is ISO 8601 with its offset or Z, or seconds since 1970; fractions of a second are cut off. Ratios
    are 0 to 1. A cell that is no measurement becomes NULL with a rejected row, and the sample stays.

    Args:
      paths: Files ending in .csv, .csv.gz or .parquet.
      cluster: Cluster of rows that name none.
      interval_seconds: What a sample stands for, where a row does not say; None: the median gap between the samples of
        the first GPU of the first batch, if the table has no such column.

    Raises:
      SourceError: A file is missing, truncated, lacks a column, or its times have no zone; the interval is nowhere.
    """
    for path in paths:
        try:
            for batch, ragged in _batches(path):
                if cluster is None and "cluster" not in batch.columns:
                    raise SourceError(f"{path}: has no column cluster: give the name of the cluster")
                frame = _typed(batch, cluster)
                if interval_seconds is None and "interval_seconds" not in batch.columns and batch.height:
                    interval_seconds = _median_gap(frame, path)
                yield _chunk(frame, ragged, path, interval_seconds)
        except (OSError, EOFError, ValueError, csv.Error, pa.ArrowException, pl.exceptions.PolarsError) as error:
            raise SourceError(
                f"{path}: cannot be read to its end: {error}; copy or export it again, text as UTF-8"
            ) from error


def _batches(path: Path) -> Iterator[tuple[pl.DataFrame, list[dict[str, str]]]]:
    """Our columns of a file with the row number, and the rejected lines between them."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        return _parquet(path)
    if name.endswith((".csv", ".csv.gz")):
        return _csv(path)
    raise SourceError(f"{path}: expected a name ending in .csv, .csv.gz or .parquet")


def _wanted(found: list[str], path: Path) -> list[str]:
    """Our columns among those of a file."""
    lacking = [name for name in _REQUIRED if name not in found]
    if lacking:
        raise SourceError(f"{path}: lacks the column {', '.join(lacking)}; it has {', '.join(found) or 'none'}")
    return [name for name in found if name in _SCHEMA]


def _parquet(path: Path) -> Iterator[tuple[pl.DataFrame, list[dict[str, str]]]]:
    with pa.parquet.ParquetFile(path) as file:
        wanted = _wanted(file.schema_arrow.names, path)
        kind = file.schema_arrow.field("sampled_at").type
        if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
            raise SourceError(f"{path}: sampled_at is {kind}, expected {_EXPECTED['sampled_at']}")
        number = 1
        for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
            yield pl.DataFrame(batch).with_columns(row=pl.int_range(number, number + batch.num_rows)), []
            number += batch.num_rows


def _csv(path: Path) -> Iterator[tuple[pl.DataFrame, list[dict[str, str]]]]:
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as text:
        wanted = _wanted(next(csv.reader(text), []), path)
    ragged: dict[int, pa.csv.InvalidRow] = {}

    def set_aside(row: pa.csv.InvalidRow) -> str:
        ragged[row.number] = row
        return "skip"

    def rejected(before: float) -> list[dict[str, str]]:
        return [_ragged_row(ragged.pop(number), path) for number in sorted(ragged) if number < before]

    with pa.input_stream(str(path)) as stream:
        reader = pa.csv.open_csv(
            stream,
            read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=pa.csv.ParseOptions(invalid_row_handler=set_aside),
            convert_options=pa.csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), null_values=[]
            ),
        )
        number = 2  # the header is row 1; empty lines do not count
        for batch in reader:
            rows = pl.int_range(number, number + batch.num_rows + len(ragged), eager=True)
            rows = rows.filter(~rows.is_in(list(ragged))).head(batch.num_rows)
            number = int(rows[-1]) + 1 if batch.num_rows else number
            yield pl.DataFrame(batch).with_columns(row=rows), rejected(number)
        if ragged:
            yield pl.DataFrame(schema=dict.fromkeys(wanted, pl.String()) | {"row": pl.Int64()}), rejected(float("inf"))


def _ragged_row(row: pa.csv.InvalidRow, path: Path) -> dict[str, str]:
    reason = f"expected {row.expected_columns} cells, found {row.actual_columns}"
    return rejected_row(SOURCE, f"{path}:row {row.number}", reason, row.text)


def _typed(batch: pl.DataFrame, cluster: str | None) -> pl.DataFrame:
    """All columns of ``gpu_sampled``, measurements still as written; instants and intervals beside what was written."""
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in _SCHEMA.items() if name not in batch.columns]
    texts = [name for name, dtype in _SCHEMA.items() if dtype == pl.String()]
    frame = (
        batch.with_columns(absent)
        .with_columns(pl.col(texts).cast(pl.String()))
        .with_columns(pl.selectors.string().str.strip_chars().replace("", None))
    )
    models = {text: canonical_model(text) for text in frame["gpu_model"].unique().drop_nulls()}
    interval = pl.col("interval_seconds").cast(pl.Float64(), strict=False)
    return frame.with_columns(
        pl.col("cluster").fill_null(pl.lit(cluster)),
        pl.col("mig_instance").fill_null(""),
        pl.col("gpu_model").replace_strict(models, default=None, return_dtype=pl.String()),
        _instant(pl.col("sampled_at"), frame.schema["sampled_at"]).alias("sampled_at"),
        pl.when((interval >= 1) & (interval == interval.floor()))
        .then(interval)
        .cast(pl.Int64())
        .alias("interval_seconds"),
        sampled_at_written=pl.col("sampled_at"),
        interval_seconds_written=pl.col("interval_seconds"),
    )


def _instant(written: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Instant in whole seconds, NULL where what is written is none."""
    if isinstance(dtype, pl.Datetime):
        return written.dt.convert_time_zone("UTC").dt.truncate("1s").dt.cast_time_unit("us")
    seconds = written.cast(pl.Float64(), strict=False)
    epoch = pl.from_epoch(pl.when(seconds.is_between(0, _LAST_SECOND)).then(seconds.floor()).cast(pl.Int64()))
    instant = epoch.dt.cast_time_unit("us").dt.replace_time_zone("UTC")
    if dtype != pl.String():
        return instant
    # DuckDB and PostgreSQL write 2026-03-01 00:00:00+00.
    iso = written.str.replace("Z$", "+00:00").str.replace(" ", "T", literal=True).str.replace(r"([+-]\d\d)$", "${1}:00")
    parsed = iso.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", time_zone="UTC", strict=False)
    return pl.coalesce(parsed.dt.truncate("1s"), instant)


def _median_gap(frame: pl.DataFrame, path: Path) -> int:
    """Median seconds between the samples of the first GPU."""
    first = frame.filter(pl.struct("gpu_uuid", "mig_instance") == pl.struct(pl.first("gpu_uuid", "mig_instance")))
    gap = first["sampled_at"].drop_nulls().unique().sort().diff().dt.total_seconds().median()
    if not isinstance(gap, float):
        raise SourceError(f"{path}: has no column interval_seconds, and one sample does not tell it: give the interval")
    return round(gap)


def _chunk(frame: pl.DataFrame, ragged: list[dict[str, str]], path: Path, interval_seconds: int | None) -> Chunk:
    """Samples, and what is wrong in rows and cells."""
    read_count = frame.height + len(ragged)
    is_unsaid = pl.col("interval_seconds_written").is_null()
    frame = frame.with_columns(
        pl.when(is_unsaid)
        .then(pl.lit(interval_seconds, pl.Int64()))
        .otherwise("interval_seconds")
        .alias("interval_seconds"),
        origin=pl.format("{}:row {}", pl.lit(str(path)), "row"),
    )
    problem = pl.coalesce(pl.when(pl.col(name).is_null()).then(_problem(name)) for name in _NEVER_NULL)
    frame = frame.with_columns(problem=problem)
    bad_rows = rejections(
        frame.filter(pl.col("problem").is_not_null()),
        SOURCE,
        position=pl.col("origin"),
        reason=pl.col("problem"),
        raw_text=pl.struct(pl.exclude("origin", "problem", "row", *_EXPECTED)).struct.json_encode(),
    )
    good = frame.filter(pl.col("problem").is_null())
    reasons = {name: _cell_fault(name) for name in VALUE_COLUMNS}
    bad_cells = [_bad_cells(good, name, reason) for name, reason in reasons.items()]
    found = good.with_columns(
        pl.when(reason.is_null()).then(_number(name)).alias(name) for name, reason in reasons.items()
    ).select(*_SCHEMA, "origin")
    kept, differing, repeated = first_of_each(found, SOURCE)
    return Chunk(
        events={GpuSampled: kept.select(*_SCHEMA).cast(_SCHEMA)},
        rejected=pl.concat([rejected_frame(ragged), bad_rows, *bad_cells, differing]),
        rows_read=read_count,
        rows_ignored=repeated.height,
    )


def _problem(name: str) -> pl.Expr:
    """What to say of a row without a value that every row must have."""
    if name not in _EXPECTED:
        return pl.lit(f"names no {name}")
    found = pl.col(f"{name}_written").cast(pl.String()).fill_null("nothing")
    return pl.format(f"{name}: expected {_EXPECTED[name]}, found {{}}", found)


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64(), strict=False)


def _cell_fault(name: str) -> pl.Expr:
    """Why a cell is no measurement; NULL where it is one or is empty."""
    highest = pl.lit(1.0 if name.endswith("_ratio") else float("inf"))
    wrong = pl.when(pl.col(name).is_not_null()).then(fault(_number(name), highest))
    if name != "gpu_util_ratio":
        return wrong
    is_void = pl.col(name).is_not_null() & (pl.col("mig_instance") != "")
    return pl.coalesce(wrong, pl.when(is_void).then(pl.lit("does not exist under MIG: it speaks for the whole card")))


def _bad_cells(good: pl.DataFrame, name: str, reason: pl.Expr) -> pl.DataFrame:
    return rejections(
        good.filter(reason.is_not_null()),
        SOURCE,
        position=pl.col("origin"),
        reason=pl.format(f"{name}: {{}}", reason),
        raw_text=pl.col(name).cast(pl.String()),
    )
