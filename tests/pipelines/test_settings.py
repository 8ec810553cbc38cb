"""Settings come from the environment once, and say which variable is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.errors import UsageError
from pipelines.settings import Settings


def test_a_home_is_all_that_is_needed(tmp_path: Path) -> None:
    settings = Settings.from_environment({"GPULEDGER_HOME": str(tmp_path)})
    assert settings.reporting_currency == "USD"
    assert settings.catalog == ""
    assert Path(settings.data_path).is_relative_to(tmp_path)
    assert settings.published_path == tmp_path / "published" / "ledger.duckdb"


def test_without_a_home_the_ledger_stands_in_the_present_folder() -> None:
    assert Settings.from_environment({}).home == Path("ledger").absolute()


def test_two_settings_make_a_ledger_of_a_team() -> None:
    settings = Settings.from_environment({"GPULEDGER_CATALOG": "dbname=ledger", "GPULEDGER_DATA_PATH": "s3://bucket/x"})
    assert (settings.catalog, settings.data_path) == ("dbname=ledger", "s3://bucket/x")


def test_a_folder_without_a_log_is_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="there is no ledger in"):
        Settings.of_existing_ledger()
    (tmp_path / "lake").mkdir()
    assert Settings.of_existing_ledger().home == tmp_path


@pytest.mark.parametrize("currency", ["dollar", "€", "US"])
def test_a_wrong_currency_names_its_variable(currency: str) -> None:
    with pytest.raises(UsageError, match="GPULEDGER_CURRENCY"):
        Settings.from_environment({"GPULEDGER_CURRENCY": currency})
