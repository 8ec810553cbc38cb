from __future__ import annotations

import math
from dataclasses import fields

import pytest

from models.break_even_inputs import ABOVE_0, ANY, LIMITS, PART, RATIO, UNCERTAIN, Inputs, Limit


@pytest.mark.parametrize(
    ("limit", "allowed", "refused"),
    [
        (ANY, [0, 1e9], [-1e-9, math.inf, math.nan]),
        (ABOVE_0, [1e-9, 1e9], [0, -1, math.inf, math.nan]),
        (RATIO, [0, 0.5, 1], [-0.1, 1.1]),
        (PART, [1e-9, 1], [0, 1.1]),
        (Limit(1, 2), [1, 2], [0.99, 2.01]),
    ],
)
def test_a_limit_holds_what_it_says(limit: Limit, allowed: list[float], refused: list[float]) -> None:
    assert all(map(limit.holds, allowed))
    assert not any(map(limit.holds, refused))


def test_every_number_of_the_inputs_has_a_limit() -> None:
    numbers = {one.name for one in fields(Inputs) if str(one.type).split(" ")[0] in {"int", "float"}}
    assert numbers <= LIMITS.keys()
    assert {*UNCERTAIN} <= numbers
