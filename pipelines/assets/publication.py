"""What leaves the projections: the file that readers open, and months that are closed."""

# No "from __future__ import annotations": Dagster compares the annotation of a context with its own classes.

from datetime import date

from dagster import AssetExecutionContext, AssetKey, AssetsDefinition, MaterializeResult, asset

from models.errors import UsageError
from pipelines.assets.projections import key
from pipelines.assets.runs import MONTHS, failing_plainly
from pipelines.lake import Lake
from pipelines.ledger import close
from pipelines.projections import load
from pipelines.publish import EXTRA_TABLES, publish
from pipelines.settings import Settings

PUBLISHED = AssetKey(["published", "ledger"])
CLOSED_MONTH = AssetKey(["published", "closed_month"])


def published_file(settings: Settings) -> AssetsDefinition:
    """The file that dashboards and analysts open."""
    shown = [one.name for one in load() if one.name.startswith("marts.") or one.name in EXTRA_TABLES]

    @asset(
        key=PUBLISHED,
        deps=[*map(key, shown), CLOSED_MONTH],
        group_name="published",
        kinds={"duckdb"},
        description="The read-only file of the marts: written aside, then renamed over the one before.",
    )
    def write(context: AssetExecutionContext) -> MaterializeResult[None]:
        with failing_plainly():
            path = publish(settings, on_wait=context.log.info)
        return MaterializeResult(metadata={"path": str(path), "bytes": path.stat().st_size})

    return write


def closed_month(settings: Settings) -> AssetsDefinition:
    """A month's close: its lines posted, and what changed in earlier months as corrections."""

    @asset(
        key=CLOSED_MONTH,
        deps=[key("core.line_monthly"), key("core.owner_daily"), key("core.posting"), key("marts.proof_monthly")],
        partitions_def=MONTHS,
        group_name="published",
        kinds={"ducklake"},
        description="The postings of a closed month. While facts are missing the run fails and says which to bring.",
    )
    def post(context: AssetExecutionContext) -> MaterializeResult[None]:
        month = date.fromisoformat(context.partition_key)
        with failing_plainly():
            try:
                done = close(settings, month, on_wait=context.log.info)
            except UsageError:
                if not _is_closed(settings, month):
                    raise
                return MaterializeResult(metadata={"closed": "by an earlier run"})
        return MaterializeResult(
            metadata={
                "closed": "by this run",
                "postings": done.posting_count,
                "corrections": done.correction_count,
                "cost_micros": done.cost_micros,
                "correction_micros": done.correction_micros,
                "digest": done.digest,
            }
        )

    return post


def _is_closed(settings: Settings, month: date) -> bool:
    with Lake(settings) as lake:
        found = lake.con.execute("SELECT 1 FROM lake.events.period_closed WHERE period_month = ?", [month]).fetchone()
    return found is not None
