"""Columns of the small record files, declared once: reading, error messages and help texts are derived from here.

A parser turns non-empty text into a value, or raises ValueError saying what it expected. Nothing is rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from models.gpus import canonical_model
from models.policies import POLICIES
from models.prices import Instrument, Scope
from models.procurement_events import COMMITMENT_STATES, INTERRUPTION_CAUSES, PAYMENT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """Instant in UTC, whole seconds: a date is its midnight in UTC, a time needs a zone.

    Raises:
      ValueError: Saying what was expected.

    >>> instant("2026-10-15").isoformat()
    '2026-10-15T00:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            found = found.replace(tzinfo=UTC)
        if found.tzinfo is not None:
            return found.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        pass
    raise ValueError("expected a date such as 2026-10-15, or an instant with its zone such as 2026-10-15T12:00:00Z")


def _month(text: str) -> datetime:
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text):
        raise ValueError("expected a month such as 2026-10")
    return instant(f"{text}-01")


def count(text: str) -> int:
    """Parser of whole numbers."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError("expected a whole number of 0 or more, at most nine digits")
    return int(text)


def _positive_count(text: str) -> int:
    if not (found := count(text)):
        raise ValueError("expected 1 or more")
    return found


def _number(*, digits: int = 26, places: int = 12, least: str = "0") -> Callable[[str], Decimal]:
    """Parser of numbers that fit a column exactly: nothing is rounded."""

    def parse(text: str) -> Decimal:
        if not re.fullmatch(rf"[0-9]{{1,{digits}}}([.][0-9]{{1,{places}}}0*)?", text):
            raise ValueError(
                f"expected a number such as 1234.56, at most {digits} digits and {places} decimals, without sign, "
                "separators or currency"
            )
        if Decimal(text) < Decimal(least):
            raise ValueError(f"expected {least} or more")
        return Decimal(text)

    return parse


_AMOUNT = _number()


def _positive(text: str) -> Decimal:
    if not (found := _AMOUNT(text)):
        raise ValueError("expected a number above 0")
    return found


def _measure(text: str) -> float:
    return float(_AMOUNT(text))


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


def _gpu_model(text: str) -> str:
    found = canonical_model(text)
    if found is None:
        raise ValueError("expected a GPU model such as H100-80GB")
    return found


def _rate(text: str) -> Decimal:
    found = _number(digits=9, places=9)(text)
    if not found:
        raise ValueError("expected a rate above 0")
    return found


def ratio(text: str) -> Decimal:
    """Parser of parts of a whole."""
    found = _AMOUNT(text)
    if found > 1:
        raise ValueError("expected a ratio of 0 to 1")
    return found


def _currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise ValueError("expected a three-letter ISO 4217 code such as EUR")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """Parser of one of some words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}" if choices else "expected nothing")
        return text

    return parse


