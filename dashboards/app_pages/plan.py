"""Plan: what to buy, why, what it saves and how sure that is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st

from dashboards import header, procurement, procurement_charts, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.demand import load_duration
from models.errors import UsageError
from models.price_book import book
from models.prices import Instrument
from models.procurement.curve import envelope, mix, screening
from models.units import format_money, format_share

if TYPE_CHECKING:
    from datetime import datetime

    from models.prices import Pool
    from models.procurement.policy import PlanPolicy

SENTENCE = "What to buy for the coming months, what it saves, and how sure that is."
LOOK_BACK = timedelta(days=60)


def main() -> None:
    """The page."""
    plans = query("plans")
    if plans.is_empty():
        header.show("Plan", SENTENCE)
        _nothing_yet()
        return
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        header.show("Plan", SENTENCE)
    made = {row["plan_id"]: row for row in plans.iter_rows(named=True)}
    chosen = right.selectbox(
        "Plan",
        list(made),
        format_func=lambda one: f"{made[one]['made_at']:%-d %b %Y, %H:%M} · {one[:8]}",
        help="Each plan is named by the digest of all that it was made from: the same inputs give the same plan.",
    )
    plan = made[chosen]
    savings = query("plan_savings", plan=chosen).with_columns(
        name=pl.col("baseline").map_elements(words.baseline, pl.String)
    )
    _numbers(plan, savings)
    _verdict(plan, savings)
    _purchases(chosen)
    notes = query("plan_notes", plan=chosen)
    assumptions = notes.filter(pl.col("note_kind") == "assumption").select("setting", "value", "text").rows()
    set_values = {setting: value for setting, value, _ in assumptions if setting}
    _picture(plan["horizon_start_at"], procurement.stated_policy(set_values))
    _savings(plan, savings)
    _stresses(chosen)
    _lines(plan)
    _notes(notes.filter(pl.col("note_kind") == "warning")["text"].to_list(), assumptions, plan)


def _nothing_yet() -> None:
    st.info(
        "No plan has been recorded yet. A plan needs a `plan.yaml` in the ledger's folder, which says which GPUs are wanted "
        "where (`gpuledger init` leaves plan-template.yaml to begin with; `gpuledger demo` writes one), and prices (`gpuledger ingest prices`). Then:\n"
        "```\ngpuledger plan --record\ngpuledger build\ngpuledger publish\n```",
        icon=":material/inbox:",
    )


def _until(plan: dict[str, Any]) -> str:
    return f"{words.day(plan['horizon_start_at'])} to {words.day(plan['horizon_end_at'])}"


def _prices_of(plan: dict[str, Any]) -> str:
    return f"prices of {words.day(plan['prices_from_at'])} to {words.day(plan['prices_until_at'])}"


def _numbers(plan: dict[str, Any], savings: pl.DataFrame) -> None:
    currency = ledger()["reporting_currency"]
    shown = [
        (
            f"Expected cost ({currency})",
            words.whole(plan["expected_cost"]),
            (
                f"{format_money(plan['expected_cost'])}: all that is paid for GPUs from {_until(plan)}, what is held already included, discounted, the mean over "
                f"{plan['scenario_count']:,} demand scenarios (seed {plan['seed']}); {_prices_of(plan)}."
            ),
        )
    ]
    for row in savings.iter_rows(named=True):
        meaning = words.BASELINES.get(row["baseline"], ("", "as named"))[1]
        spread = (
            f"{format_money(row['saving'])} expected, {format_money(row['low_saving'])} to {format_money(row['high_saving'])} in 90 % of the scenarios"
            if row["saving"] is not None
            else "the baseline has no price"
        )
        shown.append(
            (f"Saved: {row['name']}", words.whole(row["saving"]), f"Baseline: {meaning}. {spread}; {_prices_of(plan)}.")
        )
    shown.append(
        (
            "Above the best possible",
            format_share(plan["gap_ratio"]),
            (
                f"No plan whatever can cost less than {format_money(plan['bound_cost'])} (bound of the linear program); the rest is "
                f"the price of whole nodes, and of commitments in money that share their pools. Found by {plan['solved_by']}."
            ),
        )
    )
    shown.append(
        (
            "Off when billed",
            format_money(plan["repriced_difference"]),
            (
                "The same plan billed hour by hour in the vendors' own order of commitments, less its expected cost; "
                "– where that was not computed."
            ),
        )
    )
    header.numbers(*shown)


def _verdict(plan: dict[str, Any], savings: pl.DataFrame) -> None:
    currency = ledger()["reporting_currency"]
    told = [row for row in savings.iter_rows(named=True) if row["saving"] is not None]
    nearest = next((row for row in told if row["baseline"] == "nothing_new"), told[0] if told else None)
    if nearest is None:
        return
    low, high = nearest["low_saving"], nearest["high_saving"]
    verb = "saves" if nearest["saving"] >= 0 else "costs more by"
    sure = "**It may also cost more than it saves.**" if low < 0 else "It saves in nearly all of them."
    st.info(
        f"**Against {nearest['name']}, the plan {verb} {format_money(abs(nearest['saving']))} {currency}** "
        f"({format_share(nearest['saving_ratio'])} of its cost) from {_until(plan)}; in 90 % of the demand scenarios the saving is "
        f"{format_money(low)} to {format_money(high)}. {sure} In the worst scenarios everything costs "
        f"{format_money(plan['cvar_cost'])} on average. P{_prices_of(plan)[1:]}.",
        icon=":material/savings:" if low >= 0 else ":material/help:",
    )


def _purchases(plan_id: str) -> None:
    rows = query("plan_purchases", plan=plan_id)
    if rows.is_empty():
        st.success(
            "**Buy nothing now.** What is held, spot and on demand together cost least.", icon=":material/check_circle:"
        )
        return
    rows = rows.with_columns(way=pl.col("instrument").map_elements(words.instrument, pl.String))
    columns = {
        "way": Column("Way to pay"),
        "offer_id": Column("Offer", basis="its name in the price book"),
        "pool": Column("For", basis="the demand that it serves, as named in plan.yaml"),
        "gpu_count": Column("GPUs", "count", "GPUs to buy; – of a commitment in money"),
        "hourly_commitment": Column("An hour", "price", "money committed for each hour; – of GPUs"),
        "used_ratio": Column("Used", "ratio", "part of the hours in which its last unit is expected to be used"),
        "break_even_ratio": Column(
            "Pays from", "ratio", "part of the hours in which its last unit must be used to pay"
        ),
        "committed": Column("Committed", "money", "all that it obliges to pay over its term, undiscounted"),
        "upfront": Column("Upfront", "money", "of that, paid at the start"),
        "cost": Column("Cost in the plan", "money", "expected discounted cost within the time planned for"),
        "starts_at": Column("From", "day"),
        "ends_at": Column("Until", "day", "end of the term, exclusive"),
        "reason": Column("Why", width="large"),
    }
    tables.show("What to buy", rows, columns, file_name="plan-purchases")
    for row in rows.iter_rows(named=True):
        st.markdown(f"- **{row['way']}, {row['offer_id']}**: {row['reason']}.")


def _picture(start_at: datetime, policy: PlanPolicy) -> None:
    models = query("demand_models", until=start_at)
    prices = query("prices", model=None, at=start_at)
    if models.is_empty() or prices.is_empty():
        return
    st.markdown("#### Why this mix")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with right:
        model = st.selectbox("GPU model", models["gpu_model"].to_list(), key="gpu_model")
        places = procurement.pools(prices, model)
        pool = _place(places)
    if pool is None:
        st.info(f"The price book has no offer of {model}: `gpuledger ingest prices FILE`.", icon=":material/inbox:")
        return
    since = max(start_at - LOOK_BACK, models.filter(pl.col("gpu_model") == model)["first_hour"][0])
    with left:
        st.caption(
            "Above, what a GPU costs by how much of the time it is used: the thick line is the cheapest way to pay, and it changes "
            "at the dashed lines. Below, how many GPUs were wanted for which part of the hours from "
            f"{words.day(since)} to {words.day(start_at)}: a GPU that is used for more of the time than a dashed line is cheapest in the way to the line's right. "
            "Spot has limits in room and in what may be interrupted, so it is not in the picture below. The plan also weighs spot, what is held already, lead times and how long an obligation lasts."
        )
    try:
        offers = book(prices, [pool], start_at, timedelta.max).offers
    except UsageError as trouble:
        st.warning(str(trouble), icon=":material/warning:")
        return
    lines = procurement.cheapest_by_instrument(screening(offers, pool, policy))
    anywhere = [line for line in lines if line.instrument is not Instrument.SPOT]
    gpus = query("demand_hours", model=model, since=since, until=start_at)["gpus"].to_numpy()[None, :]
    held = query("held_gpus", model=model, at=start_at)["gpus"][0]
    duration = load_duration(gpus, procurement.CERTAIN)
    served = procurement_charts.bands(duration, mix(anywhere, gpus))
    currency = ledger()["reporting_currency"]
    for place, chart in enumerate(procurement_charts.mix_picture(lines, envelope(anywhere), served, held, currency)):
        st.altair_chart(chart, key=f"mix_{place}")
    columns = {
        "instrument": Column("Way to pay"),
        "offer_id": Column("Offer", basis="the cheapest of its kind"),
        "fixed": Column(
            "Each hour", "price", "due for each GPU-hour, used or not; upfront money as an annuity over the term"
        ),
        "hourly": Column(
            "Each used hour", "price", "due for each GPU-hour that is used; spot's is its price per useful hour"
        ),
        "pays_from_ratio": Column("Beats on demand from", "ratio", "part of the hours in which a GPU must be used"),
    }
    tables.show(
        f"Prices of {model}",
        procurement.priced(lines),
        columns,
        file_name=f"screening-{model}",
        note=f"A GPU-hour, in force on {words.day(start_at)}, at {format_share(policy.discount_ratio)} a year for money and "
        f"{format_share(policy.spot_goodput_ratio)} of spot hours useful.",
    )


def _place(places: list[Pool]) -> Pool | None:
    """Where to buy: asked only where there is a choice."""
    if len(places) <= 1:
        return places[0] if places else None
    return st.selectbox("Bought at", places, format_func=lambda one: f"{one.provider} {one.region}", key="place")


def _savings(plan: dict[str, Any], savings: pl.DataFrame) -> None:
    if savings["saving"].drop_nulls().is_empty():
        return
    st.markdown("#### What it saves")
    currency = ledger()["reporting_currency"]
    st.caption(f"The black line spans 90 % of the {plan['scenario_count']:,} demand scenarios; {_prices_of(plan)}.")
    st.altair_chart(procurement_charts.savings(savings, currency), key="savings")
    shown = savings.with_columns(
        meaning=pl.col("baseline").map_elements(lambda one: words.BASELINES.get(one, ("", "–"))[1], pl.String)
    )
    columns = {
        "name": Column("Against"),
        "baseline_cost": Column(
            "Its cost", "money", "expected discounted cost of the baseline; – where it has no price"
        ),
        "saving": Column("Saving", "money", "expected; negative where the plan costs more"),
        "saving_ratio": Column("Of its cost", "ratio", "saving, divided by the cost of the baseline"),
        "low_saving": Column("5th percentile", "money", "in one of twenty scenarios it saves less"),
        "high_saving": Column("95th percentile", "money", "in one of twenty scenarios it saves more"),
        "meaning": Column("What it is", width="large"),
    }
    tables.show("Savings by baseline", shown, columns, file_name="plan-savings")


def _stresses(plan_id: str) -> None:
    rows = query("plan_stresses", plan=plan_id)
    if rows.is_empty():
        return
    columns = {
        "world": Column("If", width="medium"),
        "with_purchases": Column("With the purchases", "money", "expected cost with what the plan buys"),
        "without_purchases": Column("Without them", "money", "expected cost with nothing new"),
        "saving": Column("Saved by them", "money", "negative: the purchases would be regretted"),
    }
    tables.show("If the world turns out otherwise", rows, columns, file_name="plan-stresses")


def _lines(plan: dict[str, Any]) -> None:
    rows = query("plan_lines", plan=plan["plan_id"])
    rows = rows.with_columns(
        kind=pl.col("line_kind").map_elements(lambda one: words.PLAN_LINES.get(one, (words.plain(one),))[0], pl.String)
    )
    columns = {
        "kind": Column("What"),
        "offer_id": Column("Offer"),
        "pool": Column("For", basis="the demand that it serves, as named in plan.yaml"),
        "gpu_hours": Column("GPU-hours", "hours", "expected, of what is used by the hour; – of purchases"),
        "hour_cost": Column("A GPU-hour", "price", "cost, divided by GPU-hours"),
        "cost": Column("Cost", "money", "expected discounted cost within the time planned for"),
        "reason": Column("Why", width="large"),
    }
    tables.show(
        "What the expected cost is made of",
        rows,
        columns,
        file_name="plan-lines",
        note=f"The lines add up to {format_money(plan['expected_cost'])}.",
    )


def _notes(warnings: list[str], assumptions: list[tuple[str | None, str | None, str]], plan: dict[str, Any]) -> None:
    if warnings:
        st.warning("\n".join(["**Before you sign**", "", *(f"- {one}" for one in warnings)]), icon=":material/warning:")
    with st.expander(f"Assumptions · {len(assumptions)}", icon=":material/tune:"):
        said = (f"`{setting}` **{value}**: {text}" if setting else text for setting, value, text in assumptions)
        st.markdown("\n".join(f"- {one}" for one in said) or "None were recorded.")
        st.caption(
            f"Plan `{plan['plan_id'][:16]}`, made {words.day(plan['made_at'])} from the log up to batch {plan['log_batch_id']:,}. "
            "`gpuledger plan` with the same log and plan.yaml gives the same plan."
        )


main()
