"""The example organisation of seed 7, generated once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.organisation import Delivery, generate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("meridian")


@pytest.fixture(scope="session")
def deliveries(folder: Path) -> list[Delivery]:
    return generate(folder)
