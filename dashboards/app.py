"""The dashboards: ``streamlit run dashboards/app.py -- PATH_TO_PUBLISHED_FILE`` (default ledger/published/ledger.duckdb).

Belongs here: the frame around all pages. Each page is one file of ``app_pages``.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import streamlit as st

from dashboards import words
from dashboards.published import DEFAULT_PATH, ledger, open_file

STYLE = """<style>
.stMainBlockContainer {padding-top: 3rem; padding-bottom: 2rem}
section.stSidebar {width: 13rem !important; min-width: 13rem}
[data-testid="stMetricValue"] {font-size: 1.75rem}
</style>"""
PAGES = {
    "Books": {
        "chargeback": ("Chargeback", ":material/receipt_long:"),
        "gpu_time": ("GPU time", ":material/timelapse:"),
        "proof": ("Proof", ":material/verified:"),
        "findings": ("Findings", ":material/flag:"),
    },
    "Procurement": {
        "plan": ("Plan", ":material/shopping_cart:"),
        "commitments": ("Commitments", ":material/handshake:"),
        "break_even": ("Own or rent", ":material/balance:"),
        "spot": ("Spot", ":material/bolt:"),
    },
}


def main() -> None:
    """Open the published file and run the page that was asked for."""
    st.set_page_config(page_title="GPU Ledger", page_icon="🧾", layout="wide")
    st.html(STYLE)
    trouble = open_file(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_PATH)
    if trouble:
        st.markdown("## GPU Ledger")
        st.info(trouble, icon=":material/inbox:")
        return
    folder = Path(__file__).parent / "app_pages"
    page = st.navigation(
        {
            section: [st.Page(folder / f"{name}.py", title=title, icon=icon) for name, (title, icon) in pages.items()]
            for section, pages in PAGES.items()
        },
        position="sidebar",
    )
    page.run()
    _footer()


def _footer() -> None:
    shown = ledger()
    if shown["known_from_at"] is None:
        return
    st.caption(
        f"Facts of {words.day(shown['known_from_at'])} to {words.day(shown['known_until_at'] - timedelta(seconds=1))}, as recorded until "
        f"{words.day(shown['recorded_until_at'])}, {shown['recorded_until_at']:%H:%M} UTC (batch {shown['batch_id']:,}). "
        f"All amounts in {shown['reporting_currency']}; all days are UTC days."
    )


main()
