"""From a ledger to a plan and back into the ledger: the same file gives the same plan, which is recorded once and adds up."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.errors import UsageError
from models.events import PlanLineRecommended, PlanNoted, PlanRecommended, PlanSavingEstimated, PlanStressEstimated
from models.procurement.plan import plan
from pipelines.plan_settings import read_plan_settings
from pipelines.planning import as_events, make_plan, plan_lines, planned_from_ledger, record
from pipelines.publish import query
from tests.ledgers import Book, at
from tests.plans import LAST, brought_up, commitment, ledger, write_plan

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.planning import Planned
    from pipelines.settings import Settings

MADE = at(6, 9, month=11)


def planned(settings: Settings, **changes: Any) -> Planned:
    return planned_from_ledger(settings, read_plan_settings(write_plan(settings.home, **changes)))


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return ledger(tmp_path_factory.mktemp("books"))


@pytest.fixture(scope="module")
def made(books: Settings) -> Planned:
    return planned(books)


@pytest.fixture(scope="module")
def recorded(made: Planned, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The plan is in the log, and a second one without spot, made a day later."""
    settings = ledger(tmp_path_factory.mktemp("recorded"))
    assert record(settings, made, now=lambda: MADE)
    without = planned(settings, policy={"spot_share_ratio": {}})
    assert record(settings, without, now=lambda: MADE.replace(day=7))
    brought_up(settings)
    write_plan(settings.home)
    return settings


def test_inference_that_runs_at_all_hours_is_reserved_and_the_rest_is_not(made: Planned) -> None:
    """Reserved pays from 4/10 of the hours on. 4 GPUs are wanted at nearly all hours, of which 2 are held; the 8 of working days for
    12 x 5 / 168 = 36 % of them, and of these spot takes 80 %.
    """
    assert [(one.offer.offer_id, one.gpus, one.break_even_ratio) for one in made.plan.lines] == [("reserved", 2.0, 0.4)]
    kinds = {line["line_kind"]: line for line in plan_lines(made.plan)}
    assert set(kinds) == {"purchase", "held", "spot", "on_demand"}
    hours = 2 * 730
    assert kinds["purchase"]["cost_micros"] == 2 * 4 * hours * 10**6
    assert kinds["held"]["cost_micros"] == 2 * 5 * 57 * 24 * 10**6  # from 5 November to the end of the year
    spot = kinds["spot"]
    assert float(spot["gpu_hours_quantity"]) == pytest.approx(
        0.8 * made.inputs.scenarios.gpus["deferrable"].mean(axis=0).sum()
    )
    assert spot["cost_micros"] / 1e6 == pytest.approx(float(spot["gpu_hours_quantity"]) * 3 / 0.85)


def test_lines_add_up_to_the_plan(made: Planned) -> None:
    assert sum(line["cost_micros"] for line in plan_lines(made.plan)) == made.plan.expected_cost_micros


def test_the_same_file_and_settings_give_the_same_plan(books: Settings, made: Planned) -> None:
    again = planned(books)
    assert (again.plan_id, plan_lines(again.plan)) == (made.plan_id, plan_lines(made.plan))
    first, second = (as_events(one, made_at=MADE) for one in (made, again))
    for event, frame in first.events.items():
        assert frame.equals(second.events[event])


def test_another_price_seed_or_policy_is_another_plan(books: Settings, made: Planned) -> None:
    cheaper = [
        replace(one, micros_per_gpu_hour={"h100": one.micros_per_gpu_hour["h100"] - 1}) for one in made.inputs.offers
    ]
    others = {make_plan(replace(made.inputs, offers=cheaper)).plan_id}
    others |= {planned(books, **{name: changed}).plan_id for name, changed in OTHERWISE.items()}
    assert len(others | {made.plan_id}) == 2 + len(OTHERWISE)


OTHERWISE: dict[str, dict[str, Any]] = {
    "demand": {"seed": 8},
    "policy": {"discount_ratio": 0.1},
    "prices": {"without": ["spot"]},
}


def test_a_plan_is_recorded_once(recorded: Settings, made: Planned) -> None:
    assert not record(recorded, made, now=lambda: MADE.replace(day=8))
    again = planned(recorded)
    assert (again.plan_id, again.inputs.log_batch_id > made.inputs.log_batch_id) == (made.plan_id, True)
    assert not record(recorded, again)


def test_a_recorded_plan_is_published_and_adds_up(recorded: Settings, made: Planned) -> None:
    plans = query(
        recorded, "select plan_id, made_at, is_latest, expected_cost, horizon_start_at from marts.plan order by made_at"
    )
    assert plans["made_at"].to_list() == [MADE, MADE.replace(day=7)]
    assert plans["is_latest"].to_list() == [False, True]
    assert plans["horizon_start_at"].to_list() == [LAST, LAST]
    first = plans.row(0, named=True)
    assert (first["plan_id"], first["expected_cost"]) == (made.plan_id, Decimal(made.plan.expected_cost_micros) / 10**6)
    sums = query(recorded, "select plan_id, sum(cost) as cost from marts.plan_line group by plan_id")
    assert dict(sums.rows()) == dict(plans.select("plan_id", "expected_cost").rows())


