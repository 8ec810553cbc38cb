"""A build brings the working file up to the log: only the touched days, whole or again, one at a time."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest

from models.errors import CheckError
from pipelines.build import build, opened
from pipelines.settings import Settings
from tests.ledgers import append, at, bill, gpus, home, line, node, opened_file, owner, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a ledger of three days, built."""
    settings = home(tmp_path_factory.mktemp("home"))
    facts = *node("n1", 2), *run("1", "A", at(1), at(4), gpus("n1")), *bill(line("n1", "30", at(1), at(4)))
    append(settings, *facts, *owner("A", "vision"), recorded=at(5))
    assert [day.day for day in build(settings).days] == [1, 2, 3]
    return settings.home


@pytest.fixture
def settings(built: Path, tmp_path: Path) -> Settings:
    """A copy of that ledger."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return Settings(tmp_path, data_path=str(tmp_path / "lake" / "data"))


def test_only_touched_days_are_rebuilt_and_that_is_enough(settings: Settings) -> None:
    append(settings, *run("2", "B", at(2, 6), at(2, 12), gpus("n1")))
    assert [day.day for day in build(settings).days] == [2]
    with opened_file(settings.build_path) as con:
        rebuilt = con.execute("SELECT * FROM core.line_daily ORDER BY ALL").fetchall()
    assert [day.day for day in build(settings, full=True).days] == [1, 2, 3]
    with opened_file(settings.build_path) as con:
        assert con.execute("SELECT * FROM core.line_daily ORDER BY ALL").fetchall() == rebuilt


def test_a_deleted_working_file_is_made_again(settings: Settings) -> None:
    settings.build_path.unlink()
    assert [day.day for day in build(settings).days] == [1, 2, 3]


def test_other_code_or_another_currency_is_another_build(settings: Settings) -> None:
    other = Settings(settings.home, data_path=settings.data_path, reporting_currency="EUR")
    assert len(build(other).days) == 3


def test_a_broken_invariant_stops_the_build_and_the_next_tries_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(settings, *run("2", "B", at(2, 6), at(2, 12), gpus("n1")))
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.build.violations", lambda _con, one, _spans: [f"{one.name} is wrong"])
        with pytest.raises(CheckError, match="is wrong"):
            build(settings)
    assert [day.day for day in build(settings).days] == [2]


def test_a_second_build_waits_its_turn_and_says_so(settings: Settings) -> None:
    said: list[str] = []
    with opened(settings):
        second = threading.Thread(target=build, args=(settings,), kwargs={"on_wait": said.append})
        second.start()
        while not said:
            time.sleep(0.01)
    second.join(120)
    assert said == [f"another run is building {settings.build_path}; waiting for it to finish"]
