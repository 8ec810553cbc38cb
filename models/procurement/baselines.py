"""The ways of choosing commitments that a plan is compared with, each from what was known at the time.

They differ from the plan in the commitment alone: each buys the cheapest commitment of a pool (a savings plan where that
is cheaper), as recommendations are made one instrument at a time, and serves every hour by the same rule, on spot where the plan may, so that a difference is the decision's.
Only ``on_demand_only`` goes without spot.

Does not belong here: pricing the choice (``fold``), and the plan itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from models.procurement.fold import bought, hours_of, with_supply
from models.procurement.online import active, reservations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.demand import Scenarios
    from models.procurement.fold import Shop
    from models.procurement.problem import Floats, Integers, Problem

HOURS_PER_DAY = 24

BASELINES: dict[str, str] = {
    "on_demand_only": "nothing is bought and nothing runs on spot; what is held already is used",
    "look_back_7d": "the quantity of each pool's cheapest commitment that would have saved most over the last 7 days, "
    "as AWS recommends",
    "look_back_30d": "the quantity of each pool's cheapest commitment that would have saved most over the last 30 days, "
    "as AWS recommends",
    "look_back_60d": "the quantity of each pool's cheapest commitment that would have saved most over the last 60 days, "
    "as AWS recommends",
    "min_3d_30d": "the lower of the quantities that would have saved most over the last 3 and the last 30 days, "
    "as Azure recommends",
    "cover_p50": "each pool's cheapest commitment for the median of the hourly GPUs that neither spot nor what is held serves",
    "cover_p80": "each pool's cheapest commitment for the 80th percentile of the hourly GPUs that neither spot nor what is "
    "held serves",
    "wang_online": "reserved within the fold once the on-demand spend of a level exceeds the price of a reservation: "
    "the online rule of Wang et al., without a forecast",
    "mean_value": "the plan for the mean of the scenarios, as if it were certain",
}
"""Baselines by name, and what each does."""

LOOK_BACK_DAYS = {"look_back_7d": (7,), "look_back_30d": (30,), "look_back_60d": (60,), "min_3d_30d": (3, 30)}
COVER_RATIO = {"cover_p50": 0.5, "cover_p80": 0.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is bought at the start of a fold.

    Attributes:
      units: Units by offer.
      note: What was different from its name, in words; empty where nothing was.
    """

    units: Mapping[str, float]
    note: str = ""


def choose(name: str, history: Scenarios, scenarios: Scenarios, shop: Shop) -> Choice:
    """What a baseline buys at the start of a fold; all but ``wang_online``, which buys within it.

    Args:
      name: One of ``BASELINES``.
      history: What was wanted before the fold, up to its first hour.
      scenarios: What the plan expects: only ``mean_value`` reads it.
      shop: What can be bought.
    """
    if name in LOOK_BACK_DAYS:
        found = [_look_back(history, shop, days) for days in LOOK_BACK_DAYS[name]]
        lowest = {offer: min(one.units.get(offer, 0.0) for one in found) for offer in found[0].units}
        return Choice(units=lowest, note="; ".join(one.note for one in found if one.note))
    if name in COVER_RATIO:
        return _cover(history, shop, COVER_RATIO[name])
    if name == "mean_value":
        return Choice(units=shop.market.best(mean_demand(scenarios))[2])
    return Choice(units={})


def mean_demand(scenarios: Scenarios) -> Scenarios:
    """The mean of the scenarios, hour by hour, as the only one."""
    mean = {name: np.tensordot(scenarios.probability, gpus, axes=1)[None] for name, gpus in scenarios.gpus.items()}
    return replace(scenarios, probability=np.ones(1), gpus=mean)


def _look_back(history: Scenarios, shop: Shop, days: int) -> Choice:
    """What would have saved most over the last days; with a shorter history, over all of it."""
    there = _length(history)
    hours = min(there, days * HOURS_PER_DAY)
    window = hours_of(history, there - hours, there, shop.start_at)
    is_short = hours < days * HOURS_PER_DAY
    note = f"{hours / HOURS_PER_DAY:.3g} of {days} days were there before the fold" if is_short else ""
    if not window.total().any():
        return Choice(units={}, note=note)
    return Choice(units=shop.market.best(window, shop.cheapest_offers())[2], note=note)


def _length(history: Scenarios) -> int:
    return int(history.total().shape[1])


