"""Slurm accounting: text of ``sacct -P``, from a file or from the command, as runs and where they ran.

One row of sacct is one attempt of a job; an attempt's key is (cluster, JobIDRaw, Start). A requeued job is several
attempts, and ``sacct`` shows the earlier ones only with ``-D``. Rows of job steps (``1.batch``, ``1.extern``, ``1.0``)
repeat the job's allocation and are ignored. A run without GPUs is recorded, but holds no placement.

Files are read in ``slurm_text.py``, TRES and node lists in ``slurm_tres.py``.
"""

from __future__ import annotations

import subprocess
import tempfile
from typing import IO, TYPE_CHECKING, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from models.errors import SourceError, UsageError
from models.events import RunPlaced, RunRecorded, polars_schema
from pipelines.sources.base import (
    RAW_TEXT_LIMIT,
    REJECTED_SCHEMA,
    Chunk,
    Placed,
    placement_frame,
    placement_id,
    rejected_frame,
)
from pipelines.sources.slurm_text import COLUMNS, SOURCE, Dump, Layout, Records, open_dump, read_records
from pipelines.sources.slurm_tres import placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

XDMOD_FIELDS = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible",
    "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres",
    "timelimit", "nodelist", "jobname",
)  # fmt: skip
"""Columns, in order, of the header-less dumps that Open XDMoD's slurm helper writes."""

SACCT_FIELDS = (
    "JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,Suspended,AllocTRES,NodeList,"
    "ExitCode,JobName"  # last, so that a delimiter in a name can be told from one between cells
)

OPEN_STATES = {"PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETING": "CG", "CONFIGURING": "CF",
               "STOPPED": "ST", "SIGNALING": "SI", "STAGE_OUT": "SO", "RESV_DEL_HOLD": "RD", "REQUEUE_FED": "RF",
               "REQUEUE_HOLD": "RH", "SPECIAL_EXIT": "SE"}  # fmt: skip
FINAL_STATES = {"COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F", "TIMEOUT": "TO", "NODE_FAIL": "NF",
                "PREEMPTED": "PR", "OUT_OF_MEMORY": "OOM", "BOOT_FAIL": "BF", "DEADLINE": "DL", "REQUEUED": "RQ",
                "RESIZING": "RS", "REVOKED": "RV", "LAUNCH_FAILED": "LF", "RECONFIG_FAIL": "RECONFIG_FAIL"}  # fmt: skip
"""States with their short codes (man squeue, "JOB STATE CODES"). A REQUEUED or RESIZING record's attempt is over."""

_LONG_STATES = {code: state for state, code in {**OPEN_STATES, **FINAL_STATES}.items()}
_NO_TIME = ("Unknown", "None", "N/A")
_RUN_ID = r"^\d+(_(\d+|\[.*\]))?(\+\d+)?(\.[\w+]+)?$"
_DURATION = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?$"


def sacct_command(start: datetime, end: datetime) -> list[str]:
    """The command whose output ``read_sacct`` reads best: all attempts of all users, without steps.

    Args:
      start: Jobs that ran at or after this wall-clock time of the cluster.
      end: Jobs that ran before this wall-clock time of the cluster.
    """
    window = [f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (start, end)]
    return ["sacct", "-D", "-P", "-a", "-X", f"--format={SACCT_FIELDS}", "-S", window[0], "-E", window[1]]


