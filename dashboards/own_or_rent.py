"""A break-even from rows of the published file, and what it says in words. Pure functions; the page asks and shows.

Does not belong here: the break-even itself, see ``models.break_even``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dashboards import words
from dashboards.procurement import hourly_micros
from models.break_even_inputs import LIMITS, Comparator, Inputs, Range, Shape
from models.cash_flow import MONTHS_PER_YEAR
from models.errors import UsageError
from models.prices import HOURS_PER_MONTH
from models.units import SECONDS_PER_HOUR, format_share, money

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.prices import Offer

EXAMPLE = Inputs(
    currency="USD",
    gpus_per_node=8,
    purchase_per_node=320_000,
    network_ratio=0.125,
    lead_months=0,
    life_years=3,
    residual_ratio=0.30,
    nameplate_kilowatts=10.2,
    colo_per_kilowatt_month=184.06,
    load_ratio=0.8,
    power_usage_effectiveness=1.3,
    price_per_kilowatt_hour=0.08,
    support_ratio=0.05,
    staff_per_node_month=1_500,
    fees_per_node_month=0,
    discount_ratio=0.10,
    horizon_months=120,
    price_cut_ratio=0.44,
    price_cut_after_months=6,
    expected_utilisation=0.70,
    utilisations=(1.0, 0.85, 0.70, 0.50),
    comparators=(
        Comparator("AWS p5 on demand", 6.88, False, "AWS price list, p5.48xlarge, us-east-1", date(2026, 7, 20)),
        Comparator("Nebius on demand", 2.95, False, "Nebius price list, 8 H100", date(2026, 7, 31)),
        Comparator("One-year contract", 2.35, True, "SemiAnalysis index, quoted by others (weak)", date(2026, 3, 31)),
    ),
    ranges={},
)
"""Published figures of a node of eight H100: what stands in the inputs until something better is known."""

EXAMPLE_SOURCES = {
    "purchase_per_node": "300,000 to 350,000 for 8 H100: GPU TCO Analysis, 2026 (weak)",
    "network_ratio": "10 to 15 %: GPU TCO Analysis, 2026 (weak)",
    "life_years": "three years: an assumption",
    "residual_ratio": "30 % after 36 months: GPU TCO Analysis, 2026 (weak)",
    "nameplate_kilowatts": "NVIDIA datasheet of the DGX H100",
    "colo_per_kilowatt_month": "CBRE, North America Data Center Trends H2 2024, 250 to 500 kW in primary markets",
    "load_ratio": "0.8 of nameplate: an assumption until it is measured",
    "power_usage_effectiveness": "1.2 modern, 1.4 to 1.6 older: aiinframap.com, 2026 (weak)",
    "price_per_kilowatt_hour": "0.06 to 0.12: GPU TCO Analysis, 2026 (weak)",
    "support_ratio": "5 % a year: an assumption",
    "staff_per_node_month": "an assumption: put in your own",
    "discount_ratio": "what money costs a year: an assumption, ask finance",
    "expected_utilisation": "an assumption: see GPU time for what your ledger says",
}
"""Who says what stands in ``EXAMPLE``."""

_RANGES = {
    "purchase_per_node": (0.94, 1.09, Shape.TRIANGULAR, "−6 to +9 %, the spread of published prices of a node (weak)"),
    "residual_ratio": (0.0, None, Shape.UNIFORM, "nothing, to be careful, to a fifth more than stated"),
    "colo_per_kilowatt_month": (0.89, 1.18, Shape.TRIANGULAR, "the spread of CBRE's surveys"),
    "price_per_kilowatt_hour": (0.75, 1.5, Shape.TRIANGULAR, "the spread of published prices (weak)"),
    "expected_utilisation": (0.72, 1.21, Shape.TRIANGULAR, "about −30 to +20 %"),
    "rented_price_ratio": (
        0.56,
        1.32,
        Shape.TRIANGULAR,
        "AWS cut p5 by 44 % in June 2025; Capacity Blocks rose by 32 % in 2026",
    ),
}


def ranged(inputs: Inputs) -> Inputs:
    """The inputs with the range that each uncertain one may have about its stated value."""
    ranges = {}
    for name, (low, high, shape, source) in _RANGES.items():
        stated = getattr(inputs, name)
        most = stated * (1.2 if high is None else high)
        if name in {"expected_utilisation", "residual_ratio"}:
            most = min(most, 1.0)
        if most > 0:  # what costs nothing here has no spread
            ranges[name] = Range(stated * low, most, shape, source, "2026")
    return replace(inputs, ranges=ranges)


def owned_inputs(offer: Offer | None, gpus_per_node: int) -> tuple[Inputs, dict[str, str]]:
    """Inputs of a break-even from the owned offer of the price book, else the example's; and who says each of them.

    The book's price of a GPU has its share of the network in it, and its monthly fee all of colocation, support and staff.
    """
    if offer is None:
        return EXAMPLE, dict(EXAMPLE_SOURCES)
    told = f"price book, {offer.offer_id}: {offer.price_source}, {offer.observed_at:%Y-%m-%d}"
    upfront = float(money(offer.upfront_micros_per_gpu))
    known: dict[str, Any] = {
        "gpus_per_node": gpus_per_node,
        "purchase_per_node": upfront * gpus_per_node,
        "network_ratio": 0.0,
        "life_years": offer.life_months / MONTHS_PER_YEAR,
        "residual_ratio": float(money(offer.residual_micros_per_gpu)) / upfront,
        "measured_node_watts": offer.power_watts_per_gpu * gpus_per_node or None,
        "fees_per_node_month": float(money(offer.monthly_fee_micros_per_gpu)) * gpus_per_node,
        "lead_months": round(offer.lead_seconds / SECONDS_PER_HOUR / HOURS_PER_MONTH),
        "colo_per_kilowatt_month": 0.0,
        "support_ratio": 0.0,
        "staff_per_node_month": 0.0,
    }
    if not offer.power_watts_per_gpu:
        del known["measured_node_watts"]
    return replace(EXAMPLE, **known), EXAMPLE_SOURCES | dict.fromkeys(known, told)


def over_utilisation(inputs: Inputs, steps: int = 96) -> Inputs:
    """The same inputs for curves over utilisation."""
    return replace(inputs, utilisations=tuple(float(one) for one in np.linspace(1 / steps, 1, steps)))


def comparators(prices: pl.DataFrame) -> list[Comparator]:
    """Every offer to rent as what an owned node is compared with; unknown prices are left out. The dearest first."""
    found: dict[str, Comparator] = {}
    for row in prices.filter(pl.col("instrument") != "owned").sort("offer_id", "region", "zone").iter_rows(named=True):
        price = hourly_micros(row)
        if not price:
            continue
        one = Comparator(
            name=row["offer_id"],
            price_per_gpu_hour=float(money(price)),
            is_committed=row["instrument"] not in {"on_demand", "spot"},
            source=row["price_source"],
            observed_at=row["observed_at"].date(),
        )
        if one.name not in found or one.price_per_gpu_hour < found[one.name].price_per_gpu_hour:
            found[one.name] = one
    return sorted(found.values(), key=lambda one: (-one.price_per_gpu_hour, one.name))


def usual_comparators(offered: Sequence[Comparator]) -> list[str]:
    """Which to begin with: the dearest that is paid by the hour, the cheapest of all, and the cheapest commitment."""
    hourly = [one.name for one in offered if not one.is_committed]
    committed = [one.name for one in offered if one.is_committed]
    return list(dict.fromkeys([*hourly[:1], *committed[:1], *committed[-1:], *hourly[-1:]]))


def to_shown(label: str, value: float | None, kind: type[float | int]) -> float | int:
    """An input's value as its field shows it: per cents where the label says so, 0 for what is unknown."""
    return kind((value or 0) * (100 if "%" in label else 1))


