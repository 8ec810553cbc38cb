"""Each source is one asset: windows and files in, row counts out; one that cannot be read fails with its reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from dagster import materialize

from models.errors import SourceError
from pipelines import ingest
from pipelines.assets.sources import source_assets
from pipelines.lake import Lake
from pipelines.sources.base import Chunk
from tests.dagster_runs import failure, made
from tests.ledgers import frames, home, owner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dagster import DagsterInstance, ExecuteInProcessResult

    from pipelines.settings import Settings

ORG = "account,team,business_unit,effective_from\n"
Asked = list[tuple[datetime, datetime]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made_home = home(tmp_path)
    (made_home.home / "sources.yaml").write_text(
        'organisation: {kind: org, inbox: "org*.csv"}\nalps: {kind: prometheus, url: "http://p:9090", cluster: alps}\n'
    )
    made_home.inbox_path.mkdir()
    return made_home


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Windows that a stand-in for Prometheus was asked for."""
    windows: Asked = []

    def read(*, start: datetime, end: datetime, url: str, cluster: str) -> Iterator[Chunk]:
        windows.append((start, end))
        yield Chunk(frames(*owner("A", "vision")), rows_read=1)

    monkeypatch.setitem(ingest.LIVE_READERS, "prometheus", read)
    return windows


def read(
    settings: Settings, name: str, records: DagsterInstance, config: dict[str, Any] | None = None, **more: Any
) -> ExecuteInProcessResult:
    """Materialise one source."""
    [asset] = [one for one in source_assets(settings) if one.key.path[-1] == name]
    run_config = {"ops": {f"read_{name}": {"config": config or {}}}}
    return materialize([asset], instance=records, run_config=run_config, raise_on_error=False, **more)


def test_a_live_source_is_asked_for_the_window_of_its_tick(
    settings: Settings, asked: Asked, records: DagsterInstance
) -> None:
    window = {"start": "2026-09-02T22:00:00+00:00", "end": "2026-09-03T01:00:00+00:00"}
    result = read(settings, "alps", records, window, partition_key="2026-09-03")
    assert asked == [(datetime(2026, 9, 2, 22, tzinfo=UTC), datetime(2026, 9, 3, 1, tzinfo=UTC))]
    about = made(result)["sources.alps"]
    assert about["read_until"] == datetime(2026, 9, 3, 1, tzinfo=UTC).timestamp()
    assert (about["rows_read"], about["rows_appended"]) == (1, 1)


def test_a_live_source_is_asked_for_whole_days_by_hand_and_still_knows_how_far_it_got(
    settings: Settings, asked: Asked, records: DagsterInstance
) -> None:
    read(settings, "alps", records, partition_key="2026-09-03")
    result = read(settings, "alps", records, partition_key="2026-09-01")
    assert asked[-1] == (datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 2, tzinfo=UTC))
    about = made(result)["sources.alps"]
    assert about["read_until"] == datetime(2026, 9, 4, tzinfo=UTC).timestamp()
    assert (about["rows_appended"], about["rows_duplicate"]) == (0, 1)


def test_a_live_source_is_never_asked_for_the_future(
    settings: Settings, asked: Asked, records: DagsterInstance
) -> None:
    read(settings, "alps", records, partition_key=f"{datetime.now(UTC):%Y-%m-%d}")
    assert asked[0][1] <= datetime.now(UTC)


def test_a_live_source_that_does_not_answer_fails_with_its_words(
    settings: Settings, records: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*, start: datetime, end: datetime, url: str, cluster: str) -> Iterator[Chunk]:
        raise SourceError(f"{url}: no answer")

    monkeypatch.setitem(ingest.LIVE_READERS, "prometheus", refuse)
    assert failure(read(settings, "alps", records, partition_key="2026-09-01")) == "http://p:9090: no answer"


def test_an_inbox_is_read_as_often_as_wanted(settings: Settings, records: DagsterInstance) -> None:
    (settings.inbox_path / "org-1.csv").write_text(f"{ORG}A,vision,Research,2026-09-01\n")
    (settings.inbox_path / "org-2.csv").write_text(f"{ORG}B,speech,Research,2026-09-01\n")
    first = made(read(settings, "organisation", records, {"names": ["org-1.csv"]}))["sources.organisation"]
    assert (first["deliveries"], first["rows_appended"]) == (1, 1)
    every = made(read(settings, "organisation", records))["sources.organisation"]
    assert (every["deliveries"], every["rows_appended"], every["rows_duplicate"]) == (2, 1, 1)


def test_a_file_that_cannot_be_read_does_not_keep_out_the_others(settings: Settings, records: DagsterInstance) -> None:
    (settings.inbox_path / "org-1.csv").write_text("")
    (settings.inbox_path / "org-2.csv").write_text(f"{ORG}B,speech,Research,2026-09-01\n")
    said = failure(read(settings, "organisation", records))
    assert said.startswith("1 of 2 could not be read:\n")
    assert "org-1.csv" in said
    with Lake(settings) as lake:
        assert lake.con.execute("SELECT account FROM lake.events.ownership_assigned").fetchall() == [("B",)]