def test_a_published_plan_says_all_that_the_plan_says(recorded: Settings, made: Planned) -> None:
    def of(table: str, columns: str) -> list[tuple[Any, ...]]:
        found = query(recorded, f"select {columns} from marts.{table} where plan_id = '{made.plan_id}' order by all")
        return found.rows()

    lines = sorted((number, line["line_kind"], line["reason"]) for number, line in enumerate(plan_lines(made.plan), 1))
    assert of("plan_line", "line, line_kind, reason") == lines
    notes = [tuple(row[1:]) for row in of("plan_note", "note, note_kind, text, setting, value")]
    assert notes == [tuple(note) for note in made.notes()]
    assert of("plan_stress", "world, saving") == sorted(
        (one.name, Decimal(-one.loss_micros) / 10**6) for one in made.plan.stresses
    )
    assert of("plan_saving", "baseline, saving, low_saving, high_saving") == sorted(
        (
            one.baseline,
            *(Decimal(micros or 0) / 10**6 for micros in (one.saving_micros, one.low_micros, one.high_micros)),
        )
        for one in made.plan.savings
    )


@pytest.mark.parametrize("added", [1, -1])
def test_a_line_changed_by_hand_breaks_the_build(made: Planned, added: int) -> None:
    events = as_events(made, made_at=MADE).events
    facts = [(event, row) for event, frame in events.items() for row in frame.to_dicts()]
    assert Book(*facts).one("SELECT count(*) FROM marts.plan_line") == len(plan_lines(made.plan))
    changed = events[PlanLineRecommended].with_columns(
        pl.col("cost_micros") + pl.when(pl.col("line") == 1).then(added).otherwise(0)
    )
    events = {**events, PlanLineRecommended: changed}
    with pytest.raises(AssertionError, match="lines add up to the plan does not hold"):
        Book(*((event, row) for event, frame in events.items() for row in frame.to_dicts())).project("marts.plan_line")


def test_a_cost_below_the_bound_breaks_the_build(made: Planned) -> None:
    [row] = as_events(made, made_at=MADE).events[PlanRecommended].to_dicts()
    low = {**row, "objective_cost_micros": row["bound_cost_micros"] * 99 // 100}
    with pytest.raises(AssertionError, match="nothing costs less than the bound does not hold"):
        Book((PlanRecommended, low)).project("marts.plan")


def test_notes_say_warnings_then_every_assumption_by_its_key(made: Planned) -> None:
    kinds = [note.note_kind for note in made.notes()]
    assert kinds == sorted(kinds, key=["warning", "assumption"].index)
    texts = [str(note) for note in made.notes()]
    assert made.inputs.basis in texts
    assert "discount_ratio 0.0: cost of capital a year, at which later payments are discounted" in texts
    assert "energy_amount_per_kwh 0.08: price of energy for owned GPUs" in texts


def test_each_event_counts_as_a_row_that_was_read(made: Planned) -> None:
    chunk = as_events(made, made_at=MADE)
    assert chunk.rows_read == sum(frame.height for frame in chunk.events.values())
    assert set(chunk.events) == {
        PlanRecommended,
        PlanSavingEstimated,
        PlanLineRecommended,
        PlanNoted,
        PlanStressEstimated,
    }


def test_gpus_that_are_no_whole_number_are_said_exactly(made: Planned) -> None:
    """With half a GPU wanted beside 4 at all hours, and GPUs that can be bought in any part."""
    inputs = made.inputs
    wanted = {name: gpus + (0.5 if name == "inference" else 0) for name, gpus in inputs.scenarios.gpus.items()}
    free = replace(inputs.policy, whole_nodes=False)
    found = plan(replace(inputs.scenarios, gpus=wanted), inputs.pools, inputs.offers, inputs.portfolio, free)
    [line] = [one for one in plan_lines(found) if one["line_kind"] == "purchase"]
    assert line["reason"].endswith("; exactly 2.50 GPUs")
    assert line["cost_micros"] == round(2.5 * 4 * 1460 * 10**6)


def test_where_what_is_held_is_enough_and_paid_for_there_is_no_line(tmp_path: Path) -> None:
    held = commitment("r-2", gpu_count=16, hourly_amount=Decimal(0), ends_at=at(1, month=12).replace(year=2027))
    found = planned(ledger(tmp_path, held, commitment("r-1", state="cancelled")))
    assert (plan_lines(found.plan), found.plan.expected_cost_micros) == ([], 0)
    assert as_events(found, made_at=MADE).events[PlanLineRecommended].is_empty()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"policy": {"inference_availability_ratio": 0.99}},
            "capacity held ready for inference in h100, hours 0 to 1,368 needs at least 5 GPUs, but 0 can be reached (5 short)",
        ),
        (
            {"prices": {"without": ["on_demand", "spot", "reserved"]}},
            "no price of any instrument for h100: ingest prices",
        ),
    ],
)
def test_what_cannot_be_planned_says_why(books: Settings, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        planned(books, **changes)
    assert complaint in str(refused.value)