def read_sacct(
    paths: Iterable[Path],
    *,
    cluster: str,
    timezone: str,
    fields: Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Iterator[Chunk]:
    """Runs in dumps of ``sacct -P``, plain or gzipped, in blocks of bounded size.

    Times are wall-clock times of ``timezone`` unless they carry an offset or are epoch seconds. In the hour that
    comes twice when the clock goes back, the reading is taken with which End less Start is the elapsed (and suspended)
    time; where that does not tell, as for a job that still runs, the earlier one, unless by the clock the job would then
    have started before it was submitted or eligible.

    Args:
      paths: Dumps. A file that grows meanwhile is read up to the size it had when opened.
      cluster: Name of the cluster, whatever a Cluster column says.
      timezone: IANA name of the zone that sacct ran in, such as Europe/Berlin.
      fields: Names of the columns, where a dump has no header line; case does not matter.
      delimiter: Delimiter, where it cannot be told from the header.

    Raises:
      SourceError: A file cannot be read, is no sacct text, or lacks a column that metering needs.
      UsageError: The time zone is unknown.
    """
    _check_zone(timezone)
    for path in paths:
        with open_dump(path) as dump:
            records = read_records(dump, str(path), fields=fields, delimiter=delimiter)
            yield from _chunks(records, str(path), cluster, timezone)


def read_sacct_live(
    *, cluster: str, timezone: str, start: datetime, end: datetime, command: Sequence[str] = ("sacct",)
) -> Iterator[Chunk]:
    """Runs of a window, from the ``sacct`` command, as it writes them.

    Args:
      cluster: Name of the cluster.
      timezone: IANA name of the cluster's zone, in which ``sacct`` takes and writes times.
      start: Start of the window, with a time zone.
      end: End of the window, with a time zone.
      command: How to start sacct, such as ``("ssh", "login1", "sacct")``.

    Raises:
      SourceError: The command cannot be started or ends with an error; the message carries what it said.
      UsageError: The time zone is unknown.
    """
    zone = _check_zone(timezone)
    arguments = [*command, *sacct_command(start.astimezone(zone), end.astimezone(zone))[1:]]
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors)  # noqa: S603  the caller's own command
        except OSError as error:
            raise SourceError(
                f"{arguments[0]}: cannot be started: {error.strerror}. Is Slurm's client here?"
            ) from error
        with process:
            try:
                dump = Dump(cast("IO[bytes]", process.stdout))
                yield from _chunks(read_records(dump, arguments[0]), arguments[0], cluster, timezone)
            except BaseException:
                process.kill()  # the reader gave up: let sacct not write to nobody
                raise
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()[-RAW_TEXT_LIMIT:]
            raise SourceError(f"`{' '.join(arguments)}` ended with code {process.returncode}: {said or 'no message'}")


def _check_zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"time zone {timezone!r}: expected an IANA name such as Europe/Berlin or UTC") from error


def _chunks(blocks: Iterator[tuple[Layout, Records]], path: str, cluster: str, timezone: str) -> Iterator[Chunk]:
    for layout, records in blocks:
        _check_columns(layout, path)
        yield _chunk(records, layout, path, cluster, timezone)


def _check_columns(layout: Layout, path: str) -> None:
    needed = (
        ("JobIDRaw", "JobID"),
        ("Start",),
        ("End", "Elapsed", "ElapsedRaw"),
        ("State",),
        ("AllocTRES", "AllocGRES"),
    )
    missing = [" or ".join(names) for names in needed if not any(name.lower() in layout.names for name in names)]
    if missing:
        raise SourceError(
            f"{path}: metering needs the column {', '.join(missing)}; found {', '.join(layout.names)}. "
            f"Export with `sacct -D -P -a -X --format={SACCT_FIELDS} -S START -E END`"
        )


def _chunk(records: Records, layout: Layout, path: str, cluster: str, timezone: str) -> Chunk:
    cells = [
        pl.col("cells").list.get(layout.names.index(name)).str.strip_chars().replace("", None).alias(name)
        if name in layout.names
        else pl.lit(None, pl.String()).alias(name)
        for name in COLUMNS
    ]
    rows = records.frame.select("line", "raw_text", *cells)
    judged = _judged(_timed(rows, timezone)).filter(~pl.col("is_step") | pl.col("kind").ne_missing("set_aside"))
    placed, sets = _placed(judged.filter(pl.col("reason").is_null()))
    good = _without_steps_of_known_jobs(placed.filter(pl.col("reason").is_null()))
    bad = pl.concat([judged.filter(pl.col("reason").is_not_null()), placed.select(judged.columns)])
    rejected = _rejected(bad, path)
    used = good["placement_id"].drop_nulls().unique(maintain_order=True)
    return Chunk(
        events={
            RunRecorded: _runs(good, cluster),
            RunPlaced: placement_frame({identity: sets[identity] for identity in used}),
        },
        rejected=pl.concat([rejected_frame(records.rejected), rejected]),
        rows_read=rows.height + len(records.rejected),
        rows_ignored=rows.height - good.height - rejected.height,
    )


