from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from models.demand import Scenarios
from models.errors import UsageError
from models.prices import Commitment, Instrument, Offer, Pool, Scope
from models.procurement.columns import Column
from models.procurement.compile import compile_problem
from models.procurement.policy import PlanPolicy
from models.procurement.reprice import billed_difference, existing_commitment, price_hours, purchase

START = datetime(2026, 3, 2, tzinfo=UTC)
DOLLAR = 1_000_000
POOLS = [
    Pool(name="h100", gpu_model="H100", provider="aws", region="us-east-1"),
    Pool(name="a100", gpu_model="A100", provider="aws", region="us-east-1"),
]
ON_DEMAND = [7 * DOLLAR, 4 * DOLLAR]
RESERVED = Commitment(
    commitment_id="ri",
    instrument=Instrument.RESERVED,
    provider="aws",
    scope=Scope.REGION,
    has_capacity=False,
    pools=("a100",),
    starts_at=START,
    ends_at=START + timedelta(days=365),
    rate_micros_per_gpu_hour={"a100": 2 * DOLLAR},
    gpus=8,
)
PLAN = replace(
    RESERVED,
    commitment_id="sp",
    instrument=Instrument.SAVINGS_PLAN,
    scope=Scope.GLOBAL,
    pools=("a100", "h100"),
    rate_micros_per_gpu_hour={"a100": 3 * DOLLAR, "h100": 5 * DOLLAR},
    gpus=None,
    hourly_commitment_micros=20 * DOLLAR,
)
OFFER = Offer(
    offer_id="ri-1y",
    instrument=Instrument.RESERVED,
    provider="aws",
    scope=Scope.REGION,
    has_capacity=False,
    micros_per_gpu_hour={"a100": 2 * DOLLAR},
    observed_at=START,
    price_source="a test",
    upfront_micros_per_gpu=8_760 * DOLLAR,
    term_seconds=31_536_000,
)
COLUMN = Column(
    offer=OFFER,
    pools=("a100",),
    start_hour=0,
    supply_hour=1,
    end_hour=8_761,
    upfront=1.0,
    recurring=2.0,
    in_budget=False,
)


def test_pools_are_billed_in_the_vendors_order() -> None:
    # a100: 8 reserved at 2 = 16. The plan: h100 saves 28.6 %, a100 25 %, so 4 of 6 h100 take all of the 20.
    # On demand: 2 h100 at 7 and 2 a100 at 4 = 22. Total 16 + 20 + 22 = 58.
    held = [existing_commitment(RESERVED), existing_commitment(PLAN)]
    bill = price_hours(np.array([[6, 10]]), held, POOLS, ON_DEMAND, start_at=START)
    assert bill.on_demand_micros.tolist() == [[14 * DOLLAR, 8 * DOLLAR]]
    assert bill.total_micros == 58 * DOLLAR


def test_fractions_of_gpus_are_rounded_to_millionths() -> None:
    bill = price_hours(np.array([[1 / 3, 0.0]]), [], POOLS, ON_DEMAND, start_at=START)
    assert bill.usage.millionths.tolist() == [[333_333, 0]]
    assert bill.total_micros == 2_333_331


def test_gpus_of_several_pools_recur_at_the_dearest_rate() -> None:
    shared = replace(RESERVED, pools=("a100", "h100"), rate_micros_per_gpu_hour={"a100": DOLLAR, "h100": 3 * DOLLAR})
    bill = price_hours(np.array([[2, 2]]), [existing_commitment(shared)], POOLS, ON_DEMAND, start_at=START)
    assert bill.total_micros == 8 * 3 * DOLLAR
    assert bill.unused_micros.sum() == 4 * 3 * DOLLAR


def test_a_pool_without_a_rate_is_refused() -> None:
    with pytest.raises(UsageError, match="ri: no rate for the pools h100 that it reaches"):
        existing_commitment(replace(RESERVED, pools=("a100", "h100")))


def test_a_purchase_serves_from_its_lead_time_on_and_spreads_what_is_paid_upfront() -> None:
    # 1 an hour of the upfront price and 2 that recur, for 8 GPUs; in hour 0 it is not there yet.
    bought = purchase(COLUMN, 8.0, start_at=START, policy=PlanPolicy())
    bill = price_hours(np.array([[0, 8], [0, 8]]), [bought], POOLS, ON_DEMAND, start_at=START)
    assert bill.hourly_micros.tolist() == [8 * 4 * DOLLAR, 8 * 3 * DOLLAR]


def test_a_purchase_of_money_commits_its_units_an_hour() -> None:
    offer = replace(OFFER, instrument=Instrument.SAVINGS_PLAN, upfront_micros_per_gpu=0)
    bought = purchase(replace(COLUMN, offer=offer, in_budget=True), 12.3456789, start_at=START, policy=PlanPolicy())
    assert (bought.hourly_commitment_micros, bought.rates) == (12_345_679, {"a100": 2 * DOLLAR})


