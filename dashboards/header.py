"""The top of every page: its name, what it shows in one sentence, the month it is about, its headline numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboards import words
from dashboards.published import query

if TYPE_CHECKING:
    from datetime import date, datetime


def show(title: str, sentence: str) -> None:
    """The page's name and the sentence that explains it."""
    st.markdown(f"## {title}")
    st.caption(sentence)


def show_with_month(title: str, sentence: str) -> tuple[date, datetime | None] | None:
    """As ``show``, with a month picker beside it; the month stays chosen on the next page, and stands in the address.

    Returns:
      The month and when it was closed (None: provisional); None when the ledger has no month yet, which the page then says.
    """
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        show(title, sentence)
    closed_at: dict[date, datetime | None] = dict(query("months").iter_rows())
    if not closed_at:
        st.info(
            "The ledger has no costs and no GPU time yet. Ingest a scheduler's records and a bill, then build and publish:\n"
            "```\ngpuledger ingest slurm FILE\ngpuledger ingest focus FILE\ngpuledger build\ngpuledger publish\n```",
            icon=":material/inbox:",
        )
        return None
    months = list(closed_at)
    asked = st.query_params.get("month", st.session_state.get("chosen_month", ""))
    chosen = right.selectbox(
        "Month",
        months,
        index=next((place for place, month in enumerate(months) if f"{month:%Y-%m}" == asked), 0),
        format_func=lambda month: f"{words.month(month)} · {'closed' if closed_at[month] else 'provisional'}",
        key="month",
    )
    st.session_state["chosen_month"] = st.query_params["month"] = f"{chosen:%Y-%m}"
    return chosen, closed_at[chosen]


def numbers(*shown: tuple[str, str, str]) -> None:
    """The page's headline numbers in a row: name, value, and its basis on hover."""
    for place, (label, value, basis) in zip(st.columns(len(shown)), shown, strict=True):
        place.metric(label, value, help=basis, border=True)
