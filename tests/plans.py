"""A small ledger that can be planned for: five weeks of one cluster, prices, a commitment, an owner; and its ``plan.yaml``.

Five weeks of 2026 from Thursday 1 October on, over Europe's change of clocks on the 25th: inference holds 4 GPUs at all hours, and training 8 more
from 8 to 20 o'clock on working days; on Wednesday 14 October the nodes stand idle. An hour of a GPU costs 10 on demand,
4 reserved for a year and 3 on spot; 2 GPUs are reserved at 5 until the end of the year.
"""

from __future__ import annotations

import atexit
import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import yaml

from models.events import CommitmentRecorded, PriceObserved
from models.prices import YEAR_SECONDS
from pipelines.build import build
from pipelines.publish import publish
from pipelines.settings import Settings
from tests.ledgers import append, at, gpus, home, node, owner, policy, run

if TYPE_CHECKING:
    from tests.ledgers import Fact

FIRST, LAST = at(1, month=10), at(5, month=11)
IDLE = at(14, month=10)
MODEL = "H100-80GB"
SEEN = at(20, month=10)

PLAN: dict[str, Any] = {
    "pools": {
        "h100": {
            "gpu_model": MODEL,
            "provider": "aws",
            "region": "us-east-1",
            "node_gpus": 1,
            "demand": [{"cluster": "alps", "gpu_model": MODEL}],
        }
    },
    "demand": {"look_back_days": 35, "horizon_months": 2, "scenarios": 3, "seed": 7, "recent_days": None},
    "policy": {"discount_ratio": 0.0, "later_use_ratio": 1.0},
}


def _work() -> list[Fact]:
    found: list[Fact] = []
    for day in range((LAST - FIRST).days):
        start = FIRST + timedelta(days=day)
        if start == IDLE:
            continue
        night = start + timedelta(days=1)
        found += run(f"s{day}", "web", start, night, gpus("n1", 4, MODEL), submitted_at=start, qos="serve")
        if start.weekday() < 5:
            morning, evening = start + timedelta(hours=8), start + timedelta(hours=20)
            found += run(f"t{day}", "vision", morning, evening, gpus("n2", 8, MODEL), submitted_at=morning, qos="train")
    return found


def price(offer_id: str, instrument: str, amount: str | None, **about: Any) -> Fact:
    """A price of one GPU-hour, in us-east-1 and in dollars unless told otherwise."""
    known = {
        "offer_id": offer_id,
        "gpu_model": MODEL,
        "region": "us-east-1",
        "zone": "",
        "observed_at": SEEN,
        "instrument": instrument,
        "provider": "aws",
        "gpu_count": 1,
        "scope": "region",
        "has_capacity": False,
        "hourly_amount": None if amount is None else Decimal(amount),
        "currency": "USD",
        "price_source": "a test",
        "term_seconds": YEAR_SECONDS if instrument == "reserved" else None,
    }
    return (PriceObserved, known | about)


def commitment(commitment_id: str, **about: Any) -> Fact:
    """A reservation of 2 GPUs at 5 an hour, from 1 October to the end of the year, unless told otherwise."""
    known = {
        "commitment_id": commitment_id,
        "instrument": "reserved",
        "provider": "aws",
        "region": "us-east-1",
        "gpu_model": MODEL,
        "scope": "region",
        "has_capacity": False,
        "starts_at": FIRST,
        "ends_at": datetime(2027, 1, 1, tzinfo=FIRST.tzinfo),
        "gpu_count": 2,
        "hourly_amount": Decimal(5),
        "currency": "USD",
        "state": "active",
    }
    return (CommitmentRecorded, known | about)


FACTS = (
    *_work(),
    *node("n1", 8, MODEL, start=FIRST),
    *node("n2", 8, MODEL, start=FIRST),
    *owner("web", "search", start=FIRST),
    *policy("workload_class", "qos:serve", "inference", start=FIRST),
    *policy("workload_class", "qos:train", "deferrable", start=FIRST),
    price("on_demand", "on_demand", "10"),
    price("spot", "spot", "3"),
    price("reserved", "reserved", "4"),
    commitment("r-1"),
)


@cache
def _published() -> Path:
    folder = Path(mkdtemp(prefix="gpuledger-plans-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = home(folder)
    append(settings, *FACTS)
    brought_up(settings)
    write_plan(folder)
    return folder


def brought_up(settings: Settings) -> None:
    """Build and publish what the log says."""
    build(settings)
    publish(settings)


def ledger(folder: Path, *more: Fact) -> Settings:
    """The ledger with its ``plan.yaml``, built and published, in a folder of its own; and more facts in it where some are given."""
    shutil.copytree(_published(), folder, dirs_exist_ok=True)
    settings = Settings(home=folder, data_path=str(folder / "lake" / "data"))
    if more:
        append(settings, *more)
        brought_up(settings)
    return settings


def write_plan(folder: Path, **changes: Any) -> Path:
    """``plan.yaml`` with other pools, and with keys of its other sections changed: ``demand={"seed": 8}``."""
    merged = {
        name: changed if name == "pools" else {**PLAN.get(name, {}), **changed} for name, changed in changes.items()
    }
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**PLAN, **merged}, sort_keys=False))
    return path
