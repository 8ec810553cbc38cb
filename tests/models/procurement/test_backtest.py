"""The plan against hindsight and the baselines: what must hold on any demand, and what a real month shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.demand import Scenarios, trace_demand
from models.errors import UsageError
from models.prices import YEAR_SECONDS, Instrument
from models.procurement.backtest import HINDSIGHT, PLAN, POLICIES, Backtest, backtest, rolling_origins, verdict
from models.procurement.baselines import BASELINES
from models.procurement.policy import PlanPolicy
from tests.markets import AT, commitment, demand, offer, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from pathlib import Path

    from models.prices import Offer

DAY, WEEK = 24, 168
OFFERS = (on_demand(7), spot(2.6), reserved(4), reserved(2.5, 3))


def backtested(history: Scenarios, *offers: Offer, window: int = DAY, first: int = 2 * DAY, **more: Any) -> Backtest:
    plan = {
        "look_back_hours": 30 * DAY,
        "scenario_count": 5,
        "seed": 7,
        "portfolio": [],
        "policy": PlanPolicy(),
        **more,
    }
    origins = plan.pop("origins", None) or rolling_origins(
        history, first_hours=first, step_hours=plan.pop("step", window), window_hours=window
    )
    pools = plan.pop("pools", [pool(name) for name in history.pools])
    portfolio, policy = plan.pop("portfolio"), plan.pop("policy")
    return backtest(history, pools, offers, portfolio, policy, origins=origins, window_hours=window, **plan)


def mixed(gpus: np.ndarray) -> Scenarios:
    """Half of it may be interrupted."""
    wanted = demand(gpus).total()
    return replace(demand(gpus), gpus={"rigid": wanted / 2, "deferrable": wanted / 2})


def regrets(found: Backtest) -> dict[str, float]:
    return dict(found.summary.select("policy", "regret_ratio").iter_rows())


@settings(max_examples=15)
@given(
    levels=st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(lambda found: found[0] > 0),
    seed=st.integers(0, 999),
    node_gpus=st.sampled_from([1, 8]),
)
def test_nobody_beats_hindsight(levels: list[int], seed: int, node_gpus: int) -> None:
    check_hindsight(levels, seed, node_gpus, list(OFFERS))


@pytest.mark.parametrize(("seed", "node_gpus"), [(1, 1), (2, 8)])
def test_nobody_beats_hindsight_with_a_commitment_in_money(seed: int, node_gpus: int) -> None:
    check_hindsight([10, 30, 20, 25], seed, node_gpus, [*OFFERS, savings_plan({"h100": 2.4})])


def check_hindsight(levels: list[int], seed: int, node_gpus: int, offers: list[Offer]) -> None:
    noise = np.random.default_rng(seed).integers(0, 9, len(levels) * DAY)
    history = mixed(np.repeat(levels, DAY) + noise)
    found = backtested(history, *offers, pools=[pool(node_gpus=node_gpus)], scenario_count=3)
    assert found.folds["policy"].to_list() == list(POLICIES) * 2
    assert min(found.folds["regret_ratio"].to_list()) >= -2e-6, found.folds  # the gap that a solution may have
    assert found.folds.filter(pl.col("policy") == HINDSIGHT)["regret_ratio"].to_list() == [0.0] * 2
    # Whole nodes are searched for, not proven: EVPI and VSS may fall below nothing by that gap.
    lost = -1e-3 * max(found.values["expected_cost_micros"].to_list()) if node_gpus > 1 else -1_000
    assert min(found.values["information_micros"].to_list()) >= lost
    assert min(found.values["stochastic_micros"].to_list()) >= lost


def test_a_week_that_comes_again_leaves_the_look_back_no_regret() -> None:
    week = np.random.default_rng(3).integers(0, 60, WEEK)
    found = backtested(demand(np.tile(week, 4)), *OFFERS, window=WEEK, first=WEEK)
    assert regrets(found)["look_back_7d"] == 0


def test_a_demand_that_never_changes_has_no_regret_and_nothing_to_know() -> None:
    found = backtested(demand(np.full(6 * DAY, 16.0)), *OFFERS)
    expected = dict.fromkeys(POLICIES, 0.0) | {"on_demand_only": 7 / 2.5 - 1}
    assert regrets(found) == pytest.approx(expected)
    assert found.values["information_micros"].to_list() == found.values["stochastic_micros"].to_list() == [0] * 4
    assert found.summary.filter(pl.col("policy") == PLAN)["savings_ratio"].item() == pytest.approx(1 - 2.5 / 7)


def test_the_columns_are_what_they_say() -> None:
    # 10 GPUs are known, 4 come: all but Wang pay for 10, and hindsight for 4.
    found = backtested(demand(np.repeat([10.0, 10.0, 4.0], DAY)), on_demand(7), reserved(4))
    row = found.folds.row(by_predicate=pl.col("policy") == "cover_p50", named=True)
    assert row == {
        "fold_start_at": AT + timedelta(days=2),
        "policy": "cover_p50",
        "cost_micros": 10 * 4 * DAY * 1_000_000,
        "list_cost_micros": 4 * 7 * DAY * 1_000_000,
        "regret_ratio": pytest.approx(10 / 4 - 1),
        "savings_ratio": pytest.approx(1 - 40 / 28),
        "committed_gpu_hours": 240,
        "over_commitment_ratio": pytest.approx(0.6),
        "under_commitment_gpu_hours": 0,
        "note": "",
    }
    nothing = found.folds.row(by_predicate=pl.col("policy") == "on_demand_only", named=True)
    assert (nothing["savings_ratio"], nothing["under_commitment_gpu_hours"]) == (0, 4 * DAY)
    note = found.folds.row(by_predicate=pl.col("policy") == "look_back_60d", named=True)["note"]
    assert note == "2 of 60 days were there before the fold"


def test_nobody_knows_what_comes() -> None:
    before = np.random.default_rng(4).integers(0, 50, 4 * DAY)
    bought = [
        backtested(demand(np.concatenate([before, after])), *OFFERS, first=4 * DAY, window=DAY)
        .folds.filter(~pl.col("policy").is_in([HINDSIGHT, "wang_online"]))
        .select("policy", "committed_gpu_hours")
        .rows()
        for after in (np.zeros(DAY), np.full(DAY, 99))
    ]
    assert bought[0] == bought[1]


def test_the_same_seed_gives_the_same_and_another_seed_does_not() -> None:
    history = demand(np.random.default_rng(5).integers(0, 50, 8 * DAY))
    first, again, other = (backtested(history, *OFFERS, seed=seed) for seed in (1, 1, 2))
    assert first.folds.equals(again.folds)
    assert first.values.equals(again.values)
    assert not first.values.equals(other.values)


def test_what_is_held_is_paid_by_all() -> None:
    held = commitment("ours", AT - timedelta(days=3), AT + timedelta(days=30), gpus=10)
    found = backtested(demand(np.full(4 * DAY, 10.0)), *OFFERS, portfolio=[held])
    assert found.summary["cost_micros"].unique().to_list() == [10 * 4 * 2 * DAY * 1_000_000]


def test_without_an_on_demand_price_nothing_is_said_to_be_saved() -> None:
    found = backtested(demand(np.full(4 * DAY, 10.0)), reserved(4))
    assert found.summary["savings_ratio"].null_count() == len(POLICIES)


def test_pools_that_never_want_anything_need_no_price() -> None:
    history = replace(demand(np.full(3 * DAY, 9.0)), pools=("h100", "b200"))
    gpus = {"rigid": np.stack([np.full((1, 3 * DAY), 9.0), np.zeros((1, 3 * DAY))], axis=2)}
    assert regrets(backtested(replace(history, gpus=gpus), *OFFERS))[PLAN] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"origins": [AT + timedelta(hours=23)]}, "found 23 hours before it and 73 after"),
        ({"origins": [AT + timedelta(hours=80)]}, "found 80 hours before it and 16 after"),
        ({"origins": [AT + timedelta(minutes=90)]}, "expected a whole hour"),
        ({"first": 90}, "no fold fits: the history has 96 hours"),
        ({"window": 0, "step": 1}, "window_hours: found 0"),
    ],
)
def test_says_which_fold_cannot_be_tested(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        backtested(demand(np.full(4 * DAY, 1.0)), *OFFERS, **change)


def test_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="found 2 scenarios"):
        backtested(demand(np.ones((2, 4 * DAY))), *OFFERS)
    with pytest.raises(UsageError, match="no price"):
        backtested(demand(np.ones(4 * DAY)))
    with pytest.raises(UsageError, match="wants no GPU"):
        backtested(demand(np.zeros(4 * DAY)), *OFFERS)


def test_the_verdict_names_baseline_money_spread_folds_and_prices() -> None:
    sentences = dict(zip(BASELINES, verdict(backtested(demand(np.full(4 * DAY, 10.0)), *OFFERS)), strict=True))
    assert sentences["on_demand_only"] == (
        "Against on_demand_only (nothing is bought and nothing runs on spot; what is held already is used): the plan was "
        "better, a mean regret of 0.00% against 180.00%, and cost 2,160.00 less (64.29%) over all folds; the baseline's "
        "cost less the plan's was +1,080.00 to +1,080.00 a fold, standard error of the mean 0.00; 2 folds of 24 hours "
        "starting 2026-11-03 to 2026-11-04, prices seen 2026-11-01 to 2026-11-01 (a test)."
    )
    assert "the plan did as well, a mean regret of 0.00% against 0.00%" in sentences["cover_p80"]


def test_the_verdict_says_where_the_plan_was_not_better() -> None:
    # 10 GPUs on 8 days and 50 on 6: all days together say 10, the last week says 50, and 50 it is.
    history = demand(np.repeat([10.0] * 8 + [50.0] * 8, DAY))
    found = backtested(history, on_demand(7), reserved(4), first=14 * DAY, window=2 * DAY, scenario_count=40)
    assert (
        "the plan was NOT better, a mean regret of" in dict(zip(BASELINES, verdict(found), strict=True))["look_back_7d"]
    )


# A month of a real cluster --------------------------------------------------------------------------------------------


def helios(shared_data: Path, *, by_account: bool) -> Scenarios:
    """GPUs used and waited for in May 2020, by the hour.

    The trace has no class of work: 70 % of each hour is taken as rigid and 30 % as deferrable, which is an assumption.
    """
    frame = pl.read_parquet(shared_data / "helios-earth" / "earth_vc_minute.parquet")
    found = trace_demand(frame, workload_class="rigid", by_account=by_account)
    total = found.total()
    largest = np.sort(np.argsort(-total[0].mean(axis=0))[:3])
    return replace(
        found,
        pools=tuple(found.pools[one] for one in largest),
        gpus={"rigid": 0.7 * total[:, :, largest], "deferrable": 0.3 * total[:, :, largest]},
    )


def helios_tested(history: Scenarios, look_back_hours: int, *more: Offer, scenario_count: int) -> Backtest:
    """Five-day folds every three days after a week; prices of an H100-hour on demand, for a year, and on spot."""
    seen = {"observed_at": datetime(2026, 7, 22, tzinfo=UTC), "price_source": "published prices"}
    offers = [
        offer("on_demand", Instrument.ON_DEMAND, dict.fromkeys(history.pools, 6.88), **seen),
        offer("spot", Instrument.SPOT, dict.fromkeys(history.pools, 2.60), **seen),
        *(
            offer(f"reserved {name}", Instrument.RESERVED, {name: 4.33}, term_seconds=YEAR_SECONDS, **seen)
            for name in history.pools
        ),
        *more,
    ]
    return backtested(
        history,
        *offers,
        pools=[pool(name, node_gpus=8) for name in history.pools],
        window=5 * DAY,
        first=WEEK,
        step=3 * DAY,
        look_back_hours=look_back_hours,
        scenario_count=scenario_count,
        seed=1_000,
    )


@pytest.mark.parametrize("by_account", [False, True], ids=["whole cluster", "three largest virtual clusters"])
def test_a_month_of_helios_earth(shared_data: Path, *, by_account: bool) -> None:
    """What a month in which demand rises shows; the margins hold for four seeds, with 20 scenarios and with 40.

    Drawn from the last week, the plan has a lower regret than five baselines and about that of the look-back of the same
    week and of its median. It is NOT below every one: on the whole cluster the 80th percentile comes nearer to hindsight,
    since it covers more and demand rises, and no past of a week tells that.
    """
    found = helios_tested(helios(shared_data, by_account=by_account), WEEK, scenario_count=20)
    regret = regrets(found)
    assert found.folds["fold_start_at"].n_unique() == 7
    assert min(found.folds["regret_ratio"].to_list()) >= 0
    assert regret[PLAN] < 0.025
    assert regret["on_demand_only"] > 0.5
    assert regret[PLAN] < regret["wang_online"] - 0.015
    for name in ("look_back_30d", "look_back_60d", "min_3d_30d"):
        assert regret[PLAN] < regret[name] - 0.005, name
    assert regret[PLAN] < regret["mean_value"] + 0.001
    for name in ("look_back_7d", "cover_p50"):
        assert regret[PLAN] == pytest.approx(regret[name], abs=0.005), name
    sentences = dict(zip(BASELINES, verdict(found), strict=True))
    assert "the plan was better" in sentences["wang_online"]
    if not by_account:
        assert regret["cover_p80"] < regret[PLAN] - 0.005
        assert "the plan was NOT better" in sentences["cover_p80"]
    assert "they overlap, so that the standard error is too small" in sentences["cover_p80"]


def test_a_rising_demand_is_missed_by_looking_far_back(shared_data: Path) -> None:
    history = helios(shared_data, by_account=False)
    week, month = (regrets(helios_tested(history, hours, scenario_count=20))[PLAN] for hours in (WEEK, 31 * DAY))
    assert week < month - 0.01


def test_reservations_and_a_savings_plan_are_chosen_together(shared_data: Path) -> None:
    """The plan is below every baseline where pools also share a savings plan, half a per cent dearer than reservations.

    Three seeds and a look-back of 31 days keep the margin. Most of it is the joint choice: the baselines buy one
    instrument a pool. A look-back over the last week that may buy both comes as near to hindsight as the plan (1.0 %).
    """
    history = helios(shared_data, by_account=True)
    found = helios_tested(history, WEEK, savings_plan(dict.fromkeys(history.pools, 4.37)), scenario_count=10)
    regret = regrets(found)
    for name in BASELINES:
        assert regret[PLAN] < regret[name] - 0.01, name
    assert all("the plan was better" in one for one in verdict(found))
