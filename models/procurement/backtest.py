"""Would the plan have been the better choice in the past? Rolling origins against hindsight and the named baselines.

At each origin everyone chooses from what was wanted before it, and pays for what then came; the optimum in hindsight, the
solution for the hours that came (or a policy's choice, where the solver's gap left that cheaper), is what nobody can beat. Prices are those of the offers given, for past hours
too: the backtest tells the quality of the decision, not the bill of the past. See ``fold`` for what a purchase costs
within a fold.

Does not belong here: choosing and pricing (``baselines``, ``fold``), reading history and prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.errors import UsageError
from models.procurement.baselines import BASELINES, HOURS_PER_DAY, Choice, choose, wang_online
from models.procurement.fold import (
    Market,
    Priced,
    Shop,
    as_units,
    fold_policy,
    hours_of,
    price,
    shop,
    value,
    without_spot,
)
from models.procurement.plan import micros
from models.scenarios import draw_scenarios
from models.units import MICROS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.demand import Scenarios
    from models.prices import Commitment, Offer, Pool
    from models.procurement.policy import PlanPolicy
    from models.procurement.problem import Problem

PLAN, HINDSIGHT = "plan", "hindsight"
POLICIES = {
    PLAN: "the plan: the least expected cost over scenarios drawn from the past",
    HINDSIGHT: "the optimum for the hours that came: nobody can know it, nobody can beat it",
    **BASELINES,
}
"""Ways of choosing by name, and what each does."""

FOLDS_SCHEMA = pl.Schema(
    {
        "fold_start_at": pl.Datetime("us", "UTC"),
        "policy": pl.String(),
        "cost_micros": pl.Int64(),
        "list_cost_micros": pl.Int64(),
        "regret_ratio": pl.Float64(),
        "savings_ratio": pl.Float64(),
        "committed_gpu_hours": pl.Float64(),
        "over_commitment_ratio": pl.Float64(),
        "under_commitment_gpu_hours": pl.Float64(),
        "note": pl.String(),
    }
)
VALUES_SCHEMA = pl.Schema(
    {
        "fold_start_at": pl.Datetime("us", "UTC"),
        "expected_cost_micros": pl.Int64(),
        "information_micros": pl.Int64(),
        "stochastic_micros": pl.Int64(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What every way of choosing would have cost, fold by fold.

    Attributes:
      folds: One row a fold and policy: its cost; the on-demand list cost of all that was wanted, NULL where a pool has no
        such price; ``regret_ratio``, cost over the optimum in hindsight less 1; ``savings_ratio``, the Effective Savings Rate:
        the part of the list cost that was not paid; GPU-hours committed, bought or held before, and the part of
        them that nothing used; GPU-hours on demand that the optimum covered; a note.
      summary: One row a policy: ``cost_micros`` of all folds together, ``regret_ratio`` on average; standard error (NULL with
        one fold), least and most of both over the folds; the savings rate of all folds together, GPU-hours committed and
        missed in all, and the part not used.
      values: One row a fold: expected cost of the plan over its scenarios; ``information_micros``, the expected value of
        perfect information (EVPI); ``stochastic_micros``, the value of the stochastic solution (VSS).
      window_hours: Length of a fold.
      look_back_hours: Most hours before an origin that scenarios are drawn from.
      scenario_count: Scenarios drawn.
      seed: Of the first fold's random numbers; the next has the next.
      prices_from: When the oldest price was seen.
      prices_to: When the newest price was seen.
      price_sources: Where they were seen, ascending.
    """

    folds: pl.DataFrame
    summary: pl.DataFrame
    values: pl.DataFrame
    window_hours: int
    look_back_hours: int
    scenario_count: int
    seed: int
    prices_from: datetime
    prices_to: datetime
    price_sources: tuple[str, ...]


def rolling_origins(history: Scenarios, *, first_hours: int, step_hours: int, window_hours: int) -> list[datetime]:
    """Starts of folds, one a step after the first hours, as long as a whole fold is left; a step below the window overlaps."""
    last = history.total().shape[1] - window_hours
    return [history.start_at + timedelta(hours=hour) for hour in range(first_hours, last + 1, step_hours)]


