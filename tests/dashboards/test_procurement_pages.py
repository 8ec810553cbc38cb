"""The pages of procurement, each run whole without a browser: with facts, and without any."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.dashboards.test_app import metrics, opened

if TYPE_CHECKING:
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.filterwarnings("ignore")
PAGES = ("plan", "commitments", "break_even", "spot")


def texts(test: AppTest) -> str:
    boxes = (test.markdown, test.info, test.success, test.warning, test.caption)
    return "\n".join(one.value for box in boxes for one in box)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_explains_itself_and_its_numbers(page: str, procurement_file: Path) -> None:
    test = opened(page, procurement_file)
    assert test.caption[0].value.endswith(".")
    assert test.dataframe
    assert all(metric.help for metric in test.metric)
    for table in test.dataframe:
        columns = json.loads(table.proto.columns)
        numbers = {name: one for name, one in columns.items() if one.get("type_config", {}).get("type") == "number"}
        assert [name for name, one in numbers.items() if not one.get("help") or one["alignment"] != "right"] == []


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("plan", "gpuledger plan --record"),
        ("plan", "plan.yaml"),
        ("commitments", "gpuledger ingest commitments"),
        ("break_even", "The price book has no owned offer"),
        ("spot", "Still unknown"),
    ],
)
def test_without_facts_a_page_says_what_to_do(page: str, told: str, published_file: Path) -> None:
    assert told in texts(opened(page, published_file))


def test_no_saving_stands_without_its_baseline_spread_and_the_prices_dates(procurement_file: Path) -> None:
    test = opened("plan", procurement_file)
    assert metrics(test) == {
        "Expected cost (USD)": "410,000",
        "Saved: buying nothing new": "20,000",
        "Saved: on demand only": "390,000",
        "Above the best possible": "1.0 %",
        "Off when billed": "0.02",
    }
    told = test.info[0].value
    for part in (
        "buying nothing new",
        "20,000.00 USD",
        "−5,000.00 to 60,000.00",
        "may also cost more",
        "1 September 2026",
    ):
        assert part in told
    assert all("90 %" in metric.help for metric in test.metric if metric.label.startswith("Saved"))


def test_the_plan_lists_what_to_buy_and_lines_that_add_up(procurement_file: Path) -> None:
    test = opened("plan", procurement_file)
    bought = test.dataframe[0].value
    assert bought[["offer_id", "gpu_count", "used_ratio", "break_even_ratio"]].to_numpy().tolist() == [
        ["acme/reserved/1y", 8, 80.0, 50.0]
    ]
    assert test.dataframe[-1].value["cost"].sum() == 410_000
    stresses = next(one.value for one in test.dataframe if "world" in one.value)
    assert stresses["saving"].fillna(0).to_list() == [-49_999.50, 60_000]
    assert stresses["world"].to_list() == ["Demand falls by 30%", "Spot cannot be had"]


def test_the_picture_uses_the_prices_and_the_policy_of_the_plan(procurement_file: Path) -> None:
    test = opened("plan", procurement_file)
    prices = next(one.value for one in test.dataframe if "pays_from_ratio" in one.value)
    rows = prices.set_index("instrument")
    assert rows.loc["Spot", "hourly"] == 2.0  # 1.50 / 0.75
    assert rows.loc["Reservation", "pays_from_ratio"] == 50.0
    assert "8.0 % a year" in texts(test)


def test_unused_money_of_commitments_is_money_and_a_cliff_is_said_in_words(procurement_file: Path) -> None:
    test = opened("commitments", procurement_file)
    assert metrics(test)["Committed, Sep (USD)"] == "11,520"
    assert metrics(test)["Paid for nothing"] == "1,520"
    assert metrics(test)["Used"] == "86.8 %"
    assert metrics(test)["Saved by commitments"] == "5,980"
    told = test.warning[0].value
    # 16 an hour at a rate of 4 buy 4 GPUs, of 16; its money is 16 of 16 + 6 + 480,000 / 35,064.
    assert "March 2027:** 25.0 % of the GPUs and 44.8 % of the money" in told
    assert "4 H100-80GB come back to demand" in told


def test_a_break_even_names_all_it_rests_on_and_follows_its_inputs(procurement_file: Path) -> None:
    test = opened("break_even", procurement_file)
    told = test.info[0].value
    for part in (
        "Against acme/on_demand",
        "70.0 % of its GPU-hours used",
        "money at 10.0 % a year",
        "residual 10.0 % after 4 years",
    ):
        assert part in told
    months = metrics(test)["Pays back after"]
    assert test.number_input(key="own_purchase_per_node").value == 320_000
    test.number_input(key="own_purchase_per_node").set_value(3_000_000.0).run()
    assert metrics(test)["Pays back after"] != months
    assert "never" in test.dataframe[0].value["payback"].to_list()


def test_a_break_even_without_comparator_shows_nothing(procurement_file: Path) -> None:
    test = opened("break_even", procurement_file)
    test.multiselect[0].set_value([]).run()
    assert not test.dataframe
    assert "Choose at least one offer" in test.info[0].value


def test_spot_starts_from_what_happened_and_says_how_sure_that_is(procurement_file: Path) -> None:
    test = opened("spot", procurement_file)
    told = texts(test)
    assert "from 30 interruptions" in told
    assert "95 % confidence" in told
    assert "Spot pays." in told
    assert test.dataframe[0].value["rule"].to_list() == ["Exact optimum", "Daly", "Young"]


def test_what_is_unknown_is_asked_for_and_then_answered(published_file: Path) -> None:
    test = opened("spot", published_file)
    assert "is unknown" in texts(test)
    for number, value in zip((0, 1, -2, -1), (360.0, 5.0, 7.0, 1.5), strict=True):
        test.number_input[number].set_value(value)
    test.run()
    assert not test.exception
    assert metrics(test)["Save every (minutes)"] == "56.7"  # Daly's published 56.71 for 360, 5, 10
