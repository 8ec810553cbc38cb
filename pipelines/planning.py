"""From inputs to a plan, and from a plan to the events that record it: thin, all thinking is ``models``'.

A plan is made from what the published file shows and nothing else, so the same file and settings give the same plan,
and its id is the digest of both. Does not belong here: printing, and what is recommended.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from models.events import (
    PlanLineRecommended,
    PlanNoted,
    PlanRecommended,
    PlanSavingEstimated,
    PlanStressEstimated,
    polars_schema,
)
from models.procurement.plan import Plan, plan
from models.procurement.policy import assumptions
from pipelines.lake import Lake
from pipelines.plan_inputs import Inputs, read_inputs
from pipelines.publish import query
from pipelines.sources.base import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.plan_settings import PlanSettings
    from pipelines.settings import Settings

SOURCE = "plan"
"""Source of the batches that hold plans."""


class Note(NamedTuple):
    """A warning, or an assumption: in words, and for a key of plan.yaml with its value."""

    note_kind: str
    text: str
    setting: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        """As a line."""
        return self.text if self.setting is None else f"{self.setting} {self.value}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with what it was made from.

    Attributes:
      plan_id: Digest of the inputs.
      inputs: What it was made from.
      plan: The recommendation.
    """

    plan_id: str
    inputs: Inputs
    plan: Plan

    def notes(self) -> list[Note]:
        """All that a reader must know: warnings, then what is assumed."""
        warned = [Note("warning", text) for text in (*self.inputs.notes, *self.plan.notes)]
        assumed = [
            Note("assumption", doc, setting, value)
            for setting, value, doc in (*self.inputs.stated, *assumptions(self.inputs.policy))
        ]
        return [*warned, Note("assumption", self.inputs.basis), *assumed]


def make_plan(inputs: Inputs) -> Planned:
    """Plan from inputs; the same inputs give the same plan.

    Raises:
      UsageError: Nothing can be planned from them.
      UsageError: The policy's limits cannot all be kept.
    """
    made = plan(
        inputs.scenarios,
        inputs.pools,
        inputs.offers,
        inputs.portfolio,
        inputs.policy,
        recent_gpus=inputs.recent_gpus,
    )
    return Planned(plan_id=inputs.digest(), inputs=inputs, plan=made)


def record(
    settings: Settings,
    planned: Planned,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    on_wait: Callable[[str], None] = lambda _message: None,
) -> bool:
    """Append a plan to the log as a decision; False when the log holds it already."""
    with Lake(settings, now=now, on_wait=on_wait) as lake:
        known = lake.con.execute(
            "SELECT 1 FROM lake.events.plan_recommended WHERE plan_id = ?", [planned.plan_id]
        ).fetchone()
        if known is not None:
            return False
        chunk = as_events(planned, made_at=now().replace(microsecond=0))
        lake.append(SOURCE, f"plan {planned.plan_id[:12]} from {planned.inputs.at:%Y-%m-%d}", iter([chunk]))
    return True


