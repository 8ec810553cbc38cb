"""Each benchmark runs, on little data, and prints what it compares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("append.py", ["bare DuckLake insert", "ledger: append", "ledger: the same batch again"]),
        ("chargeback.py", ["the month, from the log", "one late day", "at least 15"]),
    ],
)
def test_a_benchmark_prints_its_contenders_side_by_side(script: str, printed: list[str]) -> None:
    done = subprocess.run([sys.executable, ROOT / "bench" / script, "2000"], capture_output=True, text=True, check=True)
    assert all(one in done.stdout for one in printed)
    assert "MiB" in done.stdout
