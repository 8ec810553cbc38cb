"""What the organisation decides about buying: the plan's policy, each field with its unit and what it is for.

Every default is printed with a plan, so that nobody signs an assumption unseen. Does not belong here: reading it from a
file, and applying it (``compile``).
"""

from __future__ import annotations

# Needed at run time: settings are read by these annotations.
from collections.abc import Mapping  # noqa: TC003
from dataclasses import dataclass, field, fields
from typing import Any

from models.demand import WORKLOAD_CLASSES
from models.errors import UsageError
from models.units import money


def _said(doc: str, default: Any) -> Any:
    shared = {"doc": doc}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=shared)
    return field(default=default, metadata=shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPolicy:
    """Policy of a plan. Money is in micros of the reporting currency; None means no such limit.

    Raises:
      UsageError: A value is out of its range; names the field, what was found and what was expected.
    """

    discount_ratio: float = _said("cost of capital a year, at which later payments are discounted", 0.10)
    later_use_ratio: float = _said("part of an obligation beyond the horizon that will still be worth its price", 0.7)
    start_months: tuple[int, ...] = _said("months after the start in which purchases may begin", (0,))
    spot_share_ratio: Mapping[str, float] = _said("most part of a class's demand on spot", {"deferrable": 0.8})
    spot_goodput_ratio: float = _said("useful part of a spot GPU-hour, after interruptions and checkpoints", 0.85)
    spot_gpus: Mapping[str, float] = _said("spot GPUs that can be had at once, by pool; absent: no limit", {})
    on_demand_gpus: Mapping[str, float] = _said("on-demand GPUs that can be had at once, by pool; absent: no limit", {})
    shortfall_factor: float = _said("a GPU-hour that nothing serves costs so many times the pool's dearest price", 3.0)
    inference_availability_ratio: float | None = _said(
        "part of the hours in which inference fits on capacity that is held ready; None: not asked for", None
    )
    inference_spare_nodes: int = _said("nodes held ready for inference on top (N+1)", 1)
    power_cap_watts: float | None = _said("facility power that newly bought GPUs may draw", None)
    power_usage_effectiveness: float = _said("facility power / IT power of owned GPUs", 1.3)
    energy_micros_per_kwh: int = _said("price of energy for owned GPUs", 80_000)
    budget_micros: int | None = _said("most money committed within the horizon, undiscounted", None)
    exposure_micros: int | None = _said("most money still owed on all commitments at any time", None)
    ladder_ratio: float | None = _said("most part of the purchases that may start in one quarter", None)
    tail_weight_ratio: float = _said("weight of the bad tail (CVaR) against the expected cost", 0.0)
    tail_level_ratio: float = _said("level of the CVaR: 0.95 is the mean of the worst 5 %", 0.95)
    whole_nodes: bool = _said("buy whole nodes only", True)

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        ratios = ("later_use_ratio", "tail_weight_ratio", "inference_availability_ratio", "ladder_ratio")
        for name in ratios:
            self._check(name, "0 to 1", lambda value: 0 <= value <= 1)
        self._check("tail_level_ratio", "0 or more, below 1", lambda value: 0 <= value < 1)
        self._check("spot_goodput_ratio", "above 0, at most 1", lambda value: 0 < value <= 1)
        self._check("discount_ratio", "0 to 1", lambda value: 0 <= value <= 1)
        self._check("shortfall_factor", "1 or more", lambda value: value >= 1)
        self._check("power_usage_effectiveness", "1 or more", lambda value: value >= 1)
        for name in (
            "inference_spare_nodes",
            "power_cap_watts",
            "energy_micros_per_kwh",
            "budget_micros",
            "exposure_micros",
        ):
            self._check(name, "0 or more", lambda value: value >= 0)
        self._check("start_months", "months of 0 or more, ascending", _ascend)
        for name in ("spot_gpus", "on_demand_gpus"):
            self._check(name, "GPUs of 0 or more", lambda value: all(one >= 0 for one in value.values()))
        self._check("spot_share_ratio", f"0 to 1 by {', '.join(WORKLOAD_CLASSES)}", _is_share)
        if self.spot_share_ratio.get("inference"):
            raise UsageError("spot_share_ratio: found inference, expected none: inference never runs on spot")

    def _check(self, name: str, expected: str, holds: Any) -> None:
        value = getattr(self, name)
        if value is not None and not holds(value):
            raise UsageError(f"{name}: found {value}, expected {expected}")


def _ascend(months: tuple[int, ...]) -> bool:
    return bool(months) and months[0] >= 0 and list(months) == sorted(set(months))


def _is_share(shares: Mapping[str, float]) -> bool:
    return all(name in WORKLOAD_CLASSES and 0 <= share <= 1 for name, share in shares.items())


def setting_name(field: str) -> str:
    """Key in plan.yaml of a field of the policy: people write amounts, not micros.

    >>> setting_name("budget_micros"), setting_name("energy_micros_per_kwh")
    ('budget_amount', 'energy_amount_per_kwh')
    """
    return field.replace("_micros", "_amount")


def assumptions(policy: PlanPolicy) -> list[tuple[str, str, str]]:
    """Every field of the policy as (key in plan.yaml, value there, meaning), for print and pages."""
    return [
        (setting_name(one.name), _as_set(one.name, getattr(policy, one.name)), one.metadata["doc"])
        for one in fields(policy)
    ]


def _as_set(field: str, value: Any) -> str:
    if value is None:
        return "none"
    return f"{money(value).normalize():f}" if "_micros" in field else str(value)
