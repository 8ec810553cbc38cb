from __future__ import annotations

import csv
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import SourceError, UsageError
from models.events import RunPlaced, RunRecorded, polars_schema
from pipelines.sources.slurm import XDMOD_FIELDS, read_sacct, read_sacct_live, sacct_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.sources.base import Chunk

HEADER = "JobIDRaw|JobID|State|Start|End|ElapsedRaw|Suspended|AllocTRES|NodeList|JobName"


def row(**cells: str) -> str:
    known = {
        "JobIDRaw": "7", "JobID": "7", "State": "COMPLETED", "Start": "2026-01-05T10:00:00",
        "End": "2026-01-05T11:00:00", "ElapsedRaw": "", "Suspended": "", "AllocTRES": "gres/gpu=1", "NodeList": "n1",
        "JobName": "train",
    }  # fmt: skip
    return "|".join((known | cells)[name] for name in HEADER.split("|"))


class Read:
    """What reading gave, chunks put together."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        read = list(chunks)
        self.rows = sum(chunk.rows_read for chunk in read)
        self.ignored = sum(chunk.rows_ignored for chunk in read)
        empty = [pl.DataFrame(schema=polars_schema(RunRecorded))], [pl.DataFrame(schema=polars_schema(RunPlaced))]
        self.runs = pl.concat([chunk.events[RunRecorded] for chunk in read] or empty[0])
        self.placed = pl.concat([chunk.events[RunPlaced] for chunk in read] or empty[1]).unique()
        self.rejected = [rejected for chunk in read for rejected in chunk.rejected.to_dicts()]
        assert self.rows == self.ignored + self.runs.height + len(self.rejected), "a row is a run, ignored or rejected"

    @property
    def run(self) -> dict[str, Any]:
        """The only run."""
        assert self.runs.height == 1, self.rejected
        return self.runs.row(0, named=True)

    @property
    def reason(self) -> str:
        """Why the only row is no run."""
        assert self.runs.is_empty()
        return str(self.rejected[0]["kind"]) + ": " + str(self.rejected[0]["reason"])

    def device_seconds(self, *by: str) -> dict[tuple[Any, ...], int]:
        """Device-seconds of distinct attempts by some columns."""
        lasted = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds() * pl.col("device_count")
        held = self.runs.unique(["run_id", "started_at"]).join(self.placed, on="placement_id").with_columns(t=lasted)
        totals = held.group_by(by or [pl.lit("all")]).agg(pl.col("t").sum())
        return {tuple(keys): seconds for *keys, seconds in totals.iter_rows()}


def read(*lines: str, timezone: str = "UTC") -> Read:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump"
        path.write_text("\n".join([HEADER, *lines, ""]))
        return Read(read_sacct([path], cluster="c1", timezone=timezone))


def test_a_run_says_who_what_where_and_when() -> None:
    got = read(row(JobIDRaw="205", JobID="200_5", AllocTRES="gres/gpu=5,gres/gpu:a100=5", NodeList="n[1-2]"))
    assert got.run["cluster"] == "c1"
    assert (got.run["run_id"], got.run["display_id"], got.run["run_name"]) == ("205", "200_5", "train")
    assert got.run["started_at"] == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert (got.run["state"], got.run["is_final"]) == ("COMPLETED", True)
    assert got.run["account"] is None, "a column that the dump lacks is unknown"
    assert sorted(got.placed.select("node", "gpu_type", "gpu_model", "device_count").rows()) == [
        ("n1", "a100", "A100", 3),
        ("n2", "a100", "A100", 2),
    ]


def test_steps_are_ignored_beside_their_job_however_often_they_come() -> None:
    got = read(row(), *[row(JobIDRaw=step, JobID=step) for step in ("7.batch", "7.extern", "7.0", "7.0")])
    assert (got.rows, got.ignored, got.runs.height) == (5, 4, 1)


@pytest.mark.parametrize("job", [row(JobIDRaw="8"), row(Start="2026-01-05T12:00:00", End="2026-01-05T13:00:00")])
def test_a_step_of_a_job_or_attempt_that_is_not_there_is_recorded_as_a_step(job: str) -> None:
    got = read(job, row(JobIDRaw="7.0", JobID="7.0"))
    assert got.runs.select("run_id", "is_from_step").rows()[1:] == [("7.0", True)]


def test_a_step_that_never_started_is_ignored_and_an_unreadable_one_rejected() -> None:
    assert read(row(JobIDRaw="7.0", State="CANCELLED", Start="Unknown", End="Unknown")).ignored == 1
    assert "Start: noon is no time" in read(row(JobIDRaw="7.0", Start="noon")).reason


def test_a_run_without_gpus_is_recorded_and_holds_no_placement() -> None:
    got = read(row(AllocTRES="billing=8,cpu=8,gres/gpumem=0,mem=4G,node=1"))
    assert got.run["placement_id"] is None
    assert got.placed.is_empty()


@pytest.mark.parametrize(
    "never",
    [
        row(State="PENDING", Start="Unknown", End="Unknown", NodeList=""),
        row(State="CANCELLED by 5", Start="None"),
        row(State="CANCELLED", Start="2026-01-05T10:00:00", End="2026-01-05T10:00:00", NodeList="None assigned"),
        row(JobIDRaw="", JobID="9_[3-5%2]", State="PD", Start="Unknown"),
    ],
)
def test_what_never_started_is_set_aside(never: str) -> None:
    assert read(never).reason.startswith("set_aside: never started")


def test_a_running_job_has_no_end_and_is_not_final() -> None:
    got = read(row(State="RUNNING", End="Unknown", ElapsedRaw="60"))
    assert (got.run["ended_at"], got.run["is_final"]) == (None, False)


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("oom", "OUT_OF_MEMORY"),
        ("CD", "COMPLETED"),
        ("NF", "NODE_FAIL"),
        ("REQUEUED", "REQUEUED"),
    ],
)
def test_states_are_named_in_full_and_final_with_an_end(written: str, state: str) -> None:
    run = read(row(State=written)).run
    assert (run["state"], run["is_final"]) == (state, True)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(State="DREAMING"), "State: found DREAMING, expected one of PENDING"),
        (row(JobIDRaw="", JobID=""), "no job id"),
        (row(Start="yesterday"), "Start: yesterday is no time"),
        (row(End="2026-13-05T11:00:00"), "End: 2026-13-05T11:00:00 is no time"),
        (row(End="2026-01-05T09:00:00"), "is before Start"),
        (row(AllocTRES="1=20,4=1,1002=2"), "a resource without a name"),
        (row(NodeList="n[1-"), "node list"),
        ("7|COMPLETED", "too few cells"),
    ],
)
def test_a_bad_row_is_rejected_with_its_reason_place_and_text(bad: str, said: str) -> None:
    got = read(bad)
    rejected = got.rejected[0]
    assert rejected["kind"] == "rejected"
    assert said in rejected["reason"]
    assert rejected["position"].endswith("dump:2")
    assert rejected["raw_text"] == bad


def test_times_with_an_offset_and_epoch_seconds_need_no_time_zone() -> None:
    got = read(row(Start="2026-01-05T10:00:00+01:00", End="1767607200"), timezone="Asia/Tokyo")
    assert got.run["started_at"] == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert got.run["ended_at"] == datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "suspended", "start_utc", "hours"),
    [
        ("01:30", "03:30", "10800", "", (23, 30), 3),  # across the hour that comes twice
        ("02:30", "03:30", "7200", "", (0, 30), 2),  # started in it the first time
        ("02:30", "03:30", "3600", "", (1, 30), 1),  # started in it the second time
        ("02:30", "03:30", "1800", "00:30:00", (1, 30), 1),  # suspended time counts as held
        ("02:30", "03:30", "", "", (0, 30), 2),  # nothing tells: the first
        ("02:45", "02:15", "1800", "", (0, 45), 0.5),  # started in the first, ended in the second
        ("02:45", "02:15", "", "", (0, 45), 0.5),  # only this reading does not end before it starts
    ],
)
def test_the_hour_that_comes_twice_is_told_by_the_elapsed_time(  # noqa: PLR0917  the columns of the table above
    start: str, end: str, elapsed: str, suspended: str, start_utc: tuple[int, int], hours: float
) -> None:
    times = {"Start": f"2025-10-26T{start}:00", "End": f"2025-10-26T{end}:00"}
    run = read(row(**times, ElapsedRaw=elapsed, Suspended=suspended), timezone="Europe/Berlin").run
    assert (run["started_at"].hour, run["started_at"].minute) == start_utc
    assert run["ended_at"] - run["started_at"] == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("submit", "eligible", "start_utc"),
    [
        ("01:50", "01:50", (0, 30)),  # nothing tells: the first
        ("02:15", "02:15", (0, 30)),  # nothing tells: the first
        ("02:45", "02:45", (1, 30)),  # by the clock it started before it was submitted
        ("01:50", "02:40", (1, 30)),  # ... before it might start
        ("2025-10-27", "", (0, 30)),  # later in either hour: no reading of this
    ],
)
def test_a_job_still_running_started_in_the_second_hour_if_it_was_submitted_after_its_start_in_the_first(
    tmp_path: Path, submit: str, eligible: str, start_utc: tuple[int, int]
) -> None:
    path = tmp_path / "dump"
    waited = "|".join(text if len(text) != 5 else f"2025-10-26T{text}:00" for text in (submit, eligible))
    path.write_text(
        "JobID|State|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES\n"
        f"7|RUNNING|{waited}|2025-10-26T02:30:00|Unknown|60|gres/gpu=1\n"
    )
    run = Read(read_sacct([path], cluster="c1", timezone="Europe/Berlin")).run
    assert (run["started_at"].hour, run["started_at"].minute) == start_utc


def test_an_hour_that_never_was_is_rejected() -> None:
    got = read(row(Start="2026-03-29T02:30:00", End="2026-03-29T05:00:00"), timezone="Europe/Berlin")
    assert "no time that exists in this time zone" in got.reason


def test_the_end_may_be_given_as_elapsed_time(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text("JobID|State|Start|Elapsed|AllocTRES\n7|FAILED|2026-01-05T10:00:00|1-00:00:30|gres/gpu=1\n")
    run = Read(read_sacct([path], cluster="c1", timezone="UTC")).run
    assert run["ended_at"] - run["started_at"] == timedelta(days=1, seconds=30)


def test_missing_columns_are_named_with_the_command_that_gives_them(shared_data: Path) -> None:
    path = shared_data / "slurm-gcm" / "sample-sacct-output-midnight-edge-case.txt"
    with pytest.raises(SourceError, match=r"AllocTRES or AllocGRES; found jobid.*sacct -D -P"):
        next(read_sacct([path], cluster="c1", timezone="UTC"))


def test_an_unknown_time_zone_is_said() -> None:
    with pytest.raises(UsageError, match="Europe/Atlantis"):
        next(read_sacct([], cluster="c1", timezone="Europe/Atlantis"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.sets(st.integers(1, 11)))
def test_a_dump_cut_at_line_ends_gives_the_same_events(kinds: list[int], cuts: set[int]) -> None:
    lines = [
        row(),
        row(JobIDRaw="8", AllocTRES="gres/gpu=3", NodeList="n[1-2]"),
        row(State="PENDING"),
        row(JobName="a|b"),
        row(End="Unknown", State="RUNNING"),
        "7|cut off",
        row(Start="2026-01-06T10:00:00", End="2026-01-06T10:30:00"),
    ]
    chosen = [lines[kind] for kind in kinds]
    whole = read(*chosen)
    edges = [0, *sorted(cut for cut in cuts if cut < len(chosen)), len(chosen)]
    parts = [read(*chosen[first:last]) for first, last in pairwise(edges)]
    assert pl.concat([part.runs for part in parts]).rows() == whole.runs.rows()
    assert set(pl.concat([part.placed for part in parts]).rows()) == set(whole.placed.rows())
    assert sum(len(part.rejected) for part in parts) == len(whole.rejected)


# Real files with known totals.


def test_a_requeued_job_is_two_attempts_and_slices_are_not_cards(shared_data: Path) -> None:
    got = Read(read_sacct([shared_data / "slurm-22.05-requeue" / "sacct_D.txt"], cluster="demo", timezone="UTC"))
    assert (got.rows, got.ignored, got.runs.height, got.rejected) == (20, 10, 10, [])
    assert got.device_seconds("account", "gpu_type") == {
        ("vision", "a100"): 4 * 4 + 4 * 40,
        ("prod", "a100"): 6 * 15,
        ("research", "1g.10gb"): 32 + 4 + 62,
        ("vision", "1g.10gb"): 12,
    }
    attempts = got.runs.filter(pl.col("run_id") == "1").sort("started_at")["state"].to_list()
    assert attempts == ["PREEMPTED", "COMPLETED"]


def test_a_dump_without_users_and_without_earlier_attempts_has_the_same_keys(shared_data: Path) -> None:
    folder = shared_data / "slurm-22.05-requeue"
    full = Read(read_sacct([folder / "sacct_D.txt"], cluster="demo", timezone="UTC")).runs
    short = Read(read_sacct([folder / "sacct_without_D.txt"], cluster="demo", timezone="UTC")).runs
    keys = ["cluster", "run_id", "started_at"]
    assert short["account"].null_count() == short.height
    assert full.join(short, on=keys, how="semi").height == short.height == 9
    assert full.join(short, on=keys, how="anti").select("run_id", "state").rows() == [("1", "PREEMPTED")]


def test_gpu_hours_equal_those_of_another_chargeback_tool_in_total_and_on_each_day(shared_data: Path) -> None:
    folder = shared_data / "slurm-xdmod-phillips"
    got = Read(read_sacct([folder / "phillips.log"], cluster="phillips", timezone="UTC", fields=XDMOD_FIELDS))
    assert (got.runs.height, len(got.rejected)) == (4_046, 239)
    assert {(one["kind"], one["reason"]) for one in got.rejected} == {
        ("set_aside", "never started: it ended without a node")
    }
    assert round(got.device_seconds()[("all",)] / 3_600, 4) == 506.9128

    with (folder / "expected" / "resource__total_gpu_hours__timeseries-Day.csv").open() as lines:
        days = [line for line in csv.reader(lines) if line and line[0].startswith("201") and len(line) > 2]
    held = got.runs.join(got.placed, on="placement_id")
    assert len(days) == 11
    for day, hours, *_ in days:
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        first = pl.max_horizontal("started_at", pl.lit(start))
        last = pl.min_horizontal("ended_at", pl.lit(start + timedelta(days=1)))
        seconds = (last - first).dt.total_seconds().clip(lower_bound=0) * pl.col("device_count")
        assert round(held.select(seconds.sum()).item() / 3_600, 4) == float(hours), day


@pytest.mark.parametrize("name", ["one-multiline", "multiple-multiline", "fake-line-break"])
def test_line_breaks_inside_fields_are_mended_as_the_expected_files_say(shared_data: Path, name: str) -> None:
    both = [shared_data / "slurm-gcm" / f"sample-sacct-{name}{suffix}.txt" for suffix in ("", "-expected")]
    broken, expected = (Read(read_sacct([path], cluster="c", timezone="UTC")) for path in both)
    assert broken.rejected == []
    jobs = [one.runs.filter(~pl.col("is_from_step")) for one in (broken, expected)]
    assert jobs[0].rows() == jobs[1].rows()
    assert set(broken.placed.rows()) >= set(
        jobs[0].join(expected.placed, on="placement_id").select(broken.placed.columns).rows()
    )
    assert set(jobs[0]["run_id"]) == {"201729", "201844"}


def test_invalid_utf8_costs_no_row(shared_data: Path) -> None:
    path = shared_data / "slurm-gcm" / "sample-sacct-output-invalid-utf8.txt"
    got = Read(read_sacct([path], cluster="c", timezone="UTC"))
    assert (got.rows, got.ignored, got.rejected) == (11, 3, [])
    assert got.device_seconds("is_from_step")[False,] == 8 * 99 + 7_212


# The command.


def stand_in(folder: Path, body: str) -> list[str]:
    """A small program that stands in for sacct."""
    path = folder / "sacct.py"
    path.write_text(f"import sys\n{body}\n")
    return [sys.executable, str(path)]


def live(command: list[str]) -> Read:
    start = datetime(2026, 1, 5, tzinfo=UTC)
    window = {"start": start, "end": start + timedelta(days=1)}
    return Read(read_sacct_live(cluster="c1", timezone="Europe/Berlin", **window, command=command))


def test_the_command_asks_for_all_attempts_of_all_users_in_the_clusters_own_time() -> None:
    command = sacct_command(datetime(2026, 1, 5, 1), datetime(2026, 1, 6, 1))  # noqa: DTZ001  wall-clock time
    assert command[:5] == ["sacct", "-D", "-P", "-a", "-X"]
    assert command[-4:] == ["-S", "2026-01-05T01:00:00", "-E", "2026-01-06T01:00:00"]


def test_what_the_command_writes_is_read(tmp_path: Path) -> None:
    got = live(stand_in(tmp_path, f"print({HEADER!r}); print({row()!r}.replace('train', sys.argv[-3]))"))
    assert got.run["started_at"] == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert got.run["run_name"] == "2026-01-05T01:00:00", "the window is asked for in the cluster's time"


def test_a_failing_command_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ended with code 3: no connection to slurmdbd"):
        live(
            stand_in(tmp_path, f"print({HEADER!r}); sys.exit(print('no connection to slurmdbd', file=sys.stderr) or 3)")
        )


@pytest.mark.timeout(60)
def test_giving_up_ends_the_command(tmp_path: Path) -> None:
    command = stand_in(tmp_path, f"print({HEADER!r})\nwhile True: print({row()!r})")
    start = datetime(2026, 1, 5, tzinfo=UTC)
    chunks = read_sacct_live(cluster="c1", timezone="UTC", start=start, end=start, command=command)
    assert next(chunks).rows_read > 0
    chunks.close()


def test_a_missing_command_is_an_error() -> None:
    with pytest.raises(SourceError, match="cannot be started"):
        live(["/nonexistent/sacct"])
