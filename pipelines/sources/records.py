"""Small record files: organisation, nodes and their states, owned assets, exchange rates, policies.

Their columns are declared in ``record_columns``; how a file is read, and what is told of a bad line: ``record_files``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from models.events import (
    AssetRecorded,
    FxRateObserved,
    GpuInventoried,
    NodeStateChanged,
    OwnershipAssigned,
    PolicySet,
)
from models.gpus import MIG_PROFILES, canonical_model, profile_shares
from models.policies import POLICIES
from models.units import SHARES_PER_GPU
from pipelines.sources.record_columns import Field, count, kind_and_name, one_of, ratio
from pipelines.sources.record_files import Row, parsed_cell, read_records, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.sources.base import Chunk


def read_org(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Organisation: who pays for an account from a day on.

    Raises:
      SourceError: A file cannot be read, is empty, or its header is not this kind's.
    """
    return read_records(
        "org", paths, OwnershipAssigned, lambda row: [_renamed(row, effective_from="effective_from_at")]
    )


def read_nodes(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Nodes with their GPUs, or node states, told apart by their header.

    Raises:
      SourceError: As ``read_org``.
    """
    states = [path for path in paths if {"state", "changed_at"} & set(table(path)[0])]
    nodes = [path for path in paths if path not in states]
    if states:
        yield from read_records("node_states", states, NodeStateChanged, lambda row: [row])
    if nodes:
        yield from read_records("nodes", nodes, GpuInventoried, _inventory)


def read_assets(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Owned assets of the register.

    Raises:
      SourceError: As ``read_org``.
    """
    return read_records("assets", paths, AssetRecorded, _asset)


def read_fx(paths: Sequence[Path], *, reporting_currency: str) -> Iterator[Chunk]:
    """Exchange rates: reporting currency for one unit of a currency, by month.

    Raises:
      SourceError: As ``read_org``.
    """

    def rate(row: Row) -> list[Row]:
        if row["currency"] == reporting_currency and row["rate"] != 1:
            raise ValueError(f"rate: found {row['rate']}, expected 1: {reporting_currency} is the reporting currency")
        return [{**_renamed(row, month="observed_at", rate="fx_rate"), "reporting_currency": reporting_currency}]

    return read_records("fx", paths, FxRateObserved, rate)


def read_policies(paths: Sequence[Path]) -> Iterator[Chunk]:
    """Dated policies, checked against ``models/policies.py``.

    Raises:
      SourceError: As ``read_org``.
    """
    return read_records("policies", paths, PolicySet, _policy)


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
        "mig_layout": "+".join(f"{profile}*{number}" for profile, number in layout),
        "effective_from_at": row["effective_from"],
        "effective_until_at": row["effective_until"],
        "card_count": row["gpu_count"],
        "resource_id": row["resource_id"],
        "capacity_type": row["capacity_type"],
    }
    if row["effective_until"] is not None and row["effective_until"] <= row["effective_from"]:
        raise ValueError("effective_until: expected an instant after effective_from")
    return [{**common, "mig_profile": name, "slices_per_card_count": number} for name, number in layout or [("", 1)]]


def _layout(model: str, text: str) -> list[tuple[str, int]]:
    """MIG layout of one card as (profile, instances), by profile."""
    found: dict[str, int] = {}
    for part in filter(None, re.split(r"[+,\s]+", text.lower())):
        matched = re.fullmatch(r"(\d+g\.\d+gb)(?:[*]([1-9][0-9]?))?", part)
        if matched is None:
            raise ValueError(f"mig_layout: found {part!r}, expected profiles such as 1g.10gb*7 or 3g.40gb*1+4g.40gb*1")
        if profile_shares(model, matched[1]) is None:
            names = sorted(
                {known.profile for known in MIG_PROFILES if model in (known.gpu_model, known.gpu_model.split("-")[0])}
            )
            raise ValueError(
                f"mig_layout: found {matched[1]!r}, expected a profile of {model}: {', '.join(names) or 'it has none'}"
            )
        found[matched[1]] = found.get(matched[1], 0) + int(matched[2] or 1)
    compute_shares = sum((profile_shares(model, name, "compute") or 0) * number for name, number in found.items())
    if compute_shares > SHARES_PER_GPU:
        raise ValueError(f"mig_layout: found {text!r}, expected no more compute slices than one card has")
    return sorted(found.items())


def _asset(row: Row) -> list[Row]:
    if row["life_months"] == 0:
        raise ValueError("life_months: found 0, expected 1 or more")
    if row["retired"] is not None and row["retired"] <= row["in_service"]:
        raise ValueError("retired: expected an instant after in_service")
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
    known = next(one for one in POLICIES if one.name == row["policy"])
    if known.name == "fixed_weight":
        subject = Field("subject", str, is_required=True)
    elif known.subject_kinds:
        subject = Field("subject", kind_and_name(*known.subject_kinds), is_required=not known.is_for_all, default="")
    else:
        subject = Field("subject", one_of(*known.subjects), is_required=bool(known.subjects), default="")
    parsed_cell(subject, row["subject"])
    choices = known.allowed(row["subject"] or "")
    value = one_of(*choices) if choices else ratio if known.name.endswith("_ratio") else count
    parsed_cell(Field("value", value), row["value"])
    return [_renamed(row, effective_from="effective_from_at")]
