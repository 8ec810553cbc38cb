"""What people submit: sizes, durations, outcomes and times, drawn to the published marginals of Helios and Acme.

Figures: Helios had 1,580,464 GPU jobs, median 1 and mean 3.716 GPUs, median 206 s and mean 6,651.681 s; completed,
cancelled and failed by count .624/.221/.155 and by GPU time .513/.394/.093 (AcmeTrace ``data/cluster_summary.csv``,
CC-BY-4.0, after Hu et al., SC'21). The median is kept; the tail is widened until the GPU time submitted is the stated
part of what the pool has, which two months of 4,000 runs need (Helios: 13.7 GPU-hours a run).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from examples.company import ACCOUNTS, CPU_POOL, DAY, END, HOUR, POOLS, START, STUDENT, Account, Pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MEDIAN_SECONDS = 206
BY_COUNT = {"COMPLETED": 0.624, "CANCELLED": 0.221, "FAILED": 0.155}
BY_GPU_TIME = {"COMPLETED": 0.513, "CANCELLED": 0.394, "FAILED": 0.093}
TAIL_RATIO = 0.15
"""The largest part of runs whose outcomes are laid so that GPU time splits as published; others go by count."""
GROWTH = 0.6
"""Runs on k GPUs last k ** GROWTH times as long: Helios's mean run took twice the mean GPUs times the mean duration."""
NEVER_STARTED_RATIO = 0.03
CANCELLED_PENDING = "CANCELLED_PENDING"
STUDENT_RATIO = 0.05
ARRAY_RATIO, ARRAY_TASKS = 0.03, (3, 10)


@dataclass(frozen=True, slots=True)
class Request:
    """A run as submitted.

    Attributes:
      pool: Where.
      account: On whose account.
      user_name: By whom.
      run_name: Its name.
      submitted_at: When.
      device_count: Devices asked for.
      duration_seconds: How long it will run, if nothing cuts it off.
      outcome: State it will end in; CANCELLED_PENDING if its user gives up before it starts.
      array: Number of its job array and task, if it is of one.
    """

    pool: Pool
    account: Account
    user_name: str
    run_name: str
    submitted_at: int
    device_count: int
    duration_seconds: int
    outcome: str
    array: tuple[int, int] | None = None


def draw_requests(rng: np.random.Generator) -> list[Request]:
    """All runs of both clusters, in the order of submission."""
    drawn = [_drawn(pool, rng) for pool in POOLS]
    gpu_seconds = np.concatenate([sizes * lengths for sizes, lengths in drawn])
    outcomes = iter(_outcomes(gpu_seconds, rng))
    requests: list[Request] = []
    for pool, (sizes, lengths) in zip(POOLS, drawn, strict=True):
        requests += _with_arrays(list(_requests(pool, sizes, lengths, outcomes, rng)), rng)
    requests += _cpu_requests(rng)
    return sorted(requests, key=lambda one: one.submitted_at)


def _cpu_requests(rng: np.random.Generator) -> list[Request]:
    """Runs without GPUs: preparing data."""
    times = _times(CPU_POOL.run_count, rng)
    lengths = np.clip(600 * np.exp(1.5 * rng.standard_normal(len(times))), 4, CPU_POOL.longest_seconds)
    users = rng.integers(len(ACCOUNTS), size=len(times))
    return [
        Request(CPU_POOL, ACCOUNTS[user], ACCOUNTS[user].users[0], "prepare-data", int(at), 0, int(length), "COMPLETED")
        for at, length, user in zip(times, lengths, users, strict=True)
    ]


