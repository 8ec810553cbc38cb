"""Read what a break-even depends on from a YAML file: every key is known, every number is possible, or it is refused.

Does not belong here: what is computed from it, see ``models/break_even.py``.
"""

from __future__ import annotations

import difflib
from dataclasses import fields
from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from models.break_even import node_watts
from models.break_even_inputs import LIMITS, UNCERTAIN, Comparator, Inputs, Range, Shape, UpfrontOffer
from models.currencies import CURRENCIES
from models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHOLE = {one.name for one in fields(Inputs) if one.type == "int"}
STATED = [one.name for one in fields(Inputs) if one.name in LIMITS and one.default is not None and one.default != 1.0]
"""The numbers that every file states: not the measured watts, and not the factor on prices, which is 1 as observed."""
MEASURED = ("measured_node_watts", "measured_board_watts", "host_watts")


class _Record:
    """A mapping of the file: each key is read once, and what was not read is unknown."""

    def __init__(self, place: str, found: object, keys: set[str]) -> None:
        """Take the mapping at ``place``, such as ``costs.yaml: comparators 2``.

        Raises:
          UsageError: It is no mapping, or has a key that is not among ``keys``.
        """
        self.place = place
        if not isinstance(found, dict):
            refuse(place, f"keys with values: {', '.join(sorted(keys))}", found)
        self.found: dict[object, Any] = found
        for key in found:
            if key not in keys:
                near = difflib.get_close_matches(str(key), keys, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                refuse(f"{place}: {key}", f"one of the keys {', '.join(sorted(keys))}", key, hint)

    def number(self, key: str, name: str = "") -> float:
        """A number that the limit of ``name``, the key itself unless given, allows."""
        value, limit = self.found.get(key), LIMITS[name or key]
        is_whole = (name or key) in WHOLE
        kinds = (int,) if is_whole else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool) or not limit.holds(value):
            refuse(f"{self.place}: {key}", f"{limit}" + (", whole" if is_whole else ""), value)
        return value

    def text(self, key: str) -> str:
        """A text that says something."""
        value = self.found.get(key)
        if not isinstance(value, str) or not value.strip():
            refuse(f"{self.place}: {key}", "a text that is not empty", value)
        return value.strip()

    def day(self, key: str) -> date:
        """A date."""
        value = self.found.get(key)
        if type(value) is not date:
            refuse(f"{self.place}: {key}", "a date such as 2026-07-30", value)
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.found.get(key)
        if not isinstance(value, bool):
            refuse(f"{self.place}: {key}", "true or false", value)
        return value

    def items(self, key: str, what: str, *, may_be_empty: bool = False) -> list[Any]:
        """A list."""
        value = self.found.get(key, [] if may_be_empty else None)
        if not isinstance(value, list) or not (value or may_be_empty):
            refuse(f"{self.place}: {key}", f"a list of {what}" + ("" if may_be_empty else ", at least one"), value)
        return value

    def records(self, key: str, keys: set[str], *, may_be_empty: bool = False) -> Iterator[_Record]:
        """A list of mappings."""
        for position, one in enumerate(self.items(key, key.replace("_", " "), may_be_empty=may_be_empty), start=1):
            yield _Record(f"{self.place}: {key} {position}", one, keys)


