"""Meridian Labs: two months of an invented company's GPU clusters, as the raw files that a ledger would be fed.

Everything is generated, from one seed and without a clock: the same seed gives the same bytes. Two Slurm clusters (one
owned, one in the cloud with reserved, spot, on-demand and MIG nodes), 8 teams in 3 business units, September and
October 2026. What is calibrated on what stands in the README.txt that is written beside the files.

    python -m examples.organisation FOLDER
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from examples.accounting import dumps
from examples.billing import as_csv_gz, cloud_bill, restated, storage_bill
from examples.checkpoints import checkpoints_csv
from examples.company import (
    ACCOUNTS,
    BUSINESS_UNITS,
    DUMPS,
    MONTHS,
    MOVED_ON,
    MOVED_TEAM,
    MOVED_TO,
    TIMEZONES,
    WORKLOAD_CLASSES,
    seconds,
)
from examples.fleet import draw_stays, node_states_csv, nodes_csv, windows
from examples.market import OBSERVED, commitments_csv, prices_csv
from examples.sampling import weekly_samples
from examples.scheduling import schedule
from examples.workload import draw_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.billing import Line

README = """\
Meridian Labs: example input of GPU Ledger, seed {seed}
==================================================
Everything here is generated; no company, person, cluster or invoice is real. The same seed gives the same files.

Calibrated on published figures (the data behind them is not part of these files):
  runs         GPU count, duration and outcome: Helios in AcmeTrace's cluster_summary.csv (CC-BY-4.0; Hu et al., SC'21):
               median 1 and mean 3.7 GPUs, median 206 s, GPU time .513 completed / .394 cancelled / .093 failed.
               The mean duration is longer than Helios's 6,652 s, so that some 4,000 runs fill the clusters.
  occupancy    helios-earth, May 2020: 66.7 % of GPU time allocated (HeliosArtifact, MIT).
  activity     SM_ACTIVE 0.385 (Kalos) and 0.415 (Seren), GPU_UTIL 1.6 times that (AcmeTrace, CC-BY-4.0).
  spot         once a day or more, as public traces of spot instances show.
  prices       AWS on-demand list prices of 2026; savings plan and spot by published ratios; owned nodes by published
               calculators (320,000 USD a node of eight H100, 184.06 USD per kW and month, 0.08 USD per kWh). Weakly sourced.
  offers       p4d, p4de and p5 on demand, a year's reservations of p4d and p4de: AWS price list of us-east-1. Other terms:
               AWS's grid of p4d in cn-northwest-1. Compute Savings Plans: the grid's median of convertible reservations.
               Spot: Spot Advisor, and p5 by zone in July 2026. Capacity Block: 41.528 USD an hour of p5, July 2026.
               H100 elsewhere: 2.95 on demand, 2.35 by the year (secondary sources). AWS sells no reserved p5: it has no line.
               The days on which they are said to have been read are invented.

Where prices and bills differ, and why:
  - The plan of 75 USD an hour covers the two reserved p5.48xlarge only. AWS would let what is left of it (5.10 USD an hour)
    cover the p5.4xlarge of nimbus-m1 as well.
  - The bill charges spot by the day, prices say what it cost on the last day of a month, in the zone of the nodes.
  - An owned node bought anew is 45,000 USD a GPU and 588.84 a month: with its part of the network, with support and staff. The
    register has the network as an asset of its own and 1,877.41 a node and month, the rack; support and staff are not in it.
  - Commitments name the six owned nodes with what they cost by the hour in the register: rack and power.
  - The reservation of one p4de begins in December, so no bill has it.

