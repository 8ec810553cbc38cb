"""Months and instants are taken as people write them, or refused with the remedy; rows are printed as asked."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from models.errors import CheckError, LogError, UsageError
from pipelines.terminal import Format, PoliteGroup, grid, instant, month, progress, rows, say, tell

FRAME = pl.DataFrame(
    {
        "team": ["vision", None],
        "cost": [Decimal("-1234567.89"), None],
        "at": [datetime(2026, 9, 1, 8, tzinfo=UTC), None],
        "gpus": [[1, 2], None],
        "part": [{"a": Decimal("1.50")}, None],
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-10-05", datetime(2026, 10, 5, tzinfo=UTC)),
        ("2026-10-05T08:00:00Z", datetime(2026, 10, 5, 8, tzinfo=UTC)),
        ("2026-10-05 08:00+02:00", datetime(2026, 10, 5, 6, tzinfo=UTC)),
    ],
)
def test_an_instant_has_a_zone_or_is_a_date(text: str, expected: datetime) -> None:
    found = instant(text)
    assert (found, found.utcoffset()) == (expected, timedelta(0))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("2026-10-05T08:00", "write 2026-10-05T08:00Z for UTC, or its offset"), ("yesterday", "such as 2026-09-05T08")],
)
def test_an_instant_without_a_zone_is_refused_with_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        instant(text)


def test_a_month_is_a_year_and_a_month() -> None:
    assert month("2026-09") == date(2026, 9, 1)
    for wrong in ("2026-13", "2026-9", "2026-09-01", "September"):
        with pytest.raises(UsageError, match="expected a month as YYYY-MM"):
            month(wrong)


def test_csv_has_every_value_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    rows(FRAME, Format.CSV)
    header, first, second = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == FRAME.columns
    assert first == ["vision", "-1234567.89", "2026-09-01T08:00:00Z", "[1, 2]", '{"a": "1.50"}']
    assert second == ["", "", "", "", ""]


def test_json_keeps_decimals_exact(capsys: pytest.CaptureFixture[str]) -> None:
    rows(FRAME, Format.JSON)
    found = json.loads(capsys.readouterr().out)
    assert found[0]["cost"] == "-1234567.89"
    assert found[1] == dict.fromkeys(FRAME.columns)


def test_a_table_has_separators_a_true_minus_and_a_dash_for_what_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    rows(FRAME, Format.TABLE)
    out = capsys.readouterr().out
    assert "−1,234,567.89" in out
    assert "–" in out


def test_words_from_outside_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    tell("[bold]9[/] :smile:")
    rows(FRAME.head(0), Format.TABLE, lambda _rows: grid([("[red]", False)], [["n[001-004]"]], ["[total]"]))
    out = capsys.readouterr().out
    assert all(word in out for word in ("[bold]9[/] :smile:", "[red]", "n[001-004]", "[total]"))


def test_messages_and_progress_leave_the_output_clean(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", total=2) as shown:
        shown(advance=1, description="still reading")
        say("waiting")
    assert capsys.readouterr() == ("", "waiting\n")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such file: x"), 2, "error: no such file: x"),
        (CheckError("it does not add up"), 1, "error: it does not add up"),
        (LogError("batch 2 is missing"), 1, "error: batch 2 is missing"),
        (
            duckdb.IOException("IO Error: server at \"host=db password='top secret'\" is gone"),
            1,
            'error: storage failed: IO Error: server at "host=db password=…" is gone; a batch is appended whole',
        ),
    ],
)
def test_an_error_is_one_message_and_a_code(error: Exception, code: int, said: str) -> None:
    app = typer.Typer(cls=PoliteGroup)

    @app.callback()
    def tool() -> None:
        pass

    @app.command()
    def fail() -> None:
        raise error

    result = CliRunner().invoke(app, ["fail"])
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)
