"""Fewer budgets, so that serving is exact and fast: what reaches one pool is GPUs, what reaches the same pools is one budget.

A commitment in money that reaches a single pool pays for a fixed number of its GPUs: it is held GPUs. Commitments in
money that reach the same pools (one-year and three-year savings plans, those held already) differ in their rates, mostly
by one factor for all pools; money of one is then worth so much money of another, and they are one budget. Where the
factor differs by pool, the better rate of each pool is taken. GPUs so held are not counted against what can be had on
demand. So the smaller problem never costs more than the true one: its bound is a bound of the true one, and the true cost
of its plan is told beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.procurement.problem import Problem


def merged(problem: Problem) -> Problem:
    """The problem with as few budgets as its reaches allow; units mean what they meant."""
    rate = problem.budget_rate
    reached = np.isfinite(rate)
    single = reached.sum(axis=1) == 1
    groups = _same_reach(reached, single)
    # What one unit of each budget is worth: GPUs where it reaches one pool, else units of its group's first budget.
    worth = np.ones(len(rate))
    worth[single] = 1 / rate[single][reached[single]]
    held, held_budget = problem.held.copy(), np.zeros((len(problem.held), len(groups)))
    merged_rate = np.full((len(groups), rate.shape[1]), np.inf)
    group_of = np.full(len(rate), -1)
    for number, members in enumerate(groups):
        pools = reached[members[0]]
        factor = rate[np.ix_(members, pools)] / rate[members[0], pools]
        if pools.any():
            worth[members] = 1 / np.exp(np.log(factor).mean(axis=1))
        merged_rate[number, pools] = (rate[np.ix_(members, pools)] * worth[members, None]).min(axis=0)
        held_budget[:, number] = problem.held_budget[:, members] @ worth[members]
        group_of[members] = number
    only_pool = np.argmax(reached, axis=1)
    for budget in np.flatnonzero(single):
        held[:, only_pool[budget]] += problem.held_budget[:, budget] * worth[budget]
    in_budget = problem.column_budget >= 0
    own = np.where(in_budget, problem.column_budget, 0)
    as_gpus = in_budget & (single[own] if len(single) else False)
    scale = np.where(in_budget, worth[own] if len(worth) else 1.0, 1.0)
    return replace(
        problem,
        held=held,
        held_budget=held_budget,
        budget_rate=merged_rate,
        column_pool=np.where(as_gpus, only_pool[own] if len(only_pool) else -1, problem.column_pool),
        column_budget=np.where(
            in_budget & ~as_gpus, group_of[own] if len(group_of) else -1, np.where(in_budget, -1, problem.column_budget)
        ),
        column_supply=problem.column_supply * scale[:, None],
    )


def _same_reach(reached: NDArray[np.bool_], single: NDArray[np.bool_]) -> list[list[int]]:
    """Budgets (K) that reach the same several pools, together."""
    found: dict[bytes, list[int]] = {}
    for budget, pools in enumerate(reached):
        if not single[budget]:
            found.setdefault(pools.tobytes(), []).append(budget)
    return list(found.values())