def _drawn(pool: Pool, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Devices and seconds of a pool's runs."""
    weights = np.array(list(pool.sizes.values()))
    sizes = rng.choice(np.array(list(pool.sizes)), pool.run_count, p=weights / weights.sum())
    noise = rng.standard_normal(pool.run_count)
    middle = MEDIAN_SECONDS * sizes**GROWTH / 1.6  # so that the median over all sizes stays
    aim = pool.load_ratio * (END - START) * pool.device_count * len(pool.nodes)
    narrow, wide = 0.5, 8.0
    for _ in range(40):
        width = (narrow + wide) / 2
        lengths = np.clip(middle * np.exp(width * noise), 4, pool.longest_seconds).astype(np.int64)
        narrow, wide = (width, wide) if (sizes * lengths).sum() < aim else (narrow, width)
    return sizes, lengths


def _outcomes(gpu_seconds: NDArray[np.int64], rng: np.random.Generator) -> list[str]:
    """Final state of each run: the largest by whichever is furthest below its part of GPU time, the others by count."""
    names = list(BY_COUNT)
    found = list(rng.choice(names, len(gpu_seconds), p=list(BY_COUNT.values())))
    order = np.argsort(-gpu_seconds, kind="stable")
    given = dict.fromkeys(names, 0.0)
    whole = 0.0
    for index in order[: round(TAIL_RATIO * len(order))]:
        whole += float(gpu_seconds[index])
        found[index] = max(names, key=lambda name: BY_GPU_TIME[name] * whole - given[name])
        given[found[index]] += float(gpu_seconds[index])
    return [str(name) for name in found]


def _times(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Submission times: more in Berlin's office hours (UTC+2), fewer at weekends."""
    hours = np.arange(START, END, HOUR)
    of_day = (hours % DAY // HOUR + 2) % 24
    is_weekend = (hours // DAY + 3) % 7 >= 5  # 1970-01-01 was a Thursday
    weights = np.where((of_day >= 8) & (of_day < 20), 1.0, 0.35) * np.where(is_weekend, 0.5, 1.0)
    return rng.choice(hours, count, p=weights / weights.sum()) + rng.integers(0, HOUR, count)


def _requests(
    pool: Pool, sizes: NDArray[np.int64], lengths: NDArray[np.int64], outcomes: Iterator[str], rng: np.random.Generator
) -> Iterator[Request]:
    """A pool's runs in the order of submission, each with who submits it."""
    for at, size, drawn in zip(np.sort(_times(len(sizes), rng)), sizes, lengths, strict=True):
        length, outcome = _ending(pool, int(drawn), next(outcomes), rng)
        account = _account(pool, int(size), length, rng)
        user_name = account.users[int(rng.integers(len(account.users)))]
        run_name = account.run_names[int(rng.integers(len(account.run_names)))]
        yield Request(pool, account, user_name, run_name, int(at), int(size), length, outcome)


def _account(pool: Pool, size: int, length: int, rng: np.random.Generator) -> Account:
    if pool.partition == "h100" and size == 1 and HOUR < length < DAY and rng.random() < STUDENT_RATIO:
        return STUDENT
    able = [one for one in ACCOUNTS if pool.partition in one.partitions and one.most_gpus >= size]
    weights = np.array([one.weight for one in able], float)
    return able[int(rng.choice(len(able), p=weights / weights.sum()))]


def _ending(pool: Pool, length: int, outcome: str, rng: np.random.Generator) -> tuple[int, str]:
    """Duration and final state: a failure is told more closely, and a time limit is in whole hours."""
    if outcome == "FAILED" and length > HOUR // 2:
        outcome = ("FAILED", "TIMEOUT", "OUT_OF_MEMORY")[int(rng.choice(3, p=[0.55, 0.25, 0.20]))]
    if outcome == "TIMEOUT":
        return min(-(-length // HOUR) * HOUR, pool.longest_seconds), outcome
    if outcome == "CANCELLED" and length < 2 * HOUR and rng.random() < NEVER_STARTED_RATIO / BY_COUNT["CANCELLED"]:
        return length, CANCELLED_PENDING
    return length, outcome


def _with_arrays(asked: list[Request], rng: np.random.Generator) -> list[Request]:
    """Some neighbours on one GPU each become tasks of one job array: one user, one name, one time of submission."""
    found: list[Request] = []
    index, number = 0, 0
    while index < len(asked):
        first = asked[index]
        count = int(rng.integers(*ARRAY_TASKS)) if first.device_count == 1 and rng.random() < ARRAY_RATIO else 1
        group = asked[index : index + count]
        index += count
        if count == 1 or first.account is STUDENT:
            found += group
            continue
        number += 1
        about = first.account, first.user_name, f"{first.run_name}-sweep", first.submitted_at
        found += [one for one in group if one.device_count != 1]
        found += [
            Request(first.pool, *about, 1, one.duration_seconds, one.outcome, (number, task))
            for task, one in enumerate(one for one in group if one.device_count == 1)
        ]
    return found
