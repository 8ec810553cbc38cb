"""Two pictures from which a recommended number can be derived again.

The screening curve sets every instrument of a pool as a line, ``fixed + hourly * utilisation`` in money per GPU-hour, over
the utilisation of a GPU; the cheapest line at the utilisation of the k-th GPU, read off the load-duration curve, serves
it. The savings curve sets the cost of a plan against the quantity of one of its purchases.

Does not belong here: deciding, where spot has a limit or pools share a commitment (``solve``); drawing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.prices import HOURS_PER_MONTH, Instrument
from models.procurement.columns import HOURS_PER_YEAR, upfront_share
from models.procurement.recourse import evaluate, groups, supply
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from models.prices import Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Floats, Integers, Problem

CURVE_POINTS = 48
"""Quantities on a savings curve, beside the plan's own and its neighbours."""

BREAK_EVENS_SCHEMA = pl.Schema(
    {"cheaper_below": pl.String(), "cheaper_above": pl.String(), "utilisation_ratio": pl.Float64()}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a GPU-hour of capacity costs by the part of it that is used: ``fixed + hourly * utilisation``.

    Attributes:
      offer_id: Which offer.
      instrument: How it is paid for.
      fixed_micros: Due every hour, used or not.
      hourly_micros: Due for each hour of use; spot's is its price per useful hour.
    """

    offer_id: str
    instrument: Instrument
    fixed_micros: float
    hourly_micros: float

    def at(self, utilisation: Floats | float) -> Floats:
        """Micros per GPU-hour of capacity at a utilisation of 0 to 1."""
        return np.asarray(self.fixed_micros + self.hourly_micros * np.asarray(utilisation, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A line and where it is the cheapest: utilisations, or levels of the load-duration curve in GPUs."""

    line: Line
    low: float
    high: float


def screening(offers: Sequence[Offer], pool: Pool, policy: PlanPolicy) -> list[Line]:
    """Every instrument that reaches the pool as a line, in the order of the offers.

    What is paid upfront is spread over the term as an annuity at the policy's discount rate, so that lines of different
    terms and payment options compare. An owned GPU is powered used or not.
    """
    return [_line(offer, pool, policy) for offer in offers if pool.name in offer.micros_per_gpu_hour]


def _line(offer: Offer, pool: Pool, policy: PlanPolicy) -> Line:
    price = float(offer.micros_per_gpu_hour[pool.name])
    if offer.instrument is Instrument.ON_DEMAND:
        return Line(offer_id=offer.offer_id, instrument=offer.instrument, fixed_micros=0.0, hourly_micros=price)
    if offer.instrument is Instrument.SPOT:
        useful = price / policy.spot_goodput_ratio
        return Line(offer_id=offer.offer_id, instrument=offer.instrument, fixed_micros=0.0, hourly_micros=useful)
    owned = offer.instrument is Instrument.OWNED
    hours = offer.life_months * HOURS_PER_MONTH if owned else (offer.term_seconds or 0) // SECONDS_PER_HOUR
    value = (1 + policy.discount_ratio) ** (-np.arange(hours) / HOURS_PER_YEAR)
    end_value = (1 + policy.discount_ratio) ** (-hours / HOURS_PER_YEAR)
    upfront = (offer.upfront_micros_per_gpu - offer.residual_micros_per_gpu * end_value) / value.sum()
    if offer.instrument is Instrument.SAVINGS_PLAN:  # its rate includes what is paid upfront
        share = upfront_share(offer)
        upfront, price = price * share * hours / value.sum(), price * (1 - share)
    power = offer.power_watts_per_gpu / 1_000 * policy.power_usage_effectiveness * policy.energy_micros_per_kwh
    fixed = price + upfront + offer.monthly_fee_micros_per_gpu / HOURS_PER_MONTH + power
    return Line(offer_id=offer.offer_id, instrument=offer.instrument, fixed_micros=float(fixed), hourly_micros=0.0)


def break_evens(lines: Sequence[Line]) -> pl.DataFrame:
    """Utilisation at which two lines cost the same, for each pair that crosses between 0 and 1.

    ``u = (A_j - A_i) / (B_i - B_j)`` with fixed prices A and hourly prices B (screening curves of power systems).
    """
    rows = []
    for one, other in combinations(lines, 2):
        below, above = sorted((one, other), key=lambda line: line.fixed_micros)
        slope = below.hourly_micros - above.hourly_micros
        if slope > 0 and above.fixed_micros - below.fixed_micros <= slope:
            rows.append((below.offer_id, above.offer_id, (above.fixed_micros - below.fixed_micros) / slope))
    return pl.DataFrame(rows, schema=BREAK_EVENS_SCHEMA, orient="row")


def envelope(lines: Sequence[Line]) -> list[Stretch]:
    """The cheapest line at every utilisation, ascending from 0 to 1; equal lines are the earlier one's."""
    edges = np.unique([0.0, 1.0, *break_evens(lines)["utilisation_ratio"].to_list()])
    found: list[Stretch] = []
    for low, high in pairwise(edges.tolist()):
        best = lines[int(np.argmin([float(line.at((low + high) / 2)) for line in lines]))] if lines else None
        if best is None:
            continue
        if found and found[-1].line is best:
            found[-1] = Stretch(line=best, low=found[-1].low, high=high)
        else:
            found.append(Stretch(line=best, low=low, high=high))
    return found


def mix(lines: Sequence[Line], demand: Floats) -> list[Stretch]:
    """Which instrument serves which GPUs of a demand, from the base of the load-duration curve upwards.

    Every line must be free to serve all of the demand: leave spot out where only a part may run on it. The k-th GPU is
    used in the hours that want k or more, and is served by the cheapest line at that utilisation.

    Args:
      lines: The instruments, on-demand among them.
      demand: GPUs wanted in each hour, of one history or of several scenarios of equal weight (any shape).
    """
    levels = np.unique(np.append(demand.ravel(), 0.0))
    utilisation = 1 - np.searchsorted(np.sort(demand.ravel()), levels[:-1], side="right") / demand.size
    found: list[Stretch] = []
    if not lines:
        return found
    best = np.argmin([line.at(utilisation) for line in lines], axis=0)
    for number, (low, high) in zip(best.tolist(), pairwise(levels.tolist()), strict=True):
        if found and found[-1].line is lines[number]:
            found[-1] = Stretch(line=lines[number], low=found[-1].low, high=high)
        else:
            found.append(Stretch(line=lines[number], low=low, high=high))
    return found


def savings_curve(problem: Problem, column: int, *, others: Floats | None = None) -> pl.DataFrame:
    """Cost of the plan against the quantity of one purchase, the others as they are.

    Args:
      problem: The problem.
      column: Which purchase.
      others: Units of all purchases (J), of the plan; the curve then has its own quantity and the ones beside it. None:
        nothing else is bought.

    Returns:
      One row per quantity, ascending from 0: ``units``; ``cost_micros`` expected; ``saving_micros`` against none of it;
      ``break_even_ratio``, the part of the hours in which a unit must replace on-demand use to pay, of money the least
      over its pools; ``hours_above``, the expected hours of its term within the horizon that want more than what is held
      with this many units, and ``above_ratio``, the same as a part of those hours.
    """
    units = np.zeros(len(problem.column_cost)) if others is None else others.astype(np.float64)
    quantities = _quantities(problem, column, units)
    # Only the pools that this purchase reaches, or shares a commitment with, change with it.
    near, columns = _near(problem, column)
    cost, hours = np.zeros((2, len(quantities)))
    active = problem.column_supply[column][problem.period_of_hour] > 0
    for place, quantity in enumerate(quantities.tolist()):
        tried = units.copy()
        tried[column] = quantity
        cost[place] = tried @ problem.column_cost + problem.probability @ evaluate(near, tried[columns]).cost
        wanted, held = _wanted(problem, column, tried)
        hours[place] = problem.probability @ ((wanted > held + 1e-9)[:, active]).sum(axis=1)
    elsewhere = evaluate(problem, units).cost - evaluate(near, units[columns]).cost
    cost += problem.fixed_cost + problem.probability @ elsewhere
    micros = np.rint(cost * MICROS_PER_UNIT).astype(np.int64)
    return pl.DataFrame(
        {
            "units": quantities,
            "cost_micros": micros,
            "saving_micros": micros[0] - micros,
            "break_even_ratio": np.full(len(quantities), _break_even(problem, column, active)),
            "hours_above": hours,
            "above_ratio": hours / max(active.sum(), 1),
        }
    ).with_columns(pl.col("break_even_ratio").fill_nan(None))


def _near(problem: Problem, column: int) -> tuple[Problem, NDArray[np.bool_]]:
    """The problem of the pools alone that commitments join to the column's, and which columns it has (J)."""
    pool, number = problem.column_pool[column], problem.column_budget[column]
    reached = np.arange(len(problem.pools)) == pool if pool >= 0 else np.isfinite(problem.budget_rate[number])
    group = next(one for one in groups(problem) if reached[one.pools].any())
    pools = group.pools if len(group.budgets) else np.flatnonzero(reached)
    columns = np.isin(problem.column_pool, pools) | np.isin(problem.column_budget, group.budgets)
    by_pool = ("demand", "spot_limit", "spot_price", "on_demand_price", "on_demand_limit", "shortfall_price", "held")
    by_column = ("column_cost", "column_supply", "column_step", "column_high")
    near = replace(
        problem,
        pools=tuple(problem.pools[one] for one in pools),
        **{name: getattr(problem, name)[..., pools] for name in by_pool},
        **{name: getattr(problem, name)[columns] for name in by_column},
        held_budget=problem.held_budget[:, group.budgets],
        budget_rate=problem.budget_rate[np.ix_(group.budgets, pools)],
        column_pool=_renumbered(problem.column_pool[columns], pools),
        column_budget=_renumbered(problem.column_budget[columns], group.budgets),
        limits=(),
    )
    return near, columns


def _renumbered(numbers: Integers, kept: Integers) -> Integers:
    """Places among those kept; -1 stays."""
    return np.where(numbers >= 0, np.searchsorted(kept, numbers), -1)


def _wanted(problem: Problem, column: int, units: Floats) -> tuple[Floats, Floats]:
    """What every hour wants (S, T) and what is held for it (T), in the column's own units: GPUs, or money an hour."""
    held, budget = supply(problem, units)
    pool, number = problem.column_pool[column], problem.column_budget[column]
    if pool >= 0:
        return problem.demand[:, :, pool], held[problem.period_of_hour, pool]
    reached = np.isfinite(problem.budget_rate[number])
    uncovered = np.maximum(problem.demand[:, :, reached] - held[problem.period_of_hour][:, reached], 0)
    return uncovered @ problem.budget_rate[number, reached], budget[problem.period_of_hour, number]


def _quantities(problem: Problem, column: int, units: Floats) -> Floats:
    """From 0 to all that could be used: evenly spaced, whole where that is asked for, with the plan's and its neighbours."""
    without = units.copy()
    without[column] = 0
    wanted, held = _wanted(problem, column, without)
    most = max(float((wanted - held).max(initial=0)), float(units[column]))
    step = float(problem.column_step[column])
    spaced = np.linspace(0, most, CURVE_POINTS + 1)
    if step:
        spaced = np.unique(np.ceil(spaced / step - 1e-9) * step)
    beside = step or most / CURVE_POINTS
    near = units[column] + np.array([-beside, 0.0, beside])
    return np.unique(np.round(np.concatenate([spaced, near[near >= 0]]), 9))


def _break_even(problem: Problem, column: int, active: NDArray[np.bool_]) -> float:
    """Price of an hour of one unit over what it replaces on demand; NaN where nothing can be had on demand."""
    price = problem.column_cost[column] / problem.hour_weight[active].sum()
    pool = problem.column_pool[column]
    with np.errstate(invalid="ignore"):
        on_demand = np.tensordot(problem.probability, np.broadcast_to(problem.on_demand_price, problem.demand.shape), 1)
    mean = on_demand.mean(axis=0)
    if pool >= 0:
        return float(price / mean[pool]) if np.isfinite(mean[pool]) else float("nan")
    rate = problem.budget_rate[problem.column_budget[column]]
    ratios = [price * rate[at] / mean[at] for at in range(len(rate)) if np.isfinite(rate[at]) and np.isfinite(mean[at])]
    return float(min(ratios)) if ratios else float("nan")
