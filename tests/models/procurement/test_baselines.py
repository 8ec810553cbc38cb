"""What each baseline buys, from curves on which a person can tell the number."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from models.procurement.baselines import BASELINES, Choice, choose, mean_demand, uncovered, wang_online
from models.procurement.fold import Market, Shop, fold_policy, price, shop
from models.procurement.policy import PlanPolicy
from tests.markets import AT, commitment, demand, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from models.demand import Scenarios
    from models.prices import Commitment, Offer

OFFERS = (on_demand(7), reserved(4))  # pays where used in more than 4/7 of the hours
DAY = 24


def shop_for(*offers: Offer, hours: int = DAY, node_gpus: int = 1, portfolio: list[Commitment] | None = None) -> Shop:
    policy = fold_policy(PlanPolicy(spot_share_ratio={"deferrable": 1.0}, spot_goodput_ratio=1.0))
    market = Market(pools=[pool(node_gpus=node_gpus)], offers=offers, portfolio=portfolio or [], policy=policy)
    return shop(market, ["h100"], AT, demand(np.zeros(hours)))


def days(*levels: float) -> np.ndarray:
    """GPUs by hour, a level a day."""
    return np.repeat(np.array(levels, dtype=float), DAY)


def chosen(name: str, history: Scenarios, store: Shop) -> Choice:
    return choose(name, history, history, store)


def test_look_back_sees_so_many_days_and_no_more() -> None:
    history = demand(days(*[30] * 23, *[20] * 30, *[10] * 7))
    store = shop_for(*OFFERS)
    assert chosen("look_back_7d", history, store).units == {"reserved_1y": 10}
    assert chosen("look_back_30d", history, store).units == {"reserved_1y": 20}
    assert chosen("look_back_60d", history, store) == Choice(units={"reserved_1y": 20})


def test_look_back_says_where_the_history_is_shorter() -> None:
    found = chosen("look_back_60d", demand(days(5, 5, 5)), shop_for(*OFFERS))
    assert found == Choice(units={"reserved_1y": 5}, note="3 of 60 days were there before the fold")


def test_the_lower_of_three_days_and_thirty() -> None:
    store = shop_for(*OFFERS)
    assert chosen("min_3d_30d", demand(days(*[20] * 27, 5, 5, 5)), store).units == {"reserved_1y": 5}
    assert chosen("min_3d_30d", demand(days(*[20] * 27, 50, 50, 50)), store).units == {"reserved_1y": 20}


def test_a_percentile_of_the_hours_to_the_nearest_node() -> None:
    history = demand(np.arange(101.0))
    assert chosen("cover_p50", history, shop_for(*OFFERS)).units == {"reserved_1y": 50}
    assert chosen("cover_p80", history, shop_for(*OFFERS)).units == {"reserved_1y": 80}
    assert chosen("cover_p50", history, shop_for(*OFFERS, node_gpus=8)).units == {"reserved_1y": 48}


def test_a_percentile_in_money_where_a_savings_plan_is_cheaper() -> None:
    store = shop_for(*OFFERS, savings_plan({"h100": 3.5}))
    assert chosen("cover_p80", demand(np.arange(101.0)), store).units == {"savings_plan_1y": pytest.approx(280)}


def test_what_spot_serves_for_less_is_not_covered() -> None:
    history = replace(demand(days(10)), gpus={"rigid": days(6)[None, :, None], "deferrable": days(4)[None, :, None]})
    assert uncovered(history, shop_for(*OFFERS, spot(2)))[:, 0].tolist() == [6.0] * DAY
    assert uncovered(history, shop_for(*OFFERS, spot(5)))[:, 0].tolist() == [10.0] * DAY


def test_what_is_held_is_not_bought_again() -> None:
    terms = {"starts_at": AT - timedelta(days=1), "ends_at": AT + timedelta(days=300)}
    gpus = commitment("gpus", **terms, gpus=3)
    money = commitment(
        "money", **terms, gpus=None, hourly_commitment_micros=8_000_000, rate_micros_per_gpu_hour={"h100": 4_000_000}
    )
    store = shop_for(*OFFERS, portfolio=[gpus, money])
    history = demand(days(10, 10))
    assert uncovered(history, store)[:, 0].tolist() == [5.0] * 2 * DAY
    for name in ("cover_p50", "look_back_7d", "mean_value"):
        assert chosen(name, history, store).units == {"reserved_1y": 5}


def test_nothing_is_bought_that_costs_more_than_on_demand() -> None:
    store = shop_for(on_demand(3), reserved(4))
    history = demand(days(10))
    for name in BASELINES:
        assert chosen(name, history, store).units == {}
    assert wang_online(history, history, store).paid == 0


def test_the_mean_is_taken_hour_by_hour() -> None:
    drawn = demand(np.array([[0.0, 4.0], [2.0, 8.0]]))
    assert mean_demand(drawn).total()[0, :, 0].tolist() == [1, 6]
    assert choose("mean_value", drawn, drawn, shop_for(*OFFERS, hours=2)).units == {"reserved_1y": 1}


def test_wang_reserves_when_a_reservation_would_have_paid() -> None:
    # A term of 24 hours costs 96: on-demand use of 7 an hour exceeds it in the 14th hour, and never before.
    store = shop_for(*OFFERS)
    online = wang_online(demand(days(0)), demand(days(2)), store)
    assert online.paid == 2 * 96
    assert price(online.problem, np.zeros(1), online.paid).cost == pytest.approx(2 * (13 * 7 + 96))


def test_wang_reserves_in_the_first_hour_what_the_past_has_shown() -> None:
    store = shop_for(*OFFERS, node_gpus=8)
    online = wang_online(demand(days(16)), demand(days(16)), store)
    assert price(online.problem, np.zeros(1), online.paid).cost == pytest.approx(16 * 96)


def test_wang_commits_money_where_that_is_cheaper() -> None:
    store = shop_for(on_demand(7), savings_plan({"h100": 3.5}))
    online = wang_online(demand(days(2)), demand(days(2)), store)
    assert price(online.problem, np.zeros(1), online.paid).cost == pytest.approx(2 * 3.5 * DAY)
