from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.errors import SourceError
from models.events import GpuSampled, polars_schema
from pipelines.sources import telemetry_table
from pipelines.sources.base import REJECTED_SCHEMA, Chunk
from pipelines.sources.telemetry_table import read_table

if TYPE_CHECKING:
    from pathlib import Path

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
COLUMNS = "node,gpu_uuid,mig_instance,sampled_at,gpu_util_ratio,board_power_watts"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "samples.csv"


def read(path: Path, **options: Any) -> Chunk:
    """All chunks of a file as one."""
    chunks = list(read_table([path], **{"cluster": "c1", "interval_seconds": 60} | options))
    return Chunk(
        events={GpuSampled: pl.concat([one.events[GpuSampled] for one in chunks])},
        rejected=pl.concat([one.rejected for one in chunks]),
        rows_read=sum(one.rows_read for one in chunks),
        rows_ignored=sum(one.rows_ignored for one in chunks),
    )


def rows(chunk: Chunk, *names: str) -> list[tuple[Any, ...]]:
    return chunk.events[GpuSampled].select(names).rows()


def write(path: Path, *lines: str, header: str = COLUMNS) -> Path:
    path.write_text("\n".join([header, *lines, ""]))
    return path


def test_a_table_becomes_samples(table: Path) -> None:
    header = f"cluster,{COLUMNS},interval_seconds,gpu_model,mig_profile,holder,rack"
    line = "c9,n1,GPU-1,3,2026-03-01T00:00:00Z,,300.5,30,NVIDIA A100-SXM4-80GB,1g.10gb,ml/train-0,r7"
    chunk = read(write(table, line, header=header))
    assert chunk.events[GpuSampled].schema == polars_schema(GpuSampled)
    assert chunk.events[GpuSampled].to_dicts() == [
        {
            "cluster": "c9", "gpu_uuid": "GPU-1", "mig_instance": "3", "sampled_at": MIDNIGHT, "node": "n1",
            "gpu_index": None, "gpu_model": "A100-80GB", "mig_profile": "1g.10gb", "interval_seconds": 30,
            "gpu_util_ratio": None, "sm_active_ratio": None, "gr_engine_active_ratio": None,
            "tensor_active_ratio": None, "framebuffer_used_mib": None, "board_power_watts": 300.5,
            "board_energy_joules": None, "holder": "ml/train-0",
        }
    ]  # fmt: skip
    assert chunk.rejected.is_empty()
    assert chunk.rejected.schema == REJECTED_SCHEMA
    assert chunk.rows_read == 1


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-01T00:00:00Z",
        "2026-03-01T00:00:00.999Z",
        "2026-03-01 00:00:00+00",  # DuckDB and PostgreSQL
        "2026-03-01T01:00:00+01:00",
        "2026-02-28T19:00:00-0500",
        "1772323200",
        "1772323200.9",
    ],
)
def test_an_instant_is_read_in_each_spelling_that_says_its_zone(table: Path, written: str) -> None:
    assert rows(read(write(table, f"n1,GPU-1,,{written},0.5,")), "sampled_at") == [(MIDNIGHT,)]


