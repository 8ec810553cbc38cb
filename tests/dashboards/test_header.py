from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")


def page() -> None:
    import streamlit as st  # noqa: PLC0415 - runs as a script of its own

    from dashboards import header  # noqa: PLC0415

    found = header.show_with_month("Title", "One sentence.")
    st.text(f"{found[0]:%Y-%m} {found[1] is not None}" if found else "nothing")


def opened(path: Path, month: str | None = None) -> AppTest:
    test = AppTest.from_function(page)
    test.session_state["published_path"] = path
    if month:
        test.query_params["month"] = month
    return test.run(timeout=30)


def test_the_newest_month_comes_first_and_says_that_it_is_provisional(published_file: Path) -> None:
    test = opened(published_file)
    assert test.selectbox[0].options[0] == "September 2026 · provisional"
    assert test.text[0].value == "2026-09 False"


def test_the_address_names_the_month_and_the_choice_goes_into_it(published_file: Path) -> None:
    test = opened(published_file, "2026-07")
    assert test.text[0].value == "2026-07 True"
    test.selectbox[0].select_index(1).run()
    assert test.query_params["month"] == "2026-08"
    assert test.text[0].value == "2026-08 True"


def test_a_month_that_is_unknown_gives_the_newest(published_file: Path) -> None:
    assert opened(published_file, "1999-01").text[0].value == "2026-09 False"


def test_a_ledger_without_months_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "ledger.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE SCHEMA marts")
        con.execute("CREATE TABLE marts.period_closed (period_month DATE, closed_at TIMESTAMPTZ)")
        con.execute(
            "CREATE TABLE marts.chargeback_monthly (charge_month DATE, posted_month DATE, business_unit VARCHAR, team VARCHAR, "
            "project VARCHAR, cost_kind VARCHAR, gpu_hours DECIMAL(18, 4), cost_micros BIGINT)"
        )
    test = opened(path)
    assert "gpuledger ingest" in test.info[0].value
    assert test.text[0].value == "nothing"
