"""Record files of procurement: prices, commitments, interruptions of runs, and checkpoints.

Their columns are declared in ``record_columns``; how a file is read, and what is told of a bad line: ``record_files``.
An offer that does not exist is a line that is not there. What a line says must fit its instrument, so that a price can be
trusted: a spot price without a term, a capacity block as AWS sells them, a reservation that holds capacity in one zone only.
"""

from __future__ import annotations

from datetime import time, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from models.events import CheckpointSaved, CommitmentRecorded, PriceObserved, RunInterrupted
from pipelines.sources.record_files import Line, Row, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from pipelines.sources.base import Chunk

_COMMITTED = {"reserved", "savings_plan", "committed_use", "capacity_block"}
"""Instruments that bind for a term which their price must state; a contract may be open-ended."""

_HOLDS_CAPACITY = {"capacity_block": True, "owned": True, "savings_plan": False, "spot": False}
"""Whether an instrument reserves capacity, where its kind alone says so (AWS and GCP documentation)."""

_ONLY_OWNED = ("residual_amount", "life_months_count", "power_watts", "monthly_fee_amount")

_BLOCK_START = time(11, 30)
_BLOCK_DAYS = {*range(1, 15), *range(21, 183, 7)}
"""AWS Capacity Blocks: 1 to 14 days, then whole weeks up to 182 days, from 11:30 UTC to 11:30 UTC."""


