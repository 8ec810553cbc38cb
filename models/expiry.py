"""When commitments end, and whether so much ends at once that it is a cliff.

Belongs here: months, shares and what comes back to demand. Does not belong here: reading commitments, and what to buy then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from datetime import datetime

CLIFF_RATIO = 0.3
"""A month in which more than this part of the GPUs or of the money held ends is a cliff."""

SCHEMA = pl.Schema(
    {
        "name": pl.String(),
        "gpu_model": pl.String(),
        "starts_at": pl.Datetime("us", "UTC"),
        "ends_at": pl.Datetime("us", "UTC"),
        "covers_gpus": pl.Float64(),
        "hourly_cost_micros": pl.Int64(),
    }
)
"""One row a commitment: the GPUs that it covers, NULL where unknown, and what it costs an hour, NULL where unknown."""


def expiries(commitments: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """The months from an instant on in which commitments end.

    What is held in a month is all that is in force at any time of it. GPUs that a commitment in money covers count as many
    as its money buys; where that is unknown, they count neither as held nor as ended.

    Args:
      commitments: Rows with ``SCHEMA``.
      at: What ended before does not count.

    Returns:
      One row a month, ascending: ``month`` (its first instant); ``names`` of what ends; ``returning``, the GPUs that come
      back to demand in words; ``ended_gpus`` and ``held_gpus``; ``ended_micros`` and ``held_micros`` an hour; ``gpu_ratio``
      and ``cost_ratio``, the ended part, NULL where nothing is known to be held; ``is_cliff``.
    """
    held = commitments.select(SCHEMA.names()).filter(pl.col("ends_at") > at)
    ending = held.with_columns(month=pl.col("ends_at").dt.truncate("1mo"))
    by_model = (
        ending.drop_nulls("covers_gpus")
        .group_by("month", pl.col("gpu_model").fill_null("several models"))
        .agg(pl.col("covers_gpus").sum().round(0).cast(pl.Int64))
        .sort("month", "gpu_model")
        .group_by("month", maintain_order=True)
        .agg(returning=pl.format("{} {}", "covers_gpus", "gpu_model").str.join(", "))
    )
    ended = ending.group_by("month").agg(
        names=pl.col("name").sort().str.join(", "),
        ended_gpus=pl.col("covers_gpus").sum(),
        ended_micros=pl.col("hourly_cost_micros").sum(),
    )
    in_force = (
        ended.select("month")
        .join(held, how="cross")
        .filter(pl.col("starts_at") < pl.col("month").dt.offset_by("1mo"), pl.col("ends_at") >= pl.col("month"))
        .group_by("month")
        .agg(held_gpus=pl.col("covers_gpus").sum(), held_micros=pl.col("hourly_cost_micros").sum())
    )
    shares = ended.join(in_force, on="month").with_columns(
        gpu_ratio=_share("ended_gpus", "held_gpus"), cost_ratio=_share("ended_micros", "held_micros")
    )
    return (
        shares.join(by_model, on="month", how="left")
        .with_columns(
            pl.col("returning").fill_null("unknown"),
            is_cliff=pl.max_horizontal("gpu_ratio", "cost_ratio").fill_null(0) > CLIFF_RATIO,
        )
        .sort("month")
    )


def _share(part: str, whole: str) -> pl.Expr:
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))
