"""dcgm-exporter: its exposition text, a saved Prometheus API answer, and the one way its readings become samples.

The three DCGM sources and ``telemetry_table`` share what stands here: which metric is which column (``METRICS``), what
is no measurement (``fault``), who holds the device (``holder``) and what happens when two exporters speak for one GPU
(``first_of_each``). Facts about the metrics: dcgm-exporter ``etc/default-counters.csv``; blanks: ``dcgm_structs.h``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from models.errors import SourceError, UsageError
from models.events import GpuSampled, keys, polars_schema
from models.gpus import canonical_model, mig_profile
from pipelines.sources.base import RAW_TEXT_LIMIT, REJECTED_SCHEMA, Chunk, rejected_frame, rejected_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

SOURCE = "dcgm"

METRICS: dict[str, tuple[str, int]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_util_ratio", 100),  # per cent
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_ratio", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gr_engine_active_ratio", 1),  # 0 to 1, though old help texts say "in %"
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active_ratio", 1),
    "DCGM_FI_DEV_FB_USED": ("framebuffer_used_mib", 1),
    "DCGM_FI_DEV_POWER_USAGE": ("board_power_watts", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("board_energy_joules", 1_000),  # millijoules
}
"""Column and divisor of each metric that the ledger keeps."""

VALUE_COLUMNS = tuple(column for column, _ in METRICS.values())
_HIGHEST = {
    metric: float(per) if column.endswith("_ratio") else float("inf") for metric, (column, per) in METRICS.items()
}

BLANK = 2.0**47
"""DCGM_FP64_BLANK: DCGM writes this, or a little more, or 2^63 less a little, for "no value". 2^47 mJ are 6 years at 700 W."""

_KEYS = keys(GpuSampled)
_SERIES = pl.Schema(
    {
        **{name: pl.String() for name in ("gpu_uuid", "mig_instance", "node", "gpu_index", "gpu_model", "mig_profile")},
        **{name: pl.String() for name in ("holder", "origin", "metric", "position")},
        "sampled_at": pl.List(pl.Int64()),  # seconds since 1970
        "value_text": pl.List(pl.String()),
    }
)


def epoch_seconds(at: datetime) -> int:
    """Whole seconds since 1970 of an instant, rounded down.

    Raises:
      UsageError: The instant has no zone, so it names a different moment on every machine.
    """
    if at.tzinfo is None:
        raise UsageError(
            f"expected an instant with its zone, such as 2026-03-01T00:00:00+00:00, found {at.isoformat()}"
        )
    return int(at.timestamp())


def holder(labels: Mapping[str, str]) -> str | None:
    """Workload that a series says holds the device, ``namespace/pod``; None when it names none or the exporter itself.

    Without honorLabels Prometheus moves the workload's labels to ``exported_…`` and puts the exporter's own in their
    place; with it, idle GPUs carry the exporter's. Grouping by namespace would bill those to the exporter.
    """
    for prefix in ("exported_", ""):
        namespace, pod = labels.get(f"{prefix}namespace"), labels.get(f"{prefix}pod")
        is_own = labels.get(f"{prefix}container") == "nvidia-dcgm-exporter"
        if namespace and pod and not is_own and not pod.startswith(("nvidia-dcgm-exporter", "dcgm-exporter")):
            return f"{namespace}/{pod}"
    return None


def series(
    labels: Mapping[str, str], points: Iterable[tuple[float, str]], *, metric: str, origin: str, position: str
) -> dict[str, Any]:
    """One series as ``samples`` takes it.

    Args:
      labels: The series' labels; ``Hostname`` became ``hostname`` in 2026, and some metrics say ``gpu_uuid``.
      points: Instants (seconds since 1970) and values as text.
      metric: DCGM metric.
      origin: Who says so: the exporter's address, or the file.
      position: Where a person finds it.
    """
    points = list(points)
    profile = labels.get("GPU_I_PROFILE")
    return {
        "gpu_uuid": labels.get("UUID") or labels.get("gpu_uuid") or None,
        "mig_instance": labels.get("GPU_I_ID", ""),
        "node": labels.get("Hostname") or labels.get("hostname") or None,
        "gpu_index": labels.get("gpu") or None,
        "gpu_model": canonical_model(labels.get("modelName") or labels.get("model_name")),
        "mig_profile": mig_profile(profile) or profile or None,
        "holder": holder(labels),
        "origin": origin,
        "metric": metric,
        "position": position,
        "sampled_at": [int(at) for at, _ in points],
        "value_text": [text for _, text in points],
    }


def answer_series(result: Any, where: str) -> list[dict[str, Any]]:
    """Series of the ``result`` of a Prometheus API answer, an instant vector or a matrix.

    Raises:
      SourceError: It is neither.
    """
    try:
        return [
            series(
                one["metric"],
                one["values"] if "values" in one else [one["value"]],
                metric=one["metric"].get("__name__", ""),
                origin=one["metric"].get("instance") or "an unnamed exporter",
                position=f"{where}:result[{index}]",
            )
            for index, one in enumerate(result)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{where}: expected an instant vector or a matrix of Prometheus, found another shape ({error!r})"
        ) from error


def fault(value: pl.Expr, highest: pl.Expr) -> pl.Expr:
    """Why a number is no measurement, NULL when it is one.

    Args:
      value: The number as the exporter wrote it; NULL: text that is no number.
      highest: Most that it can be: 1 or 100 of a ratio, infinity of the others.
    """
    return (
        pl.when(value.is_null() | ~value.is_finite())
        .then(pl.lit("not a number"))
        .when(value >= BLANK)
        .then(pl.lit("sentinel: DCGM writes it where it has no value"))
        .when(value < 0)
        .then(pl.lit("negative: expected 0 or more"))
        .when(value > highest)
        .then(pl.format("expected 0 to {}", highest))
    )


def rejections(
    frame: pl.DataFrame, source: str, *, position: pl.Expr, reason: pl.Expr, raw_text: pl.Expr
) -> pl.DataFrame:
    """Rejected rows of a frame, by expressions over it."""
    return frame.select(
        source=pl.lit(source),
        position=position,
        kind=pl.lit("rejected"),
        reason=reason,
        raw_text=raw_text.str.slice(0, RAW_TEXT_LIMIT),
    ).cast(REJECTED_SCHEMA)


def first_of_each(found: pl.DataFrame, source: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """One row for each GPU, instance and instant: the first by its values, so that the order of arrival is no matter.

    Args:
      found: Rows of ``gpu_sampled`` with ``origin``: the exporter, or the row of a file.
      source: For the rejected rows.

    Returns:
      Rows kept, rejected rows (one for each other that differs, naming both origins), rows that only repeat the kept.
    """
    is_repeated = found.select(_KEYS).is_duplicated()
    if not is_repeated.any():
        return found, rejected_frame([]), found.clear()
    ranked = found.filter(is_repeated).sort(*_KEYS, *VALUE_COLUMNS, "holder", "origin", nulls_last=True)
    is_first = ranked.select(pl.struct(_KEYS).is_first_distinct()).to_series()
    kept = ranked.filter(is_first)
    others = ranked.filter(~is_first).join(kept, on=_KEYS, suffix="_kept")
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_kept")) for name in VALUE_COLUMNS)
    rejected = rejections(
        others.filter(~is_same),
        source,
        position=pl.format("{} {} {}", "gpu_uuid", "mig_instance", "sampled_at"),
        reason=pl.format(
            "{} and {} both speak for this GPU at this instant and differ: the first is kept", "origin_kept", "origin"
        ),
        raw_text=pl.struct(VALUE_COLUMNS).struct.json_encode(),
    )
    return pl.concat([found.filter(~is_repeated), kept]), rejected, others.filter(is_same).select(found.columns)


def samples(rows: list[dict[str, Any]], *, source: str, cluster: str, interval_seconds: int) -> Chunk:
    """Samples from series: all metrics of one GPU or MIG instance at one instant in one row.

    A value that is no measurement is NULL, with one rejected row a series and reason. GPU_UTIL under MIG is ignored:
    the counter does not exist there, and some versions write 0. Where a device is shared, the first holder by name
    stands.
    """
    frame = (
        pl.DataFrame(rows, schema=_SERIES).sort("holder", nulls_last=True, maintain_order=True).with_row_index("series")
    )
    exporter = ("gpu_uuid", "mig_instance", "node", "origin")
    frame = frame.with_columns(exporter=pl.col("series").min().over(exporter))
    is_ours = pl.col("metric").is_in(list(METRICS))
    is_void = (pl.col("metric") == "DCGM_FI_DEV_GPU_UTIL") & (pl.col("mig_instance") != "")
    ours = frame.filter(is_ours & ~is_void)
    is_nameless = pl.col("gpu_uuid").is_null() | pl.col("node").is_null()
    points = (
        ours.filter(~is_nameless)
        .select("series", "exporter", "metric", "sampled_at", "value_text")
        .explode("sampled_at", "value_text")
        .with_columns(value=pl.col("value_text").cast(pl.Float64(), strict=False))
        .with_columns(
            reason=fault(pl.col("value"), pl.col("metric").replace_strict(_HIGHEST, return_dtype=pl.Float64()))
        )
    )
    found = _wide(points.filter(pl.col("reason").is_null()), frame).with_columns(
        cluster=pl.lit(cluster), interval_seconds=pl.lit(interval_seconds, pl.Int64())
    )
    kept, differing, repeated = first_of_each(found, source)
    read_count, our_count = (int(one["value_text"].list.len().sum()) for one in (frame, ours))
    return Chunk(
        events={GpuSampled: kept.select(polars_schema(GpuSampled).names()).sort(_KEYS)},
        rejected=pl.concat([_nameless(ours.filter(is_nameless), source), _faults(points, frame, source), differing]),
        rows_read=read_count,
        rows_ignored=read_count - our_count + sum(repeated[name].count() for name in VALUE_COLUMNS),
    )


def _wide(points: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """One row an exporter, device and instant; the n-th of equal readings goes to the n-th row."""
    group = ("exporter", "sampled_at")
    values = [
        (pl.col("value").filter(pl.col("metric") == metric).first() / per).alias(column)
        for metric, (column, per) in METRICS.items()
    ]
    return (
        points.with_columns(copy=pl.int_range(pl.len()).over(*group, "metric"))
        .group_by(*group, "copy")
        .agg(pl.col("series").min(), *values)
        .join(frame.drop("exporter", "metric", "position", "sampled_at", "value_text"), on="series")
        .with_columns(sampled_at=pl.from_epoch("sampled_at").dt.cast_time_unit("us").dt.replace_time_zone("UTC"))
    )


def _nameless(ours: pl.DataFrame, source: str) -> pl.DataFrame:
    return rejections(
        ours,
        source,
        position=pl.col("position"),
        reason=pl.lit("the series names no GPU (label UUID) or no node (label Hostname): keep both when relabelling"),
        raw_text=pl.format("{} {}", "metric", pl.col("value_text").list.join(" ")),
    )


def _faults(points: pl.DataFrame, frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """One rejected row a series and reason: a metric that a card does not have would else fill the table."""
    counted = (
        points.filter(pl.col("reason").is_not_null())
        .group_by("series", "reason", maintain_order=True)
        .agg(pl.len().alias("count"), pl.first("value_text"), pl.first("sampled_at"))
        .join(frame.select("series", "metric", "position", "gpu_uuid", "mig_instance"), on="series")
    )
    return rejections(
        counted,
        source,
        position=pl.col("position"),
        reason=pl.format("{} ({} of this series)", "reason", "count"),
        raw_text=pl.format(
            '{}{{UUID="{}",GPU_I_ID="{}"}} {} @{}', "metric", "gpu_uuid", "mig_instance", "value_text", "sampled_at"
        ),
    )


def read_exposition(
    paths: Iterable[Path], *, cluster: str, at: datetime, interval_seconds: int = 60
) -> Iterator[Chunk]:
    """Read scrapes of dcgm-exporter: exposition text, or answers of Prometheus's API saved as JSON.

    The files of one call are read together, in one chunk, since the metrics of one moment may lie in several.

    Args:
      paths: Files. A title line may stand before an exposition.
      cluster: Cluster they come from.
      at: When they were taken; a sample with a time of its own keeps it, rounded down to seconds.
      interval_seconds: How long one sample stands for: the scrape interval.

    Raises:
      SourceError: A file is missing or holds no sample.
      UsageError: ``at`` has no zone.
    """
    found: list[dict[str, Any]] = []
    garbled: list[dict[str, str]] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror}") from error
        if text.lstrip().startswith("{"):
            found += answer_series(_api_result(text, path), str(path))
            continue
        ours, bad = _exposition(text, path, epoch_seconds(at))
        if not ours:
            raise SourceError(
                f"{path}: holds no sample: expected dcgm-exporter text or a Prometheus API answer in JSON"
            )
        found += ours
        garbled += bad
    chunk = samples(found, source=SOURCE, cluster=cluster, interval_seconds=interval_seconds)
    yield Chunk(
        events=chunk.events,
        rejected=pl.concat([rejected_frame(garbled), chunk.rejected]),
        rows_read=chunk.rows_read + len(garbled),
        rows_ignored=chunk.rows_ignored,
    )


def _api_result(text: str, path: Path) -> Any:
    """The ``result`` of a saved API answer."""
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise SourceError(f"{path}: begins like JSON but is not: {error}; save the whole answer again") from error
    if answer.get("status") != "success":
        raise SourceError(
            f"{path}: expected a Prometheus answer with status success, found {answer.get('error', 'no status')!r}"
        )
    data = answer.get("data") or {}
    if data.get("resultType") not in {"vector", "matrix"}:
        raise SourceError(f"{path}: expected resultType vector or matrix, found {data.get('resultType')!r}")
    return data["result"]


def _exposition(text: str, path: Path, at: int) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Series of an exposition, and its garbled lines as rejected rows."""
    found: list[dict[str, Any]] = []
    garbled: list[dict[str, str]] = []
    has_begun = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        position = f"{path}:{number}"
        has_begun = has_begun or line.startswith("#")
        try:
            parsed = [sample for family in text_string_to_metric_families(line) for sample in family.samples]
        except ValueError as error:
            # A capture made by hand has a title before the exposition, and rules between two of them.
            if has_begun and set(line) != {"-"}:
                garbled.append(rejected_row(SOURCE, position, f"no line of an exposition: {error}", line))
            continue
        for one in parsed:
            has_begun = True
            time = at if one.timestamp is None else float(one.timestamp)
            found.append(
                series(one.labels, [(time, repr(one.value))], metric=one.name, origin=str(path), position=position)
            )
    return found, garbled
