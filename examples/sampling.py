"""What exporters would have sampled of every GPU and MIG instance, in the columns of the ledger's telemetry table.

Means: SM_ACTIVE 0.385 (Kalos) and 0.415 (Seren), GPU_UTIL 1.6 times that, board power of A100 between 61 and 413 W
(acme/util_cdf_summary.csv, CC-BY-4.0). A quarter of the samples of training runs are idle; inference instances wait more
(a production service: two thirds of its samples, alibaba GenAI).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from examples.company import DUMPS, END, POOLS, SAMPLE_SECONDS, START, TELEMETRY_GAP, Pool, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from examples.scheduling import Attempt

IDLE_RATIO, MIG_IDLE_RATIO = 0.23, 0.60
LEVEL_RATIO, MIG_LEVEL_RATIO = 0.53, 0.35
"""Mean SM_ACTIVE of samples that are not idle."""
SPELL_SECONDS = 1_800
"""A run is idle, or not, for half an hour at a time, on all its devices together."""
UTIL_FACTOR = 1.65


@dataclass(frozen=True, slots=True)
class Device:
    """One device whose samples are a row of the matrices here.

    Attributes:
      pool: Its pool.
      node: Its node.
      number: Its number among the node's devices of the pool.
      card: Index of its card on the node.
      gpu_uuid: UUID of the card.
    """

    pool: Pool
    node: str
    number: int
    card: int
    gpu_uuid: str


def weekly_samples(
    attempts: Sequence[Attempt], windows: dict[str, list[Window]], cluster: str, rng: np.random.Generator
) -> Iterator[tuple[int, pl.DataFrame]]:
    """When each export of a cluster was taken, and the samples since the one before."""
    interval = SAMPLE_SECONDS[cluster]
    devices = _devices(cluster)
    slots = np.arange(START, END, interval)
    is_up = np.array([_up(device, windows, slots) for device in devices])
    ours = [one for one in attempts if one.request.pool.cluster == cluster]
    sm_active = _sm_active(ours, devices, len(slots), interval, rng)
    watts = _board_watts(sm_active, devices, rng)
    about = pl.DataFrame([_about(device) for device in devices], schema_overrides={"mig_profile": pl.String()})
    since = START
    for taken_at in DUMPS:
        weekly = (slots >= since) & (slots < taken_at)
        slot, device = np.nonzero((is_up & weekly).T)
        yield taken_at, _frame(about[device], slots[slot], sm_active[device, slot], watts[device, slot], interval)
        since = taken_at


def _devices(cluster: str) -> list[Device]:
    return [
        Device(pool, node, number, card, f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node} {card}')}")
        for pool in POOLS
        if pool.cluster == cluster
        for node in pool.nodes
        for number, card in enumerate(pool.cards)
    ]


def _up(device: Device, windows: dict[str, list[Window]], slots: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Samples that reached the monitoring: the node was up, and its exporter not silent."""
    found = np.zeros(len(slots), dtype=bool)
    for window in windows[device.node]:
        found |= (slots >= window.from_at) & (slots < window.until_at)
    nodes, from_at, until_at = TELEMETRY_GAP
    return found & ~((slots >= from_at) & (slots < until_at)) if device.node in nodes else found


def _sm_active(
    attempts: Sequence[Attempt], devices: list[Device], slot_count: int, interval: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """SM_ACTIVE by device and slot: 0 where nothing runs or what runs is idle."""
    found = np.zeros((len(devices), slot_count))
    row = {(device.pool.key, device.node, device.number): index for index, device in enumerate(devices)}
    spell = SPELL_SECONDS // interval
    for attempt in attempts:
        pool = attempt.request.pool
        first, last = (-(-(min(at, END) - START) // interval) for at in (attempt.started_at, attempt.ended_at))
        rows = [row[pool.key, node, number] for node, numbers in attempt.placed for number in numbers]
        if not rows or last <= first:
            continue
        idle, level = (MIG_IDLE_RATIO, MIG_LEVEL_RATIO) if pool.mig_profile else (IDLE_RATIO, LEVEL_RATIO)
        idle_ratio = rng.beta(4 * idle, 4 * (1 - idle))
        run_level = np.clip(rng.normal(level, 0.13), 0.1, 0.95)
        spells = rng.random(-(-(last - first) // spell)) >= idle_ratio
        is_active = np.repeat(spells, spell)[: last - first]
        noise = rng.normal(run_level, 0.07, (len(rows), last - first))
        found[rows, first:last] = np.where(is_active, np.clip(noise, 0.03, 1.0), 0.0)
    return found.round(3)


def _board_watts(
    sm_active: NDArray[np.float64], devices: list[Device], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Power of the board that each device lies on: the same for all instances of a card."""
    found = np.empty_like(sm_active)
    for card in sorted({device.gpu_uuid for device in devices}):
        rows = [index for index, device in enumerate(devices) if device.gpu_uuid == card]
        idle, most = devices[rows[0]].pool.watts
        parts = [_part(devices[index].pool) for index in rows]
        load = np.clip((sm_active[rows] * np.array(parts)[:, None]).sum(axis=0), 0, 1)
        found[rows] = idle + (most - idle) * load**0.7 + rng.normal(0, 2, sm_active.shape[1])
    return found.round(1)


def _part(pool: Pool) -> float:
    """Part of a card's compute that a device of a pool is: sevenths by the profile's name, or all of it."""
    return int(pool.mig_profile[0]) / 7 if pool.mig_profile else 1.0


def _about(device: Device) -> dict[str, Any]:
    return {
        "node": device.node,
        "gpu_uuid": device.gpu_uuid,
        "gpu_index": str(device.card),
        "gpu_model": device.pool.gpu_model,
        # Instance ids start at 7 for the smallest profile (dcgm-a100-mig); they tell instances of a card apart, no more.
        "mig_instance": str(device.number % 7 + 7)
        if device.pool.mig_profile == "1g.10gb"
        else _larger_instance(device),
        "mig_profile": device.pool.mig_profile or None,
    }


def _larger_instance(device: Device) -> str:
    return {"": "", "3g.40gb": "1", "2g.20gb": "5"}[device.pool.mig_profile]


def _frame(
    about: pl.DataFrame,
    sampled: NDArray[np.int64],
    sm_active: NDArray[np.float64],
    watts: NDArray[np.float64],
    interval: int,
) -> pl.DataFrame:
    """Samples as the ledger's telemetry table has them."""
    is_whole = pl.col("mig_profile").is_null()
    active = pl.col("sm_active_ratio")
    return about.with_columns(
        sampled_at=pl.from_epoch(pl.Series(sampled), "s").dt.cast_time_unit("us").dt.replace_time_zone("UTC"),
        interval_seconds=pl.lit(interval, pl.Int64()),
        sm_active_ratio=pl.Series(sm_active),
        board_power_watts=pl.Series(watts),
    ).with_columns(
        gpu_util_ratio=pl.when(is_whole).then((active * UTIL_FACTOR).clip(0, 1).round(2)),
        gr_engine_active_ratio=(active * 1.3).clip(0, 1).round(3),
    ).select(
        "node", "gpu_uuid", "gpu_index", "gpu_model", "mig_instance", "mig_profile", "sampled_at", "interval_seconds",
        "gpu_util_ratio", "sm_active_ratio", "gr_engine_active_ratio", "board_power_watts",
    )  # fmt: skip
