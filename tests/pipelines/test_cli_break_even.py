"""``gpuledger break-even``: the answers as table, JSON, CSV and Excel; wrong use is one message and exit code 2."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import openpyxl
import pytest
import yaml
from typer.testing import CliRunner

from pipelines.cli import app
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

EXAMPLE = ROOT / "examples" / "break-even.yaml"
PUBLISHED = [
    *[11, 14, 17, 28],
    *[16, 20, 26, 44],
    *[17, 21, 28, 50],
    *[35, 47, 71, None],
    *[53, 76, None, None],
    *[61, 91, None, None],
    *[None, None, None, None],
]


def run(*words: object, of: Path = EXAMPLE, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["break-even", "--inputs", str(of), *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def test_json_is_one_object_for_each_comparator_and_utilisation() -> None:
    found = json.loads(run("--format", "json").stdout)
    assert [one["payback_months"] for one in found] == PUBLISHED
    assert [one["utilisation"] for one in found[:4]] == [1.0, 0.85, 0.7, 0.5]
    assert {
        "comparator",
        "undiscounted_payback_months",
        "payback_with_residual_months",
        "owned_per_gpu_hour",
        "rented_per_gpu_hour",
        "npv",
        "discount_rate",
        "residual",
        "currency",
    } <= found[0].keys()
    assert (found[3]["payback_months"], found[3]["discount_rate"], found[3]["residual"]) == (28, 0.1, 0.3)


def test_the_table_says_what_it_assumes_before_what_it_finds() -> None:
    shown = run().stdout
    assert shown.index("Discount rate 10.0 % a year") < shown.index("Discounted payback, residual 0, months")
    assert shown.index("AWS price list, p5.48xlarge") < shown.index("Discounted payback, residual 0, months")
    assert "if rent falls by 44.0 % after 6 months" in shown


def test_csv_has_the_same_rows() -> None:
    found = list(csv.DictReader(run("--format", "csv").stdout.splitlines()))
    assert [row["payback_months"] for row in found] == ["" if one is None else str(one) for one in PUBLISHED]


def test_the_tornado_and_the_draws_come_in_every_form() -> None:
    tornado = json.loads(run("--tornado", "--format", "json").stdout)
    assert tornado[0]["input"] == "rented_price_ratio"
    drawn = json.loads(run("--monte-carlo", 200, "--seed", 7, "--format", "json").stdout)
    assert [one["seed"] for one in drawn] == [7] * 7
    assert drawn[0]["pays_within_life_ratio"] > 0.9 > drawn[-1]["pays_within_life_ratio"]
    assert "pays within life" in run("--monte-carlo", 200, "--seed", 7).stdout


def test_other_questions_are_answered_alone() -> None:
    within = json.loads(run("--within", 36, "--within", 60, "--format", "json").stdout)
    assert [one["within_months"] for one in within[:2]] == [36, 60]
    upfront = json.loads(run("--upfront", "--format", "json").stdout)
    assert upfront[0]["implied_return_ratio"] == pytest.approx(0.165, abs=0.001)


def test_excel_holds_all_tables_beside_what_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "owning.xlsx"
    printed = run("--monte-carlo", 50, "--excel", path, "--format", "json").stdout
    assert json.loads(printed)[0]["draws"] == 50
    book = openpyxl.load_workbook(path)
    assert {"Assumptions", "Break-even", "Tornado", "Monte Carlo", "Upfront"} <= set(book.sheetnames)
    assert book["Break-even"]["C2"].value == 11


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--tornado", "--upfront"), "found more than one"),
        (("--monte-carlo", "0"), "--monte-carlo"),
        (("--excel", "owning.csv"), "ending with .xlsx"),
    ],
)
def test_wrong_use_is_refused(words: tuple[str, ...], complaint: str) -> None:
    result = run(*words, code=2)
    assert complaint in result.stderr
    assert not result.stdout


def test_a_wrong_file_is_one_message_that_names_the_key(tmp_path: Path) -> None:
    path = tmp_path / "costs.yaml"
    path.write_text(EXAMPLE.read_text().replace("utilisations: [1.0,", "utilisations: [0,"))
    said = run(of=path, code=2).stderr
    assert said.startswith(f"error: {path}: utilisations 1")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("words", "key"), [(["--tornado"], "ranges"), (["--upfront"], "upfront_offers")])
def test_what_the_file_does_not_have_cannot_be_asked_for(tmp_path: Path, words: list[str], key: str) -> None:
    path = tmp_path / "costs.yaml"
    found = yaml.safe_load(EXAMPLE.read_text())
    del found[key]
    path.write_text(yaml.safe_dump(found))
    assert f"{path}: {key}: expected" in run(*words, of=path, code=2).stderr
