"""A run builds every projection and checks every invariant; one that breaks stops whatever comes after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest

from models.errors import CheckError
from pipelines import build
from pipelines.assets import projections as assets
from pipelines.projections import checks, load
from pipelines.publish import publish, query
from tests.dagster_runs import execute, failure, made

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult

    from pipelines.settings import Settings


def test_a_run_rebuilds_the_days_that_new_facts_touch(
    first_run: tuple[Settings, ExecuteInProcessResult],
) -> None:
    _, result = first_run
    assert result.success
    seen = {name: about for name, about in made(result).items() if name.split(".")[0] in {"staged", "core", "marts"}}
    assert set(seen) == {one.name for one in load()}
    assert {about["days_rebuilt"] for about in seen.values()} == {"3 days from 2026-09-01 to 2026-09-03"}
    assert seen["marts.bucket_daily"]["rows_written"] > 0


def test_a_run_evaluates_every_check(first_run: tuple[Settings, ExecuteInProcessResult]) -> None:
    found = first_run[1].get_asset_check_evaluations()
    assert {(".".join(one.asset_key.path), one.check_name) for one in found} == {
        (one.name, name) for one in load() for name in checks(one)
    }
    assert all(one.passed and one.blocking for one in found)


def test_a_run_shows_columns_with_type_and_meaning(first_run: tuple[Settings, ExecuteInProcessResult]) -> None:
    columns = made(first_run[1])["core.cost_daily"]["dagster/column_schema"].columns
    [cost] = [one for one in columns if one.name == "cost_micros"]
    assert cost.type == "BIGINT"
    assert "NULL" in cost.description


def test_a_backfill_rebuilds_exactly_the_days_asked_for_in_one_run(built: Settings, records: DagsterInstance) -> None:
    with duckdb.connect(str(built.build_path)) as con:
        con.execute("DELETE FROM marts.bucket_daily")
    result = execute(built, "hourly", records, days=("2026-09-01", "2026-09-02"))
    assert result.success
    days = query(built, "SELECT DISTINCT CAST(use_day AS VARCHAR)[:10] AS day FROM marts.bucket_daily ORDER BY 1")
    assert days["day"].to_list() == ["2026-09-01", "2026-09-02"]
    [asset] = [one for one in load() if one.name == "marts.bucket_daily"]
    assert records.get_materialized_partitions(assets.key(asset.name)) == {"2026-09-01", "2026-09-02"}


def test_a_broken_invariant_stops_the_run_and_nothing_is_published(
    built: Settings, records: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_at = built.published_path.stat().st_mtime_ns
    broken = tuple(
        replace(one, invariants={"no_run_is_long": "SELECT run_id FROM staged.run"})
        if one.name == "staged.run"
        else one
        for one in load()
    )
    with monkeypatch.context() as patch:
        patch.setattr(build, "load", lambda: broken)
        patch.setattr(assets, "load", lambda: broken)
        result = execute(built, "hourly", records, day="2026-09-01")
    assert not result.success
    assert failure(result) == "staged.run: no run is long does not hold: run_id=1"
    [evaluation] = [one for one in result.get_asset_check_evaluations() if not one.passed]
    assert evaluation.check_name == "no_run_is_long"
    assert "core.run_hourly" not in made(result)
    assert built.published_path.stat().st_mtime_ns == published_at

    with pytest.raises(CheckError, match="broke off"):
        publish(built)
    healed = execute(built, "hourly", records, day="2026-09-01", config={"projections": {"only_news": True}})
    assert made(healed)["core.charge"]["days_rebuilt"] == "no day"
    assert built.published_path.stat().st_mtime_ns > published_at
