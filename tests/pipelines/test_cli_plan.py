"""``gpuledger plan`` and ``gpuledger backtest`` as a person types them: every form, and one message for what cannot be."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openpyxl import load_workbook
from typer.testing import CliRunner

from models.procurement.backtest import POLICIES
from models.procurement.plan import BASELINES
from pipelines.cli import app
from tests.ledgers import home
from tests.plans import FIRST, MODEL, PLAN, ledger, price, write_plan

if TYPE_CHECKING:
    from click.testing import Result

    from pipelines.settings import Settings


def run(settings: Settings, *words: object, code: int = 0) -> Result:
    """Type a command in a ledger; it must end with this exit code and without a traceback."""
    env = {"GPULEDGER_HOME": str(settings.home), "GPULEDGER_DATA_PATH": settings.data_path}
    result = CliRunner().invoke(app, [str(word) for word in words], env=env)
    assert (result.exit_code, "Traceback" in result.stderr) == (code, False), result.output
    return result


def refused(settings: Settings, *words: object) -> str:
    """The one line that a refused command says."""
    result = run(settings, *words, code=2)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1), result.output
    assert result.stderr.startswith("error: ")
    return result.stderr


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return ledger(tmp_path_factory.mktemp("books"), price("yen", "on_demand", "100", currency="JPY"))


def test_json_is_one_object_with_exact_amounts(books: Settings) -> None:
    found = json.loads(run(books, "plan", "--format", "json").stdout)
    assert (found["currency"], found["seed"], found["scenario_count"]) == ("USD", 7, 3)
    assert (found["horizon_start_at"], found["horizon_end_at"]) == ("2026-11-05T00:00:00Z", "2027-01-04T20:00:00Z")
    costs = [line["cost"] for line in found["lines"]]
    assert {len(cost.split(".")[1]) for cost in (*costs, found["bound_cost"], found["savings"][0]["saving"])} == {6}
    assert sum(map(Decimal, costs)) == Decimal(found["expected_cost"])
    purchase = found["lines"][0]
    assert (purchase["offer_id"], purchase["gpu_count"], purchase["cost"]) == ("reserved", 2, "11680.000000")
    assert [one["baseline"] for one in found["savings"]] == list(BASELINES)
    assert found["notes"][0] == {
        "note_kind": "warning",
        "text": "yen: left out, its price is not known in the reporting currency: ingest the exchange rate",
        "setting": None,
        "value": None,
    }


def test_csv_has_one_row_a_line(books: Settings) -> None:
    rows = list(csv.DictReader(io.StringIO(run(books, "plan", "--format", "csv").stdout)))
    assert [row["line_kind"] for row in rows] == ["purchase", "held", "spot", "on_demand"]
    assert (rows[0]["starts_at"], rows[0]["cost"]) == ("2026-11-05T00:00:00Z", "11680.000000")
    assert (rows[1]["cost"], rows[1]["gpu_count"]) == ("13680.000000", "")


def test_the_table_says_what_is_saved_against_what(books: Settings) -> None:
    said = run(books, "plan").stdout
    for name, meaning in BASELINES.items():
        [line] = [one for one in said.splitlines() if one.startswith(f"Against {name}")]
        assert meaning in line
        assert "in 90 % of the 3 scenarios; prices of 2026-10-20 to 2026-10-20" in line
    assert sum("saves" in line for line in said.splitlines()) == len(BASELINES)
    assert "warning: yen: left out" in said
    assert "assumption: demand is drawn from 35 days, 2026-10-01 to 2026-11-05" in said
    assert "spot cannot be had" in said


def test_excel_opens_with_numbers_that_add_up(books: Settings, tmp_path: Path) -> None:
    path = tmp_path / "plan.xlsx"
    found = json.loads(run(books, "plan", "--excel", path, "--format", "json").stdout)
    book = load_workbook(path)
    assert book.sheetnames == ["Plan", "Lines", "Savings", "Other worlds", "Notes"]
    header, *rows = book["Lines"].iter_rows(values_only=True)
    costs: list[Any] = [row[header.index("cost")] for row in rows]
    assert sum(costs) == pytest.approx(float(found["expected_cost"]))
    assert "error: " in refused(books, "plan", "--excel", tmp_path / "plan.csv", "--format", "json")


def test_the_same_ledger_gives_the_same_words(books: Settings) -> None:
    assert run(books, "plan", "--format", "json").stdout == run(books, "plan", "--format", "json").stdout


def test_an_instant_in_another_zone_is_the_same_instant(books: Settings) -> None:
    """Two hours in which Berlin's clocks show half past two: one UTC hour apart."""
    plans = [
        json.loads(run(books, "plan", "--at", f"2026-10-25T{at}", "--format", "json").stdout)
        for at in ("02:30+02:00", "00:00Z", "02:30+01:00", "01:00Z")
    ]
    assert [one["horizon_start_at"] for one in plans] == ["2026-10-25T00:00:00Z"] * 2 + ["2026-10-25T01:00:00Z"] * 2
    assert plans[0]["plan_id"] == plans[1]["plan_id"] != plans[2]["plan_id"] == plans[3]["plan_id"]


