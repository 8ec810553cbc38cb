"""Postings, statements in exact cents, and what keeps a month from closing: functions over facts.

The one rule of the ledger: posting = computed now − already posted. The first close posts the month, a later one only
what changed since, as a correction that names the month it corrects. Posted rows never change.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from decimal import Decimal

MICROS_PER_CENT = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Payer:
    """Who bears what kind of cost of which month."""

    charge_month: date
    business_unit: str
    team: str
    project: str
    cost_kind: str


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU time and money, both signed integers in the ledger's units."""

    share_seconds: int
    micros: int


def postings(computed: Mapping[Payer, Cost], posted: Mapping[Payer, Cost]) -> dict[Payer, Cost]:
    """What to post: computed now − already posted, without lines that are zero.

    >>> from datetime import date
    >>> payer = Payer(date(2026, 9, 1), "Research", "vision", "", "usage")
    >>> postings({payer: Cost(10, 90)}, {payer: Cost(10, 100)})[payer]
    Cost(share_seconds=0, micros=-10)
    """
    nothing = Cost(0, 0)
    found = {}
    for payer in sorted(computed.keys() | posted.keys()):
        now, before = computed.get(payer, nothing), posted.get(payer, nothing)
        difference = Cost(now.share_seconds - before.share_seconds, now.micros - before.micros)
        if difference != nothing:
            found[payer] = difference
    return found


def postings_digest(lines: Iterable[tuple[Payer, Cost]]) -> str:
    """SHA-256 of postings, whatever their order: equal digests mean unchanged books."""
    text = "\n".join(
        f"{p.charge_month}|{p.business_unit}|{p.team}|{p.project}|{p.cost_kind}|{c.share_seconds}|{c.micros}"
        for p, c in sorted(lines, key=lambda line: line[0])
    )
    return hashlib.sha256(text.encode()).hexdigest()


def statement_cents(micros: Sequence[int]) -> list[int]:
    """Round lines to cents so that they add up to the rounded total exactly.

    Each line is floored to cents and the cents that are missing go to the largest remainders, so no line is off by a cent
    or more from its exact value.

    >>> statement_cents([333_333, 333_333, 333_334])
    [33, 33, 34]
    """
    floors = [value // MICROS_PER_CENT for value in micros]
    total_cents = (sum(micros) + MICROS_PER_CENT // 2) // MICROS_PER_CENT
    missing = total_cents - sum(floors)
    by_remainder = sorted(range(len(micros)), key=lambda line: (-(micros[line] % MICROS_PER_CENT), line))
    for line in by_remainder[:missing]:
        floors[line] += 1
    return floors


@dataclass(frozen=True, slots=True)
class Coverage:
    """How complete the facts of a month are.

    Attributes:
      priced_ratio: Part of allocated GPU time whose cost is known; None without allocated time.
      measured_ratio: Part of allocated GPU time with telemetry on clusters that have any; None without.
      missing_rates: Currencies without an exchange rate.
      difference_micros: Billed less charged, held and unmatched.
      unproved_bills: Bills whose placed parts do not add up.
      used_until_day: Last day of which a run, a sample or a node's state is known; None where nothing is.
    """

    priced_ratio: float | None
    measured_ratio: float | None
    missing_rates: tuple[str, ...]
    difference_micros: int
    unproved_bills: tuple[str, ...]
    used_until_day: date | None


def obstacles(coverage: Coverage, last_day: date, least_priced: Decimal, least_measured: Decimal) -> list[str]:
    """Why the month that ends with ``last_day`` may not close; empty when it may."""
    found = []
    if coverage.used_until_day is not None and coverage.used_until_day < last_day:
        found.append(
            f"runs and telemetry are known only until {coverage.used_until_day}: ingest those of the days up to {last_day}"
        )
    if coverage.difference_micros:
        found.append(f"the month does not add up: billed differs from its parts by {coverage.difference_micros} micros")
    if coverage.unproved_bills:
        found.append(f"bills whose lines do not add up to their total: {', '.join(coverage.unproved_bills)}")
    if coverage.missing_rates:
        found.append(f"no exchange rate for {', '.join(coverage.missing_rates)}: ingest an fx file")
    if coverage.priced_ratio is not None and coverage.priced_ratio < least_priced:
        found.append(
            f"only {_percent(coverage.priced_ratio)} of allocated GPU time has a known cost, policy close_min_priced_ratio asks for "
            f"{least_priced:.1%}: ingest the missing bill or assets"
        )
    if coverage.measured_ratio is not None and coverage.measured_ratio < least_measured:
        found.append(
            f"only {_percent(coverage.measured_ratio)} of allocated GPU time has telemetry, policy close_min_measured_ratio asks for "
            f"{least_measured:.1%}: ingest the missing telemetry, or set the policy"
        )
    return found


def _percent(ratio: float) -> str:
    """Rounded down, so that what falls short of a bound never reads like the bound."""
    return f"{math.floor(ratio * 1000) / 10:.1f}%"
