from __future__ import annotations

from datetime import date
from io import StringIO
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console

from models.break_even import break_even, break_even_utilisations, upfront_returns
from models.break_even_inputs import UpfrontOffer
from models.break_even_risk import monte_carlo
from pipelines import break_even_tables as tables
from tests.owning import inputs, offer, span

if TYPE_CHECKING:
    from rich.table import Table

OFFERS = (offer(6.88), offer(2.95, is_committed=True), offer(1.70))
UPFRONT = UpfrontOffer("one payment", 1, 1, 12, "a price list", date(2026, 1, 31))


def text(table: Table) -> list[list[str]]:
    """The words of each line of a table that has any."""
    console = Console(file=StringIO(), width=300)
    console.print(table)
    shown = console.file.getvalue() if isinstance(console.file, StringIO) else ""
    return [line.split() for line in shown.splitlines() if line.strip(" ─")]


def test_the_heading_says_all_that_an_answer_depends_on() -> None:
    said = "\n".join(tables.heading(inputs(comparators=OFFERS)))
    for words in (
        "360,000.00 at the start",
        "Running: 5,330.25 a month: colocation 1,877.41, energy 619.51 from 80.0 % of 10.2 kW assumed",
        "Discount rate 10.0 % a year",
        "residual 30.0 %",
        "delivered GPU-hours over all GPU-hours",
        "2.95: 2.95 USD a GPU-hour, due for all hours; a price list, 2026-07-30",
    ):
        assert words in said


def test_measured_power_is_shown_beside_what_was_assumed() -> None:
    said = "\n".join(tables.heading(inputs(measured_node_watts=6_260.0)))
    assert "energy 475.26 from 6,260 W measured (where 80.0 % of 10.2 kW assumed makes 619.51)" in said


def test_the_grid_marks_what_pays_only_after_the_end_of_life() -> None:
    of = inputs(comparators=(offer(2.95),))
    assert text(tables.grids(of)[0](break_even(of)))[-1] == ["2.95", "35", "47*", "71*", "never"]


def test_what_an_owned_hour_costs_is_one_row_for_all() -> None:
    of = inputs(comparators=OFFERS)
    shown = [text(table(break_even(of))) for table in tables.grids(of)]
    assert ["owned", "2.56", "3.02", "3.66", "5.13"] in [row for one in shown for row in one]
    assert ["2.95", "2.95", "3.47", "4.21", "5.90"] in [row for one in shown for row in one]  # paid for all hours


def test_a_grid_by_horizon_says_where_no_utilisation_pays() -> None:
    of = inputs(comparators=(offer(6.88), offer(1.70)))
    shown = text(tables.by_horizon(break_even_utilisations(of, [36, 120])))
    assert shown[-2:] == [["6.88", "42.0", "%", "24.9", "%"], ["1.7", "never", "never"]]


def test_other_tables_show_ratios_as_per_cents_and_what_never_comes_as_such() -> None:
    of = inputs(comparators=(offer(1.70),), ranges={"load_ratio": span(0.7, 0.9)}, upfront_offers=(UPFRONT,))
    drawn = " ".join(text(tables.listed(monte_carlo(of, 10, 1)))[-1])
    assert "never never never 0.0 %" in drawn
    assert "unbounded 10.0 %" in " ".join(text(tables.listed(upfront_returns(of)))[-1])


def test_a_workbook_has_a_sheet_for_all_that_the_inputs_allow() -> None:
    bare = tables.sheets(inputs(), 10, 1)
    assert list(bare) == ["Assumptions", "Break-even", "Break-even utilisation"]
    of = inputs(ranges={"load_ratio": span(0.7, 0.9)}, upfront_offers=(UPFRONT,))
    assert list(tables.sheets(of, 10, 1)) == [*bare, "Tornado", "Monte Carlo", "Upfront"]
    assert list(tables.sheets(of, None, 1)) == [*bare, "Tornado", "Upfront"]


def test_assumptions_name_every_input_with_its_range_and_source() -> None:
    found = tables.assumptions(inputs(ranges={"load_ratio": span(0.7, 0.9)}))
    load = found.row(by_predicate=pl.col("input") == "load_ratio", named=True)
    assert load == {
        "input": "load_ratio",
        "value": "0.8",
        "low": 0.7,
        "high": 0.9,
        "shape": "triangular",
        "source": "a page",
        "as_of": "2026",
    }
    values = dict(found.select("input", "value").iter_rows())
    assert (values["outlay_per_node"], values["measured_node_watts"]) == ("360000.0", "–")
    assert values["running_per_node_month"] == "5330.252533"