@pytest.mark.parametrize("written", ["2026-03-01T00:00:00", "2026-03-01", "yesterday", "1772323200000", ""])
def test_an_instant_without_zone_or_sense_rejects_the_row_with_the_remedy(table: Path, written: str) -> None:
    chunk = read(write(table, "n1,GPU-1,,2026-03-01T00:00:00Z,0.5,", f"n1,GPU-1,,{written},0.5,"))
    assert chunk.events[GpuSampled].height == 1
    (bad,) = chunk.rejected.to_dicts()
    assert bad["position"] == f"{table}:row 3"
    assert "offset or Z" in bad["reason"]
    assert f"found {written or 'nothing'}" in bad["reason"]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("n1,GPU-1,,1772323200,abc,70", "gpu_util_ratio: not a number"),
        ("n1,GPU-1,,1772323200,NaN,70", "gpu_util_ratio: not a number"),
        ("n1,GPU-1,,1772323200,87,70", "gpu_util_ratio: expected 0 to 1.0"),
        ("n1,GPU-1,,1772323200,-0.1,70", "gpu_util_ratio: negative"),
        ("n1,GPU-1,,1772323200,9223372036854775794,70", "gpu_util_ratio: sentinel"),
        ("n1,GPU-1,5,1772323200,0,70", "gpu_util_ratio: does not exist under MIG"),
    ],
)
def test_a_cell_that_is_no_measurement_is_unknown_and_the_sample_stays(table: Path, cells: str, reason: str) -> None:
    chunk = read(write(table, cells))
    assert rows(chunk, "gpu_util_ratio", "board_power_watts") == [(None, 70.0)]
    (told,) = chunk.rejected["reason"]
    assert told.startswith(reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (",GPU-1,,1772323200,0.5,", "names no node"),
        ("n1, ,,1772323200,0.5,", "names no gpu_uuid"),
        ("n1,GPU-1", "expected 6 cells, found 2"),
    ],
)
def test_a_row_that_names_no_device_is_rejected_as_written(table: Path, line: str, reason: str) -> None:
    chunk = read(write(table, "n1,GPU-1,,1772323200,0.5,", line, "n1,GPU-2,,1772323200,0.5,"))
    assert rows(chunk, "gpu_uuid") == [("GPU-1",), ("GPU-2",)]
    (bad,) = chunk.rejected.to_dicts()
    assert (bad["position"], bad["reason"]) == (f"{table}:row 3", reason)
    assert chunk.rows_read == 3


@pytest.mark.parametrize("written", ["0", "-60", "1.5", "often"])
def test_an_interval_is_whole_seconds(table: Path, written: str) -> None:
    chunk = read(write(table, f"n1,GPU-1,,1772323200,0.5,,{written}", header=f"{COLUMNS},interval_seconds"))
    assert chunk.events[GpuSampled].is_empty()
    assert f"interval_seconds: expected whole seconds, 1 or more, found {written}" in chunk.rejected["reason"][0]


def test_an_empty_interval_takes_the_one_given(table: Path) -> None:
    path = write(table, "n1,GPU-1,,1772323200,0.5,,", header=f"{COLUMNS},interval_seconds")
    assert rows(read(path, interval_seconds=15), "interval_seconds") == [(15,)]


def test_without_an_interval_the_median_gap_of_the_first_gpu_stands(table: Path) -> None:
    seconds = [0, 30, 60, 90, 3_600, 3_630]  # a gap in the scrapes does not change the interval
    lines = [f"n1,GPU-{gpu},,{1772323200 + gpu + at},0.5," for at in seconds for gpu in (1, 2)]
    chunk = read(write(table, *lines), interval_seconds=None)
    assert set(rows(chunk, "interval_seconds")) == {(30,)}


def test_one_sample_does_not_tell_its_interval(table: Path) -> None:
    with pytest.raises(SourceError, match="give the interval"):
        read(write(table, "n1,GPU-1,,1772323200,0.5,"), interval_seconds=None)


def test_a_repeated_row_counts_once_and_a_differing_one_is_rejected(table: Path) -> None:
    line = "n1,GPU-1,,1772323200,0.5,70"
    chunk = read(write(table, line.replace("70", "90"), line, line))
    assert rows(chunk, "board_power_watts") == [(70.0,)]
    assert (chunk.rows_read, chunk.rows_ignored) == (3, 1)
    (told,) = chunk.rejected["reason"]
    assert f"{table}:row 2" in told


@pytest.fixture
def long_table(table: Path) -> Path:
    lines = [f"n1,GPU-{at % 7},,{1772323200 + at},0.5,{at}" for at in range(500)]
    lines[100] = "torn"
    lines[300] = "n1,GPU-1,,bad,0.5,1"
    return write(table, *lines, "torn at the end")


