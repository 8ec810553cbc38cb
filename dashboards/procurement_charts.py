"""The charts of procurement: a frame in, an Altair chart out; each way to pay has one colour on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from dashboards import words
from dashboards.charts import ATTENTION, DOWN, OTHER, TOTAL, UP, Chart, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.demand import LoadDuration
    from models.procurement.curve import Line, Stretch

INSTRUMENT_COLOURS = {
    "on_demand": ATTENTION,
    "spot": "#6f8f5f",
    "reserved": "#5b9bab",
    "savings_plan": "#8a6f9e",
    "committed_use": "#a9cdd0",
    "capacity_block": OTHER,
    "contract": "#8c5a3c",
    "owned": "#1f5f7a",
}
INK = "#1d2733"
FULL = alt.Scale(domain=[0, 1])
ACROSS = alt.Axis(format="%", tickCount=10, labelFlush=True, grid=False)
UPWARDS = alt.Axis(format=",.2f", tickCount=5, minExtent=44)
MOST_STEPS = 240
GRID = 11
"""Utilisations at which a line answers the mouse."""


def screening_lines(lines: Sequence[Line]) -> pl.DataFrame:
    """Cost of a GPU-hour of capacity by its utilisation, a few points a line: ``instrument``, ``offer_id``, ``used_ratio``, ``cost``."""
    used = np.linspace(0, 1, GRID)
    parts = [
        pl.DataFrame({"used_ratio": used, "cost": line.at(used) / 1e6}).with_columns(
            instrument=pl.lit(words.instrument(line.instrument)), offer_id=pl.lit(line.offer_id)
        )
        for line in lines
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def bands(duration: LoadDuration, mix: Sequence[Stretch]) -> pl.DataFrame:
    """The load-duration curve cut into who serves which GPUs: ``instrument``, ``offer_id``, ``hours_ratio``, ``low``, ``high``.

    A band reaches from its lowest GPU to the curve, and no higher than its highest GPU.
    """
    steps = duration.thinned(MOST_STEPS)
    edges = np.concatenate([[0.0], np.cumsum(steps.hours)]) / steps.hours.sum()
    # Every step is drawn from its left edge on; the last level stands at the right end too.
    level = np.append(steps.gpus, steps.gpus[-1])
    parts = [
        pl.DataFrame({"hours_ratio": edges, "low": stretch.low, "high": np.clip(level, stretch.low, stretch.high)})
        .filter(pl.col("high") > pl.col("low"))
        .with_columns(
            instrument=pl.lit(words.instrument(stretch.line.instrument)), offer_id=pl.lit(stretch.line.offer_id)
        )
        for stretch in mix
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def mix_picture(
    lines: Sequence[Line], cheapest: Sequence[Stretch], served: pl.DataFrame, held_gpus: float, currency: str
) -> tuple[Chart, Chart]:
    """The picture that explains a mix: what a GPU-hour costs by its use, over how much of the time each GPU is used.

    Both have the same axis across, so that a dashed line goes through both.

    Args:
      lines: What can be bought.
      cheapest: Where each of them is the cheapest.
      served: As ``bands``.
      held_gpus: GPUs that are held already, as a line across; 0 draws none.
      currency: Of the costs.
    """
    names = list(dict.fromkeys(words.instrument(line.instrument) for line in lines))
    palette = {words.instrument(name): colour for name, colour in INSTRUMENT_COLOURS.items()}
    legend = alt.Legend(orient="top", direction="horizontal", symbolType="stroke", symbolStrokeWidth=5, columns=8)
    colour = alt.Color(
        "instrument:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=[palette[name] for name in names]),
        legend=legend,
    )
    changes = pl.DataFrame(
        {"used_ratio": [one.low for one in cheapest if one.low > 0]}, schema={"used_ratio": pl.Float64}
    )
    cuts = alt.Chart(changes).encode(x=alt.X("used_ratio:Q", scale=FULL))
    rule = cuts.mark_rule(strokeDash=[4, 4], color="#7a828c")
    drawn = alt.Chart(screening_lines(lines)).encode(
        x=alt.X("used_ratio:Q", title="Part of the hours in which a GPU is used", scale=FULL, axis=ACROSS),
        y=alt.Y("cost:Q", title=f"{currency} a GPU-hour of capacity", axis=UPWARDS),
        color=colour,
        tooltip=[
            alt.Tooltip("instrument:N", title="Way to pay"),
            alt.Tooltip("offer_id:N", title="Offer"),
            alt.Tooltip("used_ratio:Q", title="Used", format=".0%"),
            alt.Tooltip("cost:Q", title=currency, format=",.4f"),
        ],
    )
    thick = (
        alt.Chart(_cheapest(cheapest))
        .mark_line(strokeWidth=5, strokeCap="round")
        .encode(x="used_ratio:Q", y="cost:Q", color=colour, detail="stretch:N")
    )
    labels = cuts.mark_text(align="left", dx=5, dy=10, fontSize=12, color=INK).encode(
        y=alt.value(0), text=alt.Text("used_ratio:Q", format=".1%")
    )
    points = drawn.mark_point(opacity=0, size=200)
    top = drawn.mark_line(strokeWidth=1.5, opacity=0.75) + thick + points + rule + labels
    bottom = _served(served, colour) + rule + _held(held_gpus)
    return plain(top, 340), plain(bottom, 320)


def _cheapest(cheapest: Sequence[Stretch]) -> pl.DataFrame:
    ends = [(number, one, at) for number, one in enumerate(cheapest) for at in (one.low, one.high)]
    return pl.DataFrame(
        {
            "stretch": [str(number) for number, _, _ in ends],
            "instrument": [words.instrument(one.line.instrument) for _, one, _ in ends],
            "used_ratio": [at for _, _, at in ends],
            "cost": [float(one.line.at(at)) / 1e6 for _, one, at in ends],
        }
    )


def _served(served: pl.DataFrame, colour: alt.Color) -> alt.Chart:
    areas: alt.Chart = (
        alt.Chart(served)
        .mark_area(interpolate="step-after", opacity=0.85)
        .encode(
            x=alt.X("hours_ratio:Q", title="Part of the hours in which so many are wanted", scale=FULL, axis=ACROSS),
            y=alt.Y("low:Q", title="GPUs wanted", axis=alt.Axis(format=",.0f", tickCount=5, minExtent=44)),
            y2="high:Q",
            color=colour.copy(deep=False).legend(None),
            tooltip=[
                alt.Tooltip("instrument:N", title="Served by"),
                alt.Tooltip("offer_id:N", title="Offer"),
                alt.Tooltip("hours_ratio:Q", title="Part of the hours", format=".0%"),
                alt.Tooltip("high:Q", title="GPUs", format=",.1f"),
            ],
        )
    )
    return areas


def _held(held_gpus: float) -> alt.LayerChart:
    frame = pl.DataFrame(
        {"gpus": [held_gpus], "text": [f"held already: {held_gpus:,.0f} GPUs"]},
        schema={"gpus": pl.Float64, "text": pl.String},
    ).filter(pl.col("gpus") > 0)
    base = alt.Chart(frame).encode(y="gpus:Q")
    across = base.mark_rule(color=INK, strokeWidth=1.5)
    held: alt.LayerChart = across + base.mark_text(align="right", dx=-6, dy=-8, fontSize=12, color=INK).encode(
        x=alt.value("width"), text="text:N"
    )
    return held


def savings(frame: pl.DataFrame, currency: str) -> Chart:
    """Bars of ``saving`` by ``name`` with the range from ``low_saving`` to ``high_saving``."""
    amounts = ["saving", "low_saving", "high_saving"]
    data = frame.drop_nulls("saving").with_columns(pl.col(amounts).cast(pl.Float64))
    data = data.with_columns(
        label=pl.col("saving").map_elements(lambda one: f"{one:,.0f}".replace("-", "−"), pl.String)
    )
    order = data["name"].to_list()
    tips = [alt.Tooltip("name:N", title="Against")] + [
        alt.Tooltip(f"{name}:Q", title=f"{title} ({currency})", format=",.2f")
        for name, title in zip(amounts, ("Saving", "5th percentile", "95th percentile"), strict=True)
    ]
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=220)), tooltip=tips
    )
    bars = base.mark_bar(size=22, color=TOTAL, opacity=0.75).encode(
        x=alt.X("saving:Q", title=f"Saving over the plan's time, {currency}", axis=alt.Axis(format=",.0f", tickCount=6))
    )
    spread = base.mark_rule(color=INK, strokeWidth=2).encode(x="low_saving:Q", x2="high_saving:Q")
    ends = [base.mark_tick(color=INK, thickness=2, size=14).encode(x=f"{name}:Q") for name in amounts[1:]]
    labels = base.mark_text(align="left", dx=8, fontSize=12).encode(x="high_saving:Q", text="label:N")
    return plain(bars + spread + ends[0] + ends[1] + labels, 40 + 52 * data.height)


def commitment_use(frame: pl.DataFrame, currency: str) -> Chart:
    """Stacked bars of what was ``used`` and ``unused`` over ``bill_month``."""
    order = ["Used", "Paid for, not used"]
    data = (
        frame.drop_nulls(["used", "unused"])
        .sort("bill_month")
        .select("bill_month", pl.col("used", "unused").cast(pl.Float64))
        .rename({"used": order[0], "unused": order[1]})
        .unpivot(index="bill_month", variable_name="what", value_name="cost")
        .with_columns(label=pl.col("bill_month").dt.strftime("%b %Y"))
    )
    months = data["label"].unique(maintain_order=True).to_list()
    return plain(
        alt.Chart(data.with_columns(rank=pl.col("what").replace_strict(order, range(2))))
        .mark_bar(size=min(56, 640 // max(len(months), 1)))
        .encode(
            x=alt.X("label:N", sort=months, title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("cost:Q", title=currency, axis=alt.Axis(format=",.0f", tickCount=5)),
            color=alt.Color(
                "what:N",
                title=None,
                sort=order,
                scale=alt.Scale(domain=order, range=[TOTAL, ATTENTION]),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip("label:N", title="Month"),
                alt.Tooltip("what:N", title="Commitment"),
                alt.Tooltip("cost:Q", title=currency, format=",.2f"),
            ],
        ),
        240,
    )


def terms(commitments: pl.DataFrame, expiries: pl.DataFrame) -> Chart:
    """A bar from start to end for each commitment, and a line at each month in which so much ends that it is a cliff."""
    data = commitments.sort("ends_at").with_columns(what=pl.col("instrument").map_elements(words.instrument, pl.String))
    order = data["name"].to_list()
    used = data["what"].unique(maintain_order=True).to_list()
    palette = {words.instrument(name): colour for name, colour in INSTRUMENT_COLOURS.items()}
    bars = (
        alt.Chart(data)
        .mark_bar(size=20, cornerRadius=2)
        .encode(
            x=alt.X("starts_at:T", title=None, axis=alt.Axis(format="%b %Y", labelFlush=True)),
            x2="ends_at:T",
            y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=240)),
            color=alt.Color(
                "what:N",
                title=None,
                sort=used,
                scale=alt.Scale(domain=used, range=[palette.get(one, OTHER) for one in used]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("name:N", title="Commitment"),
                alt.Tooltip("starts_at:T", title="From", format="%-d %B %Y"),
                alt.Tooltip("ends_at:T", title="Until", format="%-d %B %Y"),
                alt.Tooltip("covers_gpus:Q", title="GPUs", format=",.1f"),
            ],
        )
    )
    cliffs = expiries.filter("is_cliff").with_columns(label=pl.format("▼ {}", pl.col("month").dt.strftime("%b %Y")))
    base = alt.Chart(cliffs).encode(x="month:T")
    rules = base.mark_rule(color=ATTENTION, strokeWidth=2)
    labels = base.mark_text(dy=-8, color="#9a5f0b", fontSize=12, fontWeight="bold").encode(
        y=alt.value(0), text="label:N"
    )
    return plain(bars + rules + labels, 60 + 36 * data.height)


def owned_against_rent(costs: pl.DataFrame, crossings: pl.DataFrame, currency: str) -> Chart:
    """What a used GPU-hour costs by ``utilisation``, owned and rented; a dot where owning begins to cost less.

    Args:
      costs: ``comparator``, ``utilisation``, ``owned_per_gpu_hour`` and ``rented_per_gpu_hour``: a line each, and the owned one.
      crossings: ``comparator``, ``utilisation`` and ``price`` of the dots.
      currency: Of the prices.
    """
    rented = costs.select("comparator", "utilisation", price="rented_per_gpu_hour")
    first = costs.filter(pl.col("comparator") == costs["comparator"][0])
    at_full = rented.filter(pl.col("utilisation") == rented["utilisation"].max())
    most = float(at_full["price"].to_numpy().max(initial=0)) * 1.6
    tips = [
        alt.Tooltip("comparator:N", title="Way"),
        alt.Tooltip("utilisation:Q", title="Used", format=".0%"),
        alt.Tooltip("price:Q", title=currency, format=",.4f"),
    ]
    x = alt.X("utilisation:Q", title="Used GPU-hours, of all of the node's", scale=FULL, axis=ACROSS)
    y = alt.Y("price:Q", title=f"{currency} a used GPU-hour", scale=alt.Scale(domain=[0, most]), axis=UPWARDS)
    owned = first.select("utilisation", price="owned_per_gpu_hour", comparator=pl.lit("Owned"))
    shown = pl.col("price") <= most
    line = alt.Chart(owned.filter(shown)).mark_line(color=TOTAL, strokeWidth=4).encode(x=x, y=y, tooltip=tips)
    rents = (
        alt.Chart(rented.filter(shown))
        .mark_line(color=OTHER, strokeWidth=1.5, strokeDash=[5, 3])
        .encode(x=x, y=y, detail="comparator:N", tooltip=tips)
    )
    names = (
        alt.Chart(at_full)
        .mark_text(align="right", baseline="top", dx=-2, dy=4, fontSize=12, color="#4a5561")
        .encode(x=x, y=y, text="comparator:N")
    )
    found = alt.Chart(crossings.drop_nulls("utilisation")).encode(x=x, y=y)
    dots = found.mark_point(filled=True, size=90, color=ATTENTION, opacity=1)
    shares = found.mark_text(dy=-10, dx=16, fontSize=12, fontWeight="bold", color=INK).encode(
        text=alt.Text("utilisation:Q", format=".0%")
    )
    return plain(rents + line + names + dots + shares, 340)


def tornado(frame: pl.DataFrame, stated: float, currency: str) -> Chart:
    """Bars from the NPV at an input's low to that at its high, the widest first, about the NPV as stated."""
    data = frame.with_columns(
        label=pl.col("input").replace_strict(words.INPUTS, default=pl.col("input")),
        stated_npv=pl.lit(stated),
        at_low=pl.format("at {}", pl.col("low").round(4)),
        at_high=pl.format("at {}", pl.col("high").round(4)),
    )
    order = data["label"].to_list()
    sides = [
        alt.Chart(data)
        .mark_bar(size=16, color=colour)
        .encode(
            x=alt.X(
                "stated_npv:Q",
                title=f"NPV of owning a node, {currency}",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(format=",.0f", tickCount=6),
            ),
            x2=f"{end}:Q",
            y=alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=220)),
            tooltip=[
                alt.Tooltip("label:N", title="Input"),
                alt.Tooltip(f"{name}:Q", title="Value", format=",.4~f"),
                alt.Tooltip(f"{end}:Q", title=f"NPV ({currency})", format=",.0f"),
                alt.Tooltip("source:N", title="Source"),
            ],
        )
        for end, name, colour in (("npv_at_low", "low", DOWN), ("npv_at_high", "high", UP))
    ]
    at = (
        alt.Chart(pl.DataFrame({"stated_npv": [stated]})).mark_rule(color=INK, strokeWidth=1.5).encode(x="stated_npv:Q")
    )
    zero = alt.Chart(pl.DataFrame({"npv": [0.0]})).mark_rule(color=OTHER, strokeDash=[4, 4]).encode(x="npv:Q")
    return plain(sides[0] + sides[1] + at + zero, 60 + 30 * data.height)