def kind_and_name(*kinds: str) -> Callable[[str], str]:
    """Parser of a kind and a name, such as partition:gpu."""

    def parse(text: str) -> str:
        kind, _, name = text.partition(":")
        if kind not in kinds or not name:
            raise ValueError(f"expected one of {', '.join(f'{one}:NAME' for one in kinds)}")
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
        Field("gpu_count", count, is_required=True),
        Field("mig_layout", str, default=""),
        Field("effective_from", instant, is_required=True),
        Field("effective_until", instant),
        Field("resource_id", str),
        Field("capacity_type", one_of("owned", "reserved", "on_demand", "spot")),
    ),
    "node_states": (
        Field("cluster", str, is_required=True),
        Field("node", str, is_required=True),
        Field("changed_at", instant, is_required=True),
        Field("state", one_of("up", "down", "drain"), is_required=True),
        Field("reason", str),
    ),
    "assets": (
        Field("asset_id", str, is_required=True),
        Field("cluster", str, is_required=True),
        Field("node", str),
        Field("in_service", instant, is_required=True),
        Field("retired", instant),
        Field("life_months", count, is_required=True),
        Field("purchase_amount", _AMOUNT, is_required=True),
        Field("residual_amount", _AMOUNT, is_required=True),
        Field("currency", _currency, is_required=True),
        Field("power_watts", _measure),
        Field("power_usage_effectiveness", _number(least="1")),
        Field("energy_price", _AMOUNT),
        Field("monthly_fee", _AMOUNT),
    ),
    "fx": (
        Field("month", _month, is_required=True),
        Field("currency", _currency, is_required=True),
        Field("rate", _rate, is_required=True),
    ),
    "policies": (
        Field("policy", one_of(*(known.name for known in POLICIES)), is_required=True),
        Field("subject", str, default=""),
        Field("effective_from", instant, is_required=True),
        Field("value", str, is_required=True),
    ),
    "prices": (
        Field("offer_id", str, is_required=True),
        Field("gpu_model", _gpu_model, is_required=True),
        Field("region", str, default=""),
        Field("zone", str, default=""),
        Field("observed_at", instant, is_required=True),
        Field("instrument", one_of(*Instrument), is_required=True),
        Field("provider", str, is_required=True),
        Field("instance_type", str),
        Field("operating_system", str),
        Field("gpu_count", _positive_count, is_required=True),
        Field("scope", one_of(*Scope), is_required=True),
        Field("has_capacity", _flag, is_required=True),
        Field("term_seconds", _positive_count),
        Field("payment_option", one_of(*PAYMENT_OPTIONS)),
        Field("upfront_amount", _AMOUNT),
        Field("hourly_amount", _AMOUNT),
        Field("residual_amount", _AMOUNT),
        Field("life_months_count", _positive_count),
        Field("power_watts", _measure),
        Field("monthly_fee_amount", _AMOUNT),
        Field("lead_seconds", count),
        Field("reference_gpu_quantity", _positive),
        Field("currency", _currency, is_required=True),
        Field("valid_from_at", instant),
        Field("valid_until_at", instant),
        Field("price_source", str, is_required=True),
    ),
    "commitments": (
        Field("commitment_id", str, is_required=True),
        Field("instrument", one_of(*(one for one in Instrument if one is not Instrument.SPOT)), is_required=True),
        Field("provider", str, is_required=True),
        Field("offer_id", str),
        Field("region", str),
        Field("zone", str),
        Field("gpu_model", _gpu_model),
        Field("instance_type", str),
        Field("scope", one_of(*Scope), is_required=True),
        Field("has_capacity", _flag, is_required=True),
        Field("starts_at", instant, is_required=True),
        Field("ends_at", instant, is_required=True),
        Field("gpu_count", _positive_count),
        Field("hourly_commitment_amount", _positive),
        Field("hourly_amount", _AMOUNT),
        Field("upfront_amount", _AMOUNT),
        Field("payment_option", one_of(*PAYMENT_OPTIONS)),
        Field("currency", _currency, is_required=True),
        Field("state", one_of(*COMMITMENT_STATES), is_required=True),
    ),
    "interruptions": (
        Field("cluster", str, is_required=True),
        Field("run_id", str, is_required=True),
        Field("started_at", instant, is_required=True),
        Field("interrupted_at", instant, is_required=True),
        Field("cause", one_of(*INTERRUPTION_CAUSES), is_required=True),
        Field("node", str),
        Field("gpu_count", count),
        Field("notice_seconds", count),
    ),
    "checkpoints": (
        Field("cluster", str, is_required=True),
        Field("run_id", str, is_required=True),
        Field("saved_at", instant, is_required=True),
        Field("blocking_seconds", count),
        Field("size_mib", _measure),
    ),
}
"""Columns of each kind of record file, in order."""


def columns_help(kind: str) -> str:
    """Header line of a kind of file, required columns marked with *."""
    return ", ".join(f"{field.name}{'*' if field.is_required else ''}" for field in FIELDS[kind])
