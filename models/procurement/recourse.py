"""Serve every hour of every scenario as cheaply as possible, given what was bought; and what one more unit would save.

In an hour, pools that no common budget joins are served on their own: held GPUs first, then the cheaper of spot and
on-demand up to its limit, then the other, then a shortfall. A budget adds a way to pay for on-demand GPUs with money
that is already committed. Its shadow price, what one more unit of money in that hour would save, decides everything:
at shadow prices ``λ`` on-demand costs ``min(o, λ·f)`` in each pool by itself, and the sum over pools less ``λ · budget``
is a lower bound of the hour's cost for any ``λ`` (weak duality), and the cost itself at the right one.

With one budget that ``λ`` is found by a fractional knapsack: money goes where it saves most, ``o/f`` for on-demand and
then ``q/f`` for the spot that it displaces, which is also the vendors' order (highest saving first). Where several
budgets reach one pool, serving in that order gives a feasible cost, and raising the shadow prices one after the other
gives a bound; the two may differ, and both are returned.

All runs in chunks of hours, so that peak memory does not grow with the number of hours or scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from models.procurement.problem import Floats, Integers, Problem

CHANNELS = ("held", "budget", "spot", "on_demand", "shortfall")
CHUNK_HOURS = 2_048
SWEEPS = 3  # of the shadow prices, where several budgets reach one pool: more seldom raises the bound further


@dataclass(frozen=True, slots=True, kw_only=True)
class Recourse:
    """What serving costs at some units, and its slopes there. S scenarios, M periods, P pools, K budgets.

    Attributes:
      cost: Discounted cost of serving each scenario (S), without what the units themselves cost; feasible.
      pool_bound: Part of the lower bound by scenario, period and pool (S, M, P), before the budgets are taken off.
      held_slope: Change of the bound for one more GPU held in a period (S, M, P); at most 0.
      budget_slope: Change of the bound for one more unit of budget in each hour of a period (S, M, K); at most 0.
      held: GPUs held in each period (M, P).
      budget: Budget in each period (M, K).
    """

    cost: Floats
    pool_bound: Floats
    held_slope: Floats
    budget_slope: Floats
    held: Floats
    budget: Floats

    @property
    def bound(self) -> Floats:
        """No way of serving costs less, by scenario (S); equals ``cost`` where at most one budget reaches a pool."""
        found: Floats = self.pool_bound.sum((1, 2)) + (self.budget_slope * self.budget).sum((1, 2))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Who served the demand, for reports: by scenario, channel (in the order of ``CHANNELS``) and pool (S, 5, P).

    Attributes:
      gpu_hours: GPU-hours, not discounted.
      money: Discounted money: what is paid for spot, on-demand and shortfall, and for ``budget`` what is used of it; held is 0.
      held_unused: GPU-hours held and not used, not discounted (S, P).
      budget_unused: Discounted budget that is lost (S, K).
    """

    gpu_hours: Floats
    money: Floats
    held_unused: Floats
    budget_unused: Floats


@dataclass(frozen=True, slots=True)
class Group:
    """Pools joined by budgets, which must be served together; or pools that no budget reaches, together for speed."""

    pools: Integers
    budgets: Integers


def groups(problem: Problem) -> list[Group]:
    """Split the pools: first all that no budget reaches, then each set that budgets join."""
    reached = np.isfinite(problem.budget_rate)
    label = np.arange(len(problem.pools))
    for row in reached:
        label[np.isin(label, label[row])] = label[row].min(initial=len(label))
    free = ~reached.any(axis=0)
    found = [Group(np.flatnonzero(free), np.empty(0, np.int64))] if free.any() else []
    for one in np.unique(label[~free]):
        pools = np.flatnonzero((label == one) & ~free)
        found.append(Group(pools, np.flatnonzero(reached[:, pools].any(axis=1))))
    return found


def supply(problem: Problem, units: Floats) -> tuple[Floats, Floats]:
    """GPUs held (M, P) and budget (M, K) in each period, with ``units`` bought."""
    held, budget = problem.held.copy(), problem.held_budget.copy()
    added = problem.column_supply * units[:, None]
    gpus = problem.column_pool >= 0
    np.add.at(held.T, problem.column_pool[gpus], added[gpus])
    np.add.at(budget.T, problem.column_budget[~gpus], added[~gpus])
    return held, budget


