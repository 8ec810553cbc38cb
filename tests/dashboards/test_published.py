from __future__ import annotations

import os
import shutil
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
import streamlit as st

from dashboards import published
from pipelines.publish import query as asked
from pipelines.settings import Settings
from pipelines.statement import read_statement

if TYPE_CHECKING:
    from pathlib import Path

AUGUST, SEPTEMBER = date(2026, 8, 1), date(2026, 9, 1)
EVERYONE: dict[str, Any] = {"unit": None, "team": None, "project": None}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


def test_a_file_that_is_not_there_says_what_to_run(session: dict[str, Any], tmp_path: Path) -> None:
    trouble = published.open_file(tmp_path / "ledger.duckdb")
    assert trouble is not None
    for command in ("gpuledger demo", "gpuledger build", "gpuledger publish"):
        assert command in trouble


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("content", ["", "no database", None])
def test_a_file_that_is_no_ledger_says_so(session: dict[str, Any], tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ledger.duckdb"
    if content is None:
        duckdb.connect(str(path)).close()
    else:
        path.write_text(content)
    trouble = published.open_file(path)
    assert trouble is not None
    assert "cannot be read as a published ledger" in trouble
    assert "gpuledger publish" in trouble


@pytest.mark.filterwarnings("ignore")
def test_answers_are_remembered_until_the_file_changes(
    session: dict[str, Any], published_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.duckdb"
    shutil.copy(published_file, path)
    reads: list[str] = []
    read = published.read
    monkeypatch.setattr(published, "read", lambda *asked: reads.append(asked[1]) or read(*asked))
    assert published.open_file(path) is None
    published.query("months")
    published.query("months")
    assert reads == ["ledger", "months"]
    os.utime(path, (1, 1))
    published.query("months")
    assert reads == ["ledger", "months", "months"]


def test_statements_are_those_of_the_command_line_to_the_cent(published_file: Path) -> None:
    settings = Settings(home=published_file.parents[1])
    by = ["charge_month", "business_unit", "team", "cost_kind"]
    months = published.read(published_file, "months", {})["month"].to_list()
    assert months == [SEPTEMBER, AUGUST, date(2026, 7, 1)]
    for month in months:
        statement = read_statement(lambda sql: asked(settings, sql), month)
        found = published.read(published_file, "by_kind", {"month": month, **EVERYONE})
        own = statement.lines.filter(pl.col("charge_month") == month).group_by(by[-1]).agg(pl.col("cost").sum())
        assert dict(found.select("cost_kind", "cost").iter_rows()) == dict(own.iter_rows())
        facts = published.read(published_file, "headline", {"month": month, **EVERYONE}).row(0, named=True)
        assert facts["total"] == statement.total()
        assert facts["charged"] + facts["held"] == facts["billed"]


def test_levels_add_up_to_each_other(published_file: Path) -> None:
    def total(**where: str | None) -> Decimal:
        found = published.read(published_file, "by_owner", {"month": SEPTEMBER, "unit": None, "team": None} | where)
        return Decimal(found["total"].sum())

    units = published.read(published_file, "by_owner", {"month": SEPTEMBER, "unit": None, "team": None})
    assert total() == published.read(published_file, "headline", {"month": SEPTEMBER, **EVERYONE})["total"][0]
    for unit, amount in units.select("name", "total").iter_rows():
        assert total(unit=unit) == amount
    team = {"unit": "Research", "team": "Vision"}
    assert (
        total(**team)
        == published.read(published_file, "headline", {"month": SEPTEMBER, **EVERYONE, **team})["total"][0]
    )


def test_corrections_name_the_month_they_correct(published_file: Path) -> None:
    found = published.read(published_file, "corrections", {"month": SEPTEMBER, **EVERYONE})
    assert found["charge_month"].unique().to_list() == [AUGUST]
    assert found["cost"].sum() == Decimal("-300.00")


def test_the_parts_of_a_change_add_up_to_it(published_file: Path) -> None:
    found = published.read(published_file, "change", {"month": SEPTEMBER, **EVERYONE})
    parts = pl.sum_horizontal("hours_effect", "price_effect", "pools_effect", "corrections_effect")
    assert found.select((parts - pl.col("difference")).abs().sum()).item() == 0
    assert (found["total_now"] - found["total_before"]).to_list() == found["difference"].to_list()
    rows = {row["name"]: row for row in found.iter_rows(named=True)}
    # Nobody had these hours before, so all of their cost is more hours and none of it another price.
    assert rows["Unassigned"]["hours_effect"] == rows["Unassigned"]["difference"]
    # 98 hours more and 66 fewer, each project at its own price of August: 316.14 - 154.84 - 58.07.
    assert rows["Research"]["hours_effect"] == Decimal("103.23")


def test_the_parts_of_a_change_are_those_of_the_level_below(published_file: Path) -> None:
    parts = ["hours_effect", "price_effect", "pools_effect", "corrections_effect", "difference"]

    def changed(**where: str | None) -> pl.DataFrame:
        return published.read(published_file, "change", {"month": SEPTEMBER, **EVERYONE, **where})

    for unit in changed().iter_rows(named=True):
        below = changed(unit=unit["name"])
        assert below.select(pl.col(parts).sum()).row(0) == tuple(unit[part] for part in parts)
        for team in below.iter_rows(named=True):
            projects = changed(unit=unit["name"], team=team["name"])
            assert projects.select(pl.col(parts).sum()).row(0) == tuple(team[part] for part in parts)


def test_who_is_new_changed_by_all_of_its_total_but_not_in_the_first_month(published_file: Path) -> None:
    def owners(month: date) -> dict[str, dict[str, Any]]:
        found = published.read(published_file, "by_owner", {"month": month, "unit": None, "team": None})
        return {row["name"]: row for row in found.iter_rows(named=True)}

    new = owners(SEPTEMBER)["Unassigned"]
    assert new["change"] == new["total"]
    assert {row["change"] for row in owners(date(2026, 7, 1)).values()} == {None}


def test_idle_time_is_unknown_where_nothing_was_measured(published_file: Path) -> None:
    teams = {
        row["team"]: row
        for row in published.read(published_file, "idle_by_team", {"month": AUGUST, "cluster": None}).iter_rows(
            named=True
        )
    }
    assert teams["Search"]["idle_ratio"] is None
    assert teams["Search"]["measured_ratio"] == 0
    assert teams["Vision"]["idle_ratio"] == pytest.approx(0.3155, abs=1e-4)


def test_buckets_are_the_capacity(published_file: Path) -> None:
    found = published.read(published_file, "buckets", {"month": AUGUST, "cluster": None})
    assert found["gpu_hours"].sum() == 16 * 24 * 31
    assert found["capacity_ratio"].sum() == pytest.approx(1)