def from_shown(label: str, value: float) -> float:
    """The value of an input from what its field shows."""
    return value / 100 if "%" in label else value


def check(inputs: Inputs) -> None:
    """Refuse inputs that cannot be.

    Raises:
      UsageError: A number is outside its limits; says which.
    """
    for name, limit in LIMITS.items():
        value = getattr(inputs, name, None)
        if value is not None and not limit.holds(value):
            raise UsageError(f"{words.INPUTS.get(name) or words.plain(name)}: expected {limit}, found {value:g}")


def basis(inputs: Inputs, comparator: str) -> str:
    """What a break-even must never be read without."""
    return (
        f"Against {comparator}, {format_share(inputs.expected_utilisation)} of its GPU-hours used, money at "
        f"{format_share(inputs.discount_ratio)} a year, residual {format_share(inputs.residual_ratio)} after {inputs.life_years:g} years."
    )


def verdict(row: dict[str, Any], inputs: Inputs) -> str:
    """A row of a break-even in one sentence."""
    months = row["payback_months"]
    if months is None:
        return f"Owning never pays back within {inputs.horizon_months} months."
    after = f"Owning has paid for itself after {words.count(months, 'month')}"
    return f"{after}." if row["pays_within_life"] else f"{after}, longer than the node is used: rent."


def in_words(table: pl.DataFrame) -> pl.DataFrame:
    """A break-even's months as people say them."""
    said = {
        "payback": "payback_months",
        "undiscounted": "undiscounted_payback_months",
        "with_residual": "payback_with_residual_months",
    }
    return table.with_columns(
        pl.when(pl.col(months).is_null()).then(pl.lit("never")).otherwise(pl.format("{} months", months)).alias(name)
        for name, months in said.items()
    )


def crossings(inputs: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    """From which utilisation owning costs less than each comparator over the node's life; null: never, or at any.

    A commitment is paid used or not, as the node is: which of them costs less does not hang on use.
    """
    from_use = dict(
        table.unique("comparator", maintain_order=True).select("comparator", "break_even_utilisation").iter_rows()
    )
    return pl.DataFrame(
        {
            "comparator": [one.name for one in inputs.comparators],
            "price": [one.price_per_gpu_hour for one in inputs.comparators],
            "utilisation": [None if one.is_committed else from_use[one.name] for one in inputs.comparators],
        },
        schema_overrides={"utilisation": pl.Float64},
    )


def odds(drawn: dict[str, Any]) -> str:
    """What a Monte Carlo says, in one sentence."""
    best, middle, worst = (
        "never" if months is None else f"after {words.count(months, 'month')}"
        for months in (drawn[f"payback_p{part}_months"] for part in (10, 50, 90))
    )
    return (
        f"With all of them drawn at once ({drawn['draws']:,} draws, seed {drawn['seed']}), it pays within its life in "
        f"**{format_share(drawn['pays_within_life_ratio'])}** of the draws with residual 0, and in "
        f"{format_share(drawn['pays_with_residual_ratio'])} with the residual drawn too. It pays back {best} in the best tenth, {middle} "
        f"in the middle and {worst} in the worst tenth."
    )
