"""When training runs saved what they had learnt: one line a checkpoint, as the training code would have logged it.

Runs on spot, and those that were queued again elsewhere, save each hour: that is where the scheduler lets them go on
(``scheduling.CHECKPOINT_SECONDS``). Others save every 30 to 90 minutes, some never tell. Screening saves none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from examples.company import iso
from examples.scheduling import CHECKPOINT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from examples.scheduling import Attempt

HEADER = "cluster,run_id,saved_at,blocking_seconds,size_mib"
SAVING_ACCOUNTS = {"fm-pretrain", "fm-scaling", "vision", "sft", "rlhf", "speech", "protein", "imaging"}
SILENT_RATIO = 0.15
"""Runs of those accounts whose code tells of no checkpoint: what an interruption costs them is unknown."""
MINUTES = (30, 90)
BLOCKING_SECONDS = (120, 480)
GIB_PER_GPU = (8, 48)
"""State that each GPU writes: an assumption."""


def checkpoints_csv(
    attempts: Sequence[Attempt], rng: np.random.Generator, *, months: Sequence[tuple[int, int]]
) -> list[str]:
    """Checkpoints of all attempts, a text for each stretch of time ``[start, end)`` that is asked for."""
    saved = sorted(_saved(attempts, rng))
    return [
        "\n".join(
            [
                HEADER,
                *(
                    f"{cluster},{run_id},{iso(at)},{blocking},{mib}"
                    for at, cluster, run_id, blocking, mib in saved
                    if start <= at < end
                ),
            ]
        )
        + "\n"
        for start, end in months
    ]


def _saved(attempts: Sequence[Attempt], rng: np.random.Generator) -> Iterator[tuple[int, str, int, int, int]]:
    """(when, cluster, run, seconds that it stood still, MiB) of each checkpoint; those of a run's attempts are alike."""
    again = {_run(one) for one in attempts if one.submitted_at != one.request.submitted_at}
    habits: dict[tuple[str, int], tuple[bool, int, float, int]] = {}
    for one in attempts:
        request = one.request
        if request.account.name not in SAVING_ACCOUNTS or not request.device_count:
            continue
        cluster, run_id = _run(one)
        if (cluster, run_id) not in habits:
            # Drawn for each run, told or not, so that one run's habit does not change another's.
            tells, minutes = rng.random() >= SILENT_RATIO, 5 * int(rng.integers(MINUTES[0] // 5, MINUTES[1] // 5 + 1))
            blocking, gib = float(rng.uniform(*BLOCKING_SECONDS)), int(rng.integers(*GIB_PER_GPU))
            is_hourly = request.pool.partition == "spot" or (cluster, run_id) in again
            interval = CHECKPOINT_SECONDS if is_hourly else minutes * 60
            habits[cluster, run_id] = tells, interval, blocking, gib * 1_024 * request.device_count
        tells, interval, usual, mib = habits[cluster, run_id]
        if tells and one.placed:
            times = np.arange(one.started_at + interval, one.ended_at + 1, interval)
            blocked = np.clip(usual * rng.uniform(0.9, 1.1, len(times)), *BLOCKING_SECONDS).round()
            yield from ((int(at), cluster, run_id, int(wait), mib) for at, wait in zip(times, blocked, strict=True))


def _run(attempt: Attempt) -> tuple[str, int]:
    return attempt.request.pool.cluster, attempt.run_id