def read_inputs(path: Path) -> Inputs:
    """Read the inputs of a break-even.

    Raises:
      UsageError: The file cannot be read or is no YAML, or a value is missing, unknown or impossible; the message names
        file, key, what was expected and what was found.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}: expected a YAML file of inputs") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{path}: expected YAML, found {' '.join(str(error).split())}") from None
    known = {*STATED, *MEASURED, "currency", "utilisations", "comparators", "ranges", "upfront_offers"}
    record = _Record(str(path), found, known)
    currency = record.text("currency")
    if currency not in CURRENCIES:
        refuse(f"{path}: currency", "a code of ISO 4217 such as USD", currency)
    stated: dict[str, Any] = {name: record.number(name) for name in STATED}
    stated["measured_node_watts"] = _measured_watts(record, int(stated["gpus_per_node"]))
    inputs = Inputs(
        **stated,
        currency=currency,
        utilisations=_utilisations(record),
        comparators=_comparators(record),
        ranges=_ranges(record, stated),
        upfront_offers=_upfront_offers(record),
    )
    _check_names(f"{path}: comparators", [one.name for one in inputs.comparators])
    return inputs


def _measured_watts(record: _Record, gpus_per_node: int) -> float | None:
    """Mean watts of a node: at the plug, or from those of its boards and its host; None where none was measured."""
    at_plug, of_board, of_host = (name in record.found for name in MEASURED)
    if at_plug and (of_board or of_host):
        refuse(record.place, "measured_node_watts, or measured_board_watts with host_watts", "both")
    if at_plug:
        return record.number("measured_node_watts")
    if of_board or of_host:  # one without the other is unknown, not 0
        board, host = (record.number(name, "measured_node_watts") for name in MEASURED[1:])
        return node_watts(board, gpus_per_node, host)
    return None


def _utilisations(record: _Record) -> tuple[float, ...]:
    what = "delivered parts of all GPU-hours"
    listed = record.items("utilisations", what)
    found = [_Record(f"{record.place}: utilisations {place}", {"expected_utilisation": one}, {"expected_utilisation"})
             for place, one in enumerate(listed, start=1)]  # fmt: skip
    values = tuple(one.number("expected_utilisation") for one in found)
    _check_names(f"{record.place}: utilisations", values)
    return values


def _comparators(record: _Record) -> tuple[Comparator, ...]:
    return tuple(
        Comparator(
            one.text("name"),
            one.number("price_per_gpu_hour"),
            one.flag("is_committed"),
            one.text("source"),
            one.day("observed_at"),
        )
        for one in record.records("comparators", {field.name for field in fields(Comparator)})
    )


def _upfront_offers(record: _Record) -> tuple[UpfrontOffer, ...]:
    return tuple(
        UpfrontOffer(
            one.text("name"),
            float(one.number("term_years")),
            one.number("upfront_price_per_hour"),
            one.number("no_upfront_price_per_hour"),
            one.text("source"),
            one.day("observed_at"),
        )
        for one in record.records("upfront_offers", {field.name for field in fields(UpfrontOffer)}, may_be_empty=True)
    )


def _ranges(record: _Record, stated: dict[str, Any]) -> dict[str, Range]:
    """The ranges, each of an input that counts and around its stated value."""
    unused = "measured_node_watts" if stated["measured_node_watts"] is None else "load_ratio"
    ranged = _Record(f"{record.place}: ranges", record.found.get("ranges", {}), {*UNCERTAIN} - {unused})
    found = {}
    for name in ranged.found:
        one = _Record(f"{ranged.place}: {name}", ranged.found[name], {field.name for field in fields(Range)})
        low, high = (one.number(end, str(name)) for end in ("low", "high"))
        value = stated.get(str(name), 1.0)
        if not low <= value <= high:
            refuse(one.place, f"low and high around the stated {value:g}", f"{low:g} to {high:g}")
        shape = one.text("shape")
        if shape not in {*Shape}:
            refuse(f"{one.place}: shape", " or ".join(Shape), shape)
        found[str(name)] = Range(low, high, Shape(shape), one.text("source"), one.text("as_of"))
    return found


def _check_names(place: str, names: tuple[float, ...] | list[str]) -> None:
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        refuse(place, "each once", f"{twice[0]} twice")


def refuse(place: str, expected: str, found: object, hint: str = "") -> NoReturn:
    """Say what is wrong, where.

    Raises:
      UsageError: Always.
    """
    shown = "nothing" if found is None else str(found) if isinstance(found, str | int | float) else repr(found)
    raise UsageError(f"{place}: expected {expected}; found {shown}{hint}")
