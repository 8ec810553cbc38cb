from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from models.errors import UsageError
from models.prices import YEAR_SECONDS, Instrument
from models.procurement.compile import compile_problem
from models.procurement.limits import tightened
from models.procurement.plan import plan
from models.procurement.policy import PlanPolicy
from models.procurement.problem import Limit
from tests.markets import AT, DOLLAR, commitment, demand, offer, on_demand, pool, reserved, savings_plan

PLAIN = PlanPolicy(discount_ratio=0, later_use_ratio=1, whole_nodes=False)
CONTRACT = offer("contract", Instrument.CONTRACT, 3, term_seconds=YEAR_SECONDS)


def test_inference_fits_on_capacity_held_ready_in_the_hours_asked_for() -> None:
    wanted = demand([1, 2, 3, 4, 5, 6, 7, 8, 9, 100], "inference")
    policy = replace(PLAIN, inference_availability_ratio=0.9, inference_spare_nodes=2)
    held = commitment("ready", AT - timedelta(days=1), AT + timedelta(days=1), gpus=3, has_capacity=True)
    offers = [on_demand(6), reserved(4), CONTRACT]
    found = compile_problem(wanted, [pool(node_gpus=1)], offers, [held], policy).problem.limits
    # In nine of ten hours 9 GPUs are enough; two spare nodes of one GPU; 3 are ready; a regional reservation holds none.
    assert [(one.weights.tolist(), one.low, one.unit) for one in found] == [([0, 1], 8, "GPUs")]


def test_power_budget_exposure_and_ladder_weigh_what_they_should() -> None:
    owned = offer(
        "owned", Instrument.OWNED, 0, upfront_micros_per_gpu=40_000 * DOLLAR, life_months=12, power_watts_per_gpu=1_000
    )
    policy = replace(
        PLAIN, power_cap_watts=13_000, budget_micros=500_000 * DOLLAR, exposure_micros=100_000 * DOLLAR, ladder_ratio=0.5,
        start_months=(0, 3),
    )  # fmt: skip
    held = commitment("held", AT - timedelta(hours=1), AT + timedelta(hours=100), gpus=2)
    problem = compile_problem(demand([1] * 8_760), [pool()], [on_demand(6), CONTRACT, owned], [held], policy).problem
    by_name = {one.name: one for one in problem.limits}
    assert by_name["power of owned GPUs"].weights.tolist() == [0, 0, 1_300, 1_300]
    budget = by_name["money committed within the horizon"]
    assert budget.weights == pytest.approx([3 * 8_760, 3 * 6_570, 40_000, 40_000])
    # At first only what starts then is owed, beside what is still due on the two GPUs held for 100 hours.
    assert problem.column_high[0] == pytest.approx((100_000 - 2 * 4 * 100) / (3 * 8_760))
    later = by_name["money still owed on commitments in hour 2,190"]
    assert later.weights == pytest.approx([3 * 6_570, 3 * 8_760, 0, 0])
    assert later.high == pytest.approx(100_000)
    ladder = by_name["purchases that start in quarter 1"]
    assert ladder.weights == pytest.approx([0.5 * 3 * 8_760, -0.5 * 3 * 8_760, 20_000, -20_000])


def test_nothing_is_committed_beyond_what_was_wanted_lately() -> None:
    held = commitment("held", AT - timedelta(days=1), AT + timedelta(days=1_000), gpus=2)
    offers = [on_demand(6), reserved(4)]
    problem = compile_problem(demand([50] * 10), [pool()], offers, [held], PLAIN, recent_gpus={"h100": 12}).problem
    assert problem.column_high.tolist() == [10]
    assert not problem.limits


@pytest.mark.parametrize("node_gpus", [1, 8])
def test_capacity_for_inference_is_bought_even_beyond_what_was_wanted_lately(node_gpus: int) -> None:
    # 42 are always wanted, all by inference; with a spare node 43 or 50 must be ready, in whole nodes 43 or 56.
    policy = replace(PLAIN, inference_availability_ratio=0.99, whole_nodes=True)
    offers = [on_demand(6), replace(CONTRACT, node_gpus=node_gpus)]
    made = plan(
        demand([42] * 100, "inference"), [pool(node_gpus=node_gpus)], offers, [], policy, recent_gpus={"h100": 42}
    )
    assert [one.gpus for one in made.lines] == [{1: 43, 8: 56}[node_gpus]]