def backtest(  # noqa: PLR0913 - what is planned with, and how it is tested
    history: Scenarios,
    pools: Sequence[Pool],
    offers: Sequence[Offer],
    portfolio: Sequence[Commitment],
    policy: PlanPolicy,
    *,
    origins: Sequence[datetime],
    window_hours: int,
    look_back_hours: int,
    scenario_count: int,
    seed: int,
) -> Backtest:
    """Choose at each origin from what was known, and pay for what came.

    A purchase costs its price per hour (what recurs, and the upfront part over the term) for the fold's hours only: folds
    are shorter than terms, and later use is neither charged nor discounted (``fold``).

    Args:
      history: What was wanted: one scenario. Pools that never want anything are left out.
      pools: What is known of each pool.
      offers: All that can be bought.
      portfolio: What is held already, by its dates.
      policy: The organisation's policy.
      origins: First hours of the folds.
      window_hours: Length of a fold.
      look_back_hours: The scenarios, and the percentiles of ``cover_p50`` and ``cover_p80``, are of so many hours before an
        origin, or as many as there are.
      scenario_count: Scenarios to draw at each origin.
      seed: Of the random numbers.

    Raises:
      UsageError: The history has more than one scenario or wants nothing; an origin has no day of history before it, or not
        a whole fold after it; there is no origin or no offer.
    """
    _check(history, offers, origins, window_hours)
    history = _wanted_at_all(history)
    market = Market(pools=pools, offers=offers, portfolio=portfolio, policy=fold_policy(policy))
    rows: list[dict[str, object]] = []
    values: list[dict[str, object]] = []
    for number, origin in enumerate(origins):
        found, worth = _fold(history, origin, window_hours, look_back_hours, scenario_count, seed + number, market)
        rows += found
        values.append({"fold_start_at": origin, **worth})
    folds = pl.DataFrame(rows, schema=FOLDS_SCHEMA)
    return Backtest(
        folds=folds,
        summary=_summary(folds),
        values=pl.DataFrame(values, schema=VALUES_SCHEMA),
        window_hours=window_hours,
        look_back_hours=look_back_hours,
        scenario_count=scenario_count,
        seed=seed,
        prices_from=min(one.observed_at for one in offers),
        prices_to=max(one.observed_at for one in offers),
        price_sources=tuple(sorted({one.price_source for one in offers})),
    )


def _fold(  # noqa: PLR0913, PLR0917 - what a fold is made of
    history: Scenarios,
    origin: datetime,
    window_hours: int,
    look_back_hours: int,
    scenario_count: int,
    seed: int,
    market: Market,
) -> tuple[list[dict[str, object]], dict[str, int]]:
    """Everyone chooses at the origin from the hours before it, and pays for those after."""
    at = _hour(history, origin)
    seen = min(at, look_back_hours)
    past = hours_of(history, 0, at, history.start_at)
    recent = hours_of(history, at - seen, at, origin - timedelta(hours=seen))
    wanted = hours_of(history, at, at + window_hours, origin)
    store = shop(market, history.pools, origin, wanted)
    drawn = draw_scenarios(recent, start_at=origin, hours=window_hours, count=scenario_count, seed=seed)
    chosen, worth = _choices(past, recent, drawn, store)
    return _rows(origin, _priced(past, wanted, chosen, store), store.realised(wanted), chosen), worth


def _check(history: Scenarios, offers: Sequence[Offer], origins: Sequence[datetime], window_hours: int) -> None:
    if len(history.probability) != 1:
        raise UsageError(f"history: found {len(history.probability)} scenarios, expected one: what was wanted")
    if window_hours < 1:
        raise UsageError(f"window_hours: found {window_hours}, expected 1 or more")
    if not offers:
        raise UsageError("there is no price to test with: ingest prices first")
    hours = history.total().shape[1]
    if not origins:
        raise UsageError(
            f"no fold fits: the history has {hours} hours, a fold {window_hours}, and a day must come before it; "
            "look at more history or make folds shorter"
        )
    for origin in origins:
        at = _hour(history, origin)
        if at < HOURS_PER_DAY or at + window_hours > hours:
            raise UsageError(
                f"origin {origin:%Y-%m-%d %H:%M}: found {at} hours before it and {hours - at} after, expected "
                f"{HOURS_PER_DAY} or more before and {window_hours} or more after"
            )