@dataclass(slots=True)
class Rows:
    """Some hours of one scenario, for the pools of one group: what is not held, and what the channels cost.

    Hours stand last, (P, R) or (P, 1), so that every step runs along memory.
    """

    uncovered: Floats
    spot_limit: Floats
    spot_price: Floats
    on_demand_limit: Floats
    on_demand_price: Floats
    shortfall_price: Floats
    budget: Floats  # (K, R)
    rate: Floats  # (K, P), inf where a budget does not reach

    def __post_init__(self) -> None:
        """Nobody pays more than a shortfall costs."""
        self.spot_price = np.minimum(self.spot_price, self.shortfall_price)
        self.on_demand_price = np.minimum(self.on_demand_price, self.shortfall_price)

    def cost_and_slope(self, on_demand_price: Floats) -> tuple[Floats, Floats]:
        """Cost of each pool and hour, and its slope in what is not covered, with on-demand at this price (P, R)."""
        last, limit = self.shortfall_price, self.on_demand_limit
        by_spot = np.minimum(self.uncovered, self.spot_limit)
        slope = np.where(by_spot < self.uncovered, on_demand_price, np.minimum(on_demand_price, self.spot_price))
        cost = on_demand_price * self.uncovered - np.maximum(on_demand_price - self.spot_price, 0) * by_spot
        if np.isfinite(limit).any():
            # What is beyond the limit costs a shortfall; where spot comes second, it serves some of it.
            beyond = np.clip(self.uncovered - limit - self.spot_limit, 0, None)
            late = np.clip(self.uncovered - limit, 0, self.spot_limit) * (self.spot_price >= on_demand_price)
            cost += late * (self.spot_price - on_demand_price) + beyond * (last - on_demand_price)
            slope = np.where(late > 0, self.spot_price, slope)
            slope = np.where(beyond > 0, last, slope)
        slope *= self.uncovered > 0
        return cost, slope

    def by_channel(self) -> tuple[list[Floats], list[Floats]]:
        """GPUs, and what is paid for them, by spot, on-demand and shortfall (P, R each)."""
        spot_first = self.spot_price < self.on_demand_price
        # At a shortfall's price the GPU does not exist, so that what nothing serves is shown as a shortfall.
        spot_limit = np.where(self.spot_price < self.shortfall_price, self.spot_limit, 0)
        on_demand_limit = np.where(self.on_demand_price < self.shortfall_price, self.on_demand_limit, 0)
        first = np.minimum(self.uncovered, np.where(spot_first, spot_limit, on_demand_limit))
        second = np.minimum(self.uncovered - first, np.where(spot_first, on_demand_limit, spot_limit))
        spot, on_demand = np.where(spot_first, first, second), np.where(spot_first, second, first)
        short = self.uncovered - first - second
        return [spot, on_demand, short], [
            spot * self.spot_price,
            on_demand * self.on_demand_price,
            short * self.shortfall_price,
        ]

    def wanted(self, on_demand_price: Floats) -> tuple[Floats, Floats]:
        """GPUs that a budget may take: where they displace on-demand or a shortfall, and spot as well (P, R)."""
        beyond = self.uncovered - np.where(self.spot_price < on_demand_price, self.spot_limit, 0)
        return np.clip(beyond, 0, self.on_demand_limit), np.minimum(self.uncovered, self.on_demand_limit)

    def price_under(self, shadow: Floats, leaving_out: int = -1) -> Floats:
        """Price of on-demand where a budget may pay for it at its shadow price (K, R); all budgets but ``leaving_out``."""
        price = self.on_demand_price
        for k, rate in enumerate(self.rate):
            if k != leaving_out:
                reached = np.isfinite(rate)[:, None]
                by_budget = shadow[k] * np.where(reached, rate[:, None], 0) + np.where(reached, 0, np.inf)
                price = np.minimum(price, by_budget)
        return price

    def shadow_price(self, k: int, on_demand_price: Floats) -> Floats:
        """What one more unit of budget ``k`` saves in each hour (R), with on-demand at this price: the knapsack's margin."""
        reached = np.flatnonzero(np.isfinite(self.rate[k]))
        rate = self.rate[k, reached, None]
        beyond_spot, all_of = (one[reached] for one in self.wanted(on_demand_price))
        saving = np.concatenate(np.broadcast_arrays(on_demand_price[reached] / rate, self.spot_price[reached] / rate))
        order = np.argsort(-saving, axis=0, kind="stable")
        saving = np.concatenate([np.take_along_axis(saving, order, axis=0), np.zeros((1, saving.shape[1]))])
        left, met = self.budget[k].copy(), np.zeros(len(self.budget[k]), np.intp)
        if order.shape[1] > 1:
            needed = np.concatenate([beyond_spot, all_of - beyond_spot]) * np.concatenate([rate, rate])
            steps: Iterator[Floats] = iter(np.take_along_axis(needed, order, axis=0))
        else:
            # The order is the same in all hours, as is usual: steps are worked out as they are reached.
            places = (divmod(int(place), len(reached)) for place in order[:, 0])
            steps = (
                (all_of[at] - beyond_spot[at] if displacing_spot else beyond_spot[at]) * rate[at]
                for displacing_spot, at in places
            )
        for needed in steps:
            left -= needed
            met += left >= 0
            if left.max() < 0:
                break
        return saving[met, 0] if saving.shape[1] == 1 else saving[met, np.arange(len(met))]

    def bound(self, shadow: Floats) -> Floats:
        """Lower bound of each hour's cost at these shadow prices (R)."""
        cost, _ = self.cost_and_slope(self.price_under(shadow))
        found: Floats = cost.sum(axis=0) - (shadow * self.budget).sum(axis=0)
        return found

    def shadow_prices(self, taken: Floats) -> Floats:
        """Shadow price of each budget in each hour (K, R): exact for one, the best found for several.

        Several are raised one after the other, which may end before the bound is at its highest, so two starts are
        tried: what each budget would be worth alone, and the same with nothing for those that are not used up.

        Args:
          taken: What the budgets pay for where there are several (``paid_by_budgets``).
        """
        shadow = np.zeros((len(self.rate), self.uncovered.shape[1]))
        if len(shadow) == 0:
            return shadow
        for k in range(len(shadow)):
            shadow[k] = self.shadow_price(k, self.on_demand_price)
        if len(shadow) == 1:
            return shadow
        used = (taken * np.where(np.isfinite(self.rate), self.rate, 0)[:, :, None]).sum(axis=1)
        left_over = used < self.budget * (1 - 1e-9)
        best, best_bound = shadow, np.full(shadow.shape[1], -np.inf)
        for start in (np.where(left_over, 0, shadow), shadow):
            tried = start.copy()
            for sweep in range(SWEEPS):
                for k in range(len(tried))[:: 1 if sweep % 2 else -1]:
                    tried[k] = self.shadow_price(k, self.price_under(tried, leaving_out=k))
            reached = self.bound(tried)
            best = np.where(reached > best_bound, tried, best)
            best_bound = np.maximum(best_bound, reached)
        return best

    def paid_by_budgets(self) -> Floats:
        """GPUs of each pool that each budget pays for (K, P, R): highest saving per unit of budget first."""
        pools, rows = self.uncovered.shape
        taken, left = np.zeros((len(self.rate), pools, rows)), self.budget.copy()
        # Where spot is dearer (or is none) it comes second, so that a budget never displaces it at its own price.
        displaced = np.minimum(self.spot_price, self.on_demand_price)
        prices = np.broadcast_arrays(self.on_demand_price, displaced, self.uncovered)[:2]
        saving = np.stack(prices) / self.rate[:, None, :, None]  # K, 2 (on-demand, spot), P, R
        order = np.argsort(-saving.reshape(-1, rows), axis=0, kind="stable")
        most = np.stack(self.wanted(self.on_demand_price))  # 2, P, R
        every = np.arange(rows)
        for step in order:
            budget, (stage, pool) = step // (2 * pools), np.divmod(step % (2 * pools), pools)
            rate = self.rate[budget, pool]
            room = np.clip(most[stage, pool, every] - taken[:, pool, every].sum(axis=0), 0, None)
            gpus = np.minimum(room, left[budget, every] / rate)
            taken[budget, pool, every] += gpus
            left[budget, every] = np.clip(left[budget, every] - gpus * np.where(np.isfinite(rate), rate, 0), 0, None)
        return taken

    def after_budgets(self, taken: Floats) -> Rows:
        """The same hours with what the budgets pay for taken off demand and off on-demand."""
        gpus = taken.sum(axis=0)
        return replace(
            self,
            uncovered=np.clip(self.uncovered - gpus, 0, None),
            on_demand_limit=np.clip(self.on_demand_limit - gpus, 0, None),
        )


