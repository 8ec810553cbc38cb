"""Each declared source as a Dagster asset: a window or some files in, one call, row counts out.

Reading again changes nothing, so a run may be repeated, overlap another, or be asked for days long past.
"""

# No "from __future__ import annotations": Dagster compares the annotation of a context with its own classes.

from collections.abc import Sequence
from datetime import UTC, datetime

from dagster import AssetExecutionContext, AssetKey, AssetsDefinition, AssetSpec, Config, MaterializeResult, multi_asset

from models.errors import SourceError, UsageError
from pipelines.assets.runs import DAYS, ONE_RUN, asked_window, failing_plainly
from pipelines.inbox import deliveries
from pipelines.ingest import Source, declared_sources, ingest_files, ingest_live
from pipelines.lake import Batch, Lake
from pipelines.settings import Settings

READ_UNTIL = "read_until"
"""Metadata of a live source: the instant up to which it has ever been read, in seconds since 1970."""

_COUNTS = ("rows_read", "rows_ignored", "rows_appended", "rows_duplicate", "rows_rejected", "rows_set_aside")


class Window(Config):
    """What a live source is asked for; without it, the days of the run, up to now."""

    start: str = ""
    end: str = ""


class Deliveries(Config):
    """Names of the deliveries to read; without them, all that lie in the inbox."""

    names: list[str] = []  # noqa: RUF012 - pydantic copies it for each object


def source_key(source: Source) -> AssetKey:
    """Key of a source's asset."""
    return AssetKey(["sources", source.name])


def op_name(source: Source) -> str:
    """Name of the op that reads a source, under which a run is given its configuration."""
    return f"read_{source.name}"


def source_assets(settings: Settings) -> list[AssetsDefinition]:
    """One asset for each source in ``sources.yaml``."""
    return [
        _inbox_asset(settings, source) if source.inbox else _live_asset(settings, source)
        for source in declared_sources(settings)
    ]


def _live_asset(settings: Settings, source: Source) -> AssetsDefinition:
    key = source_key(source)

    spec = AssetSpec(
        key,
        group_name="sources",
        kinds={source.kind},
        description=f"What {source.kind} answers for the days asked for; every hour, for the hour that has passed.",
    )

    # Not @asset, which warns that its backfill_policy is in beta; here it is not.
    @multi_asset(name=op_name(source), specs=[spec], partitions_def=DAYS, backfill_policy=ONE_RUN)
    def read_live(context: AssetExecutionContext, config: Window) -> MaterializeResult[None]:
        with failing_plainly(), Lake(settings, on_wait=context.log.info) as lake:
            start, end = _window(context, config)
            batch = ingest_live(lake, source.kind, start, end, **source.arguments)
        latest = context.instance.get_latest_materialization_event(key)
        known = (
            latest.asset_materialization.metadata.get(READ_UNTIL) if latest and latest.asset_materialization else None
        )
        until = max(end.timestamp(), float(str(known.value)) if known else 0.0)
        return MaterializeResult(metadata={READ_UNTIL: until, **_counts([batch])})

    return read_live


def _window(context: AssetExecutionContext, config: Window) -> tuple[datetime, datetime]:
    if config.start and config.end:
        return datetime.fromisoformat(config.start), datetime.fromisoformat(config.end)
    asked = asked_window(context)
    now = datetime.now(UTC).replace(microsecond=0)
    if asked is None or asked[0] >= now:
        raise UsageError("no window: choose the days to read, or give start and end")
    return asked[0], min(asked[1], now)


def _inbox_asset(settings: Settings, source: Source) -> AssetsDefinition:
    spec = AssetSpec(
        source_key(source),
        group_name="sources",
        kinds={source.kind},
        description=f"Files {source.inbox} of the inbox, read as {source.kind}. Files stay; read again they add nothing.",
    )

    @multi_asset(name=op_name(source), specs=[spec])
    def read_inbox(context: AssetExecutionContext, config: Deliveries) -> MaterializeResult[None]:
        found = deliveries(settings, source)
        wanted = [one for one in found if one.name in config.names or not config.names]
        batches, unread = [], []
        with failing_plainly():
            with Lake(settings, on_wait=context.log.info) as lake:
                for one in wanted:
                    try:
                        batches.append(
                            ingest_files(lake, source.kind, one.files, at=one.changed_at, **source.arguments)
                        )
                    except SourceError as error:
                        unread.append(str(error))
            if unread:
                raise SourceError(f"{len(unread)} of {len(wanted)} could not be read:\n" + "\n".join(unread))
        return MaterializeResult(metadata={"deliveries": len(wanted), **_counts(batches)})

    return read_inbox


def _counts(batches: Sequence[Batch]) -> dict[str, int]:
    return {name: sum(getattr(batch, name) for batch in batches) for name in _COUNTS}
