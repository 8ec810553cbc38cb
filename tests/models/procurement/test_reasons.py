"""Why a purchase is recommended: figures that a person can work out from the demand and the prices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.demand import Scenarios
from models.prices import Instrument
from models.procurement.compile import compile_problem
from models.procurement.policy import PlanPolicy
from models.procurement.reasons import Reason, reason, used_ratio
from models.procurement.recourse import serve
from tests.markets import AT, commitment, demand, offer, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.demand import Scenarios as Demand
    from models.prices import Offer

# Plain money: nothing is discounted, and the term beyond the horizon is worth its price.
PLAIN = PlanPolicy(discount_ratio=0.0, later_use_ratio=1.0, spot_share_ratio={})
HALF = [8.0] * 12 + [2.0] * 12


def why(wanted: Demand, offers: Sequence[Offer], units: Sequence[float], **about: Any) -> list[tuple[float, Reason]]:
    """For each purchase, in the order of the offers: how much it is used, and why it is bought."""
    pools = [pool(name) for name in wanted.pools]
    compiled = compile_problem(wanted, pools, offers, about.get("portfolio", []), about.get("policy", PLAIN))
    bought = np.array(units, dtype=np.float64)
    used = used_ratio(compiled, bought, serve(compiled.problem, bought, np.ones(compiled.problem.demand.shape[1])))
    return [(float(ratio), reason(compiled, place, float(ratio))) for place, ratio in enumerate(used.tolist())]


@pytest.mark.parametrize(("gpus", "used"), [(1, 1.0), (2, 1.0), (3, 0.5), (8, 0.5), (9, 0.0)])
def test_the_last_gpu_is_used_in_the_hours_that_reach_it(gpus: int, used: float) -> None:
    [(found, _)] = why(demand(HALF), [on_demand(10), reserved(4)], [gpus])
    assert found == used


def test_what_is_held_already_comes_first() -> None:
    """Above 6 that are held, the second GPU bought is the eighth."""
    held = commitment("r", AT, AT.replace(year=2027), gpus=6)
    [(found, _)] = why(demand(HALF), [on_demand(10), reserved(4)], [2], portfolio=[held])
    assert found == 0.5


def test_hours_count_by_the_probability_of_their_scenario() -> None:
    """One scenario in four wants 8 all day, the others 2."""
    wanted = demand(np.array([[8.0] * 24, [2.0] * 24]))
    wanted = replace(wanted, probability=np.array([0.25, 0.75]))
    [(found, _)] = why(wanted, [on_demand(10), reserved(4)], [5])
    assert found == pytest.approx(0.25)


@given(
    wanted=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    gpus=st.integers(1, 10),
)
def test_use_is_the_load_duration_curve_at_the_last_gpu(wanted: list[int], gpus: int) -> None:
    if not any(wanted):
        wanted = [*wanted, 1]
    [(found, _)] = why(demand(wanted), [on_demand(10), reserved(4)], [gpus])
    assert found == pytest.approx(sum(one >= gpus for one in wanted) / len(wanted))


def test_a_purchase_pays_from_its_price_over_the_price_it_spares() -> None:
    [(_, found)] = why(demand(HALF), [on_demand(10), reserved(4)], [8])
    assert found.break_even_ratio == pytest.approx(0.4)
    assert found.text == (
        "the last GPU is used in 50.0% of the hours and pays from 40.0% on: 4.00 a GPU-hour whether used or not, "
        "against 10.00 on demand"
    )


def test_the_upfront_part_belongs_to_the_price() -> None:
    """35,040 upfront over the 8,760 hours of a year are 4 an hour, beside 1 that recurs."""
    paid = reserved(1, upfront_micros_per_gpu=35_040 * 10**6)
    [(_, found)] = why(demand(HALF), [on_demand(10), paid], [8])
    assert found.break_even_ratio == pytest.approx(0.5)
    assert "5.00 a GPU-hour whether used or not" in found.text


def test_what_does_not_pay_is_bought_for_a_limit_and_says_so() -> None:
    [(_, found)] = why(demand(HALF), [on_demand(10), reserved(4)], [9])
    assert found.text.endswith("; it is bought for a limit (capacity held ready, whole nodes), not for its price")


def test_what_is_bought_since_on_demand_cannot_give_it_says_so() -> None:
    contract = offer("contract", Instrument.CONTRACT, 9, term_seconds=31_536_000)
    policy = replace(PLAIN, on_demand_gpus={"h100": 2})
    [(used, found)] = why(demand(HALF), [on_demand(10), contract], [6], policy=policy)
    assert (used, found.break_even_ratio) == (0.5, pytest.approx(0.9))
    assert "it is bought for a limit (more than on demand can give, " in found.text


def test_gpus_that_several_pools_share_are_told_as_shared_with_their_price() -> None:
    both = Scenarios(
        start_at=AT, pools=("h100", "a100"), probability=np.ones(1), gpus={"rigid": np.full((1, 24, 2), 2.0)}
    )
    shared = offer("contract", Instrument.CONTRACT, {"h100": 3, "a100": 3}, term_seconds=31_536_000)
    [(used, found)] = why(both, [on_demand({"h100": 10, "a100": 4}), shared], [4])
    assert (used, found.break_even_ratio) == (1.0, pytest.approx(0.75))
    assert found.text == (
        "100.0% of the GPU-hours that the pools share is used; it pays from 30.0% to 75.0% on, its price against on demand "
        "by pool"
    )


def test_what_is_lost_after_the_horizon_belongs_to_the_price_of_money_too() -> None:
    """A day of a year's plan of which nothing later is worth its price: 365 times the rate."""
    [(_, found)] = why(
        demand(HALF), [on_demand(10), savings_plan({"h100": 6})], [6], policy=replace(PLAIN, later_use_ratio=0)
    )
    assert found.break_even_ratio == pytest.approx(0.6 * 365)


