"""What a purchase costs within a fold, added up by hand; and EVPI and VSS on the newsvendor with two outcomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.demand import Scenarios
from models.prices import Instrument
from models.procurement.baselines import mean_demand
from models.procurement.fold import (
    Market,
    Shop,
    as_units,
    fold_policy,
    hours_of,
    price,
    shop,
    value,
    with_supply,
    without_spot,
)
from models.procurement.policy import PlanPolicy
from tests.markets import AT, DOLLAR, commitment, demand, offer, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from models.prices import Commitment, Offer

ANY_NUMBER = PlanPolicy(whole_nodes=False, spot_share_ratio={"deferrable": 0.8}, spot_goodput_ratio=0.5)


def shop_of(
    *offers: Offer,
    names: tuple[str, ...] = ("h100",),
    hours: int = 4,
    portfolio: list[Commitment] | None = None,
    **policy: Any,
) -> Shop:
    market = Market(
        pools=[pool(name) for name in names],
        offers=offers,
        portfolio=portfolio or [],
        policy=fold_policy(replace(ANY_NUMBER, **policy)),
    )
    wanted = Scenarios(
        start_at=AT, pools=names, probability=np.ones(1), gpus={"rigid": np.zeros((1, hours, len(names)))}
    )
    return shop(market, names, AT, wanted)


def test_a_purchase_costs_its_price_per_hour_for_the_hours_of_the_fold() -> None:
    half_upfront = reserved(2, upfront_micros_per_gpu=2 * 8760 * DOLLAR)
    store = shop_of(on_demand(7), half_upfront)
    assert store.price_per_hour.tolist() == [pytest.approx(4)]
    priced = price(store.realised(demand([3, 3, 0, 5])), np.array([3.0]))
    assert priced.cost == pytest.approx(3 * 4 * 4 + 2 * 7)
    assert (priced.committed, priced.unused) == (12, 3)
    assert priced.covered.tolist() == [9]
    assert priced.on_demand.tolist() == [2]


def test_what_nothing_wants_any_more_is_still_paid() -> None:
    store = shop_of(on_demand({"h100": 7, "a100": 3}), reserved(4), names=("h100", "a100"))
    came = replace(demand([0, 0, 0, 0]), pools=("h100", "a100"), gpus={"rigid": np.array([[[0.0, 1.0]] * 4])})
    priced = price(store.realised(came), as_units(store.compiled, {"reserved_1y": 2}))
    assert priced.cost == pytest.approx(2 * 4 * 4 + 4 * 3)
    assert priced.unused == 8


def test_money_is_committed_by_the_hour() -> None:
    store = shop_of(on_demand({"h100": 7, "a100": 3}), savings_plan({"h100": 4, "a100": 2}), names=("h100", "a100"))
    came = replace(demand([0] * 4), pools=("h100", "a100"), gpus={"rigid": np.array([[[1.0, 1.0]] * 3 + [[0.0, 0.0]]])})
    priced = price(store.realised(came), np.array([6.0]))
    assert priced.cost == pytest.approx(6 * 4)
    assert priced.covered.tolist() == [3, 3]
    assert priced.unused == pytest.approx(2)  # 6 an hour at the mean rate of 3


def test_held_commitments_are_paid_and_used_by_everyone() -> None:
    mine = commitment("ours", AT - timedelta(days=1), AT + timedelta(hours=2), gpus=2)
    store = shop_of(on_demand(7), reserved(5), portfolio=[mine])
    priced = price(store.realised(demand([3, 3, 3, 3])), np.array([0.0]))
    assert priced.cost == pytest.approx(2 * 2 * 4 + 7 * (1 + 1 + 3 + 3))


def test_spot_serves_what_may_run_on_it() -> None:
    store = shop_of(on_demand(7), spot(2), reserved(6))
    problem = store.realised(demand([10, 10, 10, 10], "deferrable"))
    assert price(problem, np.array([0.0])).cost == pytest.approx(4 * (8 * 4 + 2 * 7))  # 2 a GPU-hour, half of it useful
    assert price(without_spot(problem), np.array([0.0])).cost == pytest.approx(4 * 10 * 7)


def test_supply_may_change_by_the_hour() -> None:
    store = shop_of(on_demand(7), reserved(4))
    problem = store.realised(demand([3, 3, 3, 3]))
    grown = with_supply(problem, np.array([[0.0], [1.0], [2.0], [3.0]]), np.zeros((4, 0)))
    assert price(grown, np.array([0.0]), paid=11).cost == pytest.approx(11 + 7 * (3 + 2 + 1))


def test_the_cheapest_commitment_of_a_pool_may_be_one_in_money() -> None:
    plan = savings_plan({"h100": 3.9, "a100": 2.5})
    store = shop_of(on_demand({"h100": 7, "a100": 2}), reserved(4), plan, names=("h100", "a100"))
    assert [one.offer_id for one in store.cheapest_offers()] == ["on_demand", "savings_plan_1y"]
    assert store.cheapest()[1] is None, "2.50 for what costs 2 on demand pays for nobody"


def test_what_comes_later_is_not_waited_for_and_what_ends_early_is_not_renewed() -> None:
    brief = offer("block", Instrument.CAPACITY_BLOCK, 1, term_seconds=2 * 3_600)
    store = shop_of(on_demand(7), reserved(4, lead_seconds=2 * 3_600), reserved(5, 3), brief)
    assert [one.offer_id for one in store.cheapest_offers()] == ["on_demand", "reserved_3y"]


def test_limits_of_the_policy_are_left_out() -> None:
    policy = fold_policy(
        replace(ANY_NUMBER, budget_micros=1, exposure_micros=1, inference_availability_ratio=1.0, tail_weight_ratio=0.5)
    )
    limits = (
        policy.budget_micros,
        policy.exposure_micros,
        policy.inference_availability_ratio,
        policy.tail_weight_ratio,
    )
    assert limits == (None, None, None, 0.0)


def test_hours_are_cut_and_laid_elsewhere() -> None:
    cut = hours_of(demand([1, 2, 3, 4]), 1, 3, AT + timedelta(days=9))
    assert cut.start_at == AT + timedelta(days=9)
    assert cut.total()[0, :, 0].tolist() == [2, 3]


def test_the_value_of_knowing_and_of_the_spread_on_a_newsvendor() -> None:
    # 0 or 10 GPUs, half and half, for 4 hours: one costs 4 whether used or not, on demand 7. 4 > 7/2: buy none, pay 140.
    store = shop_of(on_demand(7), reserved(4), hours=4)
    drawn = demand(np.array([[0.0] * 4, [10.0] * 4]))
    compiled, solution, units = store.market.best(drawn)
    assert units == {}
    worth = value(compiled, solution.units, {"reserved_1y": 5.0})
    assert worth.expected == pytest.approx(140)
    assert worth.evpi == pytest.approx(140 - 0.5 * 160)  # known: 0, or 10 bought for 160
    # The plan for the mean of 5 buys 5: 80, and half the time 5 on demand for 140.
    assert store.market.best(mean_demand(drawn))[2] == {"reserved_1y": pytest.approx(5.0)}
    assert worth.vss == pytest.approx(80 + 0.5 * 140 - 140)


@given(
    gpus=st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=4),
    price_per_hour=st.floats(0.5, 8),
)
def test_neither_value_is_ever_below_nothing(gpus: list[list[int]], price_per_hour: float) -> None:
    if not np.any(gpus):
        return
    store = shop_of(on_demand(7), spot(2), reserved(price_per_hour), hours=5)
    for kind in ("rigid", "deferrable"):
        drawn = demand(np.array(gpus, dtype=float), kind)
        compiled, solution, _ = store.market.best(drawn)
        worth = value(compiled, solution.units, store.market.best(mean_demand(drawn))[2])
        assert worth.expected == pytest.approx(solution.cost)
        assert worth.evpi >= -1e-9
        assert worth.vss >= -1e-9
