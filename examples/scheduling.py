"""Which run got which devices from when until when: list scheduling with backfill, no device ever held twice.

A run gets the first stretch in which its devices are free for as long as it will run, and delays nobody who came before
(conservative backfill, as Slurm's, with known run times). The end of a node's window cuts off what runs there; what was reclaimed or failed is queued again and goes on from
its last hourly checkpoint.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from examples.company import END, HOUR, PAUSES, POOLS, Window
from examples.workload import CANCELLED_PENDING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from examples.workload import Request

REQUEUE_SECONDS = 121
"""Slurm holds a requeued job back for two minutes (slurm-22.05-requeue: BeginTime)."""
CHECKPOINT_SECONDS = HOUR
NEVER = END * 2
FIRST_IDS = {"atlas": 181_204, "nimbus": 40_517}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a run, as Slurm accounts for it.

    Attributes:
      request: What was submitted.
      run_id: JobIDRaw.
      display_id: JobID.
      submitted_at: When it was submitted or queued again.
      started_at: When it started; beyond the example's end if it never did.
      ended_at: When it ended.
      state: State it ended in.
      placed: Devices held, by node; empty if it never started.
    """

    request: Request
    run_id: int
    display_id: str
    submitted_at: int
    started_at: int
    ended_at: int
    state: str
    placed: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def eligible_at(self) -> int:
        """When it might first have started: at once, or what is queued again once Slurm lets go of it."""
        is_again = self.submitted_at != self.request.submitted_at
        return self.submitted_at + (REQUEUE_SECONDS if is_again else 0)


@dataclass(slots=True)
class Node:
    """A node's devices of one pool and what they hold, each device's spans ascending and disjoint."""

    name: str
    windows: Sequence[Window]
    pause: tuple[int, int]
    device_count: InitVar[int]
    starts: list[list[int]] = field(init=False)
    ends: list[list[int]] = field(init=False)

    def __post_init__(self, device_count: int) -> None:
        """Begin with every device free."""
        self.starts = [[] for _ in range(device_count)]
        self.ends = [[] for _ in range(device_count)]

    def window(self, at: int) -> Window | None:
        """The window in which the node is up and may start something at an instant."""
        is_paused = self.pause[0] <= at < self.pause[1]
        return next((one for one in self.windows if one.from_at <= at < one.until_at and not is_paused), None)

    def free(self, start: int, end: int) -> list[int]:
        """Devices that hold nothing in ``[start, end)``."""
        found = []
        for device, starts in enumerate(self.starts):
            before = bisect_left(starts, end)
            if before == 0 or self.ends[device][before - 1] <= start:
                found.append(device)
        return found

    def hold(self, devices: Sequence[int], start: int, end: int) -> None:
        """Book devices for ``[start, end)``."""
        for device in devices:
            at = bisect_left(self.starts[device], start)
            self.starts[device].insert(at, start)
            self.ends[device].insert(at, end)


def schedule(requests: Sequence[Request], windows: dict[str, list[Window]], rng: np.random.Generator) -> list[Attempt]:
    """All attempts of all requests, in the order of submission."""
    nodes = {
        pool.key: [Node(name, windows[name], PAUSES[pool.cluster], pool.device_count) for name in pool.nodes]
        for pool in POOLS
    }
    names = _names(requests)
    queue = [(one.submitted_at, number, one.duration_seconds) for number, one in enumerate(requests)]
    heapq.heapify(queue)
    attempts = []
    while queue:
        submitted_at, number, left_seconds = heapq.heappop(queue)
        request = requests[number]
        run_id, display_id = names[number]
        is_again = submitted_at != request.submitted_at
        ready_at = submitted_at + (REQUEUE_SECONDS if is_again else int(rng.integers(1, 30)))
        if request.outcome == CANCELLED_PENDING:
            gone_at = ready_at + int(rng.integers(20, HOUR))
            attempts.append(Attempt(request, run_id, display_id, submitted_at, gone_at, gone_at, "CANCELLED", ()))
            continue
        start, end, cut_state, placed = _place(nodes.get(request.pool.key, []), request, ready_at, left_seconds)
        state = cut_state or request.outcome
        attempts.append(Attempt(request, run_id, display_id, submitted_at, start, end, state, placed))
        if cut_state in {"PREEMPTED", "NODE_FAIL"}:
            ran = end - start
            heapq.heappush(queue, (end, number, left_seconds - ran + ran % CHECKPOINT_SECONDS))
    return sorted(attempts, key=lambda one: (one.submitted_at, one.run_id))


def _place(
    nodes: list[Node], request: Request, ready_at: int, seconds: int
) -> tuple[int, int, str, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Start, end, the state of a run that was cut off (else empty), and the devices."""
    if not request.device_count:
        return ready_at, ready_at + seconds, "", ((request.pool.nodes[0], ()),)
    per_node = min(request.device_count, request.pool.device_count)
    node_count = request.device_count // per_node
    for start in _starts(nodes, ready_at):
        able = _able(nodes, per_node, start, seconds)
        if len(able) >= node_count:
            break
    else:
        return NEVER, NEVER, "", ()
    chosen = able[:node_count]
    cut = min((window for _, window in chosen), key=lambda window: window.until_at)
    end = min(start + seconds, cut.until_at)
    placed = []
    for node, _ in chosen:
        devices = tuple(node.free(start, end)[:per_node])
        node.hold(devices, start, end)
        placed.append((node.name, devices))
    return start, end, cut.cut_state if end < start + seconds else "", tuple(placed)


def _starts(nodes: list[Node], ready_at: int) -> Iterator[int]:
    """Instants at which a run may find room that was not there before: now, and when devices or nodes come free."""
    yield ready_at
    changes = {end for node in nodes for ends in node.ends for end in ends[bisect_right(ends, ready_at) :]}
    changes.update(window.from_at for node in nodes for window in node.windows if window.from_at > ready_at)
    changes.update(node.pause[1] for node in nodes if node.pause[1] > ready_at)
    yield from sorted(changes)


def _able(nodes: list[Node], per_node: int, at: int, seconds: int) -> list[tuple[Node, Window]]:
    """Nodes on which a run can start; the fullest that still have room first, so that whole nodes stay free."""
    found = []
    for node in nodes:
        window = node.window(at)
        if window is not None:
            room = len(node.free(at, min(at + seconds, window.until_at)))
            if room >= per_node:
                found.append((room, node.name, node, window))
    return [(node, window) for *_, node, window in sorted(found, key=lambda one: one[:2])]


def _names(requests: Sequence[Request]) -> list[tuple[int, str]]:
    """JobIDRaw and JobID of each request: ids ascend by cluster, a job array's tasks are named after its first."""
    following = dict(FIRST_IDS)
    arrays: dict[tuple[str, int], int] = {}
    found = []
    for request in requests:
        run_id = following[request.pool.cluster]
        following[request.pool.cluster] += 1
        display_id = str(run_id)
        if request.array is not None:
            number, task = request.array
            display_id = f"{arrays.setdefault((request.pool.key, number), run_id)}_{task}"
        found.append((run_id, display_id))
    return found
