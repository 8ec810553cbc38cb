"""Money at different times: annuities, capital recovery, and the yearly return that paying upfront earns.

All functions take numbers or arrays of them and work element by element. Does not belong here: what is paid for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MONTHS_PER_YEAR = 12

Numbers = float | NDArray[Any]
"""One number, or one of them a case."""


def monthly_ratio(yearly_ratio: Numbers) -> Numbers:
    """The monthly discount ratio that compounds to ``yearly_ratio`` in twelve months.

    >>> round(float(monthly_ratio(0.10)), 6)
    0.007974
    """
    return np.expm1(np.log1p(yearly_ratio) / MONTHS_PER_YEAR)


def present_value(ratio: Numbers, periods: Numbers) -> Numbers:
    """What 1 at the end of ``periods`` is worth now, at a discount ratio a period."""
    return np.exp(-np.multiply(periods, np.log1p(ratio)))


def annuity(ratio: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """What 1 at the end of each period after ``start`` up to ``end`` is worth now, at a discount ratio a period.

    >>> round(float(annuity(0.10, 0, 3)), 4), float(annuity(0.0, 2, 5))
    (2.4869, 3.0)
    """
    rate, length = np.asarray(ratio, dtype=float), np.subtract(end, start)
    discounted = -np.expm1(-length * np.log1p(rate)) / np.where(rate == 0, 1, rate)
    return present_value(rate, start) * np.where(rate == 0, length, discounted)


def capital_recovery(yearly_ratio: Numbers, years: Numbers) -> Numbers:
    """The equal payment at the end of each year that repays 1 with interest.

    >>> round(float(capital_recovery(0.10, 3)), 6)
    0.402115
    """
    return 1 / annuity(yearly_ratio, 0.0, years)


def sinking_fund(yearly_ratio: Numbers, years: Numbers) -> Numbers:
    """The equal payment at the end of each year that grows to 1 in the last.

    >>> round(float(sinking_fund(0.10, 3)), 6)
    0.302115
    """
    return capital_recovery(yearly_ratio, years) * present_value(yearly_ratio, years)


def implied_upfront_return(upfront_price: float, recurring_price: float, term_years: float) -> float | None:
    """The yearly return of paying a whole term at once instead of at the start of each month.

    Paying upfront is right for whoever's money costs less than this a year.

    Args:
      upfront_price: Effective price an hour where all is paid upfront, above 0.
      recurring_price: Price an hour where nothing is, above 0, in the same currency.
      term_years: Length of both offers; whole months.

    Returns:
      A ratio a year, compounded monthly: negative where upfront costs more in all; None where it costs no more than the
      first month, so that no return is high enough.

    >>> round(implied_upfront_return(102.294635, 109.601338, 1), 3)
    0.165
    """
    months = round(term_years * MONTHS_PER_YEAR)
    owed = months * upfront_price / recurring_price  # in monthly payments
    if owed <= 1:
        return None

    def payments_now(ratio: float) -> float:
        return float((1 + ratio) * annuity(ratio, 0.0, float(months)))

    low, high = -0.5, 1.0
    while payments_now(low) < owed:
        low = (low - 1) / 2
    while payments_now(high) > owed:
        high *= 2
    while (middle := (low + high) / 2) not in {low, high}:
        low, high = (middle, high) if payments_now(middle) > owed else (low, middle)
    return float((1 + low) ** MONTHS_PER_YEAR - 1)
