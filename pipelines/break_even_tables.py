"""A break-even as people read it: what it assumes, then grids by comparator and utilisation.

Does not belong here: computing any of it.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from models.break_even import Cases, break_even, break_even_utilisations, upfront_returns
from models.break_even_inputs import UNCERTAIN
from models.break_even_risk import monte_carlo, tornado
from models.cash_flow import MONTHS_PER_YEAR
from models.units import format_money, format_share
from pipelines.terminal import cell, grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from models.break_even_inputs import Comparator, Inputs

NEVER = "never"


def heading(inputs: Inputs) -> list[str]:
    """What every answer depends on, a line a subject."""
    node = Cases.of(inputs, inputs.comparators[:1], {})
    load = f"{format_share(inputs.load_ratio)} of {inputs.nameplate_kilowatts:g} kW assumed"
    energy = f"{_money(node.energy_per_month[0])} from {load}"
    if inputs.measured_node_watts is not None:
        assumed = Cases.of(replace(inputs, measured_node_watts=None), inputs.comparators[:1], {})
        energy = (
            f"{_money(node.energy_per_month[0])} from {inputs.measured_node_watts:,.0f} W measured "
            f"(where {load} makes {_money(assumed.energy_per_month[0])})"
        )
    owned = (
        f"Owned: {inputs.currency} of one node with {inputs.gpus_per_node} GPUs: {_money(node.outlay[0])} at the start "
        f"({_money(inputs.purchase_per_node)} and {format_share(inputs.network_ratio)} for its network), delivered after "
        f"{inputs.lead_months} months"
    )
    running = (
        f"Running: {_money(node.running_per_month[0])} a month: colocation {_money(node.colo_per_month[0])}, energy {energy}, support "
        f"{_money(node.support_per_month[0])}, staff {_money(inputs.staff_per_node_month)}, fees {_money(inputs.fees_per_node_month)}"
    )
    finance = (
        f"Discount rate {format_share(inputs.discount_ratio)} a year; life {inputs.life_years:g} years; residual "
        f"{format_share(inputs.residual_ratio)} of the purchase without network; horizon {inputs.horizon_months} months"
    )
    used = "Utilisation: delivered GPU-hours over all GPU-hours of the node, neither powered nor allocated hours"
    return [owned, running, finance, used, *(_offer(one, inputs.currency) for one in inputs.comparators)]


def _offer(one: Comparator, currency: str) -> str:
    due = "due for all hours" if one.is_committed else "for used hours only"
    return f"{one.name}: {one.price_per_gpu_hour:g} {currency} a GPU-hour, {due}; {one.source}, {one.observed_at}"


def grids(inputs: Inputs) -> list[Callable[[pl.DataFrame], Table]]:
    """Grids by comparator and utilisation of the answers of ``break_even``, one a question."""
    life = round(inputs.life_years * MONTHS_PER_YEAR) + inputs.lead_months
    cut = f"if rent falls by {format_share(inputs.price_cut_ratio)} after {inputs.price_cut_after_months} months"
    code = inputs.currency

    def months(value: int | None) -> str:
        return NEVER if value is None else f"{value}{'*' if value > life else ''}"

    return [
        _grid(f"Discounted payback, residual 0, months (* after the life of {life})", "payback_months", months),
        _grid("Undiscounted payback, residual 0, months", "undiscounted_payback_months", months),
        _grid("Discounted payback with the residual, months", "payback_with_residual_months", months),
        _grid(f"{code} of a delivered GPU-hour, rented", "rented_per_gpu_hour", _money),
        _grid(f"{code} of a delivered GPU-hour, owned, with the residual", "owned_per_gpu_hour", _money),
        _grid(f"NPV over the life with the residual, {code}", "npv", _money),
        _grid(f"NPV over the life with residual 0, {code}", "npv_without_residual", _money),
        _grid(f"Discounted payback {cut}, residual 0, months", "payback_after_price_cut_months", months),
        _grid(f"NPV lost {cut}, {code}", "price_cut_loss", _money),
    ]


def _grid(title: str, column: str, show: Callable[[Any], str]) -> Callable[[pl.DataFrame], Table]:
    """One row a comparator, one column a utilisation; one row for all where the comparator makes no difference."""

    def table(found: pl.DataFrame) -> Table:
        used = [format_share(one) for one in found["utilisation"].unique(maintain_order=True)]
        shown = found.select("comparator", column)
        if column == "owned_per_gpu_hour":  # the same beside every comparator
            shown = shown.head(len(used)).with_columns(comparator=pl.lit("owned"))
        return _by(shown, used, show, title)

    return table


def by_horizon(found: pl.DataFrame) -> Table:
    """The grid of ``break_even_utilisations``: one row a comparator, one column a horizon."""
    columns = [f"{months} months" for months in found["within_months"].unique(maintain_order=True)]
    shown = found.select("comparator", "break_even_utilisation")
    title = "Least utilisation that pays within, residual 0"
    return _by(shown, columns, lambda ratio: NEVER if ratio is None else format_share(ratio), title)


def _by(found: pl.DataFrame, columns: list[str], show: Callable[[Any], str], title: str) -> Table:
    """A grid of rows as (comparator, value), those of one comparator side by side."""
    body: dict[str, list[str]] = {}
    for comparator, value in found.iter_rows():
        body.setdefault(comparator, [comparator]).append(show(value))
    return grid([("", False), *((column, True) for column in columns)], list(body.values()), title=title)


def listed(found: pl.DataFrame) -> Table:
    """Any other table of a break-even: money with two places, ratios as per cents, months that never come as such."""
    shows = [_show_of(name) for name in found.columns]
    columns = [(_words(name), dtype.is_numeric()) for name, dtype in found.schema.items()]
    return grid(columns, [[show(value) for show, value in zip(shows, row, strict=True)] for row in found.iter_rows()])


def _words(column: str) -> str:
    return column.removesuffix("_ratio").replace("_", " ")


def _show_of(column: str) -> Callable[[Any], str]:
    if column.startswith("payback"):
        return lambda value: NEVER if value is None else str(value)
    if column == "implied_return_ratio":
        return lambda value: "unbounded" if value is None else format_share(value)
    if column.endswith("_ratio") or column == "discount_rate":
        return format_share
    return _money if column.startswith("npv") else cell


def _money(value: float) -> str:
    return format_money(Decimal(repr(float(value))))


def assumptions(inputs: Inputs) -> pl.DataFrame:
    """Every input by name, as text, with what is computed first from them: outlay and running costs."""
    node = Cases.of(inputs, inputs.comparators[:1], {})
    stated = {
        "currency": inputs.currency,
        "gpus_per_node": inputs.gpus_per_node,
        **{name: getattr(inputs, name) for name in UNCERTAIN},
        "horizon_months": inputs.horizon_months,
        "price_cut_ratio": inputs.price_cut_ratio,
        "price_cut_after_months": inputs.price_cut_after_months,
        "outlay_per_node": round(float(node.outlay[0]), 6),
        "energy_per_node_month": round(float(node.energy_per_month[0]), 6),
        "running_per_node_month": round(float(node.running_per_month[0]), 6),
    }
    ranges = inputs.ranges
    return pl.DataFrame(
        {
            "input": list(stated),
            "value": ["–" if value is None else str(value) for value in stated.values()],
            "low": [ranges[name].low if name in ranges else None for name in stated],
            "high": [ranges[name].high if name in ranges else None for name in stated],
            "shape": [ranges[name].shape if name in ranges else None for name in stated],
            "source": [ranges[name].source if name in ranges else None for name in stated],
            "as_of": [ranges[name].as_of if name in ranges else None for name in stated],
        },
        schema_overrides=dict.fromkeys(("low", "high"), pl.Float64)
        | dict.fromkeys(("shape", "source", "as_of"), pl.String),
    )


def sheets(inputs: Inputs, draws: int | None, seed: int) -> dict[str, pl.DataFrame]:
    """All tables of a workbook; those that need ranges, draws or offers only where there are any."""
    life = round(inputs.life_years * MONTHS_PER_YEAR) + inputs.lead_months
    tables = {
        "Assumptions": assumptions(inputs),
        "Break-even": break_even(inputs),
        "Break-even utilisation": break_even_utilisations(inputs, sorted({life, inputs.horizon_months})),
    }
    if inputs.ranges:
        tables["Tornado"] = tornado(inputs)
        if draws:
            tables["Monte Carlo"] = monte_carlo(inputs, draws, seed)
    if inputs.upfront_offers:
        tables["Upfront"] = upfront_returns(inputs)
    return tables
