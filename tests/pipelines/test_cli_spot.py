"""``gpuledger spot``: its fixed form, and one message for each thing that cannot be."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from openpyxl import load_workbook
from typer.testing import CliRunner

from pipelines.cli import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

INTERVAL = {"--mtbf-minutes": "15", "--checkpoint-minutes": "5", "--restart-minutes": "10"}
ADVISE = INTERVAL | {
    "--mtbf-minutes": "360",
    "--price": "2.20",
    "--alternative-price": "6.88",
    "--alternative-name": "on demand",
    "--work-hours": "200",
    "--gpus": "64",
    "--deadline-hours": "420",
    "--availability": "0.7",
}


def run(command: str, options: dict[str, str], **more: str) -> Result:
    chosen = options | {f"--{name.replace('_', '-')}": value for name, value in more.items()}
    return CliRunner().invoke(app, ["spot", command, *(word for pair in chosen.items() for word in pair)])


def test_interval_gives_one_json_object() -> None:
    found = json.loads(run("interval", INTERVAL, format="json").stdout)
    assert {name: round(found[name], 2) for name in ("exact_minutes", "daly_minutes", "young_minutes", "goodput")} == {
        "exact_minutes": 9.17,
        "daly_minutes": 9.14,
        "young_minutes": 12.25,
        "goodput": 0.2,
    }


def test_interval_comes_as_csv_and_as_a_table_too() -> None:
    (row,) = csv.DictReader(io.StringIO(run("interval", INTERVAL, format="csv").stdout))
    assert round(float(row["daly_minutes"]), 2) == 9.14
    assert "9.14" in run("interval", INTERVAL).stdout


def test_the_answer_comes_as_a_workbook_too(tmp_path: Path) -> None:
    path = tmp_path / "interval.xlsx"
    assert run("interval", INTERVAL, excel=str(path)).exit_code == 0
    figures = {row[0].value: row[1].value for row in load_workbook(path)["Spot"].iter_rows(min_row=2)}
    assert figures["exact_minutes"].startswith("9.1")


def test_notice_lengthens_the_exact_interval() -> None:
    plain, noticed = (
        json.loads(run("interval", INTERVAL, format="json", notice_success=success).stdout) for success in ("0", "0.5")
    )
    assert noticed["exact_minutes"] > plain["exact_minutes"]
    assert noticed["goodput"] > plain["goodput"]
    assert noticed["daly_minutes"] == plain["daly_minutes"]


def test_a_job_that_never_gets_through_is_told_so() -> None:
    result = run("interval", INTERVAL, mtbf_minutes="0.001")
    assert result.exit_code == 0
    assert "effectively 0" in result.stdout
    found = json.loads(run("interval", INTERVAL, mtbf_minutes="0.001", format="json").stdout)
    assert (found["goodput"], found["is_hopeless"]) == (0, True)


@pytest.mark.parametrize("value", ["-5", "0", "nan", "inf", "-inf", "ten", "", "1e400", "1e-400", "5 minutes"])
def test_a_mean_time_that_cannot_be_is_one_message(value: str) -> None:
    result = run("interval", INTERVAL, mtbf_minutes=value)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "mtbf" in result.stderr
    assert "expected a number" in result.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"checkpoint_minutes": "0"},
            "--checkpoint-minutes: expected a number above 0 and up to 1,000,000,000, found '0'",
        ),
        ({"restart_minutes": "-1"}, "--restart-minutes: expected a number from 0 to 1,000,000,000, found '-1'"),
        ({"notice_success": "1"}, "--notice-success: expected a number from 0 to 0.999, found '1'"),
        ({"price": "free"}, "--price: expected a number from 0 to 1,000,000, found 'free'"),
        ({"availability": "70"}, "--availability: expected a number above 0 and up to 1, found '70'"),
        ({"deadline_hours": "0"}, "--deadline-hours: expected a number above 0"),
        ({"work_hours": "nan"}, "--work-hours: expected a number above 0"),
        ({"alternative_name": ""}, "expected a name"),
        ({"gpus": "0"}, "--gpus"),
    ],
)
def test_advise_names_what_cannot_be(options: dict[str, str], complaint: str) -> None:
    result = run("advise", ADVISE, **options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_a_missing_option_is_named() -> None:
    result = CliRunner().invoke(app, ["spot", "interval", "--mtbf-minutes", "60"])
    assert result.exit_code == 2
    assert "--checkpoint-minutes" in result.stderr


def test_advice_says_what_to_do_and_why() -> None:
    shown = run("advise", ADVISE).stdout
    assert shown.startswith("Run it on spot.\n")
    assert "checkpoint every 56.71 min of work" in shown
    assert "spot costs 2.6850 a useful GPU-hour (2.2000 a running one), on demand 6.8800: spot pays" in shown
    found = json.loads(run("advise", ADVISE, format="json").stdout)
    assert found["verdict"] == "spot"
    assert found["effective_micros_per_gpu_hour"] == round(2.2e6 / found["goodput_ratio"])
    assert found["wall_hours"] == pytest.approx(200 / found["goodput_ratio"])
    assert found["calendar_hours"] == pytest.approx(found["wall_hours"] / 0.7)
    assert found["deadline_probability_ratio"] > 0.95
    assert (found["alternative_name"], found["seed"]) == ("on demand", 0)
    (row,) = csv.DictReader(io.StringIO(run("advise", ADVISE, format="csv").stdout))
    assert json.loads(row["reasons"]) == found["reasons"]


def test_the_same_seed_gives_the_same_advice() -> None:
    once, again, other = (
        run("advise", ADVISE, deadline_hours="350", seed=seed, format="json").stdout for seed in "112"
    )
    assert once == again
    assert json.loads(once)["deadline_probability_ratio"] != json.loads(other)["deadline_probability_ratio"]


def test_an_unused_commitment_beats_spot() -> None:
    shown = run("advise", ADVISE, alternative_price="0", alternative_name="the unused plan").stdout
    assert shown.startswith("Do not run it on spot, but: the unused plan.")


def test_without_a_known_availability_a_deadline_stays_open() -> None:
    options = {name: value for name, value in ADVISE.items() if name != "--availability"}
    assert run("advise", options).stdout.startswith("It cannot be told whether to run it on spot.")
