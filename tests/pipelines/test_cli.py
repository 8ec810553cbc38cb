"""The command line from an empty folder to a closed month and its correction, as a person types it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pipelines import cli, publish
from pipelines.cli import app
from pipelines.instance import INSTANCE_YAML
from pipelines.plan_settings import PLAN_TEMPLATE
from tests.conftest import ROOT
from tests.deliveries import write
from tests.ledgers import home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from click.testing import Result


def run(*words: object, code: int = 0) -> Result:
    """Type a command; it must end with this exit code and without a traceback."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert (result.exit_code, "Traceback" in result.stderr) == (code, False), result.output
    return result


def table(result: Result) -> list[dict[str, Any]]:
    """Rows of a result printed as JSON."""
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """September closed, its bill restated afterwards, October open."""
    folder = write(tmp_path_factory.mktemp("books"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GPULEDGER_HOME", str(folder / "home"))
        run("init")
        run("ingest", "nodes", folder / "nodes.csv")
        run("ingest", "org", folder / "org.csv")
        run("ingest", "slurm", folder / "sacct.txt", "--cluster", "alps", "--timezone", "UTC")
        run("ingest", "focus", folder / "bill-09.csv", "--at", "2026-10-03T09:00:00Z")
        run("build")
        (folder / "closed.txt").write_text(run("close", "2026-09").stdout)
        run("ingest", "focus", folder / "bill-09-restated.csv", "--at", "2026-10-08T09:00:00Z")
        run("ingest", "focus", folder / "bill-10.csv", "--at", "2026-11-03T09:00:00Z")
        run("build", "--full")
        run("publish")
        yield folder


def test_init_says_what_is_next_and_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path / "new"))
    said = run("init").stdout
    assert "Next: append facts with gpuledger ingest" in said
    assert f"fill in {tmp_path / 'new' / 'plan-template.yaml'}, save it as {tmp_path / 'new' / 'plan.yaml'}" in said
    assert (tmp_path / "new" / "inbox").is_dir()
    assert (tmp_path / "new" / "dagster.yaml").read_text() == INSTANCE_YAML
    assert (tmp_path / "new" / "plan-template.yaml").read_text() == PLAN_TEMPLATE
    assert not (tmp_path / "new" / "plan.yaml").exists()
    names = ("sources.yaml", "dagster.yaml", "plan-template.yaml")
    for name in names:
        (tmp_path / "new" / name).write_text("mine: {}")
    run("init")
    assert {(tmp_path / "new" / name).read_text() for name in names} == {"mine: {}"}


def test_a_home_may_have_a_quote_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path / "o'brien"))
    for command in ("init", "build", "publish", "findings"):
        run(command)


def test_a_close_says_what_it_posted(books: Path) -> None:
    said = (books / "closed.txt").read_text()
    assert "2026-09 is closed." in said
    assert "103.51 USD" in said
    assert "digest: " in said


def test_a_closed_statement_does_not_change(books: Path) -> None:
    said = run("statement", "2026-09").stdout
    assert "closed on" in said
    assert "billed 103.51 = charged 24.00 + platform 72.01 + unmatched 7.50, difference 0.00 (0 micros)" in said


def test_an_open_statement_says_so_and_shows_what_its_close_corrects(books: Path) -> None:
    said = run("statement", "2026-10").stdout
    assert "PROVISIONAL" in said
    assert "corrections of 2026-09: −10.00" in said
    lines = table(run("statement", "2026-10", "--team", "vision", "--format", "json"))
    assert {(one["line_kind"], one["charge_month"], one["cost"]) for one in lines} == {
        ("usage", "2026-10-01", "20.00"),
        ("correction", "2026-09-01", "-2.50"),
    }


def test_a_month_is_proved_with_its_bills(books: Path) -> None:
    assert "billed 93.51" in run("prove", "2026-09").stdout
    month, bill = csv.DictReader(io.StringIO(run("prove", "2026-09", "--format", "csv").stdout))
    assert (month["proof_of"], month["billed"], month["difference_micros"]) == ("2026-09", "93.505000", "0")
    assert (bill["proof_of"], bill["on_nodes"], bill["unmatched"]) == ("AWS/1/2026-09", "86.005000", "7.500000")


