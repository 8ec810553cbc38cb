"""What the ledger recommends, as decisions in the log: the plan of what to buy."""

# No "from __future__ import annotations": Dagster compares the annotation of a context with its own classes.

from dagster import AssetExecutionContext, AssetKey, AssetsDefinition, MaterializeResult, asset

from models.units import money
from pipelines.assets.publication import PUBLISHED
from pipelines.assets.runs import failing_plainly
from pipelines.build import build
from pipelines.plan_settings import PLAN_FILE, read_plan_settings
from pipelines.planning import planned_from_ledger, record
from pipelines.publish import publish
from pipelines.settings import Settings

PLAN = AssetKey(["decisions", "plan"])


def recommended_plan(settings: Settings) -> AssetsDefinition:
    """The plan made from what is published, recorded in the log and published again with it."""

    @asset(
        key=PLAN,
        deps=[PUBLISHED],
        group_name="decisions",
        kinds={"ducklake"},
        description="What to reserve, run on spot and own, from the ledger's demand and prices and plan.yaml. The same "
        "inputs give the same plan, which is recorded once. Nothing is bought.",
    )
    def plan(context: AssetExecutionContext) -> MaterializeResult[None]:
        with failing_plainly():
            planned = planned_from_ledger(settings, read_plan_settings(settings.home / PLAN_FILE))
            is_new = record(settings, planned, on_wait=context.log.info)
            if is_new:
                build(settings, on_wait=context.log.info)
                publish(settings, on_wait=context.log.info)
        made = planned.plan
        return MaterializeResult(
            metadata={
                "plan_id": planned.plan_id,
                "recorded": "by this run" if is_new else "by an earlier run: its inputs have not changed",
                "purchases": len(made.lines),
                "expected_cost": float(money(made.expected_cost_micros)),
                "bound_cost": float(money(made.bound_cost_micros)),
                "horizon": f"{made.start_at:%Y-%m-%d} to {made.end_at:%Y-%m-%d}",
                "notes": "\n".join(f"{one.note_kind}: {one}" for one in planned.notes()),
            }
        )

    return plan
