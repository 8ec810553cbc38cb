"""A log that cannot be opened says which setting is wrong, and no password."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.errors import GpuLedgerError, SourceError, UsageError
from pipelines.duck import connect
from tests.ledgers import home


@pytest.mark.parametrize(
    ("change", "kind", "complaint"),
    [
        ({"memory_limit": "lo'ts"}, UsageError, "GPULEDGER_MEMORY_LIMIT: expected an amount such as 3GB"),
        ({"data_path": f"{__file__}/data"}, UsageError, "GPULEDGER_DATA_PATH: the folder .* cannot be made"),
        ({"home": Path(__file__)}, UsageError, "GPULEDGER_HOME: the folder .* cannot be made"),
        ({"data_path": "s3://bucket/x"}, SourceError, "GPULEDGER_DATA_PATH: .* does not match"),
        ({"catalog": "nonsense"}, SourceError, "GPULEDGER_CATALOG: .* missing"),
    ],
)
def test_a_wrong_setting_is_named(
    tmp_path: Path, change: dict[str, Any], kind: type[GpuLedgerError], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        connect(replace(home(tmp_path), **change))


def test_a_damaged_catalogue_is_named(tmp_path: Path) -> None:
    settings = home(tmp_path)
    (tmp_path / "lake" / "catalog.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(SourceError, match=r"catalog\.sqlite: .* not a database; .* backup"):
        connect(settings)


def test_a_connection_string_stays_out_of_messages(tmp_path: Path) -> None:
    catalog = "host=127.0.0.1 port=1 dbname=ledger password='top secret'"
    with pytest.raises(SourceError, match="Connection refused") as told:
        connect(replace(home(tmp_path), catalog=catalog))
    assert "secret" not in str(told.value)


def test_a_home_may_have_a_quote_in_its_name(tmp_path: Path) -> None:
    with connect(home(tmp_path / "o'brien")) as con:
        assert con.sql("select count(*) from lake.events.batches").fetchall() == [(0,)]
