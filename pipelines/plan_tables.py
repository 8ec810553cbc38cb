"""A plan and a backtest as people read them: tables for a terminal and sheets of a workbook.

Does not belong here: computing any of it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from models.events import PlanLineRecommended, polars_schema
from models.procurement.backtest import POLICIES
from models.procurement.plan import BASELINES
from models.units import format_hours, format_money, format_share, money
from pipelines.planning import Note, plan_lines
from pipelines.terminal import grid

if TYPE_CHECKING:
    from rich.table import Table

    from models.procurement.backtest import Backtest
    from models.procurement.plan import Saving
    from pipelines.planning import Planned

PER_CENT_SHOWN = 4


def lines_frame(planned: Planned) -> pl.DataFrame:
    """The plan's lines as rows: money in the reporting currency, exact."""
    schema = {
        name: dtype for name, dtype in polars_schema(PlanLineRecommended).items() if name not in {"plan_id", "line"}
    }
    frame = pl.DataFrame(plan_lines(planned.plan), schema=schema)
    amounts = [name for name in frame.columns if name.endswith("_micros")]
    return frame.with_columns(
        pl.Series(
            name.removesuffix("_micros"),
            [None if one is None else money(one) for one in frame[name].to_list()],
            pl.Decimal(38, 6),
        )
        for name in amounts
    ).drop(amounts)


def heading(planned: Planned, currency: str) -> list[str]:
    """What plan this is, what it costs, how sure that is, and what it saves against what."""
    made, inputs = planned.plan, planned.inputs
    gap = (
        (made.objective_cost_micros - made.bound_cost_micros) / made.objective_cost_micros
        if made.objective_cost_micros
        else 0.0
    )
    difference = made.repriced_cost_micros - made.expected_cost_micros
    part = f", {difference / made.expected_cost_micros:+.3%}" if made.expected_cost_micros else ""
    repriced = (
        f"; billed by the vendors' own order it is {_money(made.repriced_cost_micros)} ({_signed(difference)}{part})"
    )
    # With a weight on the tail the bound is one of that mean, not of the expected cost.
    weighed = f", weighed {_money(made.objective_cost_micros)}" if inputs.policy.tail_weight_ratio else ""
    return [
        (
            f"Plan {planned.plan_id[:12]} for {made.start_at:%Y-%m-%d} to {made.end_at:%Y-%m-%d}, "
            f"{len(inputs.scenarios.probability)} scenarios, seed {inputs.scenarios.seed}, by {made.method}; all amounts in {currency}"
        ),
        (
            f"Expected cost {_money(made.expected_cost_micros)}, mean of the worst scenarios {_money(made.cvar_cost_micros)}"
            f"{weighed}; no plan costs less than {_money(made.bound_cost_micros)} (gap {gap:.{PER_CENT_SHOWN}%}){repriced}"
        ),
        *(_saving(one, planned) for one in made.savings),
    ]


def _saving(one: Saving, planned: Planned) -> str:
    made = planned.plan
    if one.saving_micros is None or one.baseline_cost_micros is None:
        return f"Against {one.baseline} ({BASELINES[one.baseline]}): no price is known for it"
    share = one.saving_micros / one.baseline_cost_micros if one.baseline_cost_micros else 0.0
    count = len(planned.inputs.scenarios.probability)
    return (
        f"Against {one.baseline} ({BASELINES[one.baseline]}): saves {_money(one.saving_micros)} of "
        f"{_money(one.baseline_cost_micros)} ({share:.1%}), {_money(one.low_micros)} to {_money(one.high_micros)} in 90 % "
        f"of the {count} scenarios; prices of {made.prices_from_at:%Y-%m-%d} to {made.prices_until_at:%Y-%m-%d}"
    )


def lines_table(planned: Planned) -> Table:
    """The plan's lines with their total."""
    body = [
        [
            str(line["line_kind"]),
            str(line["offer_id"] or ""),
            str(line["pool"] or ""),
            f"{line['starts_at']:%Y-%m-%d}",
            f"{line['ends_at']:%Y-%m-%d}",
            _amount(line),
            _money(line["cost_micros"]),
            format_share(line["break_even_ratio"]) if line["line_kind"] == "purchase" else "",
            format_share(line["used_ratio"]) if line["line_kind"] == "purchase" else "",
            str(line["reason"]),
        ]
        for line in plan_lines(planned.plan)
    ]
    columns = [
        ("Line", False), ("Offer", False), ("Pool", False), ("From", False), ("Until", False), ("How much", True),
        ("Cost", True), ("Break-even", True), ("Used", True), ("Why", False),
    ]  # fmt: skip
    total = ["Expected cost", *[""] * 5, _money(planned.plan.expected_cost_micros), "", "", ""]
    return grid(columns, body, total=total)


def _amount(line: dict[str, Any]) -> str:
    if line["gpu_count"] is not None:
        return f"{line['gpu_count']:,} GPUs"
    if line["hourly_commitment_micros"] is not None:
        return f"{_money(line['hourly_commitment_micros'])} an hour"
    hours = line["gpu_hours_quantity"]
    return f"{format_hours(hours)} GPU-hours" if hours is not None else ""


