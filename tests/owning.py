"""A node of eight H100 and offers to rent, with the published figures that break-even tests share."""

from __future__ import annotations

from datetime import date
from typing import Any

from models.break_even_inputs import Comparator, Inputs, Range, Shape


def offer(price: float, *, is_committed: bool = False) -> Comparator:
    return Comparator(f"{price:g}", price, is_committed, "a price list", date(2026, 7, 30))


def span(low: float, high: float, shape: Shape = Shape.TRIANGULAR) -> Range:
    return Range(low, high, shape, "a page", "2026")


def inputs(**changes: Any) -> Inputs:
    """320,000 and 12.5 % for the network; 10.2 kW; 10 % discount; with ``changes``."""
    stated: dict[str, Any] = {
        "currency": "USD",
        "gpus_per_node": 8,
        "purchase_per_node": 320_000.0,
        "network_ratio": 0.125,
        "lead_months": 0,
        "life_years": 3.0,
        "residual_ratio": 0.30,
        "nameplate_kilowatts": 10.2,
        "colo_per_kilowatt_month": 184.06,
        "load_ratio": 0.8,
        "power_usage_effectiveness": 1.3,
        "price_per_kilowatt_hour": 0.08,
        "support_ratio": 0.05,
        "staff_per_node_month": 1_500.0,
        "fees_per_node_month": 0.0,
        "discount_ratio": 0.10,
        "horizon_months": 120,
        "price_cut_ratio": 0.44,
        "price_cut_after_months": 6,
        "expected_utilisation": 0.7,
        "utilisations": (1.0, 0.85, 0.7, 0.5),
        "comparators": (offer(6.88),),
        "ranges": {},
    }
    return Inputs(**(stated | changes))
