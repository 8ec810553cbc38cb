"""Small markets for tests of procurement: prices a person can add up, and demand written as numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from models.demand import Scenarios
from models.prices import YEAR_SECONDS, Commitment, Instrument, Offer, Pool, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AT = datetime(2026, 11, 1, tzinfo=UTC)
HOUR, DOLLAR = 3_600, 1_000_000


def pool(name: str = "h100", **about: Any) -> Pool:
    """A pool of single GPUs, so that any number can be bought, unless told otherwise."""
    return Pool(**{"name": name, "gpu_model": name, "provider": "aws", "region": "us-east-1", "node_gpus": 1, **about})


def offer(offer_id: str, instrument: Instrument, price: float | Mapping[str, float], **about: Any) -> Offer:
    """An offer at money per GPU-hour, for the pool h100 unless a mapping names others."""
    prices = price if isinstance(price, dict) else {"h100": price}
    return Offer(
        **{
            "offer_id": offer_id,
            "instrument": instrument,
            "provider": "aws",
            "scope": Scope.REGION,
            "has_capacity": instrument in {Instrument.OWNED, Instrument.CONTRACT, Instrument.CAPACITY_BLOCK},
            "micros_per_gpu_hour": {name: round(one * DOLLAR) for name, one in prices.items()},
            "observed_at": AT,
            "price_source": "a test",
            **about,
        }
    )


def on_demand(price: float | Mapping[str, float]) -> Offer:
    """On-demand GPUs."""
    return offer("on_demand", Instrument.ON_DEMAND, price)


def spot(price: float | Mapping[str, float]) -> Offer:
    """Spot GPUs."""
    return offer("spot", Instrument.SPOT, price)


def reserved(price: float, years: int = 1, **about: Any) -> Offer:
    """A regional reservation without upfront payment."""
    return offer(f"reserved_{years}y", Instrument.RESERVED, price, term_seconds=years * YEAR_SECONDS, **about)


def savings_plan(rates: Mapping[str, float], years: int = 1) -> Offer:
    """A commitment in money with these rates."""
    return offer(f"savings_plan_{years}y", Instrument.SAVINGS_PLAN, rates, term_seconds=years * YEAR_SECONDS)


def demand(gpus: Sequence[float] | np.ndarray[Any, Any], workload_class: str = "rigid") -> Scenarios:
    """One pool h100, one scenario: GPUs by hour; or an array (scenarios, hours)."""
    values = np.atleast_2d(np.asarray(gpus, dtype=np.float64))[:, :, None]
    return Scenarios(
        start_at=AT,
        pools=("h100",),
        probability=np.full(len(values), 1 / len(values)),
        gpus={workload_class: values},
    )


def commitment(commitment_id: str, starts_at: datetime, ends_at: datetime, **about: Any) -> Commitment:
    """A reservation of GPUs of the pool h100 at 4 an hour, unless told otherwise."""
    return Commitment(
        **{
            "commitment_id": commitment_id,
            "instrument": Instrument.RESERVED,
            "provider": "aws",
            "scope": Scope.REGION,
            "has_capacity": False,
            "pools": ("h100",),
            "starts_at": starts_at,
            "ends_at": ends_at,
            "rate_micros_per_gpu_hour": {"h100": 4 * DOLLAR},
            "gpus": 1,
            **about,
        }
    )
