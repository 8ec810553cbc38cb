"""Each benchmark runs, on little data, and prints what it compares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("script", "size", "printed"),
    [
        ("append.py", "2000", ["bare DuckLake insert", "ledger: append", "ledger: the same batch again"]),
        ("chargeback.py", "2000", ["the month, from the log", "one late day", "at least 15"]),
        ("procurement.py", "24", ["order statistics", "L-shaped", "whole, linopy", "whole, scipy", "at least 10"]),
    ],
)
def test_a_benchmark_prints_its_contenders_side_by_side(script: str, size: str, printed: list[str]) -> None:
    done = subprocess.run([sys.executable, ROOT / "bench" / script, size], capture_output=True, text=True, check=True)
    assert all(one in done.stdout for one in printed)
    assert "MiB" in done.stdout
