"""A backtest on a ledger: folds of the days that the plan looks back on, and the plan never far from hindsight."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.errors import UsageError
from pipelines.backtesting import backtest_ledger
from pipelines.plan_settings import read_plan_settings
from tests.ledgers import at
from tests.plans import SEEN, commitment, ledger, write_plan

if TYPE_CHECKING:
    from pathlib import Path

    from models.procurement.backtest import Backtest
    from pipelines.settings import Settings


def backtested(
    settings: Settings, *, fold_days: int = 7, step_days: int = 7, first_days: int = 14, **changes: Any
) -> Backtest:
    path = write_plan(settings.home, **changes)
    days = {"fold_days": fold_days, "step_days": step_days, "first_days": first_days}
    return backtest_ledger(settings, read_plan_settings(path), **days)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return ledger(tmp_path_factory.mktemp("books"))


@pytest.fixture(scope="module")
def weekly(books: Settings) -> Backtest:
    return backtested(books)


def test_a_fold_begins_each_step_after_the_first_days(weekly: Backtest) -> None:
    starts = [at(15, month=10) + timedelta(days=days) for days in (0, 7, 14)]
    assert weekly.values["fold_start_at"].to_list() == starts
    assert (weekly.window_hours, weekly.look_back_hours, weekly.scenario_count, weekly.seed) == (168, 35 * 24, 3, 7)
    assert (weekly.prices_from, weekly.prices_to, weekly.price_sources) == (SEEN, SEEN, ("a test",))


def test_nobody_beats_hindsight_and_the_plan_is_near_it(weekly: Backtest) -> None:
    regret = dict(weekly.summary.select("policy", "regret_ratio").rows())
    assert min(regret.values()) == regret["hindsight"] == 0
    assert regret["plan"] < 0.02
    assert regret["on_demand_only"] > 0.5


def test_costs_are_those_of_the_hours_that_came(weekly: Backtest) -> None:
    """A week of 4 GPUs at all hours and of 8 for 12 hours on 5 days: 2 are held at 5, 2 reserved at 4; without either all is on demand."""
    paid = dict(weekly.summary.select("policy", "cost_micros").rows())
    week = 4 * 168 + 8 * 60
    held = 2 * 5 * 168
    assert paid["on_demand_only"] == 3 * (held + (week - 2 * 168) * 10) * 10**6
    spot, rest = 0.8 * 8 * 60, 0.2 * 8 * 60
    assert paid["hindsight"] == pytest.approx(3e6 * (held + 2 * 4 * 168 + spot * 3 / 0.85 + rest * 10))


def test_what_has_ended_since_was_held_in_the_folds_before(tmp_path: Path) -> None:
    """2 more GPUs at 5 an hour until the 22nd, paid upfront beside: then nothing need be reserved in the first of three weeks."""
    ended = commitment("r-2", ends_at=at(22, month=10), upfront_amount=Decimal(1_000), starts_at=at(15, month=10))
    folds = backtested(ledger(tmp_path, ended)).folds
    first, *later = folds.filter(pl.col("policy") == "on_demand_only")["cost_micros"].to_list()
    assert later == [(2 * 5 * 168 + (2 * 168 + 8 * 60) * 10) * 10**6] * 2
    assert first == (4 * 5 * 168 + 8 * 60 * 10) * 10**6


def test_what_is_looked_back_on_is_what_is_tested(books: Settings) -> None:
    found = backtested(books, fold_days=3, step_days=4, first_days=7, demand={"look_back_days": 14})
    assert found.values["fold_start_at"].to_list() == [at(29, month=10), at(2, month=11)]


@pytest.mark.parametrize("days", [{"first_days": 30}, {"fold_days": 30}])
def test_a_history_too_short_for_a_fold_says_how_long_it_is(books: Settings, days: dict[str, int]) -> None:
    with pytest.raises(
        UsageError, match=r"the history has 35 days, too few for \d+ days and one fold of \d+: ask for less"
    ):
        backtested(books, **days)