def _hour(history: Scenarios, origin: datetime) -> int:
    hours, rest = divmod(origin - history.start_at, timedelta(hours=1))
    if rest:
        raise UsageError(f"origin {origin.isoformat()}: expected a whole hour after {history.start_at.isoformat()}")
    return hours


def _wanted_at_all(history: Scenarios) -> Scenarios:
    wanted = np.flatnonzero(history.total()[0].any(axis=0))
    if not wanted.size:
        raise UsageError("the history wants no GPU in any hour: there is nothing to test")
    gpus = {name: values[:, :, wanted] for name, values in history.gpus.items()}
    return replace(history, pools=tuple(history.pools[one] for one in wanted), gpus=gpus)


def _choices(
    past: Scenarios, recent: Scenarios, drawn: Scenarios, store: Shop
) -> tuple[dict[str, Choice], dict[str, int]]:
    """What each policy buys at the origin, hindsight left out; and what the plan's spread was worth."""
    compiled, solution, units = store.market.best(drawn)
    chosen = {PLAN: Choice(units=units)}
    for name in BASELINES:
        known = recent if name.startswith("cover") else past
        chosen[name] = choose(name, known, drawn, store)
    worth = value(compiled, solution.units, chosen["mean_value"].units)
    return chosen, {
        "expected_cost_micros": micros(worth.expected),
        "information_micros": micros(worth.evpi),
        "stochastic_micros": micros(worth.vss),
    }


def _priced(past: Scenarios, wanted: Scenarios, chosen: dict[str, Choice], store: Shop) -> dict[str, Priced]:
    """What each policy paid for the hours that came."""
    realised = store.realised(wanted)
    _, _, best = store.market.best(wanted)
    found = {HINDSIGHT: price(realised, as_units(store.compiled, best))}
    for name, choice in chosen.items():
        problem = without_spot(realised) if name == "on_demand_only" else realised
        found[name] = price(problem, as_units(store.compiled, choice.units))
    # The solver's own gap (whole nodes, several commitments in money) must not let anyone beat hindsight.
    found[HINDSIGHT] = min((one for name, one in found.items() if name != "on_demand_only"), key=lambda one: one.cost)
    online = wang_online(past, wanted, store)
    found["wang_online"] = price(online.problem, as_units(store.compiled, {}), online.paid)
    return found


def _rows(
    origin: datetime, priced: dict[str, Priced], realised: Problem, chosen: dict[str, Choice]
) -> list[dict[str, object]]:
    listed = _list_cost(realised)
    best = priced[HINDSIGHT]
    rows = []
    for name in POLICIES:
        one = priced[name]
        missed = np.minimum(one.on_demand - best.on_demand, best.covered - one.covered)
        rows.append(
            {
                "fold_start_at": origin,
                "policy": name,
                "cost_micros": micros(one.cost),
                "list_cost_micros": None if listed is None else micros(listed),
                "regret_ratio": one.cost / best.cost - 1 if best.cost else None,
                "savings_ratio": (listed - one.cost) / listed if listed else None,
                "committed_gpu_hours": one.committed,
                "over_commitment_ratio": one.unused / one.committed if one.committed else 0.0,
                "under_commitment_gpu_hours": float(np.maximum(missed, 0).sum()),
                "note": chosen[name].note if name in chosen else "",
            }
        )
    return rows


def _list_cost(problem: Problem) -> float | None:
    """All that was wanted at the on-demand price; None where a pool has none."""
    wanted = problem.demand[0].sum(axis=0)
    prices = problem.on_demand_price[0, 0]
    return float(wanted @ np.where(wanted > 0, prices, 0)) if np.isfinite(prices[wanted > 0]).all() else None


