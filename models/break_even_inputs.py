"""What a break-even depends on: the node, its power and people, money's price, the offers to rent, and all ranges.

Does not belong here: what is computed from it, see ``break_even``; reading it from a file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from models.cash_flow import MONTHS_PER_YEAR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date


class Shape(StrEnum):
    """How an uncertain input is drawn from its range; triangular has its top at the stated value."""

    TRIANGULAR = "triangular"
    UNIFORM = "uniform"


@dataclass(frozen=True, slots=True)
class Comparator:
    """An offer to rent.

    Attributes:
      name: What people call it.
      price_per_gpu_hour: Above 0.
      is_committed: Whether rent is due for all hours, used or not.
      source: Who says so.
      observed_at: When they said it.
    """

    name: str
    price_per_gpu_hour: float
    is_committed: bool
    source: str
    observed_at: date


@dataclass(frozen=True, slots=True)
class UpfrontOffer:
    """The same commitment with all paid upfront and with nothing: effective prices an hour, above 0."""

    name: str
    term_years: float
    upfront_price_per_hour: float
    no_upfront_price_per_hour: float
    source: str
    observed_at: date


@dataclass(frozen=True, slots=True)
class Range:
    """What an input may be, with who says so and of when that is."""

    low: float
    high: float
    shape: Shape
    source: str
    as_of: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a break-even depends on; ``LIMITS`` holds what each number may be.

    Attributes:
      currency: ISO 4217 code of all money here.
      gpus_per_node: GPUs that one node delivers.
      purchase_per_node: Price of a node without its network.
      network_ratio: Network, optics and switches, as a part of the purchase.
      lead_months: From paying to the first delivered hour; nothing is saved and nothing runs until then.
      life_years: How long the node runs.
      residual_ratio: What it is sold for at the end of its life, as a part of the purchase without network.
      nameplate_kilowatts: Power that the colocation contract reserves for a node.
      colo_per_kilowatt_month: Price of reserved power and space.
      load_ratio: Assumed mean power over nameplate power.
      measured_node_watts: Mean power of a node at the plug, which takes the place of the assumption; None if unmeasured.
      power_usage_effectiveness: Facility power over IT power, at least 1.
      price_per_kilowatt_hour: Of energy.
      support_ratio: Support a year, as a part of the purchase without network.
      staff_per_node_month: People who keep a node running.
      fees_per_node_month: All else.
      discount_ratio: What money costs a year.
      horizon_months: Where to stop looking for a payback.
      rented_price_ratio: Factor on all prices of comparators: 1 as observed.
      price_cut_ratio: How far rent falls in the scenario of a price cut.
      price_cut_after_months: Months from the purchase that still pay the old rent in that scenario.
      expected_utilisation: The one utilisation at which ranges are tried.
      utilisations: Utilisations of the table, each above 0 and at most 1.
      comparators: At least one.
      ranges: Name of an input above → what it may be.
      upfront_offers: Offers whose implied return is asked for.
    """

    currency: str
    gpus_per_node: int
    purchase_per_node: float
    network_ratio: float
    lead_months: int
    life_years: float
    residual_ratio: float
    nameplate_kilowatts: float
    colo_per_kilowatt_month: float
    load_ratio: float
    power_usage_effectiveness: float
    price_per_kilowatt_hour: float
    support_ratio: float
    staff_per_node_month: float
    fees_per_node_month: float
    discount_ratio: float
    horizon_months: int
    price_cut_ratio: float
    price_cut_after_months: int
    expected_utilisation: float
    utilisations: tuple[float, ...]
    comparators: tuple[Comparator, ...]
    ranges: Mapping[str, Range]
    upfront_offers: tuple[UpfrontOffer, ...] = ()
    measured_node_watts: float | None = None
    rented_price_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number may be."""

    least: float = 0.0
    most: float = math.inf
    is_least_allowed: bool = True

    def holds(self, value: float) -> bool:
        """Whether ``value`` is finite and within."""
        above = value >= self.least if self.is_least_allowed else value > self.least
        return math.isfinite(value) and above and value <= self.most

    def __str__(self) -> str:
        """In words.

        >>> str(Limit(0, 1, is_least_allowed=False)), str(Limit(1))
        ('a number above 0 and at most 1', 'a number of at least 1')
        """
        least = f"{'of at least' if self.is_least_allowed else 'above'} {self.least:g}"
        return f"a number {least}" + (f" and at most {self.most:g}" if math.isfinite(self.most) else "")


ANY, ABOVE_0, RATIO, PART = Limit(), Limit(is_least_allowed=False), Limit(0, 1), Limit(0, 1, is_least_allowed=False)
LIMITS: Mapping[str, Limit] = {
    "gpus_per_node": Limit(1),
    "purchase_per_node": ABOVE_0,
    "network_ratio": RATIO,
    "lead_months": ANY,
    "life_years": Limit(1 / MONTHS_PER_YEAR, 50),
    "residual_ratio": RATIO,
    "nameplate_kilowatts": ANY,
    "colo_per_kilowatt_month": ANY,
    "load_ratio": RATIO,
    "measured_node_watts": ABOVE_0,
    "power_usage_effectiveness": Limit(1),
    "price_per_kilowatt_hour": ANY,
    "support_ratio": RATIO,
    "staff_per_node_month": ANY,
    "fees_per_node_month": ANY,
    "discount_ratio": RATIO,
    "horizon_months": Limit(1, 600),
    "rented_price_ratio": ABOVE_0,
    "price_cut_ratio": RATIO,
    "price_cut_after_months": ANY,
    "expected_utilisation": PART,
    "price_per_gpu_hour": ABOVE_0,
    "upfront_price_per_hour": ABOVE_0,
    "no_upfront_price_per_hour": ABOVE_0,
    "term_years": Limit(1 / MONTHS_PER_YEAR, 50),
}
FIXED = {"gpus_per_node", "horizon_months", "price_cut_ratio", "price_cut_after_months"}
UNCERTAIN = tuple(one.name for one in fields(Inputs) if one.name in LIMITS and one.name not in FIXED)
"""The inputs that may have a range."""
