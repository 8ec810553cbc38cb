"""From rows of the price book and of recorded commitments to offers and a portfolio, matched to pools.

A row reaches a pool when provider, GPU model, region and zone agree; an empty region or zone of a row means any. Rows of
one offer that reach several pools (a savings plan's rates) stay one offer. Does not belong here: reading tables, and
choosing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import UsageError
from models.prices import BY_THE_HOUR, Commitment, Instrument, Offer, Pool, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

PRICE_SCHEMA = pl.Schema(
    {
        "offer_id": pl.String(),
        "gpu_model": pl.String(),
        "region": pl.String(),
        "zone": pl.String(),
        "instrument": pl.String(),
        "provider": pl.String(),
        "gpu_count": pl.Int64(),
        "scope": pl.String(),
        "has_capacity": pl.Boolean(),
        "term_seconds": pl.Int64(),
        "payment_option": pl.String(),
        "upfront_micros": pl.Int64(),
        "hourly_micros": pl.Int64(),
        "residual_micros": pl.Int64(),
        "life_months_count": pl.Int64(),
        "power_watts": pl.Float64(),
        "monthly_fee_micros": pl.Int64(),
        "lead_seconds": pl.Int64(),
        "reference_gpu_quantity": pl.Decimal(38, 12),
        "observed_at": pl.Datetime("us", "UTC"),
        "from_at": pl.Datetime("us", "UTC"),
        "until_at": pl.Datetime("us", "UTC"),
        "price_source": pl.String(),
    }
)
"""Columns of ``staged.price`` that matter here. Money is per GPU; in force in ``[from_at, until_at)``."""

COMMITMENT_SCHEMA = pl.Schema(
    {
        "commitment_id": pl.String(),
        "instrument": pl.String(),
        "provider": pl.String(),
        "offer_id": pl.String(),
        "region": pl.String(),
        "zone": pl.String(),
        "gpu_model": pl.String(),
        "scope": pl.String(),
        "has_capacity": pl.Boolean(),
        "starts_at": pl.Datetime("us", "UTC"),
        "ends_at": pl.Datetime("us", "UTC"),
        "gpu_count": pl.Int64(),
        "hourly_commitment_micros": pl.Int64(),
        "hourly_micros": pl.Int64(),
        "upfront_micros": pl.Int64(),
        "state": pl.String(),
    }
)
"""Columns of ``staged.commitment`` that matter here. Hourly money is per GPU, upfront money in all."""

ELSEWHERE = (Instrument.CONTRACT, Instrument.OWNED)
"""Instruments that may serve a pool from another provider."""


@dataclass(frozen=True, slots=True)
class Book:
    """Offers in force, with what a person should know of them.

    Attributes:
      offers: By offer id.
      notes: Prices that are old, and rows that were left out, in words.
    """

    offers: tuple[Offer, ...]
    notes: tuple[str, ...]


def book(prices: pl.DataFrame, pools: Sequence[Pool], at: datetime, max_age: timedelta) -> Book:
    """Offers for the pools, as they are in force at an instant.

    Args:
      prices: Rows with ``PRICE_SCHEMA``, all observations.
      pools: What they are matched to.
      at: When the plan is made.
      max_age: A price observed longer ago is noted as old.

    Raises:
      UsageError: Rows of one offer contradict each other in what must be one for the whole offer.
    """
    in_force = prices.select(PRICE_SCHEMA.names()).filter(
        pl.col("gpu_model").is_in([pool.gpu_model for pool in pools]),
        (pl.col("from_at") <= at) & (pl.col("until_at").is_null() | (pl.col("until_at") > at)),
    )
    unpriced = in_force.filter(pl.col("hourly_micros").is_null() & pl.col("upfront_micros").is_null())
    notes = [
        f"{one}: left out, its price is not known in the reporting currency: ingest the exchange rate"
        for one in unpriced["offer_id"].unique().sort()
    ]
    known = in_force.join(unpriced.select("offer_id").unique(), on="offer_id", how="anti")
    offers = []
    for (offer_id,), rows in known.sort("offer_id", "gpu_model", "region", "zone").group_by(
        "offer_id", maintain_order=True
    ):
        offer = _offer(str(offer_id), rows.to_dicts(), pools)
        if offer is None:
            continue
        lacking = _lacking(offer)
        if lacking:
            notes.append(f"{offer_id}: left out: it binds ({offer.instrument}), and its price has no {lacking}")
            continue
        offers.append(offer)
        if at - offer.observed_at > max_age:
            age = (at - offer.observed_at).days
            notes.append(
                f"{offer_id}: its price was observed on {offer.observed_at:%Y-%m-%d}, {age:,} days before the plan "
                f"(at most {max_age.days:,} are expected): observe it again"
            )
    return Book(tuple(offers), tuple(notes))


def _lacking(offer: Offer) -> str:
    """What an offer that binds does not say of how long; empty where it says all."""
    if offer.instrument is Instrument.OWNED:
        return "" if offer.life_months else "life_months_count"
    return "" if offer.term_seconds or offer.instrument in BY_THE_HOUR else "term_seconds"


def _offer(offer_id: str, rows: Sequence[dict[str, Any]], pools: Sequence[Pool]) -> Offer | None:
    """One offer of its rows; None where it reaches no pool."""
    reaching: dict[str, dict[str, Any]] = {}
    for row in rows:
        for pool in pools:
            if _prices(row, pool):
                # A pool that may run in any zone takes the cheapest.
                other = reaching.get(pool.name)
                if other is None or (row["hourly_micros"] or 0) < (other["hourly_micros"] or 0):
                    reaching[pool.name] = row
    if not reaching:
        return None
    used = list(reaching.values())
    first = used[0]
    for name in ("instrument", "provider", "term_seconds", "upfront_micros", "payment_option", "scope"):
        found = {row[name] for row in used}
        if len(found) > 1:
            raise UsageError(
                f"{offer_id}: found {name} {', '.join(map(str, sorted(found, key=str)))} in its rows, expected one: "
                "give offers that differ in it their own offer_id"
            )
    return Offer(
        offer_id=offer_id,
        instrument=Instrument(first["instrument"]),
        provider=first["provider"],
        scope=Scope(first["scope"]),
        has_capacity=all(row["has_capacity"] for row in used),
        micros_per_gpu_hour={name: row["hourly_micros"] or 0 for name, row in reaching.items()},
        upfront_micros_per_gpu=first["upfront_micros"] or 0,
        node_gpus=first["gpu_count"],
        term_seconds=first["term_seconds"],
        payment_option=first["payment_option"] or "",
        lead_seconds=first["lead_seconds"] or 0,
        life_months=first["life_months_count"] or 0,
        residual_micros_per_gpu=first["residual_micros"] or 0,
        power_watts_per_gpu=first["power_watts"] or 0.0,
        monthly_fee_micros_per_gpu=first["monthly_fee_micros"] or 0,
        reference_gpus=float(first["reference_gpu_quantity"] or 1),
        observed_at=min(row["observed_at"] for row in used),
        price_source=", ".join(sorted({row["price_source"] for row in used})),
    )


def _reaches(row: dict[str, Any], pool: Pool) -> bool:
    """Whether a row of prices or commitments serves a pool; a commitment in money names no GPU model."""
    if row["gpu_model"] is not None and row["gpu_model"] != pool.gpu_model:
        return False
    if row["provider"] != pool.provider:
        return row["provider"] in pool.other_providers and row["instrument"] in ELSEWHERE
    fits_region = not row["region"] or row["region"] == pool.region or row["scope"] == Scope.GLOBAL
    return fits_region and (not row["zone"] or not pool.zone or row["zone"] == pool.zone)


def _prices(row: dict[str, Any], pool: Pool) -> bool:
    """Whether a row of prices is the pool's: a savings plan reaches every region, but each of its rates is of one."""
    is_rate_elsewhere = row["instrument"] == Instrument.SAVINGS_PLAN and row["region"] not in {None, "", pool.region}
    return _reaches(row, pool) and not is_rate_elsewhere