def _at(values: Floats, scenario: int, hours: slice, pools: Integers) -> Floats:
    """The hours (P, R or 1) of an array that may be the same for all scenarios or hours."""
    found = values[scenario if len(values) > 1 else 0]
    return np.ascontiguousarray((found[hours] if len(found) > 1 else found).T[pools])


def rows_of(problem: Problem, supplied: tuple[Floats, Floats], group: Group, scenario: int, hours: slice) -> Rows:
    """The hours of one scenario for the pools of one group, with what is held and the budget of each period."""
    held, budget = supplied
    period, pools = problem.period_of_hour[hours], group.pools
    return Rows(
        uncovered=np.maximum(_at(problem.demand, scenario, hours, pools) - held.T[pools][:, period], 0),
        spot_limit=_at(problem.spot_limit, scenario, hours, pools),
        spot_price=_at(problem.spot_price, scenario, hours, pools),
        on_demand_limit=problem.on_demand_limit[pools, None],
        on_demand_price=_at(problem.on_demand_price, scenario, hours, pools),
        shortfall_price=problem.shortfall_price[pools, None],
        budget=budget.T[group.budgets][:, period],
        rate=problem.budget_rate[np.ix_(group.budgets, pools)],
    )


def chunks(problem: Problem) -> Iterator[tuple[int, slice, Integers, Integers]]:
    """Scenario, hours, and in them the rows where a period starts and which period that is."""
    for scenario in range(len(problem.probability)):
        for start in range(0, len(problem.hour_weight), CHUNK_HOURS):
            hours = slice(start, start + CHUNK_HOURS)
            period = problem.period_of_hour[hours]
            starts = np.flatnonzero(np.diff(period, prepend=-1))
            yield scenario, hours, starts, period[starts]


