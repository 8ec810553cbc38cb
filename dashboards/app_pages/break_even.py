"""Own or rent: when an owned node has paid for itself, against each offer to rent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st

from dashboards import header, own_or_rent, procurement, procurement_charts, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.break_even import break_even
from models.break_even_risk import monte_carlo, tornado
from models.errors import UsageError
from models.price_book import book
from models.prices import Instrument
from models.units import format_share

if TYPE_CHECKING:
    from models.break_even_inputs import Comparator, Inputs
    from models.prices import Offer

SENTENCE = "When a node of your own has paid for itself, against each way to rent the same GPUs."
DRAWS, SEED = 2_000, 1
FIRST = (
    ("purchase_per_node", "Price of a node", 1_000.0),
    ("residual_ratio", "Residual at the end, % of it", 5.0),
    ("life_years", "Years in use", 0.5),
    ("discount_ratio", "Cost of money, % a year", 1.0),
    ("expected_utilisation", "Utilisation, % of its GPU-hours", 5.0),
)
MORE = (
    ("gpus_per_node", "GPUs of a node", 1),
    ("network_ratio", "Network, % of the price", 1.0),
    ("lead_months", "Months until it runs", 1),
    ("measured_node_watts", "Mean watts at the plug", 100.0),
    ("power_usage_effectiveness", "Facility power over IT power", 0.05),
    ("price_per_kilowatt_hour", "Price of a kWh", 0.01),
    ("nameplate_kilowatts", "Nameplate kW of a node", 0.1),
    ("colo_per_kilowatt_month", "Colocation a kW and month", 5.0),
    ("support_ratio", "Support, % of the price a year", 1.0),
    ("staff_per_node_month", "Staff a node and month", 100.0),
    ("fees_per_node_month", "Other fees a node and month", 100.0),
)


def main() -> None:
    """The page."""
    header.show("Own or rent", SENTENCE)
    at = ledger()["recorded_until_at"]
    prices = query("prices", model=None, at=at)
    left, right = st.columns([1, 2.6], gap="large")
    with left:
        offer = _owned(prices)
        inputs = _asked(offer, prices)
    with right:
        if inputs is None:
            st.info(
                "Choose at least one offer to compare with: a break-even without one means nothing.",
                icon=":material/balance:",
            )
            return
        try:
            _answer(inputs)
        except UsageError as trouble:
            st.warning(str(trouble), icon=":material/warning:")


def _owned(prices: pl.DataFrame) -> Offer | None:
    """The owned offer that the inputs begin with; None where the price book has none."""
    models = prices.filter(pl.col("instrument") == "owned")["gpu_model"].unique().sort().to_list()
    offers = {
        f"{offer.offer_id} ({model})": (offer, model)
        for model in models
        for pool in procurement.pools(prices, model)[:1]
        for offer in book(prices, [pool], ledger()["recorded_until_at"], timedelta.max).offers
        if offer.instrument is Instrument.OWNED
    }
    if not offers:
        st.caption(
            "The price book has no owned offer, so these are published figures of a node of eight H100 in USD, most of them weak: "
            "put your own quotes in their place. Each says its source."
        )
        st.session_state["owned_model"] = "H100-80GB"
        return None
    chosen = st.selectbox("Owned offer", list(offers), help="Offers of the price book whose instrument is owned.")
    st.session_state["owned_model"] = offers[chosen][1]
    st.caption("Begins with the price book; what it does not say is a published figure. Each says its source on hover.")
    return offers[chosen][0]


def _asked(offer: Offer | None, prices: pl.DataFrame) -> Inputs | None:
    """The inputs as the person left them; None without a comparator."""
    start, sources = own_or_rent.owned_inputs(offer, offer.node_gpus if offer else own_or_rent.EXAMPLE.gpus_per_node)
    chosen = _comparators(prices.filter(pl.col("gpu_model") == st.session_state["owned_model"]))
    values: dict[str, Any] = {}
    for name, label, step in FIRST:
        values[name] = _number(start, name, label, step, sources)
    with st.expander("More inputs", icon=":material/tune:"):
        for name, label, step in MORE:
            values[name] = _number(start, name, label, step, sources)
    values["measured_node_watts"] = values["measured_node_watts"] or None
    used = tuple(sorted({*start.utilisations, values["expected_utilisation"]}, reverse=True))
    if not chosen:
        return None
    currency = ledger()["reporting_currency"]
    return replace(start, **values, utilisations=used, comparators=tuple(chosen), currency=currency)


def _comparators(prices: pl.DataFrame) -> list[Comparator]:
    known = own_or_rent.comparators(prices)
    offered = {one.name: one for one in known or own_or_rent.EXAMPLE.comparators}
    picked = st.multiselect(
        "Compared with",
        list(offered),
        default=own_or_rent.usual_comparators(list(offered.values())),
        format_func=lambda name: f"{name} · {offered[name].price_per_gpu_hour:,.2f}",
        help="Price of a GPU-hour; a commitment is paid for all hours, used or not. "
        + ("From the price book." if known else "Published prices: the price book has none of this GPU."),
    )
    return [offered[name] for name in picked]


def _number(start: Inputs, name: str, label: str, step: float, sources: dict[str, str]) -> Any:
    """One input, as a per cent where its label says so."""
    return own_or_rent.from_shown(
        label,
        st.number_input(
            label,
            min_value=type(step)(0),
            value=own_or_rent.to_shown(label, getattr(start, name), type(step)),
            step=step,
            format="%d" if type(step) is int else "%.0f" if step >= 1 else "%.2f",
            help=f"Source: {sources.get(name, 'an assumption: put in your own')}.",
            key=f"own_{name}",
        ),
    )


def _answer(inputs: Inputs) -> None:
    own_or_rent.check(inputs)
    names = [one.name for one in inputs.comparators]
    chosen = st.selectbox("In detail against", names) if len(names) > 1 else names[0]
    table = break_even(inputs)
    only = replace(inputs, comparators=tuple(one for one in inputs.comparators if one.name == chosen))
    at = table.filter(
        (pl.col("comparator") == chosen) & (pl.col("utilisation") == round(inputs.expected_utilisation, 6))
    ).row(0, named=True)
    _numbers(inputs, at)
    currency = ledger()["reporting_currency"]
    st.markdown(f"#### A used GPU-hour, owned and rented :small[:gray[{currency}]]")
    st.caption(
        "Owned falls with use, since most of it is paid used or not. A commitment does too. Right of a dot, owning costs less than that offer over the node's life."
    )
    curve = break_even(own_or_rent.over_utilisation(inputs))
    st.altair_chart(
        procurement_charts.owned_against_rent(curve, own_or_rent.crossings(inputs, table), currency), key="owned"
    )
    _table(inputs, table)
    _what_if(only, at)


def _numbers(inputs: Inputs, at: dict[str, Any]) -> None:
    months = at["payback_months"]
    basis = own_or_rent.basis(inputs, at["comparator"])
    st.info(
        f"**{own_or_rent.verdict(at, inputs)}** {basis}",
        icon=":material/check_circle:" if at["pays_within_life"] else ":material/block:",
    )
    header.numbers(
        (
            "Pays back after",
            "never" if months is None else words.count(months, "month"),
            f"Discounted, nothing for the residual. {basis}",
        ),
        (
            f"NPV of a node ({ledger()['reporting_currency']})",
            words.whole(at["npv"]),
            f"Rent saved less all costs over its life, discounted, with the residual. {basis}",
        ),
        (
            "NPV, residual 0",
            words.whole(at["npv_without_residual"]),
            f"The same, should the node be worth nothing at the end. {basis}",
        ),
        (
            "Pays from a use of",
            format_share(at["break_even_utilisation"]) if at["break_even_utilisation"] is not None else "never",
            f"Least part of its GPU-hours that must be used for it to pay within its life, residual 0. {basis}",
        ),
    )


def _table(inputs: Inputs, table: pl.DataFrame) -> None:
    columns = {
        "comparator": Column("Rented", basis="offer in the price book, or published price"),
        "utilisation": Column("Utilisation", "ratio", "used GPU-hours, of all of the node's"),
        "payback": Column("Pays back after", basis="discounted, residual 0"),
        "undiscounted": Column("Undiscounted", basis="the same without interest, residual 0"),
        "with_residual": Column(
            "With residual", basis="when it could be sold for what it is then worth, in a straight line to the residual"
        ),
        "owned_per_gpu_hour": Column("Owned", "price", "all costs of owning, a used GPU-hour"),
        "rented_per_gpu_hour": Column("Rented", "price", "a used GPU-hour; a commitment's unused hours are paid too"),
        "npv": Column("NPV", "money", "over the node's life, with the residual"),
        "npv_without_residual": Column("NPV, residual 0", "money", "over the node's life, worth nothing at the end"),
        "npv_after_price_cut": Column(
            "NPV after a price cut",
            "money",
            f"if rent falls by {format_share(inputs.price_cut_ratio)} after {inputs.price_cut_after_months} months",
        ),
        "source": Column("Price from"),
        "observed_at": Column("On", "day"),
    }
    tables.show(
        "By offer and utilisation",
        own_or_rent.in_words(table),
        columns,
        file_name="own-or-rent",
        note=f"At {format_share(inputs.discount_ratio)} a year and a residual of {format_share(inputs.residual_ratio)}; never: not within "
        f"{inputs.horizon_months} months. Money is of one node of {inputs.gpus_per_node} GPUs, prices are of a GPU-hour.",
    )


def _what_if(inputs: Inputs, at: dict[str, Any]) -> None:
    uncertain = own_or_rent.ranged(inputs)
    currency = ledger()["reporting_currency"]
    swings = tornado(uncertain)
    st.markdown("#### What it hangs on")
    st.caption(
        "Each bar moves one input from its low (green) to its high (red), all others as stated: how far the NPV moves. "
        "Where a bar crosses the dashed zero, that input alone decides."
    )
    st.altair_chart(procurement_charts.tornado(swings, at["npv"], currency), key="tornado")
    drawn = monte_carlo(uncertain, DRAWS, SEED).row(0, named=True)
    st.markdown(own_or_rent.odds(drawn))
    columns = {
        "label": Column("Input"),
        "low": Column("Low", "amount", "lowest that the input may be"),
        "stated": Column("Stated", "amount", "as entered on the left"),
        "high": Column("High", "amount", "highest that the input may be"),
        "npv_at_low": Column(
            "NPV at low", "money", "over the node's life with the residual, this input at its low, all others as stated"
        ),
        "npv_at_high": Column("NPV at high", "money", "the same at its high"),
        "source": Column("Range from", width="large"),
    }
    shown = swings.with_columns(label=pl.col("input").replace_strict(words.INPUTS, default=pl.col("input")))
    tables.show(
        "The ranges", shown, columns, file_name="own-or-rent-ranges", note=own_or_rent.basis(inputs, at["comparator"])
    )


main()
