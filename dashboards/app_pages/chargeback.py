"""Chargeback: who bears what of a month, from business unit to team to project to run, and why it changed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import streamlit as st

from dashboards import charts, header, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.units import format_hours, format_money, format_share

LEVELS = ("unit", "team", "project")
NAMES = ("Business unit", "Team", "Project", "Run")
EFFECTS = {
    "hours_effect": "GPU-hours",
    "price_effect": "Price and GPU mix",
    "pools_effect": "Shared pools",
    "corrections_effect": "Corrections",
}

HOURS = Column("GPU-hours", "hours", "whole-GPU hours held by runs; slices and shared GPUs count by their weight")
OWNER_COLUMNS = {
    "gpu_hours": HOURS,
    "hour_cost": Column("Per GPU-hour", "price", "cost of the GPU time used, divided by its GPU-hours"),
    "usage": Column("GPU time used", "money", "GPUs held by runs, at the cost of their node in each hour"),
    "pools": Column(
        "Shared pools",
        "money",
        "free and down GPUs, unused commitment, shared and unmatched cost: who bears them is policy",
    ),
    "corrections": Column("Corrections", "money", "of earlier, closed months, because facts came later; listed below"),
    "total": Column("Total", "money", "GPU time used, shared pools and corrections"),
    "change": Column("Change", "money", "total, less the total of the month before; – in the ledger's first month"),
    "idle_ratio": Column(
        "Idle", "ratio", "part of the measured GPU time that showed no activity; – where nothing was measured"
    ),
}
CHANGE_COLUMNS = {
    "total_before": Column("Before", "money", "total of the month before"),
    "hours_effect": Column(
        "Due to GPU-hours",
        "money",
        "more or fewer GPU-hours of each project, at its cost per GPU-hour of the month before",
    ),
    "price_effect": Column(
        "Due to price and mix", "money", "each project's other cost per GPU-hour, for this month's GPU-hours"
    ),
    "pools_effect": Column("Due to pools", "money", "more or less of shared pools"),
    "corrections_effect": Column(
        "Due to corrections", "money", "corrections on this statement, less those on the one before"
    ),
    "total_now": Column("Now", "money", "total of this month: before and the four parts add up to it"),
    "difference": Column("Difference", "money", "now less before"),
    "hours_before": Column("GPU-hours before", "hours", "held by runs in the month before"),
    "hours_now": Column("GPU-hours now", "hours", "held by runs in this month"),
}
RUN_COLUMNS = {
    "run_id": Column("Run", basis="the scheduler's id"),
    "user_name": Column("User"),
    "gpu_model": Column("GPU model"),
    "mig_profile": Column("MIG slice", basis="– for whole or shared GPUs"),
    "cluster": Column("Cluster"),
    "final_state": Column("State", basis="as the scheduler says"),
    "started_at": Column("Started (UTC)", "instant"),
    "ended_at": Column("Ended (UTC)", "instant", "– while it runs"),
    "gpu_hours": Column("GPU-hours", "hours", "of the whole run, with what lies outside this month"),
    "cost": Column(
        "Cost", "money", "of the whole run, with what lies outside this month; – where a node's cost is unknown"
    ),
}

WHOLE_RUNS = "GPU-hours and cost are those of the whole run, so runs that began before the month or go on after it count in full."


def main() -> None:
    """The page."""
    found = header.show_with_month("Chargeback", "Who bears what of a month's GPU cost. Click a row to open it.")
    if found is None:
        return
    month, closed_at = found
    chosen = {level: st.query_params.get(level) for level in LEVELS}
    _breadcrumbs(chosen)
    facts = query("headline", month=month, **chosen).row(0, named=True)
    _headline(facts, chosen, month, closed_at)
    if chosen["project"]:
        _runs(month, chosen)
    elif chosen["unit"] != "Platform":
        _owners(month, chosen)
    _made_of(month, chosen)
    _corrections(month, chosen)
    _why(month, chosen)


def _breadcrumbs(chosen: dict[str, str | None]) -> None:
    path = [("All business units", 0)] + [(name, n) for n, name in enumerate(chosen.values(), start=1) if name]
    if len(path) == 1:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="breadcrumbs"):
        for name, depth in path[:-1]:
            if st.button(name, type="tertiary", key=f"open_{depth}"):
                for level in LEVELS[depth:]:
                    st.query_params.pop(level, None)
                st.rerun()
            st.markdown(":material/chevron_right:", width="content")
        st.markdown(f"**{path[-1][0]}**", width="content")


def _headline(facts: dict[str, Any], chosen: dict[str, str | None], month: date, closed_at: datetime | None) -> None:
    as_of = "as computed now, the month is still open"
    if closed_at:
        as_of = f"as posted when the month was closed on {words.day(closed_at)}"
    header.numbers(
        *(_of_payer(facts, month, as_of) if chosen["unit"] else _of_all(facts, as_of)),
        (
            "Corrections",
            format_money(facts["corrections"]),
            "Of earlier, closed months, carried on this statement.",
        ),
        (
            "Idle share",
            format_share(facts["idle_ratio"]),
            (
                "Part of the measured GPU time held by runs in which the GPU's activity counter stayed below 1 %. "
                f"{format_share(facts['measured_ratio'])} of the GPU time was measured."
            ),
        ),
    )
    if facts["corrected_later"]:
        st.info(
            f"Facts that came later change {words.month(month)} by {format_money(facts['corrected_later'])} "
            f"{ledger()['reporting_currency']}: a correction on the statement of {words.month(facts['corrected_month'])}. "
            "This statement stays as it was closed.",
            icon=":material/history:",
        )
    if facts["unpriced_gpu_hours"]:
        st.warning(
            f"{format_hours(facts['unpriced_gpu_hours'])} GPU-hours were used on nodes without a known cost; they are not "
            "in the amounts. See Findings.",
            icon=":material/help:",
        )


def _of_all(facts: dict[str, Any], as_of: str) -> list[tuple[str, str, str]]:
    return [
        (
            f"Billed ({ledger()['reporting_currency']})",
            format_money(facts["billed"]),
            f"Amortised cost (FOCUS EffectiveCost) that bills and the asset register charge to the month, {as_of}.",
        ),
        ("Charged to teams", format_money(facts["charged"]), f"Borne by business units, {as_of}."),
        (
            "Held by the platform",
            format_money(facts["held"]),
            (
                f"Not charged to anyone, by policy; {format_money(facts['unmatched'])} of it are bill lines that match no node. "
                "Charged and held add up to billed."
            ),
        ),
    ]


def _of_payer(facts: dict[str, Any], month: date, as_of: str) -> list[tuple[str, str, str]]:
    return [
        (
            f"Total ({ledger()['reporting_currency']})",
            format_money(facts["total"]),
            f"What the statement of {words.month(month)} asks for, {as_of}: GPU time used, shared pools and corrections.",
        ),
        (
            "GPU time used",
            format_money(facts["usage"]),
            f"{format_hours(facts['gpu_hours'])} GPU-hours, at the cost of their node in each hour.",
        ),
        (
            "Shared pools",
            format_money(facts["pools"]),
            "Free and down GPUs, unused commitment, shared and unmatched cost, as policy divides them.",
        ),
    ]


def _owners(month: date, chosen: dict[str, str | None]) -> None:
    depth = sum(name is not None for name in chosen.values())
    what, level, currency = NAMES[depth], LEVELS[depth], ledger()["reporting_currency"]
    trend = query("trend", **chosen)
    if trend["month"].n_unique() > 1:
        st.altair_chart(charts.by_month(trend, currency, what), key=f"trend_{depth}")
    where = {key: chosen[key] for key in ("unit", "team")}
    owners = query("by_owner", month=month, **where)
    if owners.is_empty():
        st.info(
            f"{chosen[LEVELS[depth - 1]]} has no cost in {words.month(month)}. Choose another month, or go back.",
            icon=":material/inbox:",
        )
        return
    opened = tables.choose(
        f"By {what.lower()}",
        owners,
        {"name": Column(what)} | OWNER_COLUMNS,
        file_name="-".join(["chargeback", f"{month:%Y-%m}", *filter(None, chosen.values()), "by", level]),
        note=(
            f"Together {format_money(Decimal(owners['total'].sum()))} {currency} on this statement. "
            f"Click a row to see its {NAMES[depth + 1].lower()}s."
        ),
    )
    if opened:
        st.query_params[level] = opened["name"]
        st.rerun()


def _runs(month: date, chosen: dict[str, str | None]) -> None:
    runs = query("runs", month=month, **chosen)
    if runs.is_empty():
        st.info(f"No run of {chosen['project']} held GPUs in {words.month(month)}.", icon=":material/inbox:")
        return
    total = runs["run_count"][0]
    note = (
        f"The {runs.height:,} costliest of {total:,} runs."
        if total > runs.height
        else f"{words.count(total, 'run')} that held GPUs in {words.month(month)}."
    )
    tables.show("Runs", runs, RUN_COLUMNS, file_name=f"runs-{month:%Y-%m}", note=f"{note} {WHOLE_RUNS}")


def _made_of(month: date, chosen: dict[str, str | None]) -> None:
    kinds = query("by_kind", month=month, **chosen)
    if kinds.height < 2 and chosen["unit"] != "Platform":
        return
    shown = kinds.with_columns(
        kind=kinds["cost_kind"].replace_strict({k: words.kind(k) for k in kinds["cost_kind"]}),
        meaning=kinds["cost_kind"].replace_strict(
            {k: words.COST_KINDS.get(k, ("", ""))[1] for k in kinds["cost_kind"]}
        ),
    )
    columns = {
        "kind": Column("Kind of cost"),
        "gpu_hours": Column("GPU-hours", "hours", "– where the cost belongs to no GPU time"),
        "cost": Column("Cost", "money", "of this month, without corrections of earlier months"),
        "meaning": Column("What it is"),
    }
    tables.show("What it is made of", shown, columns, file_name=f"cost-kinds-{month:%Y-%m}")


def _corrections(month: date, chosen: dict[str, str | None]) -> None:
    found = query("corrections", month=month, **chosen)
    if found.is_empty():
        return
    shown = found.with_columns(kind=found["cost_kind"].replace_strict({k: words.kind(k) for k in found["cost_kind"]}))
    columns = {
        "charge_month": Column("Corrects", "month", "the month in which the cost was incurred"),
        "business_unit": Column("Business unit"),
        "team": Column("Team"),
        "project": Column("Project"),
        "kind": Column("Kind of cost"),
        "gpu_hours": Column("GPU-hours", "hours", "more or fewer GPU-hours than posted before"),
        "cost": Column("Cost", "money", "computed now, less what was already posted"),
    }
    tables.show(
        "Corrections of earlier months",
        shown,
        columns,
        file_name=f"corrections-{month:%Y-%m}",
        note="Closed months never change: what came to light later is carried here.",
    )


def _why(month: date, chosen: dict[str, str | None]) -> None:
    rows = query("change", month=month, **chosen)
    before = Decimal(rows["total_before"].sum())
    if rows.is_empty() or not before:
        return
    currency, after = ledger()["reporting_currency"], Decimal(rows["total_now"].sum())
    earlier = date(month.year - (month.month == 1), (month.month - 2) % 12 + 1, 1)
    effects = {label: float(rows[name].sum()) for name, label in EFFECTS.items() if rows[name].sum()}
    st.markdown("#### Why did it change?")
    st.markdown(
        f"{_difference(after - before, currency)} {words.month(earlier)}. {_reasons(effects, after - before, currency)}"
    )
    if effects:
        st.altair_chart(
            charts.change((f"{earlier:%b %Y}", float(before)), effects, f"{month:%b %Y}", currency), key="why"
        )
    if rows.height > 1:
        what = NAMES[sum(name is not None for name in chosen.values())]
        columns = {"name": Column(what)} | CHANGE_COLUMNS
        tables.show(f"Change by {what.lower()}", rows, columns, file_name=f"change-{month:%Y-%m}")


def _difference(change: Decimal, currency: str) -> str:
    if not change:
        return "The total is the same as in"
    return f"The total is **{format_money(abs(change))} {currency} {'higher' if change > 0 else 'lower'}** than in"


def _reasons(effects: dict[str, float], change: Decimal, currency: str) -> str:
    """What drives the change, the largest part first; then what goes the other way."""
    reasons = {
        "GPU-hours": ("more use, at the prices before", "less use, at the prices before"),
        "Price and GPU mix": ("dearer GPU-hours, by price or GPU mix", "cheaper GPU-hours, by price or GPU mix"),
        "Shared pools": ("larger shared pools", "smaller shared pools"),
        "Corrections": ("corrections of earlier months", "corrections of earlier months"),
    }
    with_it: list[str] = []
    against: list[str] = []
    for name in sorted(effects, key=lambda one: -abs(effects[one])):
        amount = f"{effects[name]:+,.2f}".replace("-", "−")
        (with_it if (effects[name] > 0) == (change > 0) else against).append(
            f"{reasons[name][effects[name] < 0]} ({amount} {currency})"
        )
    told = f"Why: {'; '.join(with_it)}." if with_it else ""
    return f"{told} The other way: {'; '.join(against)}.".strip() if against else told


main()
