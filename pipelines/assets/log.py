"""The event log in Dagster: its tables, the proof that nobody changed them, and the upkeep of its files."""

# No "from __future__ import annotations": Dagster compares the annotation of a context with its own classes.

from collections.abc import Iterator

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    MaterializeResult,
    asset,
    asset_check,
    multi_asset,
)

from models.errors import LogError
from models.events import (
    EVENT_TYPES,
    AssetRecorded,
    BillDelivered,
    ChargeBilled,
    CheckpointSaved,
    CommitmentRecorded,
    Event,
    FxRateObserved,
    GpuInventoried,
    GpuSampled,
    NodeStateChanged,
    OwnershipAssigned,
    PolicySet,
    PriceObserved,
    RunInterrupted,
    RunPlaced,
    RunRecorded,
    table_name,
)
from pipelines.assets.sources import source_key
from pipelines.ingest import declared_sources
from pipelines.lake import Lake
from pipelines.settings import Settings

FEEDS: dict[str, tuple[type[Event], ...]] = {
    "slurm": (RunRecorded, RunPlaced),
    "trace": (RunRecorded, RunPlaced),
    "focus": (BillDelivered, ChargeBilled),
    "telemetry": (GpuSampled,),
    "dcgm": (GpuSampled,),
    "prometheus": (GpuSampled,),
    "org": (OwnershipAssigned,),
    "assets": (AssetRecorded,),
    "fx": (FxRateObserved,),
    "nodes": (GpuInventoried, NodeStateChanged),
    "policies": (PolicySet,),
    "prices": (PriceObserved,),
    "aws_prices": (PriceObserved,),
    "commitments": (CommitmentRecorded,),
    "interruptions": (RunInterrupted,),
    "checkpoints": (CheckpointSaved,),
}
"""Event tables that each kind of source appends to."""

BATCHES, REJECTED = AssetKey(["events", "batches"]), AssetKey(["events", "rejected"])
EVENT_KEYS = [AssetKey(["events", table_name(event)]) for event in EVENT_TYPES] + [REJECTED, BATCHES]
LOG_FILES = AssetKey(["maintenance", "log_files"])


def event_tables(settings: Settings) -> AssetsDefinition:
    """The log's tables, after the sources that append to them: shows which batch last changed each."""
    sources = declared_sources(settings)
    every = [source_key(one) for one in sources]
    specs = [
        AssetSpec(
            ["events", table_name(event)],
            deps=[source_key(one) for one in sources if event in FEEDS[one.kind]],
            description=event.__doc__,
            group_name="events",
            kinds={"ducklake"},
        )
        for event in EVENT_TYPES
    ]
    texts = {REJECTED: "Source rows that were not understood, or rightly not billed.", BATCHES: "Appends to the log."}
    specs += [
        AssetSpec(key, deps=every, description=text, group_name="events", kinds={"ducklake"})
        for key, text in texts.items()
    ]

    @multi_asset(name="event_log", specs=specs)
    def event_log(context: AssetExecutionContext) -> Iterator[MaterializeResult[None]]:
        with Lake(settings, on_wait=context.log.info) as lake:
            last = lake.last_batch_id()
            changed = dict(
                lake.con.execute(
                    "SELECT changed, max(batch_id) FROM (SELECT unnest(json_keys(content_digests)) AS changed, batch_id "
                    "FROM lake.events.batches) GROUP BY changed"
                ).fetchall()
            )
        changed[BATCHES.path[-1]] = last
        for key in EVENT_KEYS:
            batch = changed.get(key.path[-1])
            yield MaterializeResult(key, metadata={"last_batch": batch} if batch else {})

    return event_log


def log_is_intact(settings: Settings) -> AssetChecksDefinition:
    """Check that recomputes every digest of the log; a run that finds it changed fails."""

    @asset_check(asset=BATCHES, name="log_is_intact", blocking=True, description="Every digest is what is stored.")
    def check(context: AssetCheckExecutionContext) -> AssetCheckResult:
        try:
            with Lake(settings, on_wait=context.log.info) as lake:
                count, digest = lake.verify()
                return AssetCheckResult(passed=True, metadata={"batches": count, "digest": digest})
        except LogError as error:
            return AssetCheckResult(passed=False, description=str(error))

    return check


def log_files(settings: Settings) -> AssetsDefinition:
    """Asset that merges the log's small files; no answer changes."""

    @asset(
        key=LOG_FILES,
        deps=[BATCHES],
        group_name="maintenance",
        kinds={"ducklake"},
        description="The log's Parquet files, small ones merged, those that nothing needs removed. No answer changes.",
    )
    def maintain(context: AssetExecutionContext) -> None:
        with Lake(settings, on_wait=context.log.info) as lake:
            lake.maintain()

    return maintain
