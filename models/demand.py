"""Demand for GPUs by the hour: what was wanted, and seeded scenarios of what will be.

Does not belong here: reading the ledger, and deciding what to buy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.policies import UNCLASSIFIED, WORKLOAD_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

__all__ = ["UNCLASSIFIED", "WORKLOAD_CLASSES", "Scenarios"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenarios:
    """Demand of T hours from ``start_at``, in S scenarios, for P pools.

    One scenario with probability 1 is a history or a single forecast.

    Attributes:
      start_at: First hour, UTC.
      pools: Names (P).
      probability: Of each scenario (S), adding up to 1.
      gpus: GPUs wanted by workload class, (S, T, P) each.
      seed: Seed they were drawn with; None for a history.
    """

    start_at: datetime
    pools: tuple[str, ...]
    probability: NDArray[np.float64]
    gpus: Mapping[str, NDArray[np.float64]]
    seed: int | None = None

    def total(self) -> NDArray[np.float64]:
        """GPUs wanted by all classes together (S, T, P)."""
        return np.sum(list(self.gpus.values()), axis=0)
