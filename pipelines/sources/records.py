"""Small record files: organisation, nodes and their states, owned assets, exchange rates, policies.

Each file's columns are declared once; reading, error messages and the help text are derived from the declaration. A line
that cannot be understood goes to ``rejected`` with its number, what was found and what was expected.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import SourceError
from models.events import (
    AssetRecorded,
    Event,
    FxRateObserved,
    GpuInventoried,
    NodeStateChanged,
    OwnershipAssigned,
    PolicySet,
    keys,
    polars_schema,
)
from models.gpus import MIG_PROFILES, canonical_model, profile_shares
from models.policies import POLICIES, policy
from pipelines.sources.base import Chunk, rejected_frame, rejected_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a record file.

    Attributes:
      name: Header.
      parse: From non-empty text to a value; raises ValueError saying what was expected.
      is_required: An empty cell is an error.
      default: Value of an empty cell.
    """

    name: str
    parse: Callable[[str], Any]
    is_required: bool = False
    default: Any = None


def instant(text: str) -> datetime:
    """Instant in UTC: a date is its midnight in UTC, a time needs a zone.

    >>> instant("2026-10-15").isoformat()
    '2026-10-15T00:00:00+00:00'
    """
    expected = "expected a date such as 2026-10-15, or an instant with a zone such as 2026-10-15T12:00:00Z"
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(expected) from None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return found.replace(tzinfo=UTC)
    if found.tzinfo is None:
        raise ValueError(f"{expected}; the time has no zone")
    return found.astimezone(UTC).replace(microsecond=0)


def _month(text: str) -> datetime:
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text):
        raise ValueError("expected a month such as 2026-10")
    return instant(f"{text}-01")