def test_a_plan_is_recorded_once_and_says_so(tmp_path: Path) -> None:
    settings = ledger(tmp_path)
    first = run(settings, "plan", "--record", "--format", "json")
    assert first.stderr == "recorded; gpuledger build and gpuledger publish show it\n"
    again = run(settings, "plan", "--record", "--format", "json")
    assert (again.stderr, again.stdout) == ("the log holds this plan already\n", first.stdout)
    run(settings, "build")
    run(settings, "publish")
    shown = json.loads(run(settings, "sql", "select plan_id, is_latest from marts.plan", "--format", "json").stdout)
    assert shown == [{"plan_id": json.loads(first.stdout)["plan_id"], "is_latest": True}]


def test_a_plan_is_recorded_though_nobody_reads_it_to_the_end(tmp_path: Path) -> None:
    settings = ledger(tmp_path)
    command = [str(Path(sys.executable).with_name("gpuledger")), "plan", "--record"]
    home = os.environ | {"GPULEDGER_HOME": str(settings.home), "GPULEDGER_DATA_PATH": settings.data_path}
    with subprocess.Popen(command, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.close()
        started.wait()
    assert run(settings, "plan", "--record", "--format", "csv").stderr == "the log holds this plan already\n"


def test_other_settings_are_read_from_another_file(books: Settings, tmp_path: Path) -> None:
    other = write_plan(tmp_path, demand={"horizon_months": 1})
    assert "2026-11-05 to 2026-12-05" in run(books, "plan", "--settings", other).stdout


ANDES = {"h100": {**PLAN["pools"]["h100"], "demand": [{"cluster": "andes", "gpu_model": MODEL}]}}
NONE = ["on_demand", "spot", "reserved"]


@pytest.mark.parametrize(
    ("changes", "words", "complaint"),
    [
        ({"polcy": {}}, (), "plan.yaml: polcy: unknown key"),
        ({"demand": {"scenarios": "many"}}, (), "plan.yaml: demand.scenarios: found 'many'"),
        ({"demand": {"growth": {"rigid": [-2, 0, 0]}}}, (), "plan.yaml: demand: growth a year: found low -2"),
        ({"policy": {"spot_gpus": {"b200": 1}}}, (), "policy.spot_gpus: found the pools b200, expected one of h100"),
        (
            {},
            ("--at", "2026-09-01"),
            "no demand is known before 2026-09-01 00:00 UTC: the pools' runs begin on 2026-10-01",
        ),
        ({}, ("--at", f"{FIRST:%Y-%m-%d}T01:00Z"), "the history has 1 hours, expected 24 or more"),
        ({}, ("--at", "2026-12-01"), "alps: its runs are known from 2026-10-01 to 2026-11-04"),
        ({}, ("--at", "2026-10-25T02:30"), "2026-10-25T02:30 has no time zone"),
        ({"demand": {"look_back_days": 1}}, ("--at", "2026-10-15"), "the history wants no GPU in any hour"),
        ({"pools": ANDES}, (), "andes: nobody is known to have held its GPUs"),
        ({"prices": {"without": NONE}}, (), "no price of any instrument for h100: ingest prices for them"),
        (
            {"policy": {"inference_availability_ratio": 0.99}},
            (),
            "capacity held ready for inference in h100, hours 0 to 1,368 needs at least 5 GPUs, but 0 can be reached (5 short)",
        ),
        ({"policy": {"budget_amount": 0, "inference_availability_ratio": 1}}, (), "needs at least 5 GPUs"),
    ],
)
def test_what_cannot_be_planned_is_one_message(
    books: Settings, tmp_path: Path, changes: dict[str, Any], words: tuple[str, ...], complaint: str
) -> None:
    path = write_plan(tmp_path, **changes)
    assert complaint in refused(books, "plan", "--settings", path, *words)


def test_a_missing_file_names_the_template(books: Settings, tmp_path: Path) -> None:
    said = refused(books, "plan", "--settings", tmp_path / "none.yaml")
    assert "none.yaml does not exist" in said
    assert "plan-template.yaml" in said


def test_a_home_without_anything_says_what_comes_first(tmp_path: Path) -> None:
    settings = home(tmp_path)
    for command in ("plan", "backtest"):
        assert "plan.yaml does not exist" in refused(settings, command)
    write_plan(settings.home)
    for command in ("plan", "backtest"):
        assert "run gpuledger build and gpuledger publish first" in refused(settings, command)


PRICES = (
    "offer_id,gpu_model,region,observed_at,instrument,provider,gpu_count,scope,has_capacity,hourly_amount,currency,valid_until_at,"
    "price_source\n"
)


def test_prices_that_cannot_be_are_kept_aside_before_any_plan(tmp_path: Path) -> None:
    """Negative, missing, and another price for a time in which the first still holds: each is kept aside with its reason."""
    settings = home(tmp_path)
    path = tmp_path / "prices.csv"
    same = "us-east-1,{},on_demand,aws,8,region,false,{},USD,{},quote\n"
    path.write_text(
        PRICES
        + f"neg,{MODEL}," + same.format("2026-10-01", "-1", "")
        + f"none,{MODEL}," + same.format("2026-10-01", "", "")
        + f"od,{MODEL}," + same.format("2026-10-01", "10", "2026-12-01")
        + f"od,{MODEL}," + same.format("2026-10-15", "9", "2026-12-01")
    )  # fmt: skip
    run(settings, "ingest", "prices", path)
    run(settings, "build")
    run(settings, "publish")
    asked = "select reason from marts.rejected order by position"
    reasons = [one["reason"] for one in json.loads(run(settings, "sql", asked, "--format", "json").stdout)]
    assert [reason.split(":")[0] for reason in reasons[:2]] == ["hourly_amount", "hourly_amount"]
    assert "found '-1', expected a number" in reasons[0]
    assert "found no price above 0" in reasons[1]
    assert "expected one price at a time" in reasons[2]


def test_a_backtest_has_a_row_for_each_way_of_choosing(books: Settings, tmp_path: Path) -> None:
    path = tmp_path / "test.xlsx"
    words = ("backtest", "--fold-days", 7, "--first-days", 21)
    rows = json.loads(run(books, *words, "--format", "json", "--excel", path).stdout)
    assert {row["policy"] for row in rows} == set(POLICIES)
    assert {row["fold_count"] for row in rows} == {2}
    assert load_workbook(path).sheetnames == ["Verdict", "Summary", "Folds", "Value of knowing"]
    said = run(books, *words).stdout
    verdicts = [line for line in said.splitlines() if line.startswith("Against ")]
    assert len(verdicts) == len(POLICIES) - 2  # all but the plan itself and hindsight
    assert all(
        "2 folds of 168 hours starting 2026-10-22 to 2026-10-29, prices seen 2026-10-20" in one for one in verdicts
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--first-days", 30, "--fold-days", 7), "the history has 35 days, too few for 30 days and one fold of 7"),
        (("--fold-days", 40), "too few for 14 days and one fold of 40: ask for less with --first-days or --fold-days"),
    ],
)
def test_a_history_too_short_for_a_fold(books: Settings, words: tuple[object, ...], complaint: str) -> None:
    assert complaint in refused(books, "backtest", *words)
