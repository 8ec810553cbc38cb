from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.errors import SourceError, UsageError
from models.events import RunPlaced, RunRecorded
from models.units import SHARES_PER_GPU
from pipelines.sources.traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.sources.base import Chunk


def frames(chunks: Iterable[Chunk]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(runs joined with what they held, rejected rows)."""
    read = list(chunks)
    runs = pl.concat([chunk.events[RunRecorded] for chunk in read])
    placed = pl.concat([chunk.events[RunPlaced] for chunk in read]).unique()
    rejected = pl.concat([chunk.rejected for chunk in read])
    assert sum(chunk.rows_read for chunk in read) == runs.height + rejected.height
    return runs.join(placed, on="placement_id", how="left"), rejected


def gpu_hours(held: pl.DataFrame, *by: str, whole: bool = False) -> dict[Any, float]:
    """GPU-hours by some columns; ``whole`` counts a shared card as a card."""
    shares = pl.lit(SHARES_PER_GPU) if whole else pl.col("device_shares").fill_null(SHARES_PER_GPU)
    seconds = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds() * pl.col("device_count").fill_null(0)
    totals = held.group_by(by or [pl.lit("all")]).agg((seconds * shares).sum() / SHARES_PER_GPU / 3_600)
    return {keys[0] if len(keys) == 1 else tuple(keys): round(hours, 4) for *keys, hours in totals.iter_rows()}


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([*lines, ""]))
    return path


def test_helios_gpu_hours_by_account_and_state(shared_data: Path) -> None:
    held, rejected = frames(read_trace("helios", [shared_data / "helios-venus" / "helios_venus_2vc_sept.csv"]))
    assert (held.height, rejected.height) == (1_867, 0)
    assert gpu_hours(held) == {"all": 118_317.8092}
    assert gpu_hours(held, "account", "state") == {
        ("vcvGl", "CANCELED"): 61_059.5450,
        ("vcvGl", "COMPLETED"): 45_167.8975,
        ("vcvGl", "NODE_FAIL"): 2_925.4756,
        ("vcvGl", "FAILED"): 68.0114,
        ("vcvlY", "CANCELED"): 5_756.9167,
        ("vcvlY", "COMPLETED"): 3_192.7406,
        ("vcvlY", "FAILED"): 147.2225,
    }
    first = held.filter(pl.col("run_id") == "765563").row(0, named=True)
    assert (first["cluster"], first["user_name"], first["device_count"], first["node"]) == ("helios", "uH3om", 128, "")
    assert first["started_at"] == datetime.fromtimestamp(5_835, UTC)


def test_helios_own_log_has_starts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cluster_log.csv",
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:42:27,2020-06-09 18:46:36,249,60",
    )
    held, _ = frames(read_trace("helios", [path], cluster="Venus"))
    assert (held["cluster"].item(), held["account"].item()) == ("Venus", "vchbv")
    assert gpu_hours(held) == {"all": round(4 * 249 / 3_600, 4)}


def test_kalos_duration_includes_the_queue_so_runs_are_shorter(shared_data: Path) -> None:
    held, rejected = frames(read_trace("acme", [shared_data / "acme" / "kalos_800_jobs.csv"]))
    assert (held.height, rejected.height) == (800, 0)
    assert gpu_hours(held) == {"all": 155_936.6642}
    assert gpu_hours(held.with_columns(started_at="submitted_at")) == {"all": 156_022.3328}, "as the authors count"


def test_acme_as_published_counts_from_start_to_end(tmp_path: Path) -> None:
    path = write(
        tmp_path / "trace_kalos.csv",
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
        "end_time,fail_time,stop_time,duration,queue,gpu_time",
        "dlctk,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0",
        "seren,u5907,1,8,128,,,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,"
        "2023-03-01 01:09:04+08:00,,,2693,13,21544.0",
        "never,u1,1,8,128,,,Other,CANCELLED,2023-03-01 00:23:58+08:00,,2023-03-01 00:25:04+08:00,,,0,66,0",
        "cpu,u1,1,0,128,,,Other,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 00:00:00+08:00,"
        "2023-03-01 01:00:00+08:00,,,3600,0,0",
    )
    held, rejected = frames(read_trace("acme", [path]))
    hours = gpu_hours(held, "run_id")
    assert hours == {"dlctk": round(64 * 8 / 3_600, 4), "seren": round(8 * 2_693 / 3_600, 4), "cpu": 0}
    assert held.filter(pl.col("run_id") == "cpu")["placement_id"].item() is None
    assert rejected["kind"].to_list() == ["set_aside"]
    assert rejected["position"].item().endswith("trace_kalos.csv row 3")


def test_openb_fractions_of_gpus_and_whole_cards(shared_data: Path) -> None:
    held, rejected = frames(read_trace("openb", [shared_data / "alibaba-openb" / "openb_pod_list_default.csv"]))
    assert held.height == 7_255
    assert rejected["kind"].value_counts().rows() == [("set_aside", 897)]
    assert gpu_hours(held) == {"all": 51_470.6742}
    assert gpu_hours(held, whole=True) == {"all": 59_612.2106}
    assert gpu_hours(held, "account") == {
        "LS": 41_413.3600,
        "Burstable": 7_459.2006,
        "BE": 1_311.6358,
        "Guaranteed": 1_286.4778,
    }
    pod = held.filter(pl.col("run_id") == "openb-pod-0001").row(0, named=True)
    assert (pod["device_count"], pod["device_shares"]) == (1, 1_932)
    assert (pod["is_final"], pod["ended_at"]) == (False, datetime.fromtimestamp(12_902_960, UTC))


def test_openb_where_every_gpu_is_shared(shared_data: Path) -> None:
    held, _ = frames(read_trace("openb", [shared_data / "alibaba-openb" / "openb_pod_list_gpushare100.csv"]))
    assert gpu_hours(held) == {"all": 15_149.9570}
    assert gpu_hours(held, whole=True) == {"all": 32_417.6483}


def philly_job(**changes: object) -> dict[str, object]:
    eight = [f"gpu{number}" for number in range(8)]
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1",
        "user": "ce2f4c",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": eight}],
            },
            {
                "start_time": "2017-10-07 01:13:30",
                "end_time": "2017-10-09 06:53:12",
                "detail": [{"ip": "m412", "gpus": eight}, {"ip": "m413", "gpus": ["gpu0"]}],
            },
        ],
        **changes,
    }


def philly(path: Path, *jobs: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    path.write_text(json.dumps(jobs))
    return frames(read_trace("philly", [path]))


def test_each_philly_attempt_is_a_run_on_its_nodes(tmp_path: Path) -> None:
    held, rejected = philly(tmp_path / "cluster_job_log", philly_job())
    assert rejected.is_empty()
    assert sorted(held.select("state", "node", "device_count").rows()) == [
        ("Pass", "m412", 8),
        ("Pass", "m413", 1),
        ("REQUEUED", "m47", 8),
    ]
    assert gpu_hours(held, "node")["m47"] == round(8 * 74 / 3_600, 4)


def test_a_philly_job_may_be_running_unscheduled_or_logged_badly(tmp_path: Path) -> None:
    running: Any = philly_job(jobid="running")
    running["attempts"][1]["end_time"] = "None"
    lost: Any = philly_job(jobid="lost")
    lost["attempts"][0]["end_time"] = None
    jobs = [running, lost, philly_job(jobid="none", attempts=[]), {"jobid": "half"}, 7]
    held, rejected = philly(tmp_path / "cluster_job_log", *jobs)
    last = held.filter(pl.col("run_id") == "running", pl.col("state") == "Pass").row(0, named=True)
    assert (last["ended_at"], last["is_final"]) == (None, False)
    assert rejected.select("kind", pl.col("reason").str.split(":").list.first()).rows() == [
        ("rejected", "its end is no time"),
        ("set_aside", "never started"),
        ("rejected", "it is no job as in philly-traces' cluster_job_log"),
        ("rejected", "it is no job as in philly-traces' cluster_job_log"),
    ]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (",1,1000,,LS,Running,0,90,10", "it has no id"),
        ("p,1,1000,,LS,,0,90,10", "it has no state"),
        ("p,1,1000,,LS,Running,0,90,soon", "its start is no time"),
        ("p,1,1000,,LS,Failed,0,,10", "its end is no time"),
        ("p,1,1000,,LS,Running,0,5,10", "it ends before it starts"),
        ("p,many,1000,,LS,Running,0,90,10", "its number of GPUs is no count"),
        ("p,1,0,,LS,Running,0,90,10", "its part of a GPU is not above zero"),
    ],
)
def test_a_bad_row_is_rejected_with_its_reason(tmp_path: Path, cells: str, said: str) -> None:
    header = "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    held, rejected = frames(read_trace("openb", [write(tmp_path / "pods.csv", header, cells)]))
    assert held.is_empty()
    assert rejected.select("kind", "reason", "raw_text").rows() == [("rejected", said, cells)]


def test_a_named_model_is_the_type_and_a_choice_of_models_is_none(tmp_path: Path) -> None:
    header = "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    rows = ["a,2,1000,V100M16,LS,Failed,0,90,10", "b,2,1000,V100M16|V100M32,LS,Failed,0,90,10"]
    held, _ = frames(read_trace("openb", [write(tmp_path / "pods.csv", header, *rows)]))
    assert held.sort("run_id").select("gpu_type", "gpu_model").rows() == [("V100M16", "V100-16GB"), ("", None)]


def test_what_is_no_such_trace_is_said(tmp_path: Path, shared_data: Path) -> None:
    with pytest.raises(UsageError, match="known are helios, acme, philly, openb"):
        next(read_trace("borg", []))
    with pytest.raises(SourceError, match=r"found the columns name, .*expected for openb"):
        next(read_trace("openb", [shared_data / "alibaba-openb" / "openb_pod_list_multigpu50.csv"]))
    with pytest.raises(SourceError, match="cannot be read as a CSV"):
        next(read_trace("acme", [tmp_path / "none.csv"]))
    with pytest.raises(SourceError, match="cannot be read as JSON"):
        next(read_trace("philly", [write(tmp_path / "half.json", "[{")]))
    assert list(read_trace("acme", [write(tmp_path / "empty.csv").absolute()])) == []
