"""Proof: every billed cent is charged, held or unmatched; and the log that it rests on."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import streamlit as st

from dashboards import header, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.units import format_money

EXACT = "computed in millionths; anything but zero is an error"


def main() -> None:
    """The page."""
    header.show(
        "Proof", "That what was billed is what was charged or held, to the millionth, for every month and every bill."
    )
    months = tables.in_cents(
        query("proof_months"), ("billed",), ("charged", "platform_held", "unmatched"), ("invoiced",)
    )
    months = months.with_columns(prepaid=pl.col("invoiced") - pl.col("billed"))
    bills = tables.in_cents(
        query("proof_bills"), ("effective",), ("on_nodes", "unused_commitment", "shared", "unmatched")
    )
    if months.is_empty():
        st.info(
            "Nothing has been billed yet. Ingest a bill, then run `gpuledger build` and `gpuledger publish`.",
            icon=":material/inbox:",
        )
    else:
        _verdict(months, bills)
        _months(months)
        _bills(bills)
        _coverage()
    _closes()
    _batches()


def _verdict(months: pl.DataFrame, bills: pl.DataFrame) -> None:
    currency = ledger()["reporting_currency"]
    wrong = [words.month(month) for month in months.filter(pl.col("difference") != 0)["charge_month"]]
    wrong += bills.filter(pl.col("difference") != 0)["bill"].to_list()
    if wrong:
        st.error(
            f"**Not everything adds up:** {', '.join(wrong)}. No month can be closed until it does. Run `gpuledger build` "
            "again from scratch; if the difference stays, it is a defect: please report it.",
            icon=":material/error:",
        )
        return
    total, charged, held, unmatched = (
        Decimal(months[name].sum()) for name in ("billed", "charged", "platform_held", "unmatched")
    )
    st.success(
        f"**Every cent of {format_money(total)} {currency} is accounted for:** {format_money(charged)} charged to teams, "
        f"{format_money(held)} held by the platform, {format_money(unmatched)} matching no node. The difference is zero in "
        f"{words.count(months.height, 'month')} and {words.count(bills.height, 'bill')}.",
        icon=":material/verified:",
    )


def _months(months: pl.DataFrame) -> None:
    columns = {
        "charge_month": Column("Month", "month", "month in which the cost was incurred"),
        "state": Column("State"),
        "billed": Column(
            "Billed", "money", "what bills and the asset register charge to the month, amortised (FOCUS EffectiveCost)"
        ),
        "charged": Column("Charged", "money", "borne by teams, corrections of this month included"),
        "platform_held": Column("Held", "money", "held by the platform, by policy"),
        "unmatched": Column("Unmatched", "money", "billed, but matching no node"),
        "difference": Column("Difference", "exact_money", f"billed less charged, held and unmatched; {EXACT}"),
        "invoiced": Column(
            "Invoiced", "money", "what the month's invoices ask for (FOCUS BilledCost), and the asset register"
        ),
        "prepaid": Column(
            "Prepaid", "money", "invoiced less billed: commitments bought in advance, less what was used of them"
        ),
    }
    tables.show(
        "Months",
        months,
        columns,
        file_name="proof-months",
        note="As known now, with everything that came after a month was closed.",
    )


def _bills(bills: pl.DataFrame) -> None:
    columns = {
        "bill": Column("Bill", basis="issuer, account and month; owned, cluster and month for owned assets"),
        "delivered_at": Column("Delivered (UTC)", "instant", "the delivery in force; – for owned assets"),
        "line_count": Column("Lines", "count", "lines placed; parts of a line over several months count apart"),
        "effective": Column("Amortised cost", "money", "the bill's own total (FOCUS EffectiveCost)"),
        "on_nodes": Column("On nodes", "money", "placed on nodes"),
        "unused_commitment": Column("Unused commitment", "money", "committed and paid for, but not used"),
        "shared": Column("Shared", "money", "a cluster's own cost, such as network and storage"),
        "unmatched": Column("Unmatched", "money", "matching no node"),
        "difference": Column("Difference", "exact_money", f"the bill's total less its placed parts; {EXACT}"),
    }
    tables.show("Bills", bills, columns, file_name="proof-bills")


def _coverage() -> None:
    rows = query("coverage")
    if rows.is_empty():
        return
    columns = {
        "charge_month": Column("Month", "month"),
        "cluster": Column("Cluster"),
        "gpu_hours": Column("GPU-hours used", "hours", "whole-GPU hours held by runs"),
        "priced_ratio": Column("Cost known", "ratio", "part of the GPU-hours used whose node has a known cost"),
        "measured_ratio": Column("Measured", "ratio", "part of the GPU-hours used for which telemetry exists"),
    }
    tables.show(
        "How complete the facts are",
        rows,
        columns,
        file_name="coverage",
        note="A gap in telemetry never changes a bill; a missing price leaves cost out until the bill comes.",
    )


def _closes() -> None:
    rows = query("closes")
    if rows.is_empty():
        st.info(
            "No month is closed yet. When a month is complete, run `gpuledger close YYYY-MM`.",
            icon=":material/lock_open:",
        )
        return
    columns = {
        "period_month": Column("Month", "month"),
        "closed_at": Column("Closed (UTC)", "instant"),
        "billed": Column("Billed", "money", "as computed when the month was closed"),
        "log_batch_id": Column("Last batch seen", "count", "the close saw the event log up to this batch"),
        "postings_digest": Column(
            "Digest of what was posted",
            basis="SHA-256 over all lines posted by this close; it changes if any line does",
        ),
    }
    tables.show("Closed months", rows, columns, file_name="closes")


def _batches() -> None:
    rows = query("batches")
    if rows.is_empty():
        return
    columns = {
        "batch_id": Column("Batch", "count", "number in the log, in the order of arrival"),
        "recorded_at": Column("Recorded (UTC)", "instant", "when the ledger learned it"),
        "source": Column("Source"),
        "source_window": Column("What was read"),
        "rows_read": Column("Rows read", "count", "rows of what was read, whatever became of them"),
        "rows_appended": Column("Added", "count", "facts added to the log"),
        "rows_duplicate": Column("Known before", "count", "facts that the log already had"),
        "rows_ignored": Column("Not ours", "count", "rows that hold no facts for this ledger, such as job steps"),
        "rows_set_aside": Column("Set aside", "count", "understood, and rightly not billed"),
        "rows_rejected": Column("Rejected", "count", "not understood; see Findings"),
        "digest": Column(
            "Digest", basis="SHA-256 of this batch and of the digest before it: a change in the past shows"
        ),
    }
    tables.show(
        "The event log, batch by batch",
        rows,
        columns,
        file_name="batches",
        note="Each digest covers the one before it; `gpuledger verify` recomputes them all.",
    )


main()
