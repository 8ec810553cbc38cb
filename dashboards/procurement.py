"""From rows of the published file to what the models of procurement take: pools, policy, comparators, jobs.

Pure functions: pages ask and show, models compute. Does not belong here: charts, see ``procurement_charts``.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dashboards import words
from models.prices import Instrument, Pool
from models.procurement.policy import PlanPolicy, setting_name
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.procurement.curve import Line

CERTAIN = np.ones(1)
"""Probability of a history: the one thing that happened."""

ELSEWHERE = ("contract", "owned")
PRICED_BY = ("discount_ratio", "spot_goodput_ratio", "power_usage_effectiveness", "energy_micros_per_kwh")
"""Fields of a plan's policy that prices of capacity depend on."""


def stated_policy(assumptions: Mapping[str, str]) -> PlanPolicy:
    """The policy of a plan, as far as prices of capacity depend on it, from its assumptions by their key in plan.yaml."""
    told = {field: assumptions[setting_name(field)] for field in PRICED_BY if setting_name(field) in assumptions}
    values: dict[str, Any] = {
        field: int(Decimal(value).scaleb(6)) if "_micros" in field else float(value) for field, value in told.items()
    }
    return replace(PlanPolicy(), **values)


def pools(prices: pl.DataFrame, gpu_model: str) -> list[Pool]:
    """Where GPUs of a model are sold by the hour, with contracts and machines elsewhere; the place with most offers first."""
    of_model = prices.filter(pl.col("gpu_model") == gpu_model)
    others = tuple(sorted(set(of_model.filter(pl.col("instrument").is_in(ELSEWHERE))["provider"])))
    places = (
        of_model.filter(~pl.col("instrument").is_in(ELSEWHERE))
        .group_by("provider", "region")
        .agg(pl.col("offer_id").n_unique())
        .sort("offer_id", "provider", "region", descending=[True, False, False])
    )
    return [
        Pool(
            name=gpu_model,
            gpu_model=gpu_model,
            provider=provider,
            region=region,
            other_providers=tuple(one for one in others if one != provider),
        )
        for provider, region in places.select("provider", "region").iter_rows()
    ]


def cheapest_by_instrument(lines: Sequence[Line]) -> list[Line]:
    """Of the lines of one way to pay the one that costs least: they are all flat, or all through zero."""
    best: dict[Instrument, Line] = {}
    for line in lines:
        if line.instrument not in best or line.at(1.0) < best[line.instrument].at(1.0):
            best[line.instrument] = line
    return sorted(best.values(), key=lambda line: list(Instrument).index(line.instrument))


def priced(lines: Sequence[Line]) -> pl.DataFrame:
    """Lines as a table: what is due each hour, what for each hour of use, and from which use on it beats on-demand."""
    hourly = min((line.hourly_micros for line in lines if line.instrument is Instrument.ON_DEMAND), default=None)
    rows = [
        {
            "instrument": words.instrument(line.instrument),
            "offer_id": line.offer_id,
            "fixed": line.fixed_micros / MICROS_PER_UNIT,
            "hourly": line.hourly_micros / MICROS_PER_UNIT,
            "pays_from_ratio": line.fixed_micros / hourly if hourly and 0 < line.fixed_micros <= hourly else None,
        }
        for line in lines
    ]
    schema = {
        "instrument": pl.String,
        "offer_id": pl.String,
        "fixed": pl.Float64,
        "hourly": pl.Float64,
        "pays_from_ratio": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema).sort("fixed", "hourly")


def hourly_micros(row: dict[str, Any]) -> int | None:
    """What an offer costs a GPU-hour when every hour is used: what is paid upfront spread over its term, without interest."""
    if row["hourly_micros"] is None and row["upfront_micros"] is None:
        return None
    hours = (row["term_seconds"] or 0) // SECONDS_PER_HOUR
    upfront = (row["upfront_micros"] or 0) / hours if hours else 0
    return round((row["hourly_micros"] or 0) + upfront)


def sold(prices: pl.DataFrame, gpu_model: str) -> tuple[dict[str, int], dict[str, int]]:
    """Spot prices of a GPU model, and those of all else that is rented, in micros a GPU-hour by offer.

    The cheapest spot first; of the rest the cheapest that is paid by the hour, then what must be committed to.
    """
    rows = prices.filter((pl.col("gpu_model") == gpu_model) & (pl.col("instrument") != "owned"))
    priced_rows = [(row, price) for row in rows.iter_rows(named=True) if (price := hourly_micros(row))]
    order = sorted(priced_rows, key=lambda one: (one[0]["instrument"] != "on_demand", one[1], one[0]["offer_id"]))
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for row, price in order:
        found[row["instrument"] != "spot"].setdefault(row["offer_id"], price)
    return found