def goodput(curve: pl.DataFrame, rules: pl.DataFrame) -> Chart:
    """Useful part of the running time by ``interval_minutes``, with each ``rule``'s interval marked."""
    tips = [
        alt.Tooltip("interval_minutes:Q", title="Minutes", format=",.1f"),
        alt.Tooltip("goodput_ratio:Q", title="Useful", format=".2%"),
    ]
    x: Any = alt.X(
        "interval_minutes:Q",
        title="Minutes of work between checkpoints",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format=",.0f", tickCount=8, grid=False),
    )
    y: Any = alt.Y(
        "goodput_ratio:Q",
        title="Useful part of the running time",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    line = alt.Chart(curve).mark_line(color=TOTAL, strokeWidth=3).encode(x=x, y=y, tooltip=tips)
    named = alt.Chart(rules)
    marks = named.mark_point(filled=True, size=110, opacity=1).encode(
        x="interval_minutes:Q",
        y="goodput_ratio:Q",
        color=alt.Color(
            "rule:N",
            title=None,
            sort=rules["rule"].to_list(),
            scale=alt.Scale(domain=rules["rule"].to_list(), range=[ATTENTION, "#8a6f9e", OTHER][: rules.height]),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=[alt.Tooltip("rule:N", title="Rule"), *tips],
    )
    return plain(line + marks, 260)
