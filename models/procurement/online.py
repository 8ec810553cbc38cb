"""Reserve without a forecast: the deterministic online rule that costs at most ``2 - alpha`` times the best plan.

Source: Wang, Li and Liang, "To Reserve or Not to Reserve: Optimal Online Multi-Instance Acquisition in IaaS Clouds"
(arXiv 1305.5608), algorithm A_beta. It is ski rental for many levels at once: level ``k`` of the demand reserves in the
hour in which its on-demand spend over the last reservation period exceeds ``beta = 1 / (1 - alpha)`` fees, where ``alpha``
is the price of an hour under a reservation over the on-demand price. The hour itself is then served by the new
reservation; without that the bound does not hold. Here as a baseline that no forecast helps (``baselines``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.errors import UsageError

if TYPE_CHECKING:
    from models.procurement.problem import Floats, Integers


def reservations(  # noqa: PLR0913 - a reservation is that many numbers
    demand: Floats, past: Floats, *, term_hours: int, on_demand_price: float, fee: float, usage_ratio: float = 0.0
) -> Integers:
    """How many units are reserved in each hour, each for ``term_hours`` from that hour on.

    Args:
      demand: Units wanted in each hour (T); a part of a unit is a level that is used in part.
      past: Units wanted in the hours before (any number): their on-demand spend counts, and nothing is reserved from them.
      term_hours: Length of a reservation.
      on_demand_price: Money per unit-hour on demand.
      fee: Money per unit for one term.
      usage_ratio: Price of a unit-hour under a reservation over the on-demand price (alpha).

    Raises:
      UsageError: ``usage_ratio`` is not at least 0 and below 1, or the term is not positive.
    """
    if not 0 <= usage_ratio < 1:
        raise UsageError(f"usage_ratio: found {usage_ratio}, expected 0 or more, below 1")
    if term_hours < 1:
        raise UsageError(f"term_hours: found {term_hours}, expected 1 or more")
    before = past[-(term_hours - 1) :] if term_hours > 1 else past[:0]
    # What no reservation, and no reservation imagined for the hours before it was made, has covered yet.
    open_units = np.concatenate([before, demand]).astype(np.float64)
    allowed_hours = fee / (1 - usage_ratio) / on_demand_price
    made = np.zeros(len(demand), dtype=np.int64)
    for hour in range(len(demand)):
        now = len(before) + hour
        recent = open_units[max(0, now - term_hours + 1) : now + 1]
        made[hour] = _levels_above(recent, allowed_hours)
        open_units[max(0, now - term_hours + 1) : now + term_hours] -= made[hour]
    return made


def active(made: Integers, term_hours: int) -> Integers:
    """Reservations that run in each hour (T), from the numbers made in each hour.

    >>> active(np.array([1, 0, 2, 0]), 3).tolist()
    [1, 1, 3, 2]
    """
    total = np.cumsum(made)
    ended = np.concatenate([np.zeros(min(term_hours, len(made)), dtype=np.int64), total[: -term_hours or None]])
    return np.asarray(total - ended[: len(made)])


def _levels_above(recent: Floats, allowed_hours: float) -> int:
    """Levels that were on demand for more than ``allowed_hours`` in the hours given, all levels at once."""
    top = int(np.ceil(max(recent.max(), 0.0)))
    hours = np.clip(recent[:, None] - np.arange(top), 0.0, 1.0).sum(axis=0)
    return int(np.count_nonzero(hours > allowed_hours * (1 + 1e-12)))
