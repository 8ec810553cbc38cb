"""How far a break-even hangs on what nobody knows: one input at a time (tornado), and all at once (Monte Carlo).

Both take the ranges and the expected utilisation of the inputs. Inputs are drawn independently of each other: where two
move together, the spread here is not theirs. Does not belong here: the break-even itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.break_even import Cases, tidy
from models.break_even_inputs import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.break_even_inputs import Inputs, Range

    Values = NDArray[np.float64]

QUANTILES = (0.1, 0.5, 0.9)


def tornado(inputs: Inputs) -> pl.DataFrame:
    """Each ranged input at its low and its high, all others as stated: the widest swing of NPV first.

    One row for each comparator and input. NPV is over the life with the stated residual, payback discounted with
    residual 0 and null if never within the horizon.
    """
    parts = []
    for comparator in inputs.comparators:
        for name, one in inputs.ranges.items():
            cases = Cases.of(inputs, [comparator], {name: np.array([one.low, one.high])})
            npv, payback = cases.net_present_value(), cases.payback_months()
            parts.append(
                {
                    "comparator": comparator.name,
                    "input": name,
                    "low": one.low,
                    "stated": getattr(inputs, name),
                    "high": one.high,
                    "npv_at_low": npv[0],
                    "npv_at_high": npv[1],
                    "npv_swing": abs(npv[1] - npv[0]),
                    "payback_at_low_months": payback[0],
                    "payback_at_high_months": payback[1],
                    "source": one.source,
                    "as_of": one.as_of,
                    "currency": inputs.currency,
                }
            )
    order = {comparator.name: place for place, comparator in enumerate(inputs.comparators)}
    found = pl.DataFrame(parts, infer_schema_length=None).sort(
        pl.col("comparator").replace_strict(order), pl.col("npv_swing"), descending=[False, True], maintain_order=True
    )
    return tidy(found)


def monte_carlo(inputs: Inputs, draws: int, seed: int) -> pl.DataFrame:
    """All ranged inputs drawn at once, the same draws for every comparator: one row for each.

    Quantiles are of the discounted payback with residual 0, the smallest draw that at least this part of all draws does
    not exceed; null if that draw never pays within the horizon. ``pays_within_life_ratio`` is the part of draws with that
    payback within the life; ``pays_with_residual_ratio`` that with an NPV above 0 when the residual is drawn too.

    Args:
      inputs: With at least one range.
      draws: How many, at least 1.
      seed: The same seed and inputs give the same answer.
    """
    # A generator for each input, so that one more range leaves the draws of the others as they were.
    columns = {
        name: drawn(one, getattr(inputs, name), np.random.default_rng([seed, *name.encode()]).random(draws))
        for name, one in inputs.ranges.items()
    }
    parts = []
    for comparator in inputs.comparators:
        cases = Cases.of(inputs, [comparator], columns)
        payback, npv = cases.payback_months(), cases.net_present_value()
        in_life = float((payback <= cases.end).mean())
        ordered = np.sort(payback)  # never, a NaN, is last
        parts.append(
            {
                "comparator": comparator.name,
                "expected_utilisation": inputs.expected_utilisation,
                **{f"payback_p{part * 100:.0f}_months": ordered[int(np.ceil(part * draws)) - 1] for part in QUANTILES},
                "pays_within_life_ratio": in_life,
                "standard_error_ratio": np.sqrt(in_life * (1 - in_life) / draws),
                "pays_with_residual_ratio": float((npv > 0).mean()),
                **{f"npv_p{part * 100:.0f}": np.quantile(npv, part, method="inverted_cdf") for part in QUANTILES},
                "draws": draws,
                "seed": seed,
                "currency": inputs.currency,
            }
        )
    return tidy(pl.DataFrame(parts, infer_schema_length=None))


def drawn(of: Range, stated: float, uniform: Values) -> Values:
    """Values of an input, by the inverse of its distribution, for uniform numbers from 0 to 1."""
    width = of.high - of.low
    if of.shape is Shape.UNIFORM or width == 0:
        return of.low + width * uniform
    below = stated - of.low
    rising = of.low + np.sqrt(uniform * width * below)
    falling = of.high - np.sqrt((1 - uniform) * width * (of.high - stated))
    return np.where(uniform * width < below, rising, falling)