def test_an_owned_gpu_costs_its_loss_of_value_and_its_running() -> None:
    # Over 10 hours 30 of 40 are lost, 3 an hour. 0.5 running, 730 a month is 1 an hour; 1 kW at the wall with a factor of
    # 1.5 at 0.10 a kWh is 0.15. Together 4.65.
    offer = replace(
        OFFER,
        instrument=Instrument.OWNED,
        micros_per_gpu_hour={"a100": DOLLAR // 2},
        upfront_micros_per_gpu=40 * DOLLAR,
        residual_micros_per_gpu=10 * DOLLAR,
        monthly_fee_micros_per_gpu=730 * DOLLAR,
        power_watts_per_gpu=1_000.0,
    )
    policy = PlanPolicy(power_usage_effectiveness=1.5, energy_micros_per_kwh=100_000)
    bought = purchase(replace(COLUMN, offer=offer, end_hour=11), 1.0, start_at=START, policy=policy)
    bill = price_hours(np.zeros((12, 2)), [bought], POOLS, ON_DEMAND, start_at=START)
    assert bill.hourly_micros.tolist() == [0, *[4_650_000] * 10, 0]


def test_the_vendors_order_is_compared_on_the_plans_own_hours() -> None:
    # Two h100 and ten a100; 20 an hour are committed. The plan serves what saves most: four h100 at 5 would be 28.6 %, but
    # there are two, for 10; then a100 at 3 for the other 10. The vendor does the same: nothing differs.
    wanted = Scenarios(
        start_at=START, pools=("h100", "a100"), probability=np.ones(1), gpus={"rigid": np.array([[[2.0, 10.0]] * 3])}
    )
    on_demand = replace(OFFER, offer_id="od", instrument=Instrument.ON_DEMAND, upfront_micros_per_gpu=0, term_seconds=None,
                        micros_per_gpu_hour={"h100": 7 * DOLLAR, "a100": 4 * DOLLAR})  # fmt: skip
    policy = PlanPolicy(discount_ratio=0, whole_nodes=False)
    compiled = compile_problem(wanted, POOLS, [on_demand], [PLAN], policy)
    assert billed_difference(compiled, np.zeros(0), wanted, POOLS, [PLAN], policy) == pytest.approx(0, abs=1e-5)


def test_the_order_of_a_family_plan_before_a_wide_one_makes_a_difference() -> None:
    # The wide plan saves most on h100 (3 of 7), so the plan's dispatch gives it that; the family's plan then finds no
    # h100, and the a100 costs 4 on demand. The vendor applies the family's plan first: it takes the h100, and the wide
    # plan's 3 cover the a100. Nothing is left on demand: 4 less.
    wide = replace(PLAN, commitment_id="wide", rate_micros_per_gpu_hour={"a100": 3 * DOLLAR, "h100": 3 * DOLLAR},
                   hourly_commitment_micros=3 * DOLLAR)  # fmt: skip
    family = replace(PLAN, commitment_id="family", scope=Scope.FAMILY, pools=("h100",),
                     rate_micros_per_gpu_hour={"h100": 4 * DOLLAR}, hourly_commitment_micros=4 * DOLLAR)  # fmt: skip
    wanted = Scenarios(
        start_at=START, pools=("h100", "a100"), probability=np.ones(1), gpus={"rigid": np.array([[[1.0, 1.0]]])}
    )
    on_demand = replace(OFFER, offer_id="od", instrument=Instrument.ON_DEMAND, upfront_micros_per_gpu=0, term_seconds=None,
                        micros_per_gpu_hour={"h100": 7 * DOLLAR, "a100": 4 * DOLLAR})  # fmt: skip
    policy = PlanPolicy(discount_ratio=0, whole_nodes=False)
    compiled = compile_problem(wanted, POOLS, [on_demand], [wide, family], policy)
    found = billed_difference(compiled, np.zeros(0), wanted, POOLS, [wide, family], policy)
    assert found == pytest.approx(-4)


def test_a_pool_without_on_demand_goes_without_what_the_order_takes_from_it() -> None:
    # One contract for both pools. Going without is dearest for h100, so the plan gives it the contract; the seller's order
    # serves a100 first. Then nothing is left on demand (4 an hour less), and one h100 goes without.
    contract = replace(RESERVED, instrument=Instrument.CONTRACT, pools=("a100", "h100"), gpus=1,
                       rate_micros_per_gpu_hour={"a100": DOLLAR, "h100": DOLLAR})  # fmt: skip
    wanted = Scenarios(
        start_at=START, pools=("h100", "a100"), probability=np.ones(1), gpus={"rigid": np.array([[[1.0, 1.0]]])}
    )
    on_demand = replace(OFFER, offer_id="od", instrument=Instrument.ON_DEMAND, upfront_micros_per_gpu=0, term_seconds=None,
                        micros_per_gpu_hour={"a100": 4 * DOLLAR})  # fmt: skip
    spot = replace(on_demand, offer_id="spot", instrument=Instrument.SPOT, micros_per_gpu_hour={"h100": 2 * DOLLAR})
    policy = PlanPolicy(discount_ratio=0, whole_nodes=False, spot_goodput_ratio=1, shortfall_factor=5)
    compiled = compile_problem(wanted, POOLS, [on_demand, spot], [contract], policy)
    found = billed_difference(compiled, np.zeros(0), wanted, POOLS, [contract], policy)
    assert found == pytest.approx(5 * 2 - 4)


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        (np.zeros((2, 3)), r"found the shape \(2, 3\) for 2 pools and 2 prices"),
        (np.zeros(2), "found the shape"),
        (np.array([[np.nan, 0]]), "not a number"),
        (np.array([[-1, 0]]), "negative"),
    ],
)
def test_usage_that_does_not_fit_the_pools_is_refused(usage: np.ndarray, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        price_hours(usage, [], POOLS, ON_DEMAND, start_at=START)


def test_a_pool_without_on_demand_is_none_not_free() -> None:
    with pytest.raises(UsageError, match=r"a100 us-east-1: .* unit-hours"):
        price_hours(np.array([[0, 1]]), [], POOLS, [DOLLAR, None], start_at=START)