def test_a_price_without_capacity_covers_no_more_than_can_be_had() -> None:
    # 40 are wanted always and 10 can be had at once: a regional reservation of more would be paid for and not be there.
    policy = replace(PLAIN, on_demand_gpus={"h100": 10})
    held = commitment("held", AT - timedelta(days=1), AT + timedelta(hours=50), gpus=4)
    problem = compile_problem(demand([40] * 100), [pool()], [on_demand(6), reserved(4)], [held], policy).problem
    assert problem.column_high.tolist() == [6]
    zonal = replace(reserved(4), has_capacity=True)
    problem = compile_problem(demand([40] * 100), [pool()], [on_demand(6), zonal], [held], policy).problem
    assert problem.column_high.tolist() == [np.inf]


def test_a_reservation_and_a_savings_plan_together_do_not_exceed_what_was_wanted_lately() -> None:
    # Half of the hours want 8, half 20; both pay from less than half of the hours on, and lately 12 were wanted.
    wanted = demand([8, 20] * 50)
    offers = [on_demand(6), reserved(2), savings_plan({"h100": 2.5})]
    made = plan(wanted, [pool()], offers, [], PLAIN, recent_gpus={"h100": 12})
    gpus = sum(one.gpus or 0 for one in made.lines)
    money = sum(one.hourly_commitment_micros or 0 for one in made.lines) / DOLLAR
    assert gpus + money / 2.5 == pytest.approx(12, rel=1e-6)
    held = commitment("plan", AT - timedelta(days=1), AT + timedelta(days=99), gpus=None, hourly_commitment_micros=20 * DOLLAR,
                      instrument=Instrument.SAVINGS_PLAN, rate_micros_per_gpu_hour={"h100": 2 * DOLLAR})  # fmt: skip
    more = plan(wanted, [pool()], offers[:2], [held], PLAIN, recent_gpus={"h100": 12})
    assert sum(one.gpus or 0 for one in more.lines) == pytest.approx(12 - 20 / 2)


def limit(weights: list[float], low: float, high: float) -> Limit:
    return Limit(name="a limit", weights=np.array(weights), low=low, high=high, unit="GPUs")


def test_a_limit_that_a_tighter_one_implies_is_left_out() -> None:
    caps = [limit([1, 1], -np.inf, 9), limit([1, 1], -np.inf, 7), limit([0, 2], -np.inf, 8)]
    shared, high = tightened(caps, 2)
    assert [(one.low, one.high) for one in shared] == [(-np.inf, 7)]
    assert high.tolist() == [np.inf, 4]


def test_beside_a_floor_a_cap_keeps_its_name() -> None:
    found = [limit([1, 1], 2, np.inf), limit([1, 1], 3, np.inf), limit([0, 2], -np.inf, 8)]
    shared, high = tightened(found, 2)
    assert [(one.low, one.high) for one in shared] == [(3, np.inf), (-np.inf, 8)]
    assert np.isinf(high).all()


def test_where_more_is_owed_already_than_allowed_nothing_new_is_bought() -> None:
    policy = replace(PLAIN, exposure_micros=1_000 * DOLLAR)
    held = commitment("held", AT - timedelta(hours=1), AT + timedelta(hours=1_000), gpus=2)  # 8,000 are owed
    made = plan(demand([10] * 100), [pool()], [on_demand(6), reserved(4)], [held], policy)
    assert not made.lines


def test_a_ladder_that_allows_no_purchase_at_all_is_refused() -> None:
    policy = replace(PLAIN, ladder_ratio=0.4, start_months=(0, 3))
    with pytest.raises(UsageError, match=r"ladder_ratio: found 0.4, expected 0.5 or more.*2 quarters"):
        compile_problem(demand([1] * 8_760), [pool()], [on_demand(6), CONTRACT], [], policy)
