"""Largest-remainder split of an integer: the reference that the SQL splits are tested against."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key", str, int)


def apportion(total: int, weights: dict[Key, int]) -> dict[Key, int]:
    """Split ``total`` in proportion to integer weights so that the parts add up to it exactly.

    Each part is the floor of its exact share; what is left over goes, one unit each, to the largest remainders,
    ties to the smaller key. A negative total is split as its absolute value and negated, so a credit mirrors its
    charge (Hamilton's method; https://en.wikipedia.org/wiki/Largest_remainder_method).

    Args:
      total: The integer to split, in any unit.
      weights: Non-negative weight of each key; at least one must be positive.

    Returns:
      The part of each key, in the unit of ``total``.

    Raises:
      ValueError: A weight is negative, or all are zero: the caller must keep such a total whole.

    >>> apportion(100, {"a": 1, "b": 1, "c": 1})
    {'a': 34, 'b': 33, 'c': 33}
    >>> apportion(-100, {"a": 1, "b": 1, "c": 1})
    {'a': -34, 'b': -33, 'c': -33}
    """
    if any(weight < 0 for weight in weights.values()):
        raise ValueError(f"weights must not be negative, found {min(weights.values())}")
    whole = sum(weights.values())
    if whole == 0:
        raise ValueError("all weights are zero: nothing says who bears the total; keep it in its pool")
    sign, size = (-1, -total) if total < 0 else (1, total)
    parts = {key: size * weight // whole for key, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda key: (-(size * weights[key] % whole), key))
    for key in by_remainder[: size - sum(parts.values())]:
        parts[key] += 1
    return {key: sign * part for key, part in parts.items()}