def _by_period(values: Floats, weight: Floats, starts: Integers) -> Floats:
    """Weighted sums of values (N, R) over the hours from each start to the next (len(starts), N)."""
    if len(starts) > 16:
        return np.add.reduceat(values * weight, starts, axis=1).T
    ends = [*starts[1:], len(weight)]
    return np.stack([values[:, a:b] @ weight[a:b] for a, b in zip(starts, ends, strict=True)])


def evaluate(problem: Problem, units: Floats) -> Recourse:
    """Serve all hours with ``units`` bought.

    Args:
      problem: The problem.
      units: Units of each column (J).

    Returns:
      The cost of serving by scenario, a lower bound by period and pool, and its slopes.
    """
    scenarios, (periods, pools) = len(problem.probability), problem.held.shape
    held, budget = supply(problem, units)
    cost, parts = np.zeros(scenarios), groups(problem)
    pool_bound, held_slope = np.zeros((2, scenarios, periods, pools))
    budget_slope = np.zeros((scenarios, periods, budget.shape[1]))
    for scenario, hours, starts, period in chunks(problem):
        weight = problem.hour_weight[hours]
        for group in parts:
            rows = rows_of(problem, (held, budget), group, scenario, hours)
            taken = rows.paid_by_budgets() if len(group.budgets) > 1 else np.empty(0)
            shadow = rows.shadow_prices(taken)
            serving, slope = rows.cost_and_slope(rows.price_under(shadow))
            at = np.ix_(np.array([scenario]), period, group.pools)
            pool_bound[at] += _by_period(serving, weight, starts)
            held_slope[at] -= _by_period(slope, weight, starts)
            if len(group.budgets):
                at = np.ix_(np.array([scenario]), period, group.budgets)
                budget_slope[at] -= _by_period(shadow, weight, starts)
            if len(group.budgets) > 1:
                rest = rows.after_budgets(taken)
                cost[scenario] += (rest.cost_and_slope(rest.on_demand_price)[0] @ weight).sum()
            else:
                cost[scenario] += (serving @ weight).sum() - ((shadow * rows.budget) @ weight).sum()
    return Recourse(
        cost=cost, pool_bound=pool_bound, held_slope=held_slope, budget_slope=budget_slope, held=held, budget=budget
    )


def serve(problem: Problem, units: Floats, hours_each: Floats) -> Served:
    """Say which channel serves how much, for reports.

    Args:
      problem: The problem.
      units: Units of each column (J).
      hours_each: Hours that each hour of the problem stands for, not discounted (T).

    Returns:
      GPU-hours and money by scenario, channel and pool, and what is held or committed and lost.
    """
    scenarios, pools = len(problem.probability), len(problem.pools)
    held, budget = supply(problem, units)
    gpu_hours, money = np.zeros((2, scenarios, len(CHANNELS), pools))
    held_unused = np.zeros((scenarios, pools))
    committed = problem.hour_weight @ budget[problem.period_of_hour]
    budget_unused = np.broadcast_to(committed, (scenarios, len(committed))).copy()
    for scenario, hours, _, _ in chunks(problem):
        weight, each = problem.hour_weight[hours], hours_each[hours]
        for group in groups(problem):
            rows = rows_of(problem, (held, budget), group, scenario, hours)
            taken = rows.paid_by_budgets()
            rest = rows.after_budgets(taken)
            by_rate = np.where(np.isfinite(rows.rate), rows.rate, 0)[:, :, None] * taken
            gpus, paid = rest.by_channel()
            held_rows = held.T[group.pools][:, problem.period_of_hour[hours]]
            used = problem.demand[scenario, hours].T[group.pools] - rows.uncovered
            gpus, paid = [used, taken.sum(axis=0), *gpus], [np.zeros_like(used), by_rate.sum(axis=0), *paid]
            gpu_hours[scenario][:, group.pools] += np.stack(gpus) @ each
            money[scenario][:, group.pools] += np.stack(paid) @ weight
            held_unused[scenario, group.pools] += (held_rows - used) @ each
            budget_unused[scenario, group.budgets] -= by_rate.sum(axis=1) @ weight
    return Served(gpu_hours=gpu_hours, money=money, held_unused=held_unused, budget_unused=budget_unused)