def _without_steps_of_known_jobs(good: pl.DataFrame) -> pl.DataFrame:
    """Leave out steps during whose whole time a row of their own job says that it ran.

    Other steps of known jobs stay: one that outlives its job by seconds, or was parted from it by the end of a block.
    ``staged.run`` leaves them out, as it does across dumps, so nothing depends on what came together.
    """
    jobs = (
        good.filter(~pl.col("is_step"))
        .group_by(parent_id="run_id", job_started_at="started_at")
        .agg(job_ended_at=pl.col("ended_at").max())
    )
    parent_id = pl.col("run_id").str.extract(r"^([^.]*)")
    steps = good.filter("is_step").select("line", "started_at", "ended_at", parent_id=parent_id)
    has_ended_before = pl.col("ended_at") <= pl.col("job_ended_at")
    covered = steps.join(jobs, on="parent_id").filter(
        pl.col("job_started_at") <= pl.col("started_at"), has_ended_before | pl.col("job_ended_at").is_null()
    )
    return good.join(covered, on="line", how="anti", maintain_order="left")


def _instant(name: str, timezone: str, ambiguous: Literal["earliest", "latest"] = "earliest") -> pl.Expr:
    """Instant in UTC of a cell: wall-clock time, time with offset, or epoch seconds; NULL where it is none of these."""
    text = pl.col(name)
    wall = pl.when(text.str.contains(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")).then(text)
    offset = pl.when(text.str.contains(r"T\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)$")).then(text.str.replace("Z$", "+00:00"))
    epoch = pl.when(text.str.contains(r"^\d{9,11}$")).then(text).cast(pl.Int64())
    return pl.coalesce(
        wall.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
        .dt.replace_time_zone(timezone, ambiguous=ambiguous, non_existent="null")
        .dt.convert_time_zone("UTC"),
        offset.str.to_datetime("%Y-%m-%dT%H:%M:%S%z", time_unit="us", strict=False),
        pl.from_epoch(epoch, "s").dt.cast_time_unit("us").dt.replace_time_zone("UTC"),
    )


def _seconds(name: str) -> pl.Expr:
    """Seconds of a duration such as 1-02:03:04 or 03:04.567."""
    text = pl.col(name)
    parts = [text.str.extract(_DURATION, group).cast(pl.Int64()).fill_null(0) for group in range(1, 5)]
    total = parts[0] * 86_400 + parts[1] * 3_600 + parts[2] * 60 + parts[3]
    return pl.when(text.str.contains(_DURATION)).then(total)


def _timed(attempts: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Add run_id, is_step, state, submitted_at, started_at and ended_at; an hour that comes twice is told by elapsed."""
    run_id = pl.coalesce("jobidraw", "jobid")
    readings = attempts.with_columns(
        run_id=run_id,
        is_step=run_id.str.contains(".", literal=True).fill_null(value=False),
        state=pl.col("state").str.extract(r"^([A-Za-z_]+)").str.to_uppercase().replace(_LONG_STATES),
        submitted_at=_instant("submit", timezone),
        early_start=_instant("start", timezone),
        late_start=_instant("start", timezone, "latest"),
        early_end=_instant("end", timezone),
        late_end=_instant("end", timezone, "latest"),
        span=pl.coalesce(pl.col("elapsedraw").cast(pl.Int64(), strict=False), _seconds("elapsed"))
        + _seconds("suspended").fill_null(0),
    )
    pairs = [("early", "early"), ("early", "late"), ("late", "late"), ("late", "early")]
    lasted = [(pl.col(f"{end}_end") - pl.col(f"{start}_start")).dt.total_seconds() for start, end in pairs]
    fits = [pl.when(seconds == pl.col("span")).then(pl.lit(index)) for index, seconds in enumerate(lasted)]
    possible = [pl.when(seconds >= 0).then(pl.lit(index)) for index, seconds in enumerate(lasted)]
    waited_until = pl.max_horizontal("submitted_at", _instant("eligible", timezone))
    too_early = pl.when((pl.col("early_start") < waited_until) & (pl.col("late_start") >= waited_until)).then(pl.lit(2))
    chosen = readings.with_columns(pair=pl.coalesce(*fits, too_early, *possible, pl.lit(0)))
    started = pl.when(pl.col("pair") < 2).then("early_start").otherwise("late_start")
    ended = pl.when(pl.col("pair").is_in([1, 2])).then("late_end").otherwise("early_end")
    computed = started + pl.duration(seconds=pl.col("span"))
    return chosen.with_columns(
        started_at=started,
        ended_at=pl.when(pl.col("state").is_in(list(FINAL_STATES))).then(pl.coalesce(ended, computed)),
    )


def _judged(attempts: pl.DataFrame) -> pl.DataFrame:
    """Add kind and reason where a row is set aside or rejected; NULL where it is a run."""
    start, end = pl.col("start"), pl.col("end")
    known = [*OPEN_STATES, *FINAL_STATES]
    unread = "{}: {} is no time that exists in this time zone; expected such as 2026-03-29T14:05:00"
    has_end = end.is_not_null() & ~end.is_in(_NO_TIME)
    rejected = {
        "no job id such as 123 or 123_4": ~pl.col("run_id").str.contains(_RUN_ID).fill_null(value=False),
    }
    state = pl.col("state")
    unknown_state = pl.format(
        f"State: found {{}}, expected one of {', '.join(known)}", pl.coalesce(state, pl.lit("nothing"))
    )
    set_aside = {
        "never started: still pending": pl.col("state") == "PENDING",
        "never started: it has no Start": start.is_null() | start.is_in(_NO_TIME),
        "never started: it ended without a node": (pl.col("started_at") == pl.col("ended_at"))
        & (pl.col("nodelist") == "None assigned"),
    }
    late = pl.coalesce(
        pl.when(pl.col("started_at").is_null()).then(pl.format(unread, pl.lit("Start"), start)),
        pl.when(has_end & pl.col("early_end").is_null()).then(pl.format(unread, pl.lit("End"), end)),
        pl.when(pl.col("ended_at") < pl.col("started_at")).then(pl.format("End {} is before Start {}", end, start)),
    )
    first = pl.coalesce(
        *[pl.when(wrong).then(pl.lit(reason)) for reason, wrong in rejected.items()],
        pl.when(~state.is_in(known).fill_null(value=False)).then(unknown_state),
    )
    aside = pl.coalesce(*[pl.when(wrong).then(pl.lit(reason)) for reason, wrong in set_aside.items()])
    is_aside = first.is_null() & aside.is_not_null()
    return attempts.with_columns(
        reason=pl.coalesce(first, aside, late),
        kind=pl.when(is_aside).then(pl.lit("set_aside")).otherwise(pl.lit("rejected")),
    )


def _placed(runs: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Iterable[Placed]]]:
    """Add placement_id, or a reason where the resources cannot be read; each distinct allocation is read once."""
    allocation = ["alloctres", "allocgres", "nodelist"]
    sets: dict[str, Iterable[Placed]] = {}
    found: list[tuple[str | None, ...]] = []
    for texts in runs.select(allocation).unique().iter_rows():
        try:
            devices = placement(*texts)
        except ValueError as error:
            found.append((*texts, None, str(error)))
            continue
        identity = placement_id(devices)
        if identity is not None:
            sets[identity] = devices
        found.append((*texts, identity, None))
    schema = dict.fromkeys([*allocation, "placement_id", "reason"], pl.String())
    read = pl.DataFrame(found, schema=schema, orient="row")
    return runs.drop("reason").join(read, on=allocation, how="left", nulls_equal=True, maintain_order="left"), sets


def _runs(good: pl.DataFrame, cluster: str) -> pl.DataFrame:
    is_final = pl.col("state").is_in(list(FINAL_STATES)) & pl.col("ended_at").is_not_null()
    return good.select(
        cluster=pl.lit(cluster),
        run_id="run_id",
        started_at="started_at",
        display_id="jobid",
        run_name="jobname",
        account="account",
        user_name="user",
        partition="partition",
        qos="qos",
        submitted_at="submitted_at",
        ended_at="ended_at",
        state="state",
        is_final=is_final,
        is_from_step="is_step",
        exit_code="exitcode",
        placement_id="placement_id",
    ).match_to_schema(polars_schema(RunRecorded))


def _rejected(rows: pl.DataFrame, path: str) -> pl.DataFrame:
    return (
        rows.filter(pl.col("reason").is_not_null())
        .select(
            source=pl.lit(SOURCE),
            position=pl.format("{}:{}", pl.lit(path), "line"),
            kind="kind",
            reason="reason",
            raw_text=pl.col("raw_text").str.slice(0, RAW_TEXT_LIMIT),
        )
        .match_to_schema(REJECTED_SCHEMA)
    )
