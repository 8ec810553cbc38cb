"""A file is a delivery; a bill whose folder is part of the glob comes in parts."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pipelines.inbox import Delivery, deliveries
from pipelines.ingest import Source
from pipelines.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path)


def put(settings: Settings, name: str, text: str = "x", changed: int = 1_000) -> Path:
    """Write a file into the inbox, as of a number of seconds since 1970."""
    path = settings.inbox_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (changed, changed))
    return path


def found(settings: Settings, inbox: str, kind: str = "focus") -> list[Delivery]:
    return deliveries(settings, Source("it", kind, inbox))


def test_nothing_is_delivered_without_an_inbox(settings: Settings) -> None:
    assert found(settings, "*.csv") == []


def test_each_file_is_a_delivery_of_the_instant_it_was_written(settings: Settings) -> None:
    for name in ("bills/2026-09.csv", "bills/2026-08.csv", "bills/.2026-10.csv", "other.csv"):
        put(settings, name)
    both = found(settings, "bills/*.csv")
    assert [one.name for one in both] == ["bills/2026-08.csv", "bills/2026-09.csv"]
    assert both[0].changed_at == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)


def test_a_bill_in_a_folder_of_its_own_is_one_delivery_of_its_newest_part(settings: Settings) -> None:
    for name, changed in (
        ("bills/2026-09/a.csv", 1_000),
        ("bills/2026-09/b.csv", 2_000),
        ("bills/2026-10/a.csv", 3_000),
    ):
        put(settings, name, changed=changed)
    september, october = found(settings, "bills/*/*.csv")
    assert september.name == "bills/2026-09"
    assert [path.name for path in september.files] == ["a.csv", "b.csv"]
    assert september.changed_at.timestamp() == 2_000
    assert october.name == "bills/2026-10"


def test_other_kinds_have_no_parts(settings: Settings) -> None:
    for name in ("slurm/alps/a.txt", "slurm/alps/b.txt"):
        put(settings, name)
    assert len(found(settings, "slurm/*/*.txt", kind="slurm")) == 2


@pytest.mark.parametrize("change", ["written", "added", "removed"])
def test_its_mark_tells_every_change(settings: Settings, change: str) -> None:
    first, _ = put(settings, "bills/2026-09/a.csv"), put(settings, "bills/2026-09/b.csv")
    [before] = found(settings, "bills/*/*.csv")
    if change == "written":
        put(settings, "bills/2026-09/a.csv", changed=1_001)
    elif change == "added":
        put(settings, "bills/2026-09/c.csv")
    else:
        first.unlink()
    [after] = found(settings, "bills/*/*.csv")
    assert after.mark != before.mark


def test_its_mark_stays_while_nothing_changes(settings: Settings) -> None:
    put(settings, "a.csv")
    assert found(settings, "*.csv") == found(settings, "*.csv")
