"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def missing(what: str, remedy: str) -> None:
    """Skip loudly on a laptop, fail in CI, because ``what`` is not there."""
    message = f"{what} is not here: {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real input files with known totals, beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        missing("the folder ../shared/data", "tests against real files need it beside the project")
    return folder
