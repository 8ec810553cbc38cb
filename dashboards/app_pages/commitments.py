"""Commitments: what is committed, what of it is used, what is wasted, and when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboards import header, procurement_charts, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.expiry import CLIFF_RATIO, expiries
from models.units import format_money, format_share

if TYPE_CHECKING:
    from datetime import datetime

SENTENCE = "What is committed, how much of it is used, what is paid for nothing, and when it ends."


def main() -> None:
    """The page."""
    header.show("Commitments", SENTENCE)
    at = ledger()["known_until_at"]
    months = query("commitment_months")
    held = _named(query("commitments", at=at)) if at is not None else pl.DataFrame()
    if months.is_empty() and held.is_empty():
        st.info(
            "No commitment is known yet. Reservations, savings plans, contracts and owned nodes come from a file, what was used of "
            "them from the bill:\n"
            "```\ngpuledger ingest commitments FILE\ngpuledger ingest focus FILE\ngpuledger build\ngpuledger publish\n```",
            icon=":material/inbox:",
        )
        return
    _cover()
    if not held.is_empty():
        _ends(held, at)
    _months(_named(months))


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """With the name that people read: way to pay, GPU model where it is one, and the end of its id."""
    return rows.with_columns(
        instrument=pl.col("instrument").fill_null("commitment"),
        name=pl.concat_str(
            pl.col("instrument").fill_null("commitment").map_elements(words.instrument, pl.String),
            pl.col("short_id"),
            separator=" ",
        ),
    )


def _cover() -> None:
    cover = query("commitment_cover")
    if cover.is_empty() or cover["committed"].drop_nulls().is_empty():
        st.info(
            "No bill says what was used of commitments. FOCUS bills do, in CommitmentDiscountStatus.",
            icon=":material/receipt_long:",
        )
        return
    last, currency = cover.row(0, named=True), ledger()["reporting_currency"]
    month = words.month(last["bill_month"])
    header.numbers(
        (
            f"Committed, {last['bill_month']:%b} ({currency})",
            words.whole(last["committed"]),
            f"{format_money(last['committed'])}: what the bills of {month} charge for commitments, used or not, amortised. Owned nodes are on no bill.",
        ),
        (
            "Used",
            format_share(last["used_ratio"]),
            f"Part of that money for which {month} shows use (FOCUS status Used).",
        ),
        (
            "Paid for nothing",
            words.whole(last["unused"]),
            f"{format_money(last['unused'])}: the rest (FOCUS status Unused). It is not charged to any team unless a policy says so.",
        ),
        (
            "On demand that is covered",
            format_share(last["cover_ratio"]),
            f"GPU time of {month} under commitments, of all GPU time of those providers on demand or under commitments, both at on-demand prices.",
        ),
        (
            "Saved by commitments",
            words.whole(last["saved"]),
            f"{format_money(last['saved'])}: what their GPU time would have cost on demand, less all that was paid for them, used or not.",
        ),
    )
    st.markdown(f"#### Used and not used :small[:gray[{currency}]]")
    st.altair_chart(procurement_charts.commitment_use(cover, currency), key="use")


def _ends(held: pl.DataFrame, at: datetime) -> None:
    st.markdown("#### When it ends")
    months = expiries(held, at)
    cliffs = months.filter("is_cliff")
    currency = ledger()["reporting_currency"]
    if cliffs.is_empty():
        st.success(
            f"No month ends more than {format_share(CLIFF_RATIO)} of what is held.", icon=":material/check_circle:"
        )
    else:
        told = [
            f"- **{words.month(row['month'])}:** {format_share(row['gpu_ratio'])} of the GPUs and {format_share(row['cost_ratio'])} of the "
            f"money held end ({row['names']}). {row['returning']} come back to demand: renew, replace, or pay on demand."
            for row in cliffs.iter_rows(named=True)
        ]
        st.warning(
            "\n".join([f"**{words.count(cliffs.height, 'cliff')} ahead**", "", *told]), icon=":material/warning:"
        )
    st.altair_chart(procurement_charts.terms(held, months), key="terms")
    columns = {
        "name": Column("Commitment"),
        "gpu_model": Column("GPU model", basis="– where it covers several"),
        "provider": Column("Sold by"),
        "covers_gpus": Column(
            "GPUs",
            "hours",
            "committed to; of a commitment in money, as many as it buys at the rate of its offer, – where that is unknown",
        ),
        "hourly_cost": Column(
            "An hour",
            "price",
            "recurring money and the upfront money spread over the term; energy and fees are not in it",
        ),
        "starts_at": Column("From", "day"),
        "ends_at": Column("Until", "day", "exclusive"),
        "state": Column("State", basis="active, or queued: bought, not started"),
    }
    tables.show(
        "Held and queued",
        held,
        columns,
        file_name="commitments",
        note=f"As of {words.day(at)}; amounts in {currency} for each hour of the term.",
    )


def _months(rows: pl.DataFrame) -> None:
    columns = {
        "bill_month": Column("Month", "month"),
        "name": Column("Commitment"),
        "committed": Column(
            "Committed", "money", "what its contract obliges to pay for the month; – where none is recorded"
        ),
        "used": Column(
            "Used", "money", "what the bill says was used, amortised; – where no bill names it, as of owned nodes"
        ),
        "unused": Column("Not used", "money", "what the bill says was paid for and not used"),
        "used_ratio": Column("Used", "ratio", "used, of used and not used"),
        "on_demand": Column("On demand", "money", "what the same GPU time costs on demand (FOCUS ListCost)"),
        "saved": Column("Saved", "money", "on demand, less used and not used; negative: on demand had been cheaper"),
    }
    tables.show(
        "Month by month",
        rows,
        columns,
        file_name="commitments-monthly",
        note="What owned nodes did is on the page GPU time.",
    )


main()
