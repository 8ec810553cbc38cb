"""The inbox starts a run for each source with something new, once, and not before it has stopped growing."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from dagster import SensorResult, SkipReason, build_sensor_context

from pipelines.definitions import definitions
from pipelines.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = 'organisation: {kind: org, inbox: "org*.csv"}\nbills: {kind: focus, inbox: "bills/*/*.csv"}\n'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "sources.yaml").write_text(SOURCES)
    return Settings(tmp_path)


def put(settings: Settings, name: str, *, seconds_ago: int = 60) -> None:
    path = settings.inbox_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
    os.utime(path, (time.time() - seconds_ago,) * 2)


def look(settings: Settings, cursor: str | None = None) -> tuple[dict[str, list[str]], str]:
    """Deliveries asked for by source, and the cursor for the next look."""
    context = build_sensor_context(cursor=cursor)
    found: Any = definitions(settings).resolve_sensor_def("inbox")(context)
    if isinstance(found, SkipReason):
        return {}, cursor or ""
    assert isinstance(found, SensorResult)
    asked = {one.tags["source"]: one for one in found.run_requests or []}
    names = {source: one.run_config["ops"][f"read_{source}"]["config"]["names"] for source, one in asked.items()}
    return names, found.cursor or ""


def test_an_empty_inbox_starts_nothing(settings: Settings) -> None:
    assert look(settings) == ({}, "")


def test_each_source_has_a_run_for_all_that_is_new(settings: Settings) -> None:
    for name in ("org-1.csv", "org-2.csv", "bills/2026-09/a.csv", "bills/2026-09/b.csv", "unknown.txt"):
        put(settings, name)
    assert look(settings)[0] == {"organisation": ["org-1.csv", "org-2.csv"], "bills": ["bills/2026-09"]}


def test_what_was_asked_for_is_not_asked_for_again_until_it_changes(settings: Settings) -> None:
    put(settings, "org-1.csv")
    _, cursor = look(settings)
    assert look(settings, cursor) == ({}, cursor)
    put(settings, "org-1.csv", seconds_ago=40)
    put(settings, "org-2.csv")
    asked, cursor = look(settings, cursor)
    assert asked == {"organisation": ["org-1.csv", "org-2.csv"]}
    assert look(settings, cursor)[0] == {}


def test_what_still_grows_waits(settings: Settings) -> None:
    put(settings, "bills/2026-09/a.csv")
    put(settings, "bills/2026-09/b.csv", seconds_ago=1)
    asked, cursor = look(settings)
    assert asked == {}
    put(settings, "bills/2026-09/b.csv")
    assert look(settings, cursor)[0] == {"bills": ["bills/2026-09"]}


def test_the_cursor_forgets_what_was_taken_away(settings: Settings) -> None:
    put(settings, "org-1.csv")
    put(settings, "org-2.csv")
    _, cursor = look(settings)
    (settings.inbox_path / "org-1.csv").unlink()
    asked, cursor = look(settings, cursor)
    assert asked == {}
    assert set(json.loads(cursor)) == {"organisation:org-2.csv"}