def portfolio(commitments: pl.DataFrame, prices: pl.DataFrame, pools: Sequence[Pool], at: datetime) -> list[Commitment]:
    """What is held or queued at an instant and reaches one of the pools; what has ended or was cancelled is not.

    Args:
      commitments: Rows with ``COMMITMENT_SCHEMA``.
      prices: Rows with ``PRICE_SCHEMA``: the rates of commitments in money, by their offer.
      pools: What they are matched to.
      at: When the plan is made.

    Raises:
      UsageError: What a commitment costs is not known in the reporting currency; or one in money names no offer whose rates
        are known, so that what it covers is unknown.
    """
    rows = commitments.select(COMMITMENT_SCHEMA.names()).filter(
        (pl.col("state") != "cancelled") & (pl.col("ends_at") > at)
    )
    return [
        one for row in rows.sort("commitment_id").to_dicts() if (one := _commitment(row, prices, pools, at)) is not None
    ]


def _commitment(row: dict[str, Any], prices: pl.DataFrame, pools: Sequence[Pool], at: datetime) -> Commitment | None:
    reached = [pool for pool in pools if _reaches(row, pool)]
    if not reached:
        return None
    costs = ("hourly_commitment_micros",) if row["gpu_count"] is None else ("hourly_micros", "upfront_micros")
    if all(row[name] is None for name in costs):
        raise UsageError(
            f"commitment {row['commitment_id']}: found no cost in the reporting currency, expected what it costs an hour or "
            "cost upfront (0 where it is free): ingest its currency's exchange rate, or the commitment with its amounts"
        )
    rates = {pool.name: row["hourly_micros"] or 0 for pool in reached}
    if row["gpu_count"] is None:
        rates = _rates(row, prices, reached)
        if not rates:
            raise UsageError(
                f"commitment {row['commitment_id']}: found no rates of its offer {row['offer_id'] or '(none named)'}, "
                "expected a price for each GPU model that it covers: ingest them as prices with that offer_id"
            )
    return Commitment(
        commitment_id=row["commitment_id"],
        instrument=Instrument(row["instrument"]),
        provider=row["provider"],
        scope=Scope(row["scope"]),
        has_capacity=row["has_capacity"],
        pools=tuple(rates),
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        rate_micros_per_gpu_hour=rates,
        gpus=row["gpu_count"],
        hourly_commitment_micros=row["hourly_commitment_micros"],
        upfront_micros=row["upfront_micros"] or 0,
        is_queued=row["starts_at"] > at,
    )


def _rates(row: dict[str, Any], prices: pl.DataFrame, reached: Iterable[Pool]) -> dict[str, int]:
    """Rates of a commitment in money: those last seen before it started, else the first ones."""
    known = prices.filter((pl.col("offer_id") == row["offer_id"]) & pl.col("hourly_micros").is_not_null())
    before = known.filter(pl.col("from_at") <= row["starts_at"])
    rows = (before if before.height else known).sort("from_at", descending=bool(before.height)).to_dicts()
    found: dict[str, int] = {}
    for pool in reached:
        for price in rows:
            if _prices(price, pool):
                found.setdefault(pool.name, price["hourly_micros"])
    return found
