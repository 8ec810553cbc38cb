from __future__ import annotations

from typing import Any

import pytest

from models.errors import UsageError
from models.procurement.policy import PlanPolicy, assumptions


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"discount_ratio": -0.1}, r"discount_ratio: found -0.1, expected 0 to 1"),
        ({"spot_goodput_ratio": 0}, "spot_goodput_ratio: found 0, expected above 0, at most 1"),
        ({"start_months": ()}, "start_months"),
        ({"start_months": (3, 0)}, "start_months: found .*, expected months of 0 or more, ascending"),
        ({"spot_share_ratio": {"inference": 0.5}}, "inference never runs on spot"),
        ({"spot_share_ratio": {"batch": 0.5}}, "spot_share_ratio: found .*batch.*, expected 0 to 1 by inference"),
        ({"on_demand_gpus": {"h100": -1}}, "on_demand_gpus"),
        ({"tail_level_ratio": 1.0}, "tail_level_ratio"),
        ({"shortfall_factor": 0.5}, "shortfall_factor: found 0.5, expected 1 or more"),
        ({"budget_micros": -1}, "budget_micros: found -1, expected 0 or more"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_its_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PlanPolicy(**given)


def test_every_assumption_is_said_with_its_meaning() -> None:
    said = assumptions(PlanPolicy(discount_ratio=0.08))
    assert ("discount_ratio", "0.08", "cost of capital a year, at which later payments are discounted") in said
    assert all(meaning for _, _, meaning in said)