def as_events(planned: Planned, *, made_at: datetime) -> Chunk:
    """A plan as the events that record it; its lines add up to its expected cost."""
    made, inputs = planned.plan, planned.inputs
    recommended = {
        "plan_id": planned.plan_id,
        "made_at": made_at,
        "inputs_digest": planned.plan_id,
        "log_batch_id": inputs.log_batch_id,
        "policy_digest": inputs.policy_digest,
        "horizon_start_at": made.start_at,
        "horizon_end_at": made.end_at,
        "seed": inputs.scenarios.seed,
        "scenario_count": len(inputs.scenarios.probability),
        "expected_cost_micros": made.expected_cost_micros,
        "cvar_cost_micros": made.cvar_cost_micros,
        "objective_cost_micros": made.objective_cost_micros,
        "bound_cost_micros": made.bound_cost_micros,
        "repriced_cost_micros": made.repriced_cost_micros,
        "solved_by": made.method,
        "prices_from_at": made.prices_from_at,
        "prices_until_at": made.prices_until_at,
    }
    savings = [{"plan_id": planned.plan_id, **asdict(one)} for one in made.savings]
    stresses = [
        {
            "plan_id": planned.plan_id,
            "world": one.name,
            "cost_micros": one.cost_micros,
            "without_micros": one.without_micros,
        }
        for one in made.stresses
    ]
    notes = [
        {"plan_id": planned.plan_id, "note": number, **note._asdict()}
        for number, note in enumerate(planned.notes(), start=1)
    ]
    lines = [
        {"plan_id": planned.plan_id, "line": number, **line} for number, line in enumerate(plan_lines(made), start=1)
    ]
    frame = partial(pl.DataFrame, infer_schema_length=None)
    return Chunk(
        {
            PlanRecommended: frame([recommended], schema=polars_schema(PlanRecommended)),
            PlanSavingEstimated: frame(savings, schema=polars_schema(PlanSavingEstimated)),
            PlanLineRecommended: frame(lines, schema=polars_schema(PlanLineRecommended)),
            PlanNoted: frame(notes, schema=polars_schema(PlanNoted)),
            PlanStressEstimated: frame(stresses, schema=polars_schema(PlanStressEstimated)),
        },
        rows_read=1 + len(savings) + len(lines) + len(notes) + len(stresses),
    )


_USED_BY_THE_HOUR = {
    "spot": "interruptible GPU-hours, at their price divided by the useful part",
    "on_demand": "GPU-hours that nothing cheaper covers",
    "shortfall": "GPU-hours that nothing serves, at the price of going without",
}


def plan_lines(made: Plan) -> list[dict[str, Any]]:
    """Lines of a plan as rows: purchases, what is held, and what is used by the hour; costs add up to the plan's."""
    lines: list[dict[str, Any]] = [
        {
            "line_kind": "purchase",
            "offer_id": one.offer.offer_id,
            "pool": ", ".join(one.pools),
            "starts_at": one.starts_at,
            "ends_at": one.ends_at,
            "gpu_count": None if one.gpus is None else round(one.gpus),
            "hourly_commitment_micros": one.hourly_commitment_micros,
            "gpu_hours_quantity": None,
            "cost_micros": one.cost_micros,
            "upfront_micros": one.upfront_micros,
            "committed_micros": one.committed_micros,
            "break_even_ratio": one.break_even_ratio,
            "used_ratio": one.used_ratio,
            "reason": one.reason
            if one.gpus is None or one.gpus.is_integer()
            else f"{one.reason}; exactly {one.gpus:,.2f} GPUs",
        }
        for one in made.lines
    ]
    plain = dict.fromkeys(lines[0] if lines else polars_schema(PlanLineRecommended).names()[2:])
    window = {"starts_at": made.start_at, "ends_at": made.end_at}
    if made.held_cost_micros:
        said = "what is held or queued already falls due, whatever is bought"
        lines.append(plain | window | {"line_kind": "held", "cost_micros": made.held_cost_micros, "reason": said})
    for row in made.dispatch.filter(pl.col("gpu_hours") > 0).iter_rows(named=True):
        if row["channel"] in _USED_BY_THE_HOUR:
            about = {
                "line_kind": row["channel"],
                "pool": row["pool"],
                "gpu_hours_quantity": Decimal(str(round(row["gpu_hours"], 6))),
                "cost_micros": row["cost_micros"],
                "reason": _USED_BY_THE_HOUR[row["channel"]],
            }
            lines.append(plain | window | about)
    return lines


def planned_from_ledger(settings: Settings, plan_settings: PlanSettings, *, at: datetime | None = None) -> Planned:
    """A plan from the ledger's published file.

    Raises:
      UsageError: Nothing is published, or it says too little for a plan.
      UsageError: The policy's limits cannot all be kept.
    """
    return make_plan(read_inputs(partial(query, settings), plan_settings, at=at))
