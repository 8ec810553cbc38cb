"""What the ledger's home declares as its sources, and how files and windows become batches."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from models.errors import UsageError
from pipelines.ingest import SOURCES_TEMPLATE, Source, declared_sources, ingest_files, ingest_live
from pipelines.lake import Lake
from tests.ledgers import START, home

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return home(tmp_path)


def declare(settings: Settings, text: str) -> list[Source]:
    (settings.home / "sources.yaml").write_text(text)
    return declared_sources(settings)


def test_sources_are_declared_by_name(settings: Settings) -> None:
    text = 'bills: {kind: focus, inbox: "*.csv"}\nalps: {kind: prometheus, url: "http://p:9090", cluster: alps}'
    assert declare(settings, text) == [
        Source("bills", "focus", "*.csv"),
        Source("alps", "prometheus", "", {"url": "http://p:9090", "cluster": "alps"}),
    ]


def test_the_template_declares_nothing_until_its_comment_signs_are_taken_away(settings: Settings) -> None:
    assert declare(settings, SOURCES_TEMPLATE) == []
    lines = [line.removeprefix("# ") for line in SOURCES_TEMPLATE.splitlines()]
    shown = "\n".join(line for line in lines if line.endswith(":") * (" " not in line) or line.startswith("  "))
    assert {one.name for one in declare(settings, shown)} == set(yaml.safe_load(shown))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a-b: {kind: org, inbox: x}", "a-b: expected a name of letters"),
        ("a: {kind: tarot}", "a: kind must be one of slurm"),
        ("a: {kind: prometheus, inbox: x}", "a: kind must be one of"),
        ("a: {kind: slurm, inbox: x, cluster: c}", "a: missing: timezone"),
        ("a: {kind: org, inbox: x, clutser: c}", "a: unknown: clutser; it takes nothing besides"),
        ("a: {kind: trace, inbox: x}", "a: missing: trace; it takes trace, cluster"),
        ("[slurm]", "expected a name for each source"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(settings: Settings, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        declare(settings, text)


def test_rates_are_told_the_reporting_currency_and_rows_are_counted(settings: Settings, tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("month,currency,rate\n2026-09,EUR,1.1\n2026-10,EUR,1.2\n")
    counts: list[int] = []
    with Lake(settings) as lake:
        batch = ingest_files(lake, "fx", [rates], on_rows=counts.append)
        assert lake.con.execute("SELECT DISTINCT reporting_currency FROM lake.events.fx_rate_observed").fetchall() == [
            ("USD",)
        ]
    assert (batch.source_window, batch.rows_appended, counts[-1]) == ("rates.csv", 2, 2)


def test_what_is_not_there_is_refused(settings: Settings, tmp_path: Path) -> None:
    with Lake(settings) as lake:
        with pytest.raises(UsageError, match=r"no such file: .*nothing\.csv"):
            ingest_files(lake, "org", [tmp_path / "nothing.csv"])
        with pytest.raises(UsageError, match="no source of kind 'tarot'; known: slurm"):
            ingest_files(lake, "tarot", [])
        with pytest.raises(UsageError, match="no live source of kind 'focus'; known: slurm, prometheus"):
            ingest_live(lake, "focus", START, START + timedelta(days=1))
        assert lake.last_batch_id() == 0
