"""What is published is whole, explained, read-only, and replaced in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from models.errors import CheckError, UsageError
from pipelines.build import build
from pipelines.publish import publish, published_at, query
from tests.ledgers import append, at, bill, gpus, home, line, node, opened_file, run

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Settings


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A ledger of a day, built and published."""
    settings = home(tmp_path_factory.mktemp("home"))
    facts = *node("n1", 2), *run("1", "A", at(1), at(2), gpus("n1")), *bill(line("n1", "10"))
    append(settings, *facts, recorded=at(3))
    build(settings)
    publish(settings)
    return settings


def test_nothing_built_nothing_published(tmp_path: Path) -> None:
    empty = home(tmp_path)
    assert published_at(empty) is None
    with pytest.raises(UsageError, match="run gpuledger build first"):
        publish(empty)
    with pytest.raises(UsageError, match="does not exist"):
        query(empty, "SELECT 1")


def test_marts_can_be_asked(settings: Settings) -> None:
    assert query(settings, "SELECT team, cost FROM marts.chargeback_monthly ORDER BY team").rows() == [
        ("A", 5),
        ("platform", 5),
    ]
    assert published_at(settings) == at(3)


def test_every_table_and_column_is_explained(settings: Settings) -> None:
    with opened_file(settings.published_path) as con:
        silent = "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL UNION ALL SELECT table_name || '.' || column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL"
        assert con.execute(silent).fetchall() == []


def test_it_is_only_read(settings: Settings) -> None:
    with pytest.raises(UsageError, match="read-only"):
        query(settings, "DELETE FROM marts.chargeback_monthly")
    with pytest.raises(UsageError, match="the query failed"):
        query(settings, "SELECT no_such_column FROM marts.ledger")


def test_a_reader_keeps_what_it_opened_while_another_is_published(settings: Settings) -> None:
    with duckdb.connect(str(settings.published_path), read_only=True) as reader:
        before = reader.execute("SELECT * FROM marts.chargeback_monthly ORDER BY ALL").fetchall()
        publish(settings)
        assert reader.execute("SELECT * FROM marts.chargeback_monthly ORDER BY ALL").fetchall() == before
    assert not settings.published_path.with_suffix(".writing").exists()


def test_a_month_that_does_not_add_up_is_not_published(settings: Settings) -> None:
    was = settings.published_path.stat().st_ino
    with duckdb.connect(str(settings.build_path)) as con:
        con.execute("UPDATE marts.proof_monthly SET difference_micros = 1")
    with pytest.raises(CheckError, match="months that do not add up are not published: 2026-09-01"):
        publish(settings)
    assert settings.published_path.stat().st_ino == was
    build(settings, full=True)