def _count(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise ValueError("expected a whole number of 0 or more")
    return int(text)


def _decimal(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError("expected a number such as 1234.56, without separators or currency sign") from None
    if not found.is_finite() or found < 0:
        raise ValueError("expected a finite number of 0 or more")
    return found


def _positive(text: str) -> Decimal:
    found = _decimal(text)
    if found == 0:
        raise ValueError("expected a number above 0")
    return found


def _currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise ValueError("expected a three-letter ISO 4217 code such as EUR")
    return text


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return text

    return parse


FIELDS: dict[str, tuple[Field, ...]] = {
    "org": (
        Field("cluster", str, default="*"),
        Field("account", str, is_required=True),
        Field("project", str),
        Field("team", str, is_required=True),
        Field("business_unit", str, is_required=True),
        Field("effective_from", instant, is_required=True),
    ),
    "nodes": (
        Field("cluster", str, is_required=True),
        Field("node", str, is_required=True),
        Field("gpu_model", str, is_required=True),
        Field("gpu_count", _count, is_required=True),
        Field("mig_layout", str, default=""),
        Field("effective_from", instant, is_required=True),
        Field("effective_until", instant),
        Field("resource_id", str),
        Field("capacity_type", _one_of("owned", "reserved", "on_demand", "spot")),
    ),
    "node_states": (
        Field("cluster", str, is_required=True),
        Field("node", str, is_required=True),
        Field("changed_at", instant, is_required=True),
        Field("state", _one_of("up", "down", "drain"), is_required=True),
        Field("reason", str),
    ),
    "assets": (
        Field("asset_id", str, is_required=True),
        Field("cluster", str, is_required=True),
        Field("node", str),
        Field("in_service", instant, is_required=True),
        Field("retired", instant),
        Field("life_months", _count, is_required=True),
        Field("purchase_amount", _decimal, is_required=True),
        Field("residual_amount", _decimal, is_required=True),
        Field("currency", _currency, is_required=True),
        Field("power_watts", float),
        Field("power_usage_effectiveness", _positive),
        Field("energy_price", _decimal),
        Field("monthly_fee", _decimal),
    ),
    "fx": (
        Field("month", _month, is_required=True),
        Field("currency", _currency, is_required=True),
        Field("rate", _positive, is_required=True),
    ),
    "policies": (
        Field("policy", _one_of(*(known.name for known in POLICIES)), is_required=True),
        Field("subject", str, default=""),
        Field("effective_from", instant, is_required=True),
        Field("value", str, is_required=True),
    ),
}
"""Columns of each kind of record file, in order."""


def columns_help(kind: str) -> str:
    """Header line of a kind of file, required columns marked with *."""
    return ", ".join(f"{field.name}{'*' if field.is_required else ''}" for field in FIELDS[kind])


def read_org(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Organisation: who pays for an account from a day on.

    Raises:
      SourceError: A file lacks a required column or is not a CSV text.
    """
    return _read("org", paths, OwnershipAssigned, lambda row: [_renamed(row, effective_from="effective_from_at")])


def read_nodes(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Nodes with their GPUs, or node states, told apart by their header.

    Raises:
      SourceError: As ``read_org``.
    """
    for path in paths:
        if "state" in _header(path):
            yield from _read("node_states", [path], NodeStateChanged, lambda row: [row])
        else:
            yield from _read("nodes", [path], GpuInventoried, _inventory)


def read_assets(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Owned assets of the register.

    Raises:
      SourceError: As ``read_org``.
    """
    return _read("assets", paths, AssetRecorded, _asset)


def read_fx(paths: Sequence[Path], *, reporting_currency: str) -> Iterator[Chunk]:
    """Exchange rates: reporting currency for one unit of a currency, by month.

    Raises:
      SourceError: As ``read_org``.
    """

    def rate(row: Row) -> list[Row]:
        return [{**_renamed(row, month="observed_at", rate="fx_rate"), "reporting_currency": reporting_currency}]

    return _read("fx", paths, FxRateObserved, rate)


def read_policies(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Dated policies, checked against ``models/policies.py``.

    Raises:
      SourceError: As ``read_org``.
    """
    return _read("policies", paths, PolicySet, _policy)


def _renamed(row: Row, **names: str) -> Row:
    return {names.get(name, name): value for name, value in row.items()}


def _inventory(row: Row) -> list[Row]:
    """One event row a profile of the layout; whole cards are one row without a profile."""
    model = canonical_model(row["gpu_model"])
    if model is None:
        raise ValueError(f"gpu_model: found {row['gpu_model']!r}, expected a GPU model such as H100-80GB")
    layout = _layout(model, row["mig_layout"])
    common = {
        "cluster": row["cluster"],
        "node": row["node"],
        "gpu_model": model,
        "mig_layout": "+".join(f"{profile}*{count}" for profile, count in layout),
        "effective_from_at": row["effective_from"],
        "effective_until_at": row["effective_until"],
        "card_count": row["gpu_count"],
        "resource_id": row["resource_id"],
        "capacity_type": row["capacity_type"],
    }
    if row["effective_until"] is not None and row["effective_until"] <= row["effective_from"]:
        raise ValueError("effective_until: expected an instant after effective_from")
    return [{**common, "mig_profile": name, "slices_per_card_count": count} for name, count in layout or [("", 1)]]


def _layout(model: str, text: str) -> list[tuple[str, int]]:
    """MIG layout of one card as (profile, instances), by profile."""
    found: dict[str, int] = {}
    for part in filter(None, re.split(r"[+,\s]+", text.lower())):
        matched = re.fullmatch(r"(\d+g\.\d+gb)(?:\*(\d+))?", part)
        if matched is None:
            raise ValueError(f"mig_layout: found {part!r}, expected profiles such as 1g.10gb*7 or 3g.40gb*1+4g.40gb*1")
        if profile_shares(model, matched[1]) is None:
            names = sorted({known.profile for known in MIG_PROFILES if known.gpu_model.startswith(model)})
            raise ValueError(f"mig_layout: {model} has no profile {matched[1]!r}; it has {', '.join(names) or 'none'}")
        found[matched[1]] = found.get(matched[1], 0) + int(matched[2] or 1)
    return sorted(found.items())


def _asset(row: Row) -> list[Row]:
    if row["life_months"] == 0:
        raise ValueError("life_months: found 0, expected 1 or more")
    if row["residual_amount"] > row["purchase_amount"]:
        raise ValueError("residual_amount: expected no more than purchase_amount")
    if row["power_watts"] is not None and row["energy_price"] is None:
        raise ValueError("energy_price: expected a price of one kWh, since power_watts is given")
    names = {
        "in_service": "in_service_at",
        "retired": "retired_at",
        "life_months": "life_months_count",
        "energy_price": "energy_price_amount",
        "monthly_fee": "monthly_fee_amount",
    }
    return [_renamed(row, **names)]


def _policy(row: Row) -> list[Row]:
    known = policy(row["policy"])
    if known is not None and known.choices and row["value"] not in known.choices:
        raise ValueError(f"value: found {row['value']!r}, expected one of {', '.join(known.choices)}")
    if known is not None and known.subjects and row["subject"] not in known.subjects:
        raise ValueError(f"subject: found {row['subject']!r}, expected one of {', '.join(known.subjects)}")
    if known is not None and not known.choices:
        _decimal(row["value"])
    return [_renamed(row, effective_from="effective_from_at")]


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        return [name.strip() for name in next(csv.reader(lines), [])]


def _read(
    kind: str, paths: Sequence[Path], event: type[Event], to_events: Callable[[Row], list[Row]]
) -> Iterator[Chunk]:
    """Read files of one kind; a later line with the same key replaces an earlier one, which is rejected by name."""
    for path in paths:
        header = _header(path)
        lacking = [field.name for field in FIELDS[kind] if field.is_required and field.name not in header]
        if header and lacking:
            raise SourceError(
                f"{path}: column {', '.join(lacking)} missing; found {', '.join(header)}; expected {columns_help(kind)}"
            )
        newest: dict[tuple[Any, ...], tuple[str, list[Row]]] = {}
        rejected, count = [], 0
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            reader = csv.DictReader(lines)
            for cells in reader:
                count += 1
                position = f"{path.name}:{reader.line_num}"
                raw = ",".join(str(value) for value in cells.values())
                try:
                    rows = to_events(_parsed(kind, cells))
                except ValueError as error:
                    rejected.append(rejected_row(kind, position, str(error), raw))
                    continue
                for row in rows:
                    key = tuple(row.get(name) for name in keys(event))
                    if key in newest and newest[key][1] != [row]:
                        rejected.append(rejected_row(kind, newest[key][0], f"overwritten by {position}", raw))
                    newest[key] = (position, [row])
        found = [row for _, rows in newest.values() for row in rows]
        schema = polars_schema(event)
        frame = pl.DataFrame([{name: row.get(name) for name in schema} for row in found], schema=schema)
        yield Chunk({event: frame}, rejected_frame(rejected), rows_read=count)


def _parsed(kind: str, cells: dict[str | Any, str | Any]) -> Row:
    """Values of one line by column.

    Raises:
      ValueError: Naming the column, what was found and what was expected.
    """
    if None in cells:
        raise ValueError(f"found more cells than the header has columns ({columns_help(kind)})")
    row: Row = {}
    for field in FIELDS[kind]:
        text = (cells.get(field.name) or "").strip()
        if not text:
            if field.is_required:
                raise ValueError(f"{field.name}: found nothing, expected a value")
            row[field.name] = field.default
            continue
        try:
            row[field.name] = field.parse(text)
        except ValueError as error:
            raise ValueError(f"{field.name}: found {text!r}, {error}") from None
    return row
