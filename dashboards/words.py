"""The words that people read: months, buckets, kinds of cost, severities; one place, so that pages agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime
    from decimal import Decimal

BUCKETS: dict[str, tuple[str, str]] = {
    "active": ("Active", "held by a run, and the GPU's activity counter showed at least 1 % in that minute"),
    "allocated_idle": ("Idle", "held by a run and measured, but without activity"),
    "allocated_unmeasured": ("Held, not measured", "held by a run; no telemetry says whether it was active"),
    "unallocated": ("Free", "nobody held it"),
    "down": ("Down", "the node was down or drained, and nothing ran"),
    "stranded": ("Stranded", "left over by how a card is cut into slices; nobody can use it"),
    "over_subscribed": ("Over-subscribed", "more was allocated than the node has; see Findings"),
}
"""Name and meaning of each bucket of GPU time, in the order they are stacked."""

COST_KINDS: dict[str, tuple[str, str]] = {
    "usage": ("GPU time used", "GPUs held by runs, at the cost of their node in each hour"),
    "unallocated": ("Free GPUs", "GPUs that nobody held"),
    "down": ("GPUs down", "nodes that were down or drained"),
    "stranded": ("Stranded GPU parts", "left over by how cards are cut into slices"),
    "lost_work": (
        "Lost work",
        "held by runs since their last checkpoint when they were interrupted, and until they worked again",
    ),
    "unused_commitment": ("Unused commitment", "committed and paid for, but not used"),
    "shared": ("Shared cost", "a cluster's own cost, such as network and storage"),
    "unmatched": ("Unmatched bill lines", "billed, but matching no node"),
}
"""Name and meaning of each kind of cost."""

SEVERITIES: dict[str, tuple[str, str]] = {
    "error": ("Errors", "a month cannot be closed until they are solved"),
    "warning": ("Warnings", "money or hours stand in the wrong place until someone acts"),
    "info": ("Notes", "good to know, nothing has to be done"),
}
"""Heading and meaning of each severity, worst first."""

INSTRUMENTS: dict[str, str] = {
    "on_demand": "On demand",
    "spot": "Spot",
    "reserved": "Reservation",
    "savings_plan": "Savings plan",
    "committed_use": "Committed use",
    "capacity_block": "Capacity block",
    "contract": "Contract",
    "owned": "Owned",
}
"""Name of each way to pay for a GPU."""

BASELINES: dict[str, tuple[str, str]] = {
    "nothing_new": ("buying nothing new", "what is held and queued already, spot as in the plan, and nothing new"),
    "all_on_demand": (
        "on demand only",
        "every GPU-hour at the on-demand price, without any commitment and without spot",
    ),
}
"""What a plan is compared with: how it is said, and what it is; the one nearest to today first."""

PLAN_LINES: dict[str, tuple[str, str]] = {
    "purchase": ("To buy", "what the plan says to buy"),
    "held": ("Held already", "falls due, whatever is bought"),
    "spot": ("Spot", "interruptible GPU-hours, at their price divided by the useful part"),
    "on_demand": ("On demand", "GPU-hours that nothing cheaper covers"),
    "shortfall": ("Going without", "GPU-hours that nothing serves, at the price of going without"),
}
"""Name and meaning of each kind of line of a plan."""

INPUTS: dict[str, str] = {
    "purchase_per_node": "Price of the node",
    "network_ratio": "Network, of the price",
    "residual_ratio": "Residual, of the price",
    "colo_per_kilowatt_month": "Colocation per kW and month",
    "power_usage_effectiveness": "Facility over IT power",
    "price_per_kilowatt_hour": "Energy per kWh",
    "expected_utilisation": "Utilisation",
    "rented_price_ratio": "Rental prices, times",
    "discount_ratio": "Cost of money a year",
    "life_years": "Years in use",
    "staff_per_node_month": "Staff a month",
}
"""Name of each input of a break-even that may be uncertain."""


def month(day: date) -> str:
    """A month in words.

    >>> from datetime import date
    >>> month(date(2026, 9, 1))
    'September 2026'
    """
    return f"{day:%B %Y}"


def day(instant: date | datetime) -> str:
    """A day in words.

    >>> from datetime import date
    >>> day(date(2026, 9, 1))
    '1 September 2026'
    """
    return f"{instant.day} {instant:%B %Y}"


def plain(name: str) -> str:
    """A name of the code as words.

    >>> plain("account_without_owner")
    'Account without owner'
    """
    return name.replace("_", " ").capitalize()


def kind(cost_kind: str) -> str:
    """Name of a kind of cost."""
    return COST_KINDS[cost_kind][0] if cost_kind in COST_KINDS else plain(cost_kind)


def instrument(name: str) -> str:
    """Name of a way to pay for a GPU."""
    return INSTRUMENTS.get(name) or plain(name)


def baseline(name: str) -> str:
    """How a baseline is said after "against"."""
    return BASELINES[name][0] if name in BASELINES else plain(name).lower()


def whole(amount: Decimal | None) -> str:
    """Money without cents, for a headline.

    >>> from decimal import Decimal
    >>> whole(Decimal("-1234.5")), whole(None)
    ('−1,234', '–')
    """
    return "–" if amount is None else f"{amount:,.0f}".replace("-", "−")


def count(number: int, thing: str) -> str:
    """A number of things.

    >>> count(1, "month"), count(1200, "bill")
    ('1 month', '1,200 bills')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