def test_the_price_of_a_reference_gpu_hour_is_told() -> None:
    [(_, found)] = why(demand(HALF), [on_demand(10), reserved(4, reference_gpus=2.5)], [8])
    assert found.text.endswith("against 10.00 on demand; 1.60 a reference GPU-hour")


def test_without_an_on_demand_price_it_is_compared_with_going_without() -> None:
    """A GPU-hour that nothing serves costs three times the dearest price: the reservation's own."""
    [(_, found)] = why(demand(HALF), [reserved(4)], [8])
    assert found.break_even_ratio == pytest.approx(1 / 3)
    assert "against 12.00 for going without" in found.text


def test_a_commitment_in_money_pays_from_its_rate_over_the_price_on_demand() -> None:
    """6 an hour are one GPU at 6: always used. 48 are 8 GPUs: half of the day 2 of them."""
    offers = [on_demand(10), savings_plan({"h100": 6})]
    [(used, found)] = why(demand(HALF), offers, [6])
    assert (used, found.break_even_ratio) == (1.0, pytest.approx(0.6))
    assert found.text == "100.0% of the commitment is used; it pays from 60.0% on, its rates against on demand by pool"
    [(used, _)] = why(demand(HALF), offers, [48])
    assert used == pytest.approx((12 * 48 + 12 * 12) / (24 * 48))


def test_of_pools_with_other_rates_the_dearest_rate_decides() -> None:
    both = Scenarios(
        start_at=AT, pools=("h100", "a100"), probability=np.ones(1), gpus={"rigid": np.full((1, 24, 2), 2.0)}
    )
    offers = [on_demand({"h100": 10, "a100": 4}), savings_plan({"h100": 6, "a100": 3})]
    [(_, found)] = why(both, offers, [6])
    assert found.break_even_ratio == pytest.approx(0.75)
    assert "it pays from 60.0% to 75.0% on" in found.text


def test_a_commitment_in_money_without_a_price_on_demand_compares_with_nothing() -> None:
    [(_, found)] = why(demand(HALF), [savings_plan({"h100": 6})], [6])
    assert found == Reason(None, "100.0% of the commitment is used; no on-demand price compares")


def test_what_begins_later_is_only_judged_while_it_serves() -> None:
    """A contract with a lead of 12 hours never sees the busy half of the day."""
    late = offer("contract", Instrument.CONTRACT, 4, term_seconds=31_536_000, lead_seconds=12 * 3600)
    [(used, found)] = why(demand(HALF), [on_demand(10), late], [3])
    assert used == 0.0
    assert found.break_even_ratio == pytest.approx(0.4)


def test_spot_does_not_change_what_it_is_compared_with() -> None:
    [(_, found)] = why(demand(HALF, "deferrable"), [on_demand(10), spot(3), reserved(4)], [8])
    assert found.break_even_ratio == pytest.approx(0.4)
