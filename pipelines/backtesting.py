"""A backtest on the ledger's own demand and prices. Does not belong here: how it is tested."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from models.errors import UsageError
from models.procurement.backtest import backtest, rolling_origins
from pipelines.plan_inputs import read_inputs, read_portfolio
from pipelines.publish import query

if TYPE_CHECKING:
    from models.procurement.backtest import Backtest
    from pipelines.plan_settings import PlanSettings
    from pipelines.settings import Settings

HOURS_PER_DAY = 24


def backtest_ledger(
    settings: Settings, plan_settings: PlanSettings, *, fold_days: int, step_days: int, first_days: int
) -> Backtest:
    """Roll origins over the demand that the plan would look back on.

    Args:
      settings: The ledger.
      plan_settings: ``plan.yaml``; prices are those in force at the end of what is known.
      fold_days: Length of a fold.
      step_days: From one fold's start to the next.
      first_days: Days before the first fold.

    Raises:
      UsageError: The history is too short for one fold; says how long it is.
    """
    ask = partial(query, settings)
    inputs = read_inputs(ask, plan_settings)
    window_hours = fold_days * HOURS_PER_DAY
    origins = rolling_origins(
        inputs.history,
        first_hours=first_days * HOURS_PER_DAY,
        step_hours=step_days * HOURS_PER_DAY,
        window_hours=window_hours,
    )
    if not origins:
        days = inputs.history.total().shape[1] // HOURS_PER_DAY
        raise UsageError(
            f"the history has {days:,} days, too few for {first_days} days and one fold of {fold_days}: ask for less with "
            "--first-days or --fold-days, or look back further in plan.yaml (demand.look_back_days)"
        )
    # What ended since was held in earlier folds. Upfront money is spent, whoever chooses, so it falls due in none.
    held = read_portfolio(ask, inputs.pools, inputs.history.start_at)
    return backtest(
        inputs.history,
        inputs.pools,
        inputs.offers,
        [replace(one, is_queued=False) for one in held],
        inputs.policy,
        origins=origins,
        window_hours=window_hours,
        look_back_hours=plan_settings.demand.look_back_days * HOURS_PER_DAY,
        scenario_count=plan_settings.demand.scenarios,
        seed=plan_settings.demand.seed,
    )