def _money(micros: int | None) -> str:
    return format_money(None if micros is None else money(micros))


def _signed(micros: int) -> str:
    return f"{'+' if micros >= 0 else ''}{_money(micros)}"


def as_object(planned: Planned, currency: str) -> dict[str, Any]:
    """The whole plan for JSON: figures, lines, savings, notes."""
    made = planned.plan
    return {
        "plan_id": planned.plan_id,
        "currency": currency,
        "horizon_start_at": made.start_at,
        "horizon_end_at": made.end_at,
        "scenario_count": len(planned.inputs.scenarios.probability),
        "seed": planned.inputs.scenarios.seed,
        "solved_by": made.method,
        "expected_cost": money(made.expected_cost_micros),
        "cvar_cost": money(made.cvar_cost_micros),
        "objective_cost": money(made.objective_cost_micros),
        "bound_cost": money(made.bound_cost_micros),
        "repriced_cost": money(made.repriced_cost_micros),
        "prices_from_at": made.prices_from_at,
        "prices_until_at": made.prices_until_at,
        "lines": lines_frame(planned).to_dicts(),
        "savings": savings_frame(planned).to_dicts(),
        "stresses": stresses_frame(planned).to_dicts(),
        "notes": [note._asdict() for note in planned.notes()],
    }


def savings_frame(planned: Planned) -> pl.DataFrame:
    """What the plan saves against each baseline, with its spread."""
    names = ("baseline_cost_micros", "saving_micros", "low_micros", "high_micros")
    rows = [
        {
            "baseline": one.baseline,
            "meaning": BASELINES[one.baseline],
            **{
                name.removesuffix("_micros"): None if (found := getattr(one, name)) is None else money(found)
                for name in names
            },
        }
        for one in planned.plan.savings
    ]
    decimals = {name.removesuffix("_micros"): pl.Decimal(38, 6) for name in names}
    return pl.DataFrame(rows, schema_overrides=decimals)


def stresses_frame(planned: Planned) -> pl.DataFrame:
    """What the purchases would cost in other worlds, and what they would save or lose there."""
    rows = [
        {
            "world": one.name,
            "cost": money(one.cost_micros),
            "without": money(one.without_micros),
            "saving": money(-one.loss_micros),
        }
        for one in planned.plan.stresses
    ]
    schema: dict[str, Any] = {"world": pl.String, **dict.fromkeys(("cost", "without", "saving"), pl.Decimal(38, 6))}
    return pl.DataFrame(rows, schema=schema)


def stresses_table(stresses: pl.DataFrame) -> Table:
    """The same for people."""
    columns = [
        ("If …", False),
        ("With the purchases", True),
        ("Had nothing been bought", True),
        ("Saved by them", True),
    ]
    body = [[row[0], *map(format_money, row[1:])] for row in stresses.iter_rows()]
    return grid(columns, body)


def plan_sheets(planned: Planned, currency: str) -> dict[str, pl.DataFrame]:
    """The plan as sheets of a workbook."""
    notes = pl.DataFrame(planned.notes(), schema=dict.fromkeys(Note._fields, pl.String), orient="row")
    head = pl.DataFrame({f"Plan, all amounts in {currency}": heading(planned, currency)})
    return {
        "Plan": head,
        "Lines": lines_frame(planned),
        "Savings": savings_frame(planned),
        "Other worlds": stresses_frame(planned),
        "Notes": notes,
    }


def backtest_table(tested: Backtest) -> Table:
    """One row a way of choosing, the least mean regret first."""
    body = [
        [
            row["policy"],
            format_share(row["regret_ratio"]),
            f"± {format_share(row['regret_error_ratio'])}" if row["regret_error_ratio"] is not None else "–",
            format_share(row["regret_least_ratio"]),
            format_share(row["regret_most_ratio"]),
            _money(row["cost_micros"]),
            format_share(row["savings_ratio"]),
            format_share(row["over_commitment_ratio"]),
            format_hours(Decimal(str(round(row["under_commitment_gpu_hours"], 1)))),
            POLICIES[row["policy"]] + (f" ({row['note']})" if row["note"] else ""),
        ]
        for row in tested.summary.sort("regret_ratio", nulls_last=True).iter_rows(named=True)
    ]
    columns = [
        ("Policy", False), ("Mean regret", True), ("Error", True), ("Least", True), ("Most", True), ("Cost of all folds", True),
        ("Saved of list", True), ("Committed unused", True), ("On demand too much (GPU-hours)", True), ("What it does", False),
    ]  # fmt: skip
    return grid(columns, body)


def backtest_sheets(tested: Backtest, sentences: list[str]) -> dict[str, pl.DataFrame]:
    """A backtest as sheets of a workbook."""
    return {
        "Verdict": pl.DataFrame({"verdict": sentences}),
        "Summary": tested.summary,
        "Folds": tested.folds,
        "Value of knowing": tested.values,
    }
