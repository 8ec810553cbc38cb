"""``gpuledger ingest``: a batch says what became of its rows, and wrong use is refused before anything is appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from pipelines import cli_ingest, ingest
from pipelines.cli import app
from pipelines.sources.record_columns import columns_help
from pipelines.sources.traces import KINDS
from tests.deliveries import write
from tests.ledgers import at, home

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from click.testing import Result

    from pipelines.lake import Lake

SLURM = ("slurm", "--cluster", "alps", "--timezone", "UTC")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an empty ledger, with raw files beside it."""
    monkeypatch.setenv("GPULEDGER_HOME", str(home(tmp_path / "home").home))
    return write(tmp_path)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["ingest", *map(str, words)])


def test_a_batch_says_what_became_of_its_rows(folder: Path) -> None:
    first = run(*SLURM, folder / "sacct.txt")
    assert first.exit_code == 0, first.output
    assert "batch 1: slurm sacct.txt" in first.stdout
    assert "read 3 source rows, ignored 0, rejected 1, set aside 0" in first.stdout
    assert "appended 3 event rows, 0 duplicates" in first.stdout
    assert "rejected 1: Start: soon" in first.stdout
    assert "gpuledger findings --rejected" in first.stdout
    assert "appended 0 event rows, 3 duplicates" in run(*SLURM, folder / "sacct.txt").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (SLURM, "no file given"),
        ((*SLURM, "absent.txt"), "no such file: absent.txt"),
        ((*SLURM, "--live"), "--live takes --since and --until"),
        ((*SLURM, "absent.txt", "--since", "2026-09-01"), "need --live"),
        ((*SLURM, "--live", "--since", "2026-09-02", "--until", "2026-09-02"), "the window is empty"),
        (("focus", "bill.csv", "--at", "2026-10-03T09:00"), "has no time zone"),
        (("focus", "bill.csv", "--billing-period", "Q3"), "expected a month as YYYY-MM"),
        (("dcgm", "scrape.txt", "--cluster", "alps"), "--at"),
        (("trace", "borg", "trace.csv"), "borg"),
        (("slurm", "--cluster", "", "--timezone", "UTC", "sacct.txt"), "expected a name"),
    ],
)
def test_wrong_use_is_refused(folder: Path, words: tuple[str, ...], complaint: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_a_file_without_rows_is_said_to_be_one(folder: Path) -> None:
    (folder / "empty.txt").touch()
    assert "nothing was in it" in run(*SLURM, folder / "empty.txt").stdout
    assert "nothing was in it" not in run(*SLURM, folder / "sacct.txt").stdout


def test_emptying_a_bill_that_was_never_delivered_is_pointed_out(folder: Path) -> None:
    (folder / "nothing.csv").touch()
    emptied = ("focus", folder / "nothing.csv", "--billing-period", "2026-09", "--account")
    bill = run("focus", folder / "bill-09.csv")
    assert (bill.exit_code, bill.stderr) == (0, "")
    wrong = run(*emptied, "acct-1", "--issuer", "Misspelt")
    assert wrong.exit_code == 0
    assert "no bill Misspelt/acct-1 of 2026-09 was delivered before" in wrong.stderr


def test_a_file_that_cannot_be_read_appends_nothing(folder: Path) -> None:
    (folder / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    result = run(*SLURM, folder / "image.txt")
    assert result.exit_code == 2
    assert "image.txt" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "kind", "expected"),
    [
        (("trace", "helios"), "trace", {"trace": "helios", "cluster": None}),
        (("telemetry", "--cluster", "alps"), "telemetry", {"cluster": "alps", "interval_seconds": None}),
        (("dcgm", "--cluster", "alps", "--at", "2026-09-01"), "dcgm", {"cluster": "alps"}),
        ((*SLURM, "--fields", "jobid,jobidraw", "--delimiter", "^"), "slurm", {"fields": ["jobid", "jobidraw"]}),
        (("focus", "--issuer", "AWS", "--account", "1"), "focus", {"issuer": "AWS", "billing_account_id": "1"}),
    ],
)
def test_each_kind_is_told_its_arguments(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], kind: str, expected: dict[str, Any]
) -> None:
    told: dict[str, Any] = {}

    def remember(lake: Lake, kind: str, files: list[Path], **arguments: Any) -> object:
        told.update(arguments, kind=kind, files=[path.name for path in files])
        return lake.append(kind, "", [])

    monkeypatch.setattr(ingest, "ingest_files", remember)
    name, *options = words
    result = run(
        name, *options, *(["a.txt", "b.txt"] if name != "trace" else []), *(["a.txt", "b.txt"] * (name == "trace"))
    )
    assert result.exit_code == 0, result.output
    assert (told["kind"], told["files"]) == (kind, ["a.txt", "b.txt"])
    assert expected.items() <= told.items()


def test_live_systems_are_asked_for_their_window(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def remember(lake: Lake, kind: str, start: datetime, end: datetime, **arguments: Any) -> object:
        del arguments["on_rows"]
        told.append((kind, start, end, arguments))
        return lake.append(kind, "", [])

    monkeypatch.setattr(ingest, "ingest_live", remember)
    window = ("--since", "2026-09-01", "--until", "2026-09-02T06:00+02:00")
    assert run("prometheus", "http://p:9090", "--cluster", "alps", "--step", 30, *window).exit_code == 0
    assert run(*SLURM, "--live", *window).exit_code == 0
    assert run("aws-prices", "--region", "us-east-1", *window).exit_code == 0
    asked = (at(1), at(2, 4))
    assert told == [
        ("prometheus", *asked, {"url": "http://p:9090", "cluster": "alps", "step_seconds": 30}),
        ("slurm", *asked, {"cluster": "alps", "timezone": "UTC"}),
        ("aws_prices", *asked, {"region": "us-east-1"}),
    ]


@pytest.mark.parametrize(
    "kind",
    ["org", "assets", "fx", "nodes", "policies", "prices", "commitments", "interruptions", "checkpoints"],
)
def test_the_help_of_a_record_file_names_its_columns(kind: str) -> None:
    said = getattr(cli_ingest, kind).__doc__
    assert columns_help(kind) in said
    assert kind != "nodes" or columns_help("node_states") in said


def test_the_traces_are_those_that_can_be_read() -> None:
    assert {trace.value for trace in cli_ingest.Trace} == set(KINDS)