slurm/ sacct text · telemetry/ samples · bills/ FOCUS 1.2 · records/ organisation, inventory, assets, rates, policies, prices,
commitments, checkpoints
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that reach the ledger together.

    Attributes:
      kind: What reads them, such as slurm or prices: a kind of ``gpuledger ingest``.
      files: The files.
      delivered_at: When they come.
      arguments: What their reader takes besides: cluster, timezone.
    """

    kind: str
    files: tuple[Path, ...]
    delivered_at: datetime
    arguments: dict[str, str] = field(default_factory=dict)


def generate(folder: Path, *, seed: int = 7) -> list[Delivery]:
    """Write all files below a folder and say what is delivered when, in order.

    Args:
      folder: Where; it is made if need be, and files of the same names are overwritten.
      seed: Decides everything that is drawn.
    """
    for name in ("slurm", "telemetry", "bills", "records"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _written(folder / "README.txt", README.format(seed=seed))
    # A stream of random numbers for each part, so that a change of one leaves the others as they were.
    fleet, work, waiting, atlas, nimbus, cloud, storage, saving = np.random.default_rng(seed).spawn(8)
    stays = draw_stays(fleet)
    up = windows(stays)
    attempts = schedule(draw_requests(work), up, waiting)
    bills = {month: cloud_bill(month, stays, cloud) for month in MONTHS}
    texts = checkpoints_csv(attempts, saving, months=list(MONTHS.values()))
    deliveries = [*_records(folder), *_bills(folder, bills, storage), *_market(folder, bills), *_saved(folder, texts)]
    for cluster, rng in (("atlas", atlas), ("nimbus", nimbus)):
        for taken_at, text in dumps(attempts, cluster):
            path = _written(folder / "slurm" / f"{cluster}-{_day(taken_at)}.txt", text)
            about = {"cluster": cluster, "timezone": TIMEZONES[cluster]}
            deliveries.append(Delivery("slurm", (path,), _instant(taken_at), about))
        for taken_at, samples in weekly_samples(attempts, up, cluster, rng):
            path = folder / "telemetry" / f"{cluster}-{_day(taken_at)}.parquet"
            samples.write_parquet(path, compression="zstd")
            deliveries.append(Delivery("telemetry", (path,), _instant(taken_at), {"cluster": cluster}))
    for known_at in (seconds("2026-09-01"), *DUMPS):
        files = (
            _written(folder / "records" / f"nodes-{_day(known_at)}.csv", nodes_csv(stays, known_at)),
            _written(folder / "records" / f"node_states-{_day(known_at)}.csv", node_states_csv(known_at)),
        )
        deliveries.append(Delivery("nodes", files, _instant(known_at)))
    order = (
        "policies", "org", "assets", "fx", "nodes", "prices", "commitments", "slurm", "telemetry", "checkpoints", "focus",
    )  # fmt: skip
    return sorted(deliveries, key=lambda one: (one.delivered_at, order.index(one.kind), one.files))


def _records(folder: Path) -> Iterator[Delivery]:
    """The organisation, the assets, the policies and the exchange rates, each when it becomes known."""
    header = "cluster,account,project,team,business_unit,effective_from"
    org = [f"*,{one.name},{one.project},{one.team},{BUSINESS_UNITS[one.team]},2026-09-01" for one in ACCOUNTS]
    moved = [
        f"*,{one.name},{one.project},{one.team},{MOVED_TO},{MOVED_ON}" for one in ACCOUNTS if one.team == MOVED_TEAM
    ]
    classes = [f"workload_class,{subject},2026-09-01,{name}" for subject, name in WORKLOAD_CLASSES.items()]
    policies = ["policy,subject,effective_from,value", "distribute,shared,2026-09-01,proportional", *classes]
    files = (
        ("org", "2026-09-01", "org.csv", [header, *org]),
        ("assets", "2026-09-01", "assets.csv", _assets()),
        ("policies", "2026-09-01", "policies.csv", policies),
        ("policies", "2026-10-01T07:00", "policies-october.csv",
         [policies[0], "distribute,unused_commitment,2026-10-01,proportional"]),
        ("org", "2026-10-12T09:00", "org-october.csv", [header, *moved]),
        ("fx", "2026-10-01T07:30", "fx-2026-09.csv", ["month,currency,rate", "2026-09,EUR,1.1684"]),
        ("fx", "2026-11-01T07:30", "fx-2026-10.csv", ["month,currency,rate", "2026-10,EUR,1.1590"]),
    )  # fmt: skip
    for kind, delivered_at, name, lines in files:
        path = _written(folder / "records" / name, "\n".join(lines) + "\n")
        yield Delivery(kind, (path,), _instant(seconds(delivered_at)))


def _assets() -> list[str]:
    """The register: six nodes of eight H100 bought at two times, and the network and storage that they share.

    A node: 320,000 USD, 10.2 kW at most and 80 % of that drawn, PUE 1.3, 0.08 USD per kWh, rack space at 184.06 USD per kW
    and month (1,877.41); fabric: 12.5 % of the nodes' price, and storage of 180,000 USD.
    """
    node = "320000.00,{residual},USD,8160,1.3,0.08,1877.41"
    older, newer = node.format(residual="48000.00"), node.format(residual="16000.00")
    header = (
        "asset_id,cluster,node,in_service,retired,life_months,purchase_amount,residual_amount,currency,power_watts,"
        "power_usage_effectiveness,energy_price,monthly_fee"
    )
    return [
        header,
        *(f"node-{number},atlas,atlas-{number:02},2025-03-10,,48,{older}" for number in range(1, 5)),
        *(f"node-{number},atlas,atlas-{number:02},2026-02-02,,60,{newer}" for number in range(5, 7)),
        "fabric-and-storage,atlas,,2025-03-10,,60,420000.00,20000.00,USD,,,,1500.00",
    ]


def _bills(folder: Path, bills: dict[str, list[Line]], storage: np.random.Generator) -> Iterator[Delivery]:
    """September's bill twice with the same bytes and once restated after its close; October's once; another provider's."""
    september, october = bills["2026-09"], bills["2026-10"]
    files = (
        ("2026-10-01T09:00", "cloud-2026-09.csv.gz", september),
        ("2026-10-02T09:00", "cloud-2026-09-again.csv.gz", september),
        ("2026-10-02T10:00", "storage-2026-09.csv.gz", storage_bill("2026-09", storage)),
        ("2026-10-06T09:00", "cloud-2026-09-restated.csv.gz", restated(september)),
        ("2026-11-01T09:00", "cloud-2026-10.csv.gz", october),
        ("2026-11-01T10:00", "storage-2026-10.csv.gz", storage_bill("2026-10", storage)),
    )
    for delivered_at, name, lines in files:
        path = folder / "bills" / name
        path.write_bytes(as_csv_gz(lines))
        yield Delivery("focus", (path,), _instant(seconds(delivered_at)))


