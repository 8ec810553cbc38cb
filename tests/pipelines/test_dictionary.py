"""The data dictionary names every published column, and each has a meaning."""

from __future__ import annotations

from pathlib import Path

import duckdb

from pipelines.dictionary import dictionary


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
    text = (Path(__file__).resolve().parents[2] / "docs" / "data-dictionary.md").read_text(encoding="utf-8")
    assert "## marts.chargeback_monthly" in text
    assert "|  |" not in text