def read_prices(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Prices of GPUs, as they were offered.

    Raises:
      SourceError: A file cannot be read, is empty, or its header is not this kind's.
    """
    return read_records("prices", paths, PriceObserved, _price, _overlaps)


def read_commitments(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Commitments bought or queued.

    Raises:
      SourceError: As ``read_prices``.
    """
    return read_records("commitments", paths, CommitmentRecorded, _commitment)


def read_interruptions(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Interruptions of runs that the scheduler does not tell of, such as spot instances taken back.

    Raises:
      SourceError: As ``read_prices``.
    """

    def interruption(row: Row) -> list[Row]:
        if row["interrupted_at"] < row["started_at"]:
            raise ValueError("interrupted_at: expected an instant not before started_at")
        return [row]

    return read_records("interruptions", paths, RunInterrupted, interruption)


def read_checkpoints(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Checkpoints that runs saved.

    Raises:
      SourceError: As ``read_prices``.
    """
    return read_records("checkpoints", paths, CheckpointSaved, lambda row: [row])


def _price(row: Row) -> list[Row]:
    """Check one price against what its instrument is."""
    instrument = row["instrument"]
    _check_place(row)
    _check_payment(row)
    if not row["upfront_amount"] and not row["hourly_amount"]:
        raise ValueError(
            "hourly_amount: found no price above 0; expected upfront_amount, hourly_amount or both; leave out an offer that does not exist"
        )
    if instrument in _COMMITTED and row["term_seconds"] is None:
        raise ValueError(f"term_seconds: found nothing, expected the term of a {instrument} such as 31536000 (1 year)")
    if instrument in {"on_demand", "spot", "owned"} and row["term_seconds"] is not None:
        raise ValueError(f"term_seconds: found {row['term_seconds']}, expected nothing: {instrument} binds for no term")
    if instrument in {"on_demand", "spot"} and row["upfront_amount"]:
        raise ValueError(
            f"upfront_amount: found {row['upfront_amount']}, expected nothing: {instrument} is paid by the hour"
        )
    _check_owned(row)
    if instrument == "capacity_block":
        _check_block(row, timedelta(seconds=row["term_seconds"]))
    if row["valid_until_at"] is not None and row["valid_until_at"] <= _start(row):
        raise ValueError("valid_until_at: expected an instant after valid_from_at, or without it after observed_at")
    return [row]


def _commitment(row: Row) -> list[Row]:
    """Check one commitment: what it covers, when, and what it may hold."""
    _check_place(row)
    if row["ends_at"] <= row["starts_at"]:
        raise ValueError("ends_at: expected an instant after starts_at")
    given = [name for name in ("gpu_count", "hourly_commitment_amount") if row[name] is not None]
    if len(given) != 1:
        raise ValueError(
            f"gpu_count: found {' and '.join(given) or 'no size'}, expected either gpu_count or hourly_commitment_amount"
        )
    if row["gpu_count"] is not None and row["gpu_model"] is None:
        raise ValueError("gpu_model: found nothing, expected the model of the GPUs committed to")
    _check_payment(row)
    if row["instrument"] == "capacity_block":
        _check_block(row, row["ends_at"] - row["starts_at"])
        wrong = [name for name in ("starts_at", "ends_at") if row[name].time() != _BLOCK_START]
        if row["provider"] == "aws" and wrong:
            raise ValueError(
                f"{wrong[0]}: found {row[wrong[0]]:%H:%M}, expected 11:30 UTC: AWS's blocks begin and end then"
            )
    return [row]


def _check_place(row: Row) -> None:
    """What the scope says must be named, and capacity is only held where the instrument can hold it."""
    named = {"zone": ("region", "zone"), "region": ("region",)}.get(row["scope"], ())
    lacking = [name for name in named if not row[name]]
    if lacking:
        raise ValueError(f"{lacking[0]}: found nothing, expected a value: the scope is a {row['scope']}")
    instrument, holds = row["instrument"], row["has_capacity"]
    if _HOLDS_CAPACITY.get(instrument, holds) != holds:
        raise ValueError(f"has_capacity: found {str(holds).lower()}, expected {str(not holds).lower()} of {instrument}")
    if instrument == "reserved" and holds and row["scope"] != "zone":
        raise ValueError("has_capacity: found true, expected false: only a reservation in one zone holds capacity")


def _check_payment(row: Row) -> None:
    """The payment option agrees with the amounts."""
    for option, name in (("all_upfront", "hourly_amount"), ("no_upfront", "upfront_amount")):
        if row["payment_option"] == option and row[name] and row["instrument"] != "savings_plan":
            raise ValueError(f"{name}: found {row[name]}, expected 0 or nothing: the payment option is {option}")


def _check_owned(row: Row) -> None:
    if row["instrument"] != "owned":
        given = [name for name in _ONLY_OWNED if row[name] is not None]
        if given:
            raise ValueError(f"{given[0]}: found {row[given[0]]}, expected nothing: only what is owned has it")
        return
    lacking = [name for name in ("upfront_amount", "life_months_count") if not row[name]]
    if lacking:
        raise ValueError(f"{lacking[0]}: found nothing, expected a value: what is owned is bought for a life")
    if (row["residual_amount"] or 0) > row["upfront_amount"]:
        raise ValueError("residual_amount: expected no more than upfront_amount")


def _check_block(row: Row, length: timedelta) -> None:
    """A block is paid at the start; AWS sells whole days up to two weeks, then whole weeks."""
    if row["payment_option"] not in {None, "all_upfront"} or row["hourly_amount"]:
        raise ValueError("payment_option: expected all_upfront and no hourly_amount: a block is paid at the start")
    if row["provider"] == "aws" and length not in {timedelta(days=days) for days in _BLOCK_DAYS}:
        days = length / timedelta(days=1)
        raise ValueError(f"found a block of {days:g} days, expected 1 to 14 days, or whole weeks up to 182 days")


def _offer(line: Line) -> tuple[str, ...]:
    return tuple(line.rows[0][name] for name in ("offer_id", "gpu_model", "region", "zone"))


def _start(row: Row) -> datetime:
    start: datetime = row["valid_from_at"] or row["observed_at"]
    return start


def _overlaps(lines: list[Line]) -> dict[str, str]:
    """Lines that give another price of an offer for a time in which an earlier line says its price holds."""
    found = {}
    ordered = sorted(lines, key=lambda line: (_offer(line), _start(line.rows[0]), line.rows[0]["observed_at"]))
    for _, group in groupby(ordered, key=_offer):
        held: Line | None = None
        for line in group:
            row = line.rows[0]
            if held and _start(row) < held.rows[0]["valid_until_at"] and _priced(row) != _priced(held.rows[0]):
                found[line.position] = (
                    f"found another price of the same offer in the time of {held.position}, which holds until "
                    f"{held.rows[0]['valid_until_at']:%Y-%m-%dT%H:%M:%SZ}: expected one price at a time"
                )
            elif row["valid_until_at"] and (not held or row["valid_until_at"] > held.rows[0]["valid_until_at"]):
                held = line
    return found


def _priced(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("currency", "upfront_amount", "hourly_amount"))
