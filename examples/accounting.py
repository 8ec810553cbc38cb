"""The text that ``sacct -D -P -a`` would have printed of the simulated runs, dump by dump.

Each dump reaches one day further back than the dump before it, so runs appear again: RUNNING in one, ended in the next.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from examples.company import ACCOUNTS, DAY, DUMPS, START, STUDENT, TIMEZONES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from examples.scheduling import Attempt

HEADER = (
    "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES|NodeList|"
    "ExitCode|JobName"
)
EXIT_CODES = {"FAILED": "1:0", "NODE_FAIL": "1:0", "OUT_OF_MEMORY": "0:125"}
BATCH_STATES = {"PREEMPTED": "CANCELLED", "TIMEOUT": "CANCELLED", "NODE_FAIL": "CANCELLED"}
UIDS = {user: 1_001 + number for number, user in enumerate(sorted({u for a in (*ACCOUNTS, STUDENT) for u in a.users}))}
CPUS_AND_GIB = {"h100": (24, 250), "a100": (12, 140)}
"""Cores and memory that a run holds for each whole GPU; MIG instances and runs without GPUs hold less."""


def dumps(attempts: Sequence[Attempt], cluster: str) -> Iterator[tuple[int, str]]:
    """When each dump of a cluster was taken, and its text."""
    zone = ZoneInfo(TIMEZONES[cluster])
    ours = [one for one in attempts if one.request.pool.cluster == cluster]
    since = START
    for taken_at in DUMPS:
        seen = [one for one in ours if one.submitted_at <= taken_at and one.ended_at > since]
        rows = (row for one in seen for row in _rows(one, taken_at, zone))
        yield taken_at, "\n".join([HEADER, *("|".join(row) for row in rows)]) + "\n"
        since = taken_at - DAY


def _rows(attempt: Attempt, taken_at: int, zone: ZoneInfo) -> Iterator[list[str]]:
    """The attempt's row as known at an instant and, once it has started, those of its two steps."""
    request = attempt.request
    has_ended = attempt.ended_at <= taken_at
    has_started = bool(attempt.placed) and attempt.started_at <= taken_at
    state = attempt.state if has_ended else "RUNNING" if has_started else "PENDING"
    written = f"CANCELLED by {UIDS[request.user_name]}" if state == "CANCELLED" else state
    start = _local(attempt.started_at, zone) if has_started or has_ended else "Unknown"
    end = _local(attempt.ended_at, zone) if has_ended else "Unknown"
    elapsed = str(min(attempt.ended_at, taken_at) - attempt.started_at) if has_started else "0"
    nodes = node_list([name for name, _ in attempt.placed]) if has_started else "None assigned"
    tres = _tres(attempt) if has_started else ""
    times = [_local(attempt.submitted_at, zone), _local(attempt.eligible_at, zone), start, end, elapsed]
    qos = "preemptible" if request.pool.partition == "spot" else "normal"
    about = [request.user_name, request.account.name, request.pool.partition, qos]
    exit_code = EXIT_CODES.get(state, "0:0")
    yield [str(attempt.run_id), attempt.display_id, *about, written, *times, tres, nodes, exit_code, request.run_name]
    if not has_started:
        return
    bare = tres.partition(",")[2]  # a step has no billing
    step_times = [start, start, start, end, elapsed]
    batch_state = BATCH_STATES.get(state, state).partition(" ")[0]
    extern_state = "RUNNING" if state == "RUNNING" else "COMPLETED"
    for step, step_state in (("batch", batch_state), ("extern", extern_state)):
        ids = [f"{attempt.run_id}.{step}", f"{attempt.display_id}.{step}"]
        yield [*ids, "", request.account.name, "", "", step_state, *step_times, bare, nodes, exit_code, step]


def _local(instant: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(instant, zone):%Y-%m-%dT%H:%M:%S}"


def _tres(attempt: Attempt) -> str:
    pool, count = attempt.request.pool, attempt.request.device_count
    cpus, gib = CPUS_AND_GIB.get(pool.gres_type, (4, 24))
    whole = max(count, 1)
    gpus = f",gres/gpu:{pool.gres_type}={count},gres/gpu={count}" if count else ""
    return f"billing={cpus * whole},cpu={cpus * whole}{gpus},mem={gib * whole}G,node={len(attempt.placed)}"


def node_list(names: Sequence[str]) -> str:
    """Slurm's short form of node names that differ in their last number.

    >>> node_list(["atlas-01"]), node_list(["atlas-04", "atlas-01", "atlas-02"])
    ('atlas-01', 'atlas-[01-02,04]')
    """
    if len(names) == 1:
        return names[0]
    stem = names[0].rstrip("0123456789")
    ranges: list[list[str]] = []
    for number in sorted(name.removeprefix(stem) for name in names):
        if ranges and int(ranges[-1][-1]) + 1 == int(number):
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return f"{stem}[{','.join('-'.join(one) for one in ranges)}]"
