"""Findings: what a person should look at, worst first, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboards import header, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column

if TYPE_CHECKING:
    import polars as pl

LOOKS = {
    "error": (st.error, ":material/error:"),
    "warning": (st.warning, ":material/warning:"),
    "info": (st.info, ":material/info:"),
}


def main() -> None:
    """The page."""
    header.show("Findings", "What someone should look at, worst first, and what to do about it.")
    rows = query("findings")
    found = dict(rows["severity"].value_counts().iter_rows())
    header.numbers(
        *(
            (heading, f"{found.get(severity, 0):,}", f"{meaning.capitalize()}.")
            for severity, (heading, meaning) in words.SEVERITIES.items()
        )
    )
    if rows.is_empty():
        st.success(
            "Nothing to look at: every row was understood, owned, priced and measured.", icon=":material/check_circle:"
        )
    for (kind,), cases in rows.group_by(["kind"], maintain_order=True):
        _kind(str(kind), cases)
    _kept_aside(
        "rejected",
        "Rejected rows",
        "Rows of sources that were not understood; nothing of them is counted. Correct the source and ingest it again.",
    )
    _kept_aside("set_aside", "Rows set aside", "Understood, and rightly not billed, such as jobs that never started.")


def _kind(kind: str, found: pl.DataFrame) -> None:
    first = found.row(0, named=True)
    box, icon = LOOKS[first["severity"]]
    unit = first["found"].partition(" ")[2].replace("money", ledger()["reporting_currency"], 1)
    with st.expander(f"**{words.plain(kind)}** · {found.height:,}", expanded=first["severity"] != "info", icon=icon):
        box(f"{first['explanation']} Expected: {first['expected']}.")
        columns = {
            "subject": Column("What it is about", width="large"),
            "amount": Column(
                f"Found ({unit})", "count" if unit in {"rows", "runs"} else "amount", "how much of it is concerned"
            ),
            "first_seen_at": Column("First", "day", "first day it was found on"),
            "last_seen_at": Column("Last", "day", "last day it was found on"),
        }
        tables.show("Where", found, columns, file_name=f"findings-{kind.replace('_', '-')}")


def _kept_aside(kind: str, title: str, note: str) -> None:
    rows = query("rejected", kind=kind)
    if rows.is_empty():
        return
    total = rows["row_count"][0]
    columns = {
        "source": Column("Source"),
        "position": Column("Where", basis="file and line, or the key in the outside system"),
        "reason": Column("Why"),
        "recorded_at": Column("Recorded (UTC)", "instant"),
        "raw_text": Column("The row as it came", width="large"),
    }
    shown = f" The newest {rows.height:,} of {total:,}." if total > rows.height else ""
    tables.show(title, rows, columns, file_name=f"rows-{kind.replace('_', '-')}", note=note + shown)


main()
