"""Run contenders in fresh processes, turn by turn, and print their time and peak memory side by side."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import duckdb

from pipelines.projections import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def compare(
    script: str, contenders: dict[str, Callable[[Path], object]], folder: Path, rounds: int = 3
) -> dict[str, float]:
    """Measure each contender ``rounds`` times, alternating, and print medians and ratios to the first.

    Args:
      script: The benchmark's own file, which is started again with the contender's name.
      contenders: Functions by name; each gets the data folder.
      folder: Data folder.
      rounds: Turns.

    Returns:
      Median seconds by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    peak_mib: dict[str, float] = dict.fromkeys(contenders, 0.0)
    for _ in range(rounds):
        for name in contenders:
            found = measured(script, name, folder)
            seconds[name].append(found["seconds"])
            peak_mib[name] = max(peak_mib[name], found["peak_mib"])
    medians = {name: median(found) for name, found in seconds.items()}
    first = next(iter(medians.values()))
    print(f"\n{'':44}{'median':>10}{'ratio':>8}{'peak':>12}")
    for name, value in medians.items():
        print(f"{name:44}{value:>8.2f} s{value / first:>8.2f}{peak_mib[name]:>8.0f} MiB")
    return medians


def measured(script: str, name: str, folder: Path) -> dict[str, float]:
    """Seconds and peak_mib of one contender in a fresh process."""
    answer = subprocess.run([sys.executable, script, name, str(folder)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def run_one(contenders: dict[str, Callable[[Path], object]], name: str, folder: Path) -> None:
    """Run one contender and print its time and this process's peak memory as JSON."""
    # What a process does once, however much it then works: DuckDB imports pandas at the first parameter, and SQL is parsed.
    duckdb.execute("SELECT ?", [1])
    load()
    start = time.perf_counter()
    contenders[name](folder)
    spent = time.perf_counter() - start
    print(json.dumps({"seconds": spent, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
