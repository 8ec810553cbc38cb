"""The charts: a frame in, an Altair chart out; few calm colours, each with one meaning on every page."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

import altair as alt
import polars as pl

from dashboards import words

if TYPE_CHECKING:
    from collections.abc import Mapping

CALM = ("#1f5f7a", "#5b9bab", "#a9cdd0", "#8a6f9e", "#c3a86b", "#6f8f5f", "#c58f7f")
PLATFORM, OTHER, ATTENTION = "#c9ced6", "#9aa3ad", "#dd9a3c"
BUCKET_COLOURS = {
    "active": "#1f5f7a",
    "allocated_idle": ATTENTION,
    "allocated_unmeasured": "#a9cdd0",
    "unallocated": "#e3e7ec",
    "down": "#7a828c",
    "stranded": "#8a6f9e",
    "over_subscribed": "#b5483f",
}
UP, DOWN, TOTAL = "#c58f7f", "#6f8f5f", "#1f5f7a"
Chart: TypeAlias = alt.Chart | alt.LayerChart
MOST_NAMES = len(CALM)
HEIGHT = 300


def plain(chart: Chart, height: int = HEIGHT) -> Chart:
    """The look of every chart: a height, and neither frame nor ticks."""
    calm: Chart = chart.properties(height=height).configure_view(stroke=None).configure_axis(domain=False, ticks=False)
    return calm


def colours(names: list[str]) -> dict[str, str]:
    """A colour for each name: grey for the platform and the rest, attention for what nobody owns."""
    fixed = {"Platform": PLATFORM, "platform": PLATFORM, "Other": OTHER, "Unassigned": ATTENTION}
    free = iter(CALM * (1 + len(names) // len(CALM)))
    return {name: fixed.get(name) or next(free) for name in names}


def largest(frame: pl.DataFrame, name: str, value: str) -> pl.DataFrame:
    """All but the largest names gathered as Other, so that a chart keeps few colours."""
    order = frame.group_by(name).agg(pl.col(value).abs().sum()).sort(value, name, descending=[True, False])[name]
    kept = order.head(MOST_NAMES).to_list() if len(order) > MOST_NAMES + 1 else order.to_list()
    gathered = frame.with_columns(pl.when(pl.col(name).is_in(kept)).then(pl.col(name)).otherwise(pl.lit("Other")))
    return gathered.group_by(pl.exclude(value), maintain_order=True).agg(pl.col(value).sum())


def by_month(frame: pl.DataFrame, currency: str, what: str) -> Chart:
    """Stacked bars of ``cost`` by ``name`` over ``month``."""
    data = largest(frame.drop_nulls("cost"), "name", "cost").with_columns(label=pl.col("month").dt.strftime("%b %Y"))
    names = data.group_by("name").agg(pl.col("cost").sum()).sort("cost", descending=True)["name"].to_list()
    palette = colours(names)
    order = data["label"].unique(maintain_order=True).to_list()
    return plain(
        alt.Chart(data.with_columns(rank=pl.col("name").replace_strict(names, range(len(names)))))
        .mark_bar(size=min(56, 640 // max(len(order), 1)))
        .encode(
            x=alt.X("label:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("cost:Q", title=currency, axis=alt.Axis(format=",.0f", tickCount=5)),
            color=alt.Color(
                "name:N", title=what, sort=names, scale=alt.Scale(domain=names, range=[palette[one] for one in names])
            ),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip("label:N", title="Month"),
                alt.Tooltip("name:N", title=what),
                alt.Tooltip("cost:Q", title=currency, format=",.2f"),
            ],
        )
    )


def buckets_by_day(frame: pl.DataFrame) -> Chart:
    """Stacked bars of ``gpu_hours`` by ``bucket`` over ``use_day``."""
    known = [bucket for bucket in words.BUCKETS if bucket in set(frame["bucket"])]
    labels = [words.BUCKETS[bucket][0] for bucket in known]
    data = frame.with_columns(
        label=pl.col("bucket").replace_strict(known, labels),
        rank=pl.col("bucket").replace_strict(known, range(len(known))),
    )
    return plain(
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(
                "yearmonthdate(use_day):O", title=None, axis=alt.Axis(format="%-d %b", labelAngle=0, labelOverlap=True)
            ),
            y=alt.Y("gpu_hours:Q", title="GPU-hours", axis=alt.Axis(format=",.0f", tickCount=5)),
            color=alt.Color(
                "label:N",
                title="GPU time",
                sort=labels,
                scale=alt.Scale(domain=labels, range=[BUCKET_COLOURS[bucket] for bucket in known]),
            ),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip("use_day:T", title="Day", format="%-d %B %Y"),
                alt.Tooltip("label:N", title="GPU time"),
                alt.Tooltip("gpu_hours:Q", title="GPU-hours", format=",.1f"),
            ],
        )
    )


def change(before: tuple[str, float], effects: Mapping[str, float], after: str, currency: str) -> Chart:
    """A waterfall from the amount before, through each effect, to the amount after."""
    starts = [before[1], *(before[1] + total for total in accumulate(effects.values()))]
    steps = [before[0], *effects, after]
    lows = [0.0, *(min(pair) for pair in pairwise(starts)), 0.0]
    highs = [before[1], *(max(pair) for pair in pairwise(starts)), starts[-1]]
    # Effects are small beside the totals: the axis may start above zero, and then says so.
    floor = max(0.0, min(starts) - 2 * (max(starts) - min(starts)))
    data = pl.DataFrame(
        {
            "step": steps,
            "low": [max(low, floor) if low >= 0 else low for low in lows],
            "high": highs,
            "kind": ["total", *("more" if amount > 0 else "less" for amount in effects.values()), "total"],
            "amount": [before[1], *effects.values(), starts[-1]],
            "label": [f"{before[1]:,.0f}", *(f"{amount:+,.0f}" for amount in effects.values()), f"{starts[-1]:,.0f}"],
        }
    )
    data = data.with_columns(pl.col("label").str.replace("-", "−", literal=True))
    base = alt.Chart(data).encode(
        x=alt.X("step:N", sort=steps, title=None, axis=alt.Axis(labelAngle=0, labelLimit=150)),
        tooltip=[alt.Tooltip("step:N", title="Step"), alt.Tooltip("amount:Q", title=currency, format="+,.2f")],
    )
    axis = alt.Y(
        "low:Q",
        title=currency if floor <= 0 else f"{currency}, from {floor:,.0f}",
        scale=alt.Scale(zero=False, nice=False, domainMin=floor) if floor > 0 else alt.Scale(),
        axis=alt.Axis(format=",.0f", tickCount=5),
    )
    palette = alt.Scale(domain=["total", "more", "less"], range=[TOTAL, UP, DOWN])
    bars = base.mark_bar(size=48).encode(y=axis, y2="high:Q", color=alt.Color("kind:N", legend=None, scale=palette))
    labels = base.mark_text(dy=-8, fontSize=12).encode(y="high:Q", text="label:N")
    return plain(bars + labels, 260)


def idle_by_team(frame: pl.DataFrame) -> Chart:
    """Bars of the idle GPU-hours of each team, the most first; at most twelve."""
    data = frame.drop_nulls("idle_gpu_hours").filter(pl.col("idle_gpu_hours") > 0)
    # Two business units may each have a team of one name: their bars are two.
    named = pl.format("{} ({})", "team", "business_unit")
    data = data.with_columns(team=pl.when(pl.col("team").is_duplicated()).then(named).otherwise("team")).head(12)
    return plain(
        alt.Chart(data)
        .mark_bar(color=ATTENTION, size=18)
        .encode(
            x=alt.X("idle_gpu_hours:Q", title="Idle GPU-hours", axis=alt.Axis(format=",.0f", tickCount=5)),
            y=alt.Y("team:N", sort=None, title=None, axis=alt.Axis(labelLimit=200)),
            tooltip=[
                alt.Tooltip("team:N", title="Team"),
                alt.Tooltip("idle_gpu_hours:Q", title="Idle GPU-hours", format=",.1f"),
                alt.Tooltip("idle_ratio:Q", title="Of its measured time", format=".1%"),
            ],
        ),
        60 + 34 * data.height,
    )