def _market(folder: Path, bills: dict[str, list[Line]]) -> Iterator[Delivery]:
    """Prices read at the end of each month, what is held, and a reservation that was bought in October."""
    known = ([], bills["2026-09"], bills["2026-10"])
    for observed_on, delivered_at, bill in zip(
        OBSERVED, ("2026-09-01", "2026-10-01T09:30", "2026-11-01"), known, strict=True
    ):
        path = _written(folder / "records" / f"prices-{observed_on}.csv", prices_csv(observed_on, bill))
        yield Delivery("prices", (path,), _instant(seconds(delivered_at)))
    for name, delivered_at, queued in (
        ("commitments", "2026-09-01", False),
        ("commitments-october", "2026-10-20T09:00", True),
    ):
        path = _written(folder / "records" / f"{name}.csv", commitments_csv(queued=queued))
        yield Delivery("commitments", (path,), _instant(seconds(delivered_at)))


def _saved(folder: Path, texts: list[str]) -> Iterator[Delivery]:
    """Checkpoints, by the month."""
    for (month, (_, end)), text in zip(MONTHS.items(), texts, strict=True):
        path = _written(folder / "records" / f"checkpoints-{month}.csv", text)
        yield Delivery("checkpoints", (path,), _instant(end))


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _day(at: int) -> str:
    return f"{_instant(at):%Y-%m-%d}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m examples.organisation FOLDER")
    for delivery in generate(Path(sys.argv[1])):
        sys.stdout.write(
            f"{delivery.delivered_at:%Y-%m-%d %H:%M} {delivery.kind:<9} {', '.join(one.name for one in delivery.files)}\n"
        )