def uncovered(wanted: Scenarios, shop: Shop) -> Floats:
    """GPUs of each hour and pool that are left for a commitment (T, P).

    Without what is held at the fold's start (a commitment in money by what its pools spend), and without what runs on
    spot, where spot is cheaper than the pool's cheapest commitment.
    """
    problem = shop.compiled.problem
    left: Floats = np.maximum(wanted.total()[0] - problem.held[0], 0)
    for rate, amount in zip(problem.budget_rate, problem.held_budget[0], strict=True):
        spend = np.where(np.isfinite(rate), rate, 0) * left.mean(axis=0)
        if amount and spend.any():
            left = np.maximum(left - amount * spend / spend.sum() / np.where(np.isfinite(rate), rate, 1), 0)
    spot = np.broadcast_to(shop.market.compiled(wanted).problem.spot_limit[0], left.shape)
    for pool, column in enumerate(shop.cheapest()):
        price = np.inf if column is None else shop.price_per_hour[column] * shop.consumption[column, pool]
        if problem.spot_price[0, 0, pool] < price:
            left[:, pool] = np.maximum(left[:, pool] - spot[:, pool], 0)
    return left


def _cover(history: Scenarios, shop: Shop, ratio: float) -> Choice:
    """A percentile of the hourly need of each commitment, to the nearest node where nodes are whole."""
    left = uncovered(history, shop)
    cheapest = shop.cheapest()
    units = np.zeros(len(shop.compiled.columns))
    for column in {one for one in cheapest if one is not None}:
        pools = [pool for pool, one in enumerate(cheapest) if one == column]
        need = float(np.quantile(left[:, pools] @ shop.consumption[column, pools], ratio))
        step = float(shop.compiled.problem.column_step[column])
        units[column] = np.rint(need / step) * step if step else need
    return Choice(units=bought(shop.compiled, units))


@dataclass(frozen=True, slots=True, kw_only=True)
class Online:
    """A fold in which commitments were made hour by hour.

    Attributes:
      problem: The fold with what was held in each hour.
      paid: Fees, in units of the currency.
    """

    problem: Problem
    paid: float


def wang_online(history: Scenarios, wanted: Scenarios, shop: Shop) -> Online:
    """Reserve within the fold by the online rule, pool by pool and node by node.

    A term is as long as the fold, since the real one is longer than any: a reservation costs its price per hour for so
    many hours, whenever it is made, and it serves to the fold's end. The spend that the rule counts reaches back
    before the fold by up to one such term; reservations do not, as no other way of choosing starts with any.

    Args:
      history: What was wanted before the fold.
      wanted: What was wanted in it; the rule reads each hour when it comes.
      shop: What can be bought.
    """
    problem = shop.realised(wanted)
    gpus, money = np.zeros(problem.demand.shape[1:]), np.zeros((shop.hours, len(problem.budget_rate)))
    before, now = uncovered(history, shop), uncovered(wanted, shop)
    paid = 0.0
    for pool, column in enumerate(shop.cheapest()):
        if column is None:
            continue
        node = _node_gpus(shop, column, pool)
        made = _reserved(before[:, pool] / node, now[:, pool] / node, shop, column, pool)
        held = active(made, shop.hours) * node
        if problem.column_pool[column] >= 0:
            gpus[:, pool] += held
        else:
            money[:, problem.column_budget[column]] += held * shop.consumption[column, pool]
        paid += made.sum() * _fee(shop, column, pool)
    return Online(problem=with_supply(problem, gpus, money), paid=float(paid))


def _node_gpus(shop: Shop, column: int, pool: int) -> float:
    """GPUs that are reserved together: the column's own step, or the pool's node where it commits money."""
    name = shop.compiled.problem.pools[pool]
    nodes = {one.name: one.node_gpus for one in shop.market.pools}
    return float(shop.compiled.problem.column_step[column] or (nodes[name] if shop.market.policy.whole_nodes else 1))


def _fee(shop: Shop, column: int, pool: int) -> float:
    """Price of one node for a term as long as the fold."""
    price = shop.price_per_hour[column] * shop.consumption[column, pool]
    return float(price * _node_gpus(shop, column, pool) * shop.hours)


def _reserved(before: Floats, now: Floats, shop: Shop, column: int, pool: int) -> Integers:
    problem = shop.compiled.problem
    on_demand = min(float(problem.on_demand_price[0, 0, pool]), float(problem.shortfall_price[pool]))
    return reservations(
        now,
        before,
        term_hours=shop.hours,
        on_demand_price=on_demand * _node_gpus(shop, column, pool),
        fee=_fee(shop, column, pool),
    )
