"""When each node was there and up, under which instance id, and what the inventory said of it at a given time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from examples.company import END, HOUR, OUTAGES, POOLS, START, Pool, Window, iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

UP_SECONDS, AWAY_SECONDS = 16 * HOUR, 6 * HOUR
"""Mean stay and absence of a spot node: 73 % present, reclaimed about once a day. Real cards were lost 2 to 15 times a day
and present for 17 to 90 % of the time (skypilot traces of V100 zones)."""
BOOT_SECONDS = 240
"""From the first billed second of a spot instance until Slurm may use it."""

NODES_HEADER = "cluster,node,gpu_model,gpu_count,mig_layout,effective_from,effective_until,resource_id,capacity_type"
STATES_HEADER = "cluster,node,changed_at,state,reason"
CAPACITY_TYPES = {"h100": "owned", "reserved": "reserved", "spot": "spot", "demand": "on_demand", "mig": "on_demand"}
MIG_LAYOUTS = ((2, "1g.10gb*7"), (2, "3g.40gb*1+2g.20gb*1"))
"""Cards of nimbus-m1 by layout."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A stretch of time in which a node existed, up or down.

    Attributes:
      pool: Pool it belongs to (the first, of a node with several MIG profiles).
      node: Node name.
      from_at: First second.
      until_at: First second without it.
      resource_id: Instance id of this stay; empty for owned nodes.
    """

    pool: Pool
    node: str
    from_at: int
    until_at: int
    resource_id: str


def draw_stays(rng: np.random.Generator) -> list[Stay]:
    """Every stay of every node: owned and rented nodes stay throughout, spot nodes come and go."""
    return [
        Stay(pool, node, from_at, until_at, instance_id(pool.cluster, node, from_at))
        for pool in POOLS
        if not pool.mig_profile or pool.mig_profile == "1g.10gb"
        for node in pool.nodes
        for from_at, until_at in (_spot_spells(rng) if pool.partition == "spot" else [(START, END)])
    ]


def _spot_spells(rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    at = START + round(rng.exponential(AWAY_SECONDS))
    while at < END:
        until = at + BOOT_SECONDS + 60 + round(rng.exponential(UP_SECONDS))
        yield at, min(until, END)
        at = until + 60 + round(rng.exponential(AWAY_SECONDS))


def instance_id(cluster: str, node: str, from_at: int) -> str:
    """ARN of a rented instance, the same in the inventory and on the bill; nothing for an owned node.

    >>> instance_id("nimbus", "nimbus-r1", 0)
    'arn:aws:ec2:us-east-1:111122223333:instance/i-02935c7f4c8253254'
    """
    if cluster == "atlas":
        return ""
    digest = hashlib.sha256(f"{node} {from_at}".encode()).hexdigest()[:16]
    return f"arn:aws:ec2:us-east-1:111122223333:instance/i-0{digest}"


def windows(stays: list[Stay]) -> dict[str, list[Window]]:
    """When each node was up: its stays, less its outages."""
    found: dict[str, list[Window]] = {}
    for stay in stays:
        is_spot = stay.pool.partition == "spot"
        at = stay.from_at + BOOT_SECONDS if is_spot else stay.from_at
        for outage in sorted((one for one in OUTAGES if one.node == stay.node), key=lambda one: one.from_at):
            found.setdefault(stay.node, []).append(Window(at, outage.from_at, outage.cut_state))
            at = outage.until_at
        # Whoever is still there at the end of the example runs on.
        until_at = stay.until_at if stay.until_at < END else END + 365 * 86_400
        found.setdefault(stay.node, []).append(Window(at, until_at, "PREEMPTED"))
    return found


def nodes_csv(stays: list[Stay], known_at: int) -> str:
    """The inventory as it was known at an instant: a stay that went on has no end yet."""
    lines = [NODES_HEADER]
    for stay in stays:
        if stay.from_at > known_at:
            continue
        until = iso(stay.until_at) if stay.until_at <= known_at and stay.until_at < END else ""
        layouts = MIG_LAYOUTS if stay.pool.mig_profile else ((stay.pool.device_count, ""),)
        lines += [
            f"{stay.pool.cluster},{stay.node},{stay.pool.gpu_model},{count},{layout},{iso(stay.from_at)},{until},"
            f"{stay.resource_id},{CAPACITY_TYPES[stay.pool.partition]}"
            for count, layout in layouts
        ]
    return "\n".join(lines) + "\n"


def node_states_csv(known_at: int) -> str:
    """Outages as they were known at an instant; only the header while there were none."""
    changes = [
        (at, f"{outage.cluster},{outage.node},{iso(at)},{state},{reason}")
        for outage in OUTAGES
        for at, state, reason in ((outage.from_at, "down", outage.reason), (outage.until_at, "up", ""))
        if at <= known_at
    ]
    return "\n".join([STATES_HEADER, *(line for _, line in sorted(changes))]) + "\n"