def _summary(folds: pl.DataFrame) -> pl.DataFrame:
    spread = [
        shown
        for name, unit in (("cost", "micros"), ("regret", "ratio"))
        for shown in (
            (pl.col(f"{name}_{unit}").std() / pl.len().sqrt()).alias(f"{name}_error_{unit}"),
            pl.col(f"{name}_{unit}").min().alias(f"{name}_least_{unit}"),
            pl.col(f"{name}_{unit}").max().alias(f"{name}_most_{unit}"),
        )
    ]
    unused = (pl.col("over_commitment_ratio") * pl.col("committed_gpu_hours")).sum()
    return folds.group_by("policy", maintain_order=True).agg(
        pl.len().alias("fold_count"),
        pl.col("cost_micros").sum(),
        pl.col("cost_micros").mean().alias("cost_mean_micros"),
        pl.col("regret_ratio").mean(),
        *spread,
        # A total of which a part is unknown is unknown.
        pl.when(pl.col("list_cost_micros").null_count() == 0)
        .then(1 - pl.col("cost_micros").sum() / pl.col("list_cost_micros").sum())
        .fill_nan(None)
        .alias("savings_ratio"),
        pl.col("committed_gpu_hours").sum(),
        (unused / pl.col("committed_gpu_hours").sum()).fill_nan(0.0).alias("over_commitment_ratio"),
        pl.col("under_commitment_gpu_hours").sum(),
        pl.when(pl.col("note").ne("").any())
        .then(pl.format("in the first fold {}", pl.col("note").filter(pl.col("note") != "").first()))
        .otherwise(pl.lit(""))
        .alias("note"),
    )


def verdict(tested: Backtest) -> list[str]:
    """One sentence a baseline: whether the plan had the lower mean regret, and by how much in money, with its spread.

    A positive difference is what the baseline paid more than the plan.
    """
    folds = tested.folds.select("fold_start_at", "policy", "cost_micros", "regret_ratio")
    plan = folds.filter(pl.col("policy") == PLAN)
    first, last = (f"{one:%Y-%m-%d}" for one in plan["fold_start_at"].sort().gather([0, -1]).to_list())
    basis = (
        f"{plan.height} fold{'s' if plan.height > 1 else ''} of {tested.window_hours} hours starting {first} to {last}"
        f"{_overlap(plan['fold_start_at'], tested.window_hours)}, prices seen "
        f"{tested.prices_from:%Y-%m-%d} to {tested.prices_to:%Y-%m-%d} ({', '.join(tested.price_sources)})"
    )
    found = []
    for name, meaning in BASELINES.items():
        both = plan.join(folds.filter(pl.col("policy") == name), on="fold_start_at", suffix="_other")
        found.append(f"Against {name} ({meaning}): {_compared(both)}; {basis}.")
    return found


def _overlap(starts: pl.Series, window_hours: int) -> str:
    """Words for folds that share hours, whose standard error is then too small."""
    apart = starts.sort().diff().min()
    overlaps = isinstance(apart, timedelta) and apart < timedelta(hours=window_hours)
    return " (they overlap, so that the standard error is too small)" if overlaps else ""


def _compared(both: pl.DataFrame) -> str:
    """The plan beside one baseline, over the same folds."""
    differences = (both["cost_micros_other"] - both["cost_micros"]).to_numpy() / MICROS_PER_UNIT
    total, paid = float(differences.sum()), float(both["cost_micros_other"].sum()) / MICROS_PER_UNIT
    ours, theirs = both["regret_ratio"].mean(), both["regret_ratio_other"].mean()
    spread = f"{differences.min():+,.2f} to {differences.max():+,.2f} a fold"
    if len(differences) > 1:
        spread += f", standard error of the mean {differences.std(ddof=1) / len(differences) ** 0.5:,.2f}"
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return "no regret can be told, as the optimum in hindsight costs nothing"
    regrets = f"a mean regret of {ours:.2%} against {theirs:.2%}"
    share = f" ({abs(total) / paid:.2%})" if paid else ""
    if abs(ours - theirs) < 5e-6:
        return f"the plan did as well, {regrets}; the baseline's cost less the plan's was {spread}"
    better, money = ours < theirs, f"{abs(total):,.2f} {'less' if total >= 0 else 'more'}{share} over all folds"
    return (
        f"the plan was {'better' if better else 'NOT better'}, {regrets}, and cost {money}; "
        f"the baseline's cost less the plan's was {spread}"
    )
