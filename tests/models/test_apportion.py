from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.apportion import apportion

Weights = dict[str, int]


def some(max_weight: int, max_size: int) -> st.SearchStrategy[Weights]:
    """Weights of a few keys, not all zero."""
    weights = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, max_weight), min_size=1, max_size=max_size)
    return weights.filter(lambda found: any(found.values()))


def nearest_whole_split(total: int, weights: Weights) -> Weights:
    """Of all ways to write ``total`` as whole parts, the one nearest to the exact shares; ties: most to the first key.

    An independent formulation: the largest remainder is what minimises the sum of squared errors.
    """
    keys = sorted(weights)
    exact = [Fraction(total * weights[key], sum(weights.values())) for key in keys]
    bars = combinations(range(total + len(keys) - 1), len(keys) - 1)
    edges = ((-1, *bar, total + len(keys) - 1) for bar in bars)
    splits = (tuple(right - left - 1 for left, right in pairwise(edge)) for edge in edges)

    def error(split: tuple[int, ...]) -> tuple[Fraction, tuple[int, ...]]:
        squares = sum(((part - share) ** 2 for part, share in zip(split, exact, strict=True)), Fraction(0))
        return squares, tuple(-part for part in split)

    return dict(zip(keys, min(splits, key=error), strict=True))


@given(total=st.integers(0, 12), weights=some(max_weight=9, max_size=4))
def test_is_the_nearest_of_all_whole_splits(total: int, weights: Weights) -> None:
    assert apportion(total, weights) == nearest_whole_split(total, weights)


@given(total=st.integers(-(10**18), 10**18), weights=some(max_weight=10**15, max_size=8))
def test_parts_add_up_and_are_less_than_one_from_exact(total: int, weights: Weights) -> None:
    parts = apportion(total, weights)
    assert sum(parts.values()) == total
    assert parts.keys() == weights.keys()
    whole = sum(weights.values())
    assert all(abs(parts[key] * whole - total * weight) < whole for key, weight in weights.items())
    assert all(parts[key] == 0 for key, weight in weights.items() if weight == 0)


@given(total=st.integers(0, 10**9), weights=some(max_weight=10**6, max_size=8), factor=st.integers(1, 1000))
def test_order_and_scale_of_weights_do_not_matter_and_a_credit_mirrors_its_charge(
    total: int, weights: Weights, factor: int
) -> None:
    parts = apportion(total, weights)
    assert apportion(total, dict(reversed(weights.items()))) == parts
    assert apportion(total, {key: weight * factor for key, weight in weights.items()}) == parts
    assert apportion(-total, weights) == {key: -part for key, part in parts.items()}


def test_what_is_left_over_goes_to_the_largest_remainder_and_on_a_tie_to_the_first_key() -> None:
    assert apportion(10, {"a": 1, "b": 2, "c": 4}) == {"a": 1, "b": 3, "c": 6}  # 1.43, 2.86, 5.71
    assert apportion(1, {"b": 1, "a": 1}) == {"a": 1, "b": 0}
    assert apportion(0, {"a": 3}) == {"a": 0}


def test_a_total_that_nobody_bears_is_not_split() -> None:
    with pytest.raises(ValueError, match="keep it in its pool"):
        apportion(100, {"a": 0, "b": 0})
    with pytest.raises(ValueError, match="must not be negative, found -1"):
        apportion(100, {"a": 2, "b": -1})
