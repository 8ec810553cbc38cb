"""Meridian Labs, an invented company: its clusters, its people and when its machines were there.

Only facts that the other modules of the example share. Instants are seconds since 1970 in UTC, so that simulating is
integer arithmetic. Does not belong here: anything drawn at random, and prices (``billing.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

HOUR, DAY = 3_600, 86_400


def seconds(text: str) -> int:
    """Seconds since 1970 of an instant in UTC.

    >>> seconds("1970-01-02"), seconds("2026-09-01T06:00")
    (86400, 1788242400)
    """
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def iso(instant: int) -> str:
    """The instant as text, such as 2026-09-01T06:00:00Z.

    >>> iso(86400)
    '1970-01-02T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%dT%H:%M:%SZ}"


START, END = seconds("2026-09-01"), seconds("2026-11-01")
MONTHS = {"2026-09": (START, seconds("2026-10-01")), "2026-10": (seconds("2026-10-01"), END)}
DUMPS = (
    *(seconds(f"2026-{day}T05:00") for day in ("09-03", "09-10", "09-17", "09-24", "10-01")),
    *(seconds(f"2026-{day}T05:00") for day in ("10-08", "10-15", "10-22", "10-29")),
    END,
)
"""When sacct was dumped and telemetry exported: Thursdays at 05:00 UTC, and at the end of October."""


class Window(NamedTuple):
    """A stretch of time in which a node is up, ``[from_at, until_at)``, and the state of the runs that its end cuts off."""

    from_at: int
    until_at: int
    cut_state: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A node down for some time.

    Attributes:
      cluster: Cluster.
      node: Node.
      from_at: First second down.
      until_at: First second up again.
      reason: As Slurm's admins write it.
      cut_state: State of the runs that were on it. What an admin cancels is not queued again.
    """

    cluster: str
    node: str
    from_at: int
    until_at: int
    reason: str
    cut_state: str = "NODE_FAIL"


OUTAGES = (
    Outage(
        "atlas",
        "atlas-05",
        seconds("2026-09-22T03:12:40"),
        seconds("2026-09-22T23:12:40"),
        "Xid 79: GPU has fallen off the bus",
    ),
    Outage(
        "atlas",
        "atlas-02",
        seconds("2026-10-13T06:00"),
        seconds("2026-10-13T12:00"),
        "firmware update",
        "CANCELLED by 0",
    ),
    Outage(
        "atlas",
        "atlas-06",
        seconds("2026-10-20T17:05:11"),
        seconds("2026-10-23T09:30"),
        "Xid 95: uncontained ECC error",
    ),
    # Whole hours: a reserved instance that is stopped leaves its hours of the commitment unused on the bill.
    Outage(
        "nimbus",
        "nimbus-r2",
        seconds("2026-09-12T10:00"),
        seconds("2026-09-13T16:00"),
        "instance stopped: host retirement",
    ),
    Outage(
        "nimbus",
        "nimbus-d1",
        seconds("2026-10-08T19:20:30"),
        seconds("2026-10-08T23:50"),
        "instance status check failed",
    ),
)


@dataclass(frozen=True, slots=True)
class Pool:
    """Devices of one kind that runs compete for: a Slurm partition, or one MIG profile of it.

    Attributes:
      cluster: Cluster.
      partition: Slurm partition.
      nodes: Its nodes.
      device_count: Devices (whole GPUs, or MIG instances of the profile) on each node.
      gres_type: Device type in AllocTRES.
      gpu_model: Model in the inventory and, as the exporter writes it, in telemetry.
      watts: Board power of one card, idle and at most (data sheets; acme/util_cdf_summary.csv has 61 to 413 W for A100).
      run_count: Runs submitted to it in the two months.
      load_ratio: GPU time submitted, as part of its nodes' GPU time: above the 66.7 % of helios-earth that are to be
        allocated, because some of it waits beyond the end or never finds room.
      sizes: Devices a run asks for, with weights.
      longest_seconds: The partition's time limit.
      mig_profile: MIG profile; empty for whole GPUs.
      cards: For MIG, the card that each device lies on.
    """

    cluster: str
    partition: str
    nodes: tuple[str, ...]
    device_count: int
    gres_type: str
    gpu_model: str
    watts: tuple[int, int]
    run_count: int
    load_ratio: float
    sizes: dict[int, float]
    longest_seconds: int
    mig_profile: str = ""
    cards: tuple[int, ...] = tuple(range(8))

    @property
    def key(self) -> str:
        """Its name among all pools."""
        return f"{self.partition}/{self.gres_type}"


_H100, _A100_80, _A100_40 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB"


def _rented(partition: str, model: str, watts: tuple[int, int], run_count: int, load_ratio: float) -> Pool:
    """Two nodes of eight whole GPUs in the cloud."""
    nodes = tuple(f"nimbus-{partition[0]}{number}" for number in (1, 2))
    gres_type = "h100" if model == _H100 else "a100"
    sizes = {1: 0.50, 2: 0.10, 4: 0.12, 8: 0.24, 16: 0.04}
    return Pool("nimbus", partition, nodes, 8, gres_type, model, watts, run_count, load_ratio, sizes, 3 * DAY)


def _mig(profile: str, cards: tuple[int, ...], run_count: int, load_ratio: float) -> Pool:
    """Instances of one profile on nimbus-m1."""
    return Pool(
        "nimbus", "mig", ("nimbus-m1",), len(cards), profile, _H100, (75, 700), run_count, load_ratio,
        {1: 1.0}, 10 * DAY, mig_profile=profile, cards=cards,
    )  # fmt: skip


POOLS = (
    Pool(
        "atlas", "h100", tuple(f"atlas-{n:02}" for n in range(1, 7)), 8, "h100", _H100, (75, 700), 1_600, 0.70,
        {1: 0.50, 2: 0.11, 4: 0.11, 8: 0.22, 16: 0.045, 32: 0.015}, 5 * DAY,
    ),
    _rented("reserved", _H100, (75, 700), 600, 0.72),
    _rented("demand", _A100_80, (62, 400), 680, 0.68),
    _rented("spot", _A100_40, (55, 400), 520, 0.45),
    _mig("1g.10gb", (0,) * 7 + (1,) * 7, 320, 0.68),
    # 3g.40gb and 2g.20gb leave two of a card's seven compute slices stranded.
    _mig("3g.40gb", (2, 3), 50, 0.60),
    _mig("2g.20gb", (2, 3), 50, 0.60),
)  # fmt: skip

CPU_POOL = Pool("atlas", "cpu", ("atlas-cpu-01",), 0, "", "", (0, 0), 300, 0.0, {0: 1.0}, DAY)
"""Where the runs without GPUs go; no inventory names it."""

TIMEZONES = {"atlas": "Europe/Berlin", "nimbus": "UTC"}
"""Zone of each cluster's sacct."""