def test_small_batches_give_the_same_rows_and_row_numbers(long_table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(long_table)
    monkeypatch.setattr(telemetry_table, "_BLOCK_BYTES", 1_000)
    assert len(list(read_table([long_table], cluster="c1", interval_seconds=60))) > 10
    parts = read(long_table)
    assert parts.events[GpuSampled].equals(whole.events[GpuSampled])
    assert sorted(parts.rejected.rows()) == sorted(whole.rejected.rows())
    assert [place.rpartition(" ")[2] for place in sorted(parts.rejected["position"])] == ["102", "302", "502"]
    assert parts.rows_read == whole.rows_read == 501


def test_csv_its_gzip_and_parquet_give_the_same_samples(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"n1,GPU-{at % 7},,{1772323200 + at},0.5,{at}" for at in range(100)]
    plain = read(write(table, *lines)).events[GpuSampled]
    zipped = table.with_suffix(".csv.gz")
    zipped.write_bytes(gzip.compress(table.read_bytes()[:200]) + gzip.compress(table.read_bytes()[200:]))
    parquet = table.with_suffix(".parquet")
    plain.drop("cluster", "interval_seconds").with_columns(note=1).write_parquet(parquet)
    monkeypatch.setattr(telemetry_table, "_BATCH_ROWS", 30)
    assert read(zipped).events[GpuSampled].equals(plain)
    assert read(parquet).events[GpuSampled].equals(plain)


def test_a_parquet_instant_in_another_zone_is_the_same_instant(table: Path) -> None:
    frame = pl.DataFrame({"node": "n1", "gpu_uuid": "GPU-1", "sampled_at": [MIDNIGHT + timedelta(milliseconds=5)]})
    path = table.with_suffix(".parquet")
    frame.with_columns(pl.col("sampled_at").dt.convert_time_zone("Asia/Kolkata")).write_parquet(path)
    assert rows(read(path), "sampled_at") == [(MIDNIGHT,)]


def test_a_parquet_instant_without_zone_is_refused(table: Path) -> None:
    frame = pl.DataFrame({"node": "n1", "gpu_uuid": "GPU-1", "sampled_at": [datetime(2026, 3, 1)]})  # noqa: DTZ001 - the point
    frame.write_parquet(table.with_suffix(".parquet"))
    with pytest.raises(SourceError, match="without zone is ambiguous"):
        read(table.with_suffix(".parquet"))


def test_a_byte_order_mark_is_no_part_of_the_first_name(table: Path) -> None:
    table.write_text(f"{COLUMNS}\r\nn1,GPU-1,,1772323200,0.5,70\r\n", encoding="utf-8-sig")
    assert rows(read(table), "node", "board_power_watts") == [("n1", 70.0)]


def test_a_table_with_a_header_only_has_no_samples(table: Path) -> None:
    assert list(read_table([write(table)], cluster="c1")) == []


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", b"node,sampled_at\nn1,1\n", "lacks the column gpu_uuid"),
        ("a.csv", b"", "it has none"),
        ("a.csv", b"node,gpu_uuid,sampled_at\nn\xff,GPU-1,1772323200\n", "as UTF-8"),
        ("a.csv.gz", gzip.compress(b"node,gpu_uuid,sampled_at\n" + bytes(range(32, 127)) * 5_000)[:-40], "runcated"),
        ("a.csv.gz", b"no gzip at all", "Not a gzipped file"),
        ("a.parquet", b"PAR1 and no more", "arquet"),
        ("a.xlsx", b"", "expected a name ending in"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=told):
        read(tmp_path / name)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.csv"):
        read(tmp_path / "gone.csv")


def test_a_table_without_cluster_needs_one_given(table: Path) -> None:
    with pytest.raises(SourceError, match="give the name of the cluster"):
        read(write(table, "n1,GPU-1,,1772323200,0.5,"), cluster=None)
