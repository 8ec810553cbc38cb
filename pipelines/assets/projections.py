"""Every projection as a Dagster asset, and every invariant as a check that stops whatever comes after it.

One op rebuilds them all, from one cut of the log: they share a working file, and a table is only right beside the others
of the same cut. A run rebuilds the days that new facts touch, and the days that it is asked for.
"""

# No "from __future__ import annotations": Dagster compares the annotation of a context with its own classes.

from collections.abc import Iterator
from datetime import datetime

from dagster import (
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Config,
    MaterializeResult,
    TableColumn,
    TableSchema,
    multi_asset,
)

from pipelines.assets.runs import DAYS, ONE_RUN, asked_window, failing_plainly
from pipelines.build import Builder, opened
from pipelines.projections import Projection, Violation, checks, load
from pipelines.settings import Settings


def key(table: str) -> AssetKey:
    """Asset key of ``layer.table``."""
    return AssetKey(table.split("."))


OP_NAME = "projections"
PROJECTION_KEYS = [key(one.name) for one in load()]


class Rebuild(Config):
    """Whether to leave alone the days that the run is filed under, unless new facts touch them."""

    only_news: bool = False


def projection_assets(settings: Settings) -> AssetsDefinition:
    """All projections with all their invariants."""

    @multi_asset(
        name=OP_NAME,
        specs=[_spec(one) for one in load()],
        check_specs=[
            AssetCheckSpec(name, asset=key(one.name), blocking=True, description=f"Returns no row:\n\n{query}")
            for one in load()
            for name, query in checks(one).items()
        ],
        partitions_def=DAYS,
        backfill_policy=ONE_RUN,
    )
    def projections(
        context: AssetExecutionContext, config: Rebuild
    ) -> Iterator[MaterializeResult[None] | AssetCheckResult]:
        with failing_plainly(), opened(settings, on_wait=context.log.info) as builder:
            days = builder.prepare(full=False, asked=None if config.only_news else asked_window(context))
            context.log.info("rebuilding %s up to batch %s", _shown(days), builder.cut)
            for projection, rows, broken in builder.projected(days):
                yield MaterializeResult(
                    key(projection.name),
                    metadata={
                        "rows_written": rows,
                        "days_rebuilt": _shown(days),
                        "batch": builder.cut,
                        "dagster/column_schema": _schema(builder, projection),
                    },
                )
                yield from _results(projection, broken)

    return projections


def _spec(projection: Projection) -> AssetSpec:
    layer, _ = projection.name.split(".")
    return AssetSpec(
        key(projection.name),
        deps=[key(read) for read in sorted(projection.reads) if not read.startswith("reference.")],
        description=projection.grain[:1].upper() + projection.grain[1:],
        group_name=layer,
        kinds={"duckdb"},
        metadata={
            "keys": ", ".join(projection.keys),
            "partition_by": projection.partition_by or "none: replaced whole",
            "units": {name: unit for name, unit in projection.units.items() if unit},
        },
    )


def _schema(builder: Builder, projection: Projection) -> TableSchema:
    described = builder.con.execute(f"DESCRIBE {projection.name}").fetchall()
    texts = projection.units | projection.comments
    return TableSchema(columns=[TableColumn(name, kind, texts.get(name)) for name, kind, *_ in described])


def _results(projection: Projection, broken: list[Violation]) -> Iterator[AssetCheckResult]:
    offences = {one.invariant: str(one) for one in broken}
    for name in checks(projection):
        yield AssetCheckResult(
            passed=name not in offences, check_name=name, asset_key=key(projection.name), description=offences.get(name)
        )


def _shown(days: list[datetime]) -> str:
    return f"{len(days)} days from {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}" if days else "no day"