PAUSES = {"atlas": (seconds("2026-10-25T01:00"), seconds("2026-10-25T02:00")), "nimbus": (0, 0)}
"""Atlas starts nothing in the hour that its clocks show for the second time, so that its local times tell all starts."""

SAMPLE_SECONDS = {"atlas": 600, "nimbus": 900}
"""Scrape interval of each cluster's telemetry."""

TELEMETRY_GAP = (("atlas-03", "atlas-04"), seconds("2026-09-16T08:00"), seconds("2026-09-17T14:00"))
"""Nodes whose exporter was silent, and from when until when."""


@dataclass(frozen=True, slots=True)
class Account:
    """A Slurm account.

    Attributes:
      name: As in sacct.
      project: What it is for.
      team: Who owns it.
      partitions: Where it runs.
      weight: How often it submits, against the others.
      most_gpus: Largest run it submits.
      users: Who submits.
      run_names: What they call their runs.
    """

    name: str
    project: str
    team: str
    partitions: tuple[str, ...]
    weight: int
    most_gpus: int
    users: tuple[str, ...]
    run_names: tuple[str, ...]


ACCOUNTS = (
    Account("fm-pretrain", "base model", "foundation-models", ("h100", "reserved"), 5, 32, ("okafor", "lindqvist", "tan"), ("pretrain-7b", "pretrain-moe", "anneal")),
    Account("fm-scaling", "scaling laws", "foundation-models", ("h100", "spot"), 3, 16, ("tan", "moreau"), ("scaling-sweep", "ablation")),
    Account("eval", "benchmarks", "evaluation", ("h100", "demand", "spot"), 3, 4, ("haddad", "novak"), ("eval-suite", "judge", "contamination")),
    Account("vision", "multimodal", "vision", ("demand", "h100"), 2, 16, ("silva", "petrov"), ("vit-l", "captioner", "notebook")),
    Account("sft", "post-training", "assistant-training", ("reserved", "h100"), 3, 8, ("kimura", "walsh"), ("sft-70b", "distil")),
    Account("rlhf", "post-training", "assistant-training", ("reserved", "demand"), 3, 16, ("walsh", "osei"), ("ppo", "reward-model")),
    Account("serve-prod", "assistant service", "serving", ("mig", "reserved"), 6, 4, ("svc-serve",), ("serve-chat", "serve-embed", "serve-rerank")),
    Account("serve-dev", "assistant service", "serving", ("mig", "demand"), 2, 2, ("ferrari", "dubois"), ("load-test", "quantise", "notebook")),
    Account("speech", "voice", "speech", ("demand", "spot"), 2, 16, ("ivanova", "mendes"), ("asr-conformer", "tts")),
    Account("protein", "structure prediction", "protein-design", ("h100",), 3, 32, ("bauer", "rossi", "chen"), ("fold", "diffusion", "notebook")),
    Account("screen", "virtual screening", "protein-design", ("spot", "demand"), 3, 8, ("chen", "adeyemi"), ("dock", "md-relax")),
    Account("imaging", "pathology", "imaging", ("h100", "demand"), 2, 8, ("vogel", "yilmaz", "larsen"), ("segment", "pretrain-path", "notebook")),
)  # fmt: skip

STUDENT = Account("student42", "", "", ("h100",), 0, 1, ("student42",), ("thesis",))
"""An account that the organisation's file does not know."""

BUSINESS_UNITS = {
    "foundation-models": "Research",
    "evaluation": "Research",
    "vision": "Research",
    "assistant-training": "Assistants",
    "serving": "Assistants",
    "speech": "Assistants",
    "protein-design": "Life Sciences",
    "imaging": "Life Sciences",
}
"""Business unit of each team."""

MOVED_TEAM, MOVED_TO, MOVED_ON = "speech", "Research", "2026-10-15"

WORKLOAD_CLASSES = {
    "partition:mig": "inference",
    "partition:spot": "deferrable",
    "account:serve-prod": "inference",
    **dict.fromkeys(("account:fm-pretrain", "account:fm-scaling", "account:sft", "account:rlhf"), "rigid"),
    **dict.fromkeys(("account:vision", "account:protein", "account:screen", "account:imaging"), "deferrable"),
    **dict.fromkeys(("account:eval", "account:serve-dev"), "dev"),
}
"""Kind of work by partition and account. Nobody has said what speech on demand and the student's runs are."""
