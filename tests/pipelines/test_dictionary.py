"""The data dictionary names every published column, and each has a meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from pipelines.dictionary import dictionary
from pipelines.projections import load
from pipelines.publish import EXTRA_TABLES
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.projections import Projection

DICTIONARY = ROOT / "docs" / "data-dictionary.md"


def test_a_table_becomes_a_chapter_and_a_column_a_line(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.duckdb")
    with duckdb.connect(path) as con:
        con.execute("CREATE SCHEMA marts; CREATE TABLE marts.usage_daily (gpu_hours DECIMAL(18,4))")
        con.execute("COMMENT ON TABLE marts.usage_daily IS 'one row per day'")
        con.execute("COMMENT ON COLUMN marts.usage_daily.gpu_hours IS 'whole-GPU hours'")
    text = dictionary(path)
    assert "## marts.usage_daily\n\none row per day." in text
    assert "| `gpu_hours` | DECIMAL(18,4) | whole-GPU hours |" in text


def test_every_published_column_has_a_meaning() -> None:
    text = DICTIONARY.read_text(encoding="utf-8")
    assert "## marts.chargeback_monthly" in text
    assert "|  |" not in text


@pytest.mark.parametrize(
    "projection",
    [one for one in load() if one.name.startswith("marts.") or one.name in EXTRA_TABLES],
    ids=lambda one: one.name,
)
def test_the_dictionary_says_what_each_published_table_says_of_itself(projection: Projection) -> None:
    """After a change: .venv/bin/python -m pipelines.dictionary PUBLISHED_FILE > docs/data-dictionary.md."""
    _, _, rest = DICTIONARY.read_text(encoding="utf-8").partition(f"## {projection.name}\n")
    chapter = rest.partition("\n## ")[0]
    assert f"\n{projection.grain}.\n" in chapter
    lines = {line.split("`")[1]: line for line in chapter.splitlines() if line.startswith("| `")}
    assert {name: lines.get(name, "").endswith(f"| {text} |") for name, text in projection.comments.items()} == (
        dict.fromkeys(projection.comments, True)
    )
