"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("models", "pipelines", "dashboards", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_are_true(module: str) -> None:
    failed, attempted = doctest.testmod(import_module(module))
    assert attempted
    assert not failed
