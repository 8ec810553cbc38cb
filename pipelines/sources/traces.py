"""Published cluster traces as runs: Helios, Acme, Philly and Alibaba's openb, each in the form its authors gave it.

A trace is closed history: it names no devices (except Philly its nodes), so one row a run says how many it held, on
the node ''. Where a trace counts time from its own start, 1970-01-01 UTC stands for that start. Where it gives
wall-clock times without a zone (Helios' and Philly's own logs), they are taken as UTC: durations are right, except
across a change of the clock, and hours of the day are the cluster's own.

Sources of the schemas: the README of HeliosData, AcmeTrace, philly-traces, and kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import SourceError, UsageError
from models.events import RunPlaced, RunRecorded, polars_schema
from models.gpus import canonical_model, mig_profile
from models.units import SHARES_PER_GPU
from pipelines.sources.base import (
    CHUNK_ROWS,
    RAW_TEXT_LIMIT,
    REJECTED_SCHEMA,
    Chunk,
    Placed,
    placement_frame,
    placement_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    _Sets = dict[str, Iterable[Placed]]

SOURCE = "trace"
KINDS = ("helios", "acme", "philly", "openb")

_RUN_SCHEMA = pl.Schema(
    {
        "position": pl.String(), "raw_text": pl.String(), "aside": pl.String(), "run_id": pl.String(),
        "account": pl.String(), "user_name": pl.String(), "run_name": pl.String(), "qos": pl.String(),
        "submitted_at": pl.Datetime("us", "UTC"), "started_at": pl.Datetime("us", "UTC"),
        "ended_at": pl.Datetime("us", "UTC"), "state": pl.String(), "is_final": pl.Boolean(),
        "placement_id": pl.String(), "fault": pl.String(),
    }
)  # fmt: skip
"""What every reader here yields: a run's columns, ``aside`` (why it is set aside) and ``fault`` (what is wrong)."""


def _number(name: str) -> pl.Expr:
    """A count or a number of seconds, written as ``8`` or ``8.0``."""
    return pl.col(name).cast(pl.Float64(), strict=False).round().cast(pl.Int64(), strict=False)


def _elapsed(seconds: pl.Expr) -> pl.Expr:
    """The instant that many seconds after 1970-01-01 UTC."""
    return pl.from_epoch(seconds, "s").dt.cast_time_unit("us").dt.replace_time_zone("UTC")


def _time(name: str) -> pl.Expr:
    """An instant written as ``2023-05-17 11:00:58+00:00``; without an offset it is taken as UTC."""
    text = pl.col(name)
    return pl.coalesce(
        text.str.to_datetime("%Y-%m-%d %H:%M:%S%z", time_unit="us", strict=False),
        text.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False).dt.replace_time_zone("UTC"),
    )


def _after(start: pl.Expr, seconds: str) -> pl.Expr:
    return start + pl.duration(seconds=_number(seconds))


@dataclass(frozen=True, slots=True)
class _Table:
    """One CSV form of a trace.

    Attributes:
      columns: The columns that tell it from other forms, and that it needs.
      run: Expressions of a run's columns, and of ``device_count``, ``device_shares`` and ``gpu_type``.
      start: The column that is empty for a run that never started; empty where there is none.
    """

    columns: tuple[str, ...]
    run: dict[str, pl.Expr]
    start: str = ""


_PUBLISHED = {
    "run_id": pl.col("job_id"),
    "user_name": pl.col("user"),
    "submitted_at": _time("submit_time"),
    "started_at": _time("start_time"),
    "ended_at": _time("end_time"),
    "state": pl.col("state"),
    "device_count": _number("gpu_num"),
}

