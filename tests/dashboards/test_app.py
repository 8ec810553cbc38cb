"""Each page is run whole, without a browser, on the small published file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.filterwarnings("ignore")
DASHBOARDS = Path(__file__).resolve().parents[2] / "dashboards"
PAGES = ("chargeback", "gpu_time", "proof", "findings")


def opened(page: str, path: Path, **query: str) -> AppTest:
    test = AppTest.from_file(DASHBOARDS / "app_pages" / f"{page}.py")
    test.session_state["published_path"] = path
    for name, value in query.items():
        test.query_params[name] = value
    test.run(timeout=30)
    assert not test.exception
    return test


def metrics(test: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in test.metric}


def test_without_a_file_the_app_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "none.duckdb")])
    test = AppTest.from_file(DASHBOARDS / "app.py").run(timeout=30)
    assert not test.exception
    assert "gpuledger demo" in test.info[0].value


def test_the_app_opens_on_the_chargeback_and_says_what_it_shows(
    published_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", str(published_file)])
    test = AppTest.from_file(DASHBOARDS / "app.py").run(timeout=30)
    assert not test.exception
    assert metrics(test)["Billed (USD)"] == "33,573.77"
    assert test.caption[-1].value == (
        "Facts of 1 July 2026 to 30 September 2026, as recorded until 2 October 2026, 00:13 UTC (batch 10). "
        "All amounts in USD; all days are UTC days."
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_page_explains_itself_and_its_numbers(page: str, published_file: Path) -> None:
    test = opened(page, published_file)
    assert test.caption[0].value.endswith(".")
    assert test.dataframe
    assert all(metric.help for metric in test.metric)
    for table in test.dataframe:
        columns = json.loads(table.proto.columns)
        numbers = {name: one for name, one in columns.items() if one.get("type_config", {}).get("type") == "number"}
        assert [name for name, one in numbers.items() if not one.get("help")] == []


def test_the_chargeback_of_a_closed_month_adds_up_and_tells_of_later_corrections(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08")
    assert metrics(test) == {
        "Billed (USD)": "33,573.77",
        "Charged to teams": "14,234.55",
        "Held by the platform": "19,339.22",
        "Corrections": "30.00",
        "Idle share": "26.4 %",
    }
    assert "change August 2026 by −300.00 USD" in test.info[0].value
    assert any("**1,830.00 USD higher** than in July 2026" in one.value for one in test.markdown)


def test_the_first_month_has_nothing_to_compare_with(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-07")
    assert not any("Why did it change?" in one.value for one in test.markdown)


def test_the_address_opens_a_team_and_breadcrumbs_lead_back(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08", unit="Research", team="Vision")
    assert test.dataframe[0].value["name"].to_list() == ["foundation", "segmentation"]
    assert [button.label for button in test.button if button.key.startswith("open_")] == [
        "All business units",
        "Research",
    ]
    test.button(key="open_1").click().run()
    assert "team" not in test.query_params
    assert test.dataframe[0].value["name"].to_list() == ["Vision", "Speech"]


def test_a_project_shows_its_runs_with_user_model_and_state(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08", unit="Research", team="Vision", project="foundation")
    runs = test.dataframe[0].value
    assert len(runs) == 31
    assert {"user_name", "gpu_model", "final_state", "gpu_hours", "cost"} <= set(runs.columns)


def test_a_project_without_a_name_can_be_opened(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08", unit="Research", team="Speech", project="(no project)")
    assert metrics(test)["Idle share"] == "0.0 %"
    assert len(test.dataframe[0].value) == 26


def test_the_platform_shows_what_it_holds_instead_of_teams(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08", unit="Platform")
    assert "GPUs down" in test.dataframe[0].value["kind"].to_list()


def test_a_unit_without_cost_in_the_month_says_so(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-07", unit="Unassigned")
    assert "has no cost in July 2026" in test.info[-1].value


def test_gpu_time_can_be_of_one_cluster(published_file: Path) -> None:
    test = opened("gpu_time", published_file, month="2026-08")
    assert metrics(test)["Capacity (GPU-hours)"] == "11,904.0"
    test.segmented_control[0].set_value("beta").run()
    assert metrics(test)["Capacity (GPU-hours)"] == "2,976.0"
    assert metrics(test)["Idle share"] == "–"


def test_the_proof_is_a_sentence(published_file: Path) -> None:
    test = opened("proof", published_file)
    assert test.success[0].value.startswith("**Every cent of 98,651.31 USD is accounted for:**")
    assert "3 months and 6 bills" in test.success[0].value
    assert not test.error
    months, bills = test.dataframe[0].value, test.dataframe[1].value
    for rows, whole, parts in (
        (months, "billed", ["charged", "platform_held", "unmatched"]),
        (bills, "effective", ["on_nodes", "unused_commitment", "shared", "unmatched"]),
    ):
        assert (rows[whole] - rows[parts].sum(axis=1)).abs().max() < 0.001


def test_the_change_tells_what_drives_it_largest_first(published_file: Path) -> None:
    test = opened("chargeback", published_file, month="2026-08")
    told = next(one.value for one in test.markdown if "higher** than in July 2026" in one.value)
    assert told.endswith("corrections of earlier months (+30.00 USD).")
    assert (
        "Why: dearer GPU-hours, by price or GPU mix (+784.67 USD); more use, at the prices before (+549.36 USD)" in told
    )


def test_findings_say_what_to_do_and_keep_rejected_rows(published_file: Path) -> None:
    test = opened("findings", published_file)
    assert metrics(test) == {"Errors": "0", "Warnings": "6", "Notes": "5"}
    assert any("Add the account to the organisation file" in box.value for box in test.warning)
    assert test.dataframe[-1].value["raw_text"].to_list() == ["17|gpu|Unkown"]
