"""A plan and a backtest as people read them: exact amounts, and no saving without its baseline, spread and prices' dates."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from models.demand import Scenarios
from models.procurement.backtest import backtest, rolling_origins, verdict
from models.procurement.plan import BASELINES
from models.procurement.policy import PlanPolicy
from pipelines.plan_inputs import Inputs
from pipelines.plan_tables import (
    as_object,
    backtest_sheets,
    backtest_table,
    heading,
    lines_frame,
    lines_table,
    plan_sheets,
    savings_frame,
)
from pipelines.planning import Planned, make_plan
from tests.markets import AT, commitment, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from rich.table import Table

    from models.prices import Offer

HOURS = 30 * 24
DAY = [2.0] * 8 + [8.0] * 12 + [2.0] * 4


def text(table: Table) -> str:
    """A table as it is printed."""
    console = Console(width=1_000)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def inputs(*offers: Offer, level: float = 1.0, **changes: object) -> Inputs:
    """Two scenarios of a month, the second a tenth higher; what is wanted all day is rigid, the rest can be put off."""
    wanted = np.tile(np.array(DAY) * level, HOURS // 24)[None, :, None] * np.array([1.0, 1.1])[:, None, None]
    rigid = np.minimum(wanted, 2.0 * level)
    scenarios = Scenarios(
        start_at=AT,
        pools=("h100",),
        probability=np.array([0.5, 0.5]),
        gpus={"rigid": rigid, "deferrable": wanted - rigid},
        seed=7,
    )
    history = Scenarios(start_at=AT, pools=("h100",), probability=np.ones(1), gpus={"rigid": wanted[:1]})
    known = Inputs(
        at=AT,
        history=history,
        scenarios=scenarios,
        pools=[pool()],
        offers=list(offers),
        portfolio=[],
        policy=PlanPolicy(discount_ratio=0.0, later_use_ratio=1.0),
        recent_gpus={},
        basis="demand is drawn from 30 days",
        stated=(("demand.recent_days", "none", "no cap"),),
        notes=(),
        log_batch_id=3,
        policy_digest="p",
    )
    return replace(known, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def planned() -> Planned:
    """2 GPUs are wanted all day, and of 6 more for half of it spot may serve 4.8: so the third is used half the time, and pays."""
    return make_plan(inputs(on_demand(10), spot(3), reserved(4)))


def test_amounts_are_decimals_of_six_places_that_add_up(planned: Planned) -> None:
    frame = lines_frame(planned)
    assert frame.schema["cost"] == pl.Decimal(38, 6)
    assert not [name for name in frame.columns if name.endswith("_micros")]
    assert frame["cost"].sum() == Decimal(planned.plan.expected_cost_micros).scaleb(-6)
    assert frame["line_kind"].to_list() == ["purchase", "spot", "on_demand"]
    assert frame.row(0, named=True)["cost"] == Decimal(3 * 4 * HOURS)


def test_the_object_has_the_plans_own_figures(planned: Planned) -> None:
    made, found = planned.plan, as_object(planned, "EUR")
    assert (found["plan_id"], found["currency"], found["seed"], found["scenario_count"]) == (
        planned.plan_id,
        "EUR",
        7,
        2,
    )
    for name in ("expected_cost", "cvar_cost", "objective_cost", "bound_cost", "repriced_cost"):
        assert found[name] == Decimal(getattr(made, f"{name}_micros")).scaleb(-6)
    assert sum(line["cost"] for line in found["lines"]) == found["expected_cost"]
    assert [one["baseline"] for one in found["savings"]] == list(BASELINES)
    assert {one["note_kind"] for one in found["notes"]} == {"assumption"}


def test_no_saving_is_printed_without_its_baseline_its_spread_and_the_prices_dates(planned: Planned) -> None:
    said = [line for line in heading(planned, "USD") if "saves" in line]
    assert len(said) == len(BASELINES)
    for line, one in zip(said, planned.plan.savings, strict=True):
        assert line.startswith(f"Against {one.baseline} ({BASELINES[one.baseline]}): saves ")
        assert re.search(r"saves [\d,.]+ of [\d,.]+ \(\d+\.\d%\)", line)
        assert re.search(r"[\d,.]+ to [\d,.]+ in 90 % of the \d+ scenarios; prices of 2026-11-01 to 2026-11-01$", line)
    printed = text(lines_table(planned)) + "\n".join(set(heading(planned, "USD")) - set(said))
    assert "sav" not in printed.lower()


def test_the_saving_is_what_the_baseline_costs_more(planned: Planned) -> None:
    """All on demand: 10 for each GPU-hour wanted, in the mean of both scenarios."""
    gpu_hours = sum(DAY) * 30 * 1.05
    saved = savings_frame(planned).row(0, named=True)
    assert saved["baseline_cost"] == Decimal(str(round(10 * gpu_hours, 6)))
    assert saved["saving"] == saved["baseline_cost"] - Decimal(planned.plan.expected_cost_micros).scaleb(-6)
    assert saved["low"] < saved["saving"] < saved["high"]


def test_a_baseline_without_a_price_saves_nothing_that_is_known() -> None:
    found = make_plan(inputs(reserved(4)))
    [line] = [one for one in heading(found, "USD") if "all_on_demand" in one]
    assert line.endswith("no price is known for it")
    assert savings_frame(found).row(0)[2:] == (None, None, None, None)


def test_the_heading_says_how_sure_the_cost_is(planned: Planned) -> None:
    first, second, *_ = heading(planned, "USD")
    assert first == (
        f"Plan {planned.plan_id[:12]} for 2026-11-01 to 2026-12-01, 2 scenarios, seed 7, by {planned.plan.method}; all amounts in USD"
    )
    assert "mean of the worst scenarios" in second
    assert "no plan costs less than" in second
    assert "billed by the vendors' own order it is" in second


def test_the_table_shows_each_line_with_its_reason_and_the_total(planned: Planned) -> None:
    shown = text(lines_table(planned))
    assert re.search(r"purchase +reserved_1y +h100 +2026-11-01 +2027-11-01 +3 GPUs +8,640\.00 +40\.0 % +50\.0 %", shown)
    assert re.search(r"Expected cost +" + re.escape(f"{planned.plan.expected_cost_micros / 1e6:,.2f}"), shown)
    assert "GPU-hours that nothing cheaper covers" in shown
    assert re.search(r"spot +h100 .* GPU-hours", shown)


def test_a_commitment_in_money_is_so_much_an_hour() -> None:
    """6 against 10: what is wanted in 60 % of the hours pays. That is 2.2 GPUs: always in one scenario, half of the day in the other."""
    found = make_plan(inputs(on_demand(10), savings_plan({"h100": 6})))
    assert re.search(r"savings_plan_1y .* 13\.20 an hour ", text(lines_table(found)))


def test_a_plan_without_lines_has_the_same_columns(planned: Planned) -> None:
    held = commitment("r", AT, AT.replace(year=2028), gpus=20, rate_micros_per_gpu_hour={"h100": 0})
    free = make_plan(inputs(on_demand(10), portfolio=[held]))
    assert free.plan.expected_cost_micros == 0
    assert lines_frame(free).schema == lines_frame(planned).schema
    assert lines_frame(free).is_empty()
    assert re.search(r"Expected cost +0\.00", text(lines_table(free)))
    assert as_object(free, "USD")["lines"] == []
    assert "(gap 0.0000%)" in heading(free, "USD")[1]


def test_hours_are_exact_however_many_places_they_have() -> None:
    found = make_plan(inputs(on_demand(10), level=1 / 7))
    [hours] = lines_frame(found)["gpu_hours_quantity"].to_list()
    assert hours == Decimal(str(round(sum(DAY) / 7 * 30 * 1.05, 6)))


def test_the_workbook_has_the_plan_its_lines_savings_and_notes(planned: Planned) -> None:
    sheets = plan_sheets(planned, "USD")
    assert list(sheets) == ["Plan", "Lines", "Savings", "Other worlds", "Notes"]
    assert sheets["Plan"].columns == ["Plan, all amounts in USD"]
    assert sheets["Notes"].rows() == [tuple(note) for note in planned.notes()]


def test_a_backtest_shows_the_best_first_with_its_error() -> None:
    known = inputs(on_demand(10), reserved(4))
    folds = {"window_hours": 168, "look_back_hours": 336, "scenario_count": 2, "seed": 1}
    origins = rolling_origins(known.history, first_hours=336, step_hours=168, window_hours=168)
    tested = backtest(known.history, known.pools, known.offers, [], known.policy, origins=origins, **folds)
    shown = text(backtest_table(tested))
    order = [line.split()[0] for line in shown.splitlines() if re.match(r" \w+ +\d", line)]
    ranked = tested.summary.sort("regret_ratio", nulls_last=True)
    assert order == ranked["policy"].to_list()
    assert order[0] in {"hindsight", "plan"}
    assert re.search(r"on_demand_only +\d+\.\d % +± 0\.0 %", shown)
    sheets = backtest_sheets(tested, verdict(tested))
    assert list(sheets) == ["Verdict", "Summary", "Folds", "Value of knowing"]
    assert sheets["Folds"].height == len(origins) * tested.summary.height


def test_a_plan_made_dearer_by_the_vendors_order_says_by_how_much(planned: Planned) -> None:
    made = planned.plan
    dearer = replace(planned, plan=replace(made, repriced_cost_micros=made.expected_cost_micros * 101 // 100))
    assert "+1.000%" in heading(dearer, "USD")[1]