# gpu_milli is the part of each GPU: 4.2 shares a milli, to the nearest; a tie cannot come, since 4.2 times a
# whole number ends in an even tenth. A constraint on several models (V100M16|V100M32) is no type.
_OPENB_SHARES = (_number("gpu_milli") * (SHARES_PER_GPU // 100) + 5) // 10

_TABLES: dict[str, tuple[_Table, ...]] = {
    "helios": (
        # A slice has no start: it is taken as the submission, so a run lies early by the time it queued.
        _Table(
            ("job_id", "user", "tenant", "submit_time", "num_chips", "duration_s", "final_status"),
            {
                "run_id": pl.col("job_id"),
                "user_name": pl.col("user"),
                "account": pl.col("tenant"),
                "submitted_at": _elapsed(_number("submit_time") // 1_000_000),
                "started_at": _elapsed(_number("submit_time") // 1_000_000),
                "ended_at": _after(_elapsed(_number("submit_time") // 1_000_000), "duration_s"),
                "state": pl.col("final_status"),
                "device_count": _number("num_chips"),
            },
        ),
        _Table(
            ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time"),
            {**_PUBLISHED, "account": pl.col("vc")},
            start="start_time",
        ),
    ),
    "acme": (
        _Table(
            ("job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time"),
            {**_PUBLISHED, "run_name": pl.col("type")},
            start="start_time",
        ),
        # Of Kalos, duration counts from the submission, whatever the README says: its own first example has end_time
        # less start_time 8 s, queue 10 s and duration 18 s. So a run ends duration after submission and starts queue
        # after it. Of Seren, duration is the run alone; the published form above needs neither.
        _Table(
            ("job_id", "submit_time", "gpu_num", "duration_s", "queue_s"),
            {
                "run_id": pl.col("job_id"),
                "submitted_at": _time("submit_time"),
                "started_at": _after(_time("submit_time"), "queue_s"),
                "ended_at": _after(_time("submit_time"), "duration_s"),
                "state": pl.lit("UNKNOWN"),
                "device_count": _number("gpu_num"),
            },
        ),
    ),
    "openb": (
        _Table(
            ("name", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time",
             "scheduled_time"),
            {
                "run_id": pl.col("name"),
                "account": pl.col("qos"),
                "qos": pl.col("qos"),
                "submitted_at": _elapsed(_number("creation_time")),
                "started_at": _elapsed(_number("scheduled_time")),
                "ended_at": _elapsed(_number("deletion_time")),
                "state": pl.col("pod_phase"),
                "is_final": pl.col("pod_phase") != "Running",
                "device_count": _number("num_gpu"),
                "device_shares": pl.when(_number("gpu_milli") < 1_000).then(_OPENB_SHARES),
                "gpu_type": pl.when(~pl.col("gpu_spec").str.contains("|", literal=True)).then("gpu_spec"),
            },
            start="scheduled_time",
        ),
    ),
}  # fmt: skip


def read_trace(kind: str, paths: Iterable[Path], *, cluster: str | None = None) -> Iterator[Chunk]:
    """Runs of a published trace.

    * ``helios``: a slice re-based to its window's start (microseconds), or HeliosData's ``cluster_log.csv``.
    * ``acme``: AcmeTrace's ``trace_seren.csv`` or ``trace_kalos.csv``, or a list of jobs with ``duration_s`` and
      ``queue_s``. GPU time is end less start; Kalos' published totals count the time in the queue too.
    * ``philly``: ``cluster_job_log`` (JSON, read whole). Each attempt is a run; the job's status is its last
      attempt's, an attempt before it is REQUEUED. A last attempt without an end was running when the log was taken.
    * ``openb``: pod lists with fractions of GPUs. A pod still ``Running`` ends where the trace does, and is not final.

    Args:
      kind: One of ``KINDS``.
      paths: Files of that trace; a gzipped one is unpacked.
      cluster: Name of the cluster; the kind's name unless given.

    Raises:
      SourceError: A file cannot be read, or has not the columns of any form of that trace.
      UsageError: The kind is unknown.
    """
    if kind not in KINDS:
        raise UsageError(f"trace {kind!r} is unknown; known are {', '.join(KINDS)}")
    for path in paths:
        runs, sets = _philly(path) if kind == "philly" else _csv(path, kind)
        for part in runs.iter_slices(CHUNK_ROWS):
            yield _chunk(part, sets, cluster or kind)


def _chunk(runs: pl.DataFrame, sets: _Sets, cluster: str) -> Chunk:
    fault = pl.coalesce(
        pl.col("fault"),
        pl.when(pl.col("run_id").is_null()).then(pl.lit("it has no id")),
        pl.when(pl.col("state").is_null()).then(pl.lit("it has no state")),
        pl.when(pl.col("started_at").is_null()).then(pl.lit("its start is no time")),
        pl.when(pl.col("ended_at").is_null() & pl.col("is_final")).then(pl.lit("its end is no time")),
        pl.when(pl.col("ended_at") < pl.col("started_at")).then(pl.lit("it ends before it starts")),
    )
    judged = runs.with_columns(
        kind=pl.when(pl.col("aside").is_null()).then(pl.lit("rejected")).otherwise(pl.lit("set_aside")),
        reason=pl.coalesce(pl.col("aside"), fault),
    )
    good = judged.filter(pl.col("reason").is_null()).with_columns(
        cluster=pl.lit(cluster), is_from_step=pl.lit(value=False)
    )
    bad = judged.filter(pl.col("reason").is_not_null()).with_columns(source=pl.lit(SOURCE))
    used = good["placement_id"].drop_nulls().unique(maintain_order=True)
    return Chunk(
        events={
            RunRecorded: good.match_to_schema(
                polars_schema(RunRecorded), missing_columns="insert", extra_columns="ignore"
            ),
            RunPlaced: placement_frame({identity: sets[identity] for identity in used}),
        },
        rejected=bad.with_columns(pl.col("raw_text").str.slice(0, RAW_TEXT_LIMIT)).match_to_schema(
            REJECTED_SCHEMA, extra_columns="ignore"
        ),
        rows_read=runs.height,
    )


def _csv(path: Path, kind: str) -> tuple[pl.DataFrame, _Sets]:
    try:
        text = pl.read_csv(path, infer_schema=False, comment_prefix="#", encoding="utf8-lossy")
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema=_RUN_SCHEMA), {}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(
            f"{path}: cannot be read as a CSV file: {str(error).splitlines()[0]}; expected the {kind} trace as published"
        ) from error
    table = next((one for one in _TABLES[kind] if set(one.columns) <= set(text.columns)), None)
    if table is None:
        forms = "; or ".join(", ".join(one.columns) for one in _TABLES[kind])
        raise SourceError(f"{path}: found the columns {', '.join(text.columns)}; expected for {kind}: {forms}")
    never = pl.col(table.start).is_null() if table.start else pl.lit(value=False)
    run = {
        "is_final": pl.lit(value=True),
        "device_shares": pl.lit(None, pl.Int64()),
        "gpu_type": pl.lit(None, pl.String()),
        **table.run,
    }
    runs = text.with_row_index("row", offset=1).select(
        position=pl.format("{} row {}", pl.lit(str(path)), "row"),
        raw_text=pl.concat_str(pl.col(text.columns).fill_null(""), separator=","),
        aside=pl.when(never).then(pl.lit(f"never started: {table.start} is empty")),
        **run,
    )
    return _with_placements(runs)


def _with_placements(runs: pl.DataFrame) -> tuple[pl.DataFrame, _Sets]:
    """Replace what a run asked for by the id of the set it held, and say what is wrong with it."""
    asked = ["gpu_type", "device_count", "device_shares"]
    sets: _Sets = {}
    found: list[tuple[Any, ...]] = []
    for gpu_type, count, shares in runs.select(asked).unique().iter_rows():
        fault = None
        if count is None or count < 0:
            fault = "its number of GPUs is no count"
        elif count and shares is not None and shares <= 0:
            fault = "its part of a GPU is not above zero"
        kind = gpu_type or ""
        held = (Placed("", kind, count, canonical_model(gpu_type), mig_profile(gpu_type), shares),)
        identity = placement_id(held) if count and fault is None else None
        if identity is not None:
            sets[identity] = held
        found.append((gpu_type, count, shares, identity, fault))
    schema = {name: runs.schema[name] for name in asked} | {"placement_id": pl.String(), "fault": pl.String()}
    placed = runs.join(
        pl.DataFrame(found, schema=schema, orient="row"), on=asked, how="left", nulls_equal=True, maintain_order="left"
    )
    return placed.match_to_schema(_RUN_SCHEMA, missing_columns="insert", extra_columns="ignore"), sets


def _philly(path: Path) -> tuple[pl.DataFrame, _Sets]:
    try:
        jobs = json.loads(path.read_bytes() or b"[]")
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(jobs, list):
        raise SourceError(f"{path}: expected a JSON list of jobs as in philly-traces' cluster_job_log")
    sets: _Sets = {}
    rows = [row for index, job in enumerate(jobs, start=1) for row in _attempts(job, f"{path} job {index}", sets)]
    texts = dict.fromkeys(("submitted_at", "started_at", "ended_at"), pl.String())
    runs = pl.DataFrame(rows, schema={**_RUN_SCHEMA, **texts}, strict=False)
    return runs.with_columns(_time(name).alias(name) for name in texts), sets


def _attempts(job: Any, position: str, sets: _Sets) -> Iterator[dict[str, Any]]:
    """Rows of one job; its times are still text."""
    about: dict[str, Any] = {"position": position, "raw_text": json.dumps(job), "is_final": True}
    try:
        about |= {
            "run_id": job["jobid"],
            "account": job["vc"],
            "user_name": job["user"],
            "submitted_at": job["submitted_time"],
        }
        attempts = [(_held(attempt, sets), attempt["start_time"], attempt["end_time"]) for attempt in job["attempts"]]
        status = job["status"]
    except (KeyError, TypeError) as error:
        yield {**about, "fault": f"it is no job as in philly-traces' cluster_job_log: {error!r}"}
        return
    if not attempts:
        yield {**about, "aside": "never started: it has no attempts"}
    for number, (identity, start, end) in enumerate(attempts, start=1):
        is_last = number == len(attempts)
        yield {
            **about,
            "started_at": start,
            "ended_at": end,
            "state": status if is_last else "REQUEUED",
            "is_final": not (is_last and end in (None, "None")),
            "placement_id": identity,
        }


def _held(attempt: dict[str, Any], sets: _Sets) -> str | None:
    held = tuple(Placed(one["ip"], "", len(one["gpus"])) for one in attempt["detail"] if one["gpus"])
    identity = placement_id(held)
    if identity is not None:
        sets[identity] = held
    return identity