def test_a_month_that_does_not_add_up_is_not_proved(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = publish.query

    def skimmed(settings: Any, sql: str) -> Any:
        return honest(settings, sql.replace("charged, platform_held", "charged - 1, platform_held"))

    monkeypatch.setattr(publish, "query", skimmed)
    result = run("prove", "2026-09", code=1)
    assert "difference 1.00 (1,000,000 micros)" in result.stdout
    assert "2026-09 is not proved" in result.stderr


def test_what_was_known_before_is_answered_from_the_log(books: Path) -> None:
    batches = table(run("sql", "select source, recorded_at from marts.batches order by batch_id", "--format", "json"))
    closed_at = next(one["recorded_at"] for one in batches if one["source"] == "close")
    question = "select count(*) as n, sum(rows_read) as m from marts.batches"
    assert table(run("as-of", closed_at, "sql", question, "--format", "json")) == [{"n": 5, "m": "11"}]
    assert "months known: none" in run("as-of", "2020-01-01", "prove", "2026-09", code=2).stderr


def test_findings_and_rejected_rows_are_listed(books: Path) -> None:
    assert "rows_rejected: " in run("findings").stdout
    kinds = {one["kind"] for one in table(run("findings", "--format", "json"))}
    assert {"rows_rejected", "closed_month_changed"} <= kinds
    (rejected,) = table(run("findings", "--rejected", "--format", "json"))
    assert rejected["position"].endswith("sacct.txt:4")


def test_the_log_is_verified_and_maintained(books: Path) -> None:
    run("maintain")
    assert "7 batches, all as they were recorded" in run("verify").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["statement", "2026-9"], "expected a month as YYYY-MM"),
        (["statement", "2027-01"], "2027-01 has no costs or usage; months known: 2026-09, 2026-10"),
        (["statement", "2026-09", "--team", "ads"], "no line of team 'ads'"),
        (["prove", "2027-01"], "months known: 2026-09, 2026-10"),
        (["close", "2026-09"], "2026-09 is closed already"),
        (["as-of", "2026-10-05T08:00", "prove", "2026-09"], "has no time zone"),
        (["sql", "selec 1"], "syntax error"),
        (["sql", "drop table marts.ledger"], "read-only"),
        (["demo"], "holds facts already"),
        (["build", "--fast"], "No such option"),
    ],
)
def test_wrong_use_is_one_message_and_exit_code_2(books: Path, words: list[str], complaint: str) -> None:
    result = run(*words, code=2)
    assert complaint in result.stderr
    assert result.stdout == ""


def test_a_close_that_falls_short_lists_every_reason_and_ends_with_1(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path / "home"))
    run("init")
    run("ingest", "nodes", books / "nodes.csv")
    run("ingest", "slurm", books / "sacct.txt", "--cluster", "alps", "--timezone", "UTC")
    result = run("close", "2026-09", code=1)
    assert "0.0% of allocated GPU time has a known cost" in result.stderr


@pytest.mark.parametrize(
    "command",
    ["build", "publish", "verify", "maintain", "close 2026-09", "findings --rejected", f"ingest org {__file__}"],
)
def test_a_ledger_that_is_not_there_is_not_made_by_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path / "absent"))
    assert "run gpuledger init, or set GPULEDGER_HOME" in run(*command.split(), code=2).stderr
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("command", ["verify", "build", "init", f"ingest org {__file__}"])
def test_a_catalogue_that_does_not_answer_is_one_plain_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(home(tmp_path).home))
    monkeypatch.setenv("GPULEDGER_CATALOG", "host=127.0.0.1 port=1 dbname=ledger password='top secret'")
    said = run(*command.split(), code=2).stderr
    assert said.startswith("error: GPULEDGER_CATALOG: the log's catalogue in PostgreSQL cannot be opened")
    assert "Connection refused" in said
    assert "top secret" not in said


def test_serve_starts_the_dashboards_on_the_published_file(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def remember(command: list[str], **_options: object) -> subprocess.CompletedProcess[bytes]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(cli.subprocess, "run", remember)
    run("serve", "--port", 8600)
    assert started[0][1:4] == ["-m", "streamlit", "run"]
    assert started[0][5:9] == ["--server.port", "8600", "--server.address", "localhost"]
    assert started[0][-1] == str(books / "home" / "published" / "ledger.duckdb")
    assert cli.DASHBOARD.is_file()


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it."""
    for name, one in getattr(command, "commands", {}).items():
        yield (*words, name), one
        yield from commands(one, (*words, name))


@pytest.mark.parametrize(("words", "command"), [*commands(get_command(app))], ids=lambda value: str(value)[:60])
def test_every_command_has_help_with_an_example(words: tuple[str, ...], command: Any) -> None:
    assert "Example: " in (command.help or "")
    result = CliRunner().invoke(
        app, [*words[:1], *(["2026-10-05"] if words[0] == "as-of" and words[1:] else []), *words[1:], "--help"]
    )
    assert (result.exit_code, "Usage: " in result.stdout) == (0, True)


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; import pipelines.cli; print([m for m in ('polars', 'duckdb', 'dagster', 'pandas', 'streamlit') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
