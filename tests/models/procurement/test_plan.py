from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import UsageError
from models.prices import YEAR_SECONDS, Instrument
from models.procurement.plan import ALL_ON_DEMAND, NOTHING_NEW, Plan, PlanLine, plan, tail_mean
from models.procurement.policy import PlanPolicy
from tests.markets import AT, DOLLAR, commitment, demand, offer, on_demand, pool, reserved, savings_plan, spot

if TYPE_CHECKING:
    from models.demand import Scenarios
    from models.prices import Commitment, Offer

PLAIN = PlanPolicy(discount_ratio=0, later_use_ratio=1, whole_nodes=False)
YEAR = 8_760


def office_hours(gpus_by_day: int, gpus_by_night: int) -> Scenarios:
    """A year: 8 hours of each day at one level, 16 at another."""
    return demand(([gpus_by_day] * 8 + [gpus_by_night] * 16) * 365)


def test_gpus_used_a_third_of_the_day_stay_on_demand_and_the_rest_is_reserved() -> None:
    # Reserved at 4 against 6: pays from two thirds of the hours on. 10 GPUs are used always, 20 more in a third of them.
    made = plan(office_hours(30, 10), [pool()], [on_demand(6), reserved(4)], [], PLAIN)
    (line,) = made.lines
    assert (line.offer.offer_id, line.gpus) == ("reserved_1y", 10)
    assert line.break_even_ratio == pytest.approx(4 / 6)
    assert line.used_ratio == 1.0
    assert line.cost_micros == 10 * 4 * YEAR * DOLLAR
    assert made.expected_cost_micros == (10 * 4 * YEAR + 20 * 6 * 8 * 365) * DOLLAR
    assert made.bound_cost_micros == made.objective_cost_micros == made.expected_cost_micros
    assert made.repriced_cost_micros == made.expected_cost_micros
    saving = {one.baseline: one for one in made.savings}
    assert saving[ALL_ON_DEMAND].saving_micros == 10 * 2 * YEAR * DOLLAR
    assert saving[NOTHING_NEW].saving_micros == 10 * 2 * YEAR * DOLLAR


def test_what_is_held_is_used_first_and_what_expires_is_wanted_again() -> None:
    half = YEAR // 2
    held = commitment("old", AT - timedelta(days=100), AT + timedelta(hours=half), gpus=10)
    policy = replace(PLAIN, start_months=(0, 6))
    made = plan(demand([10] * YEAR), [pool()], [on_demand(6), reserved(4)], [held], policy)
    # The first half is covered; from month 6 on (hour 4,380) the ten are bought again.
    (line,) = made.lines
    assert line.starts_at == AT + timedelta(hours=half)
    assert line.gpus == pytest.approx(10, rel=1e-5)
    assert made.held_cost_micros == 10 * 4 * half * DOLLAR
    assert made.expected_cost_micros == pytest.approx(10 * 4 * YEAR * DOLLAR, rel=1e-6)


def test_spot_dearer_than_the_reservation_does_not_displace_it() -> None:
    wanted = replace(demand([10] * YEAR), gpus={"deferrable": np.full((1, YEAR, 1), 10.0)})
    policy = replace(PLAIN, spot_share_ratio={"deferrable": 1.0}, spot_goodput_ratio=0.5)
    dear = plan(wanted, [pool()], [on_demand(6), reserved(4), spot(2.5)], [], policy)  # 5 a useful hour
    cheap = plan(wanted, [pool()], [on_demand(6), reserved(4), spot(1)], [], policy)  # 2 a useful hour
    assert [one.gpus for one in dear.lines] == [10]
    assert not cheap.lines
    assert cheap.expected_cost_micros == 2 * 10 * YEAR * DOLLAR


def test_a_savings_plan_is_bought_in_money_and_billed_as_planned() -> None:
    two = replace(demand([1] * YEAR), pools=("h100", "a100"), gpus={"rigid": np.ones((1, YEAR, 2)) * [5, 10]})
    offers = [on_demand({"h100": 6, "a100": 3}), savings_plan({"h100": 4, "a100": 2})]
    made = plan(two, [pool(), pool("a100")], offers, [], PLAIN)
    (line,) = made.lines
    assert line.gpus is None
    assert line.hourly_commitment_micros == pytest.approx((5 * 4 + 10 * 2) * DOLLAR, rel=1e-5)
    assert made.repriced_cost_micros == pytest.approx(made.expected_cost_micros, rel=1e-6)


def test_the_vendors_order_may_cost_more_than_the_plan_hoped() -> None:
    # Two plans held already, one better for h100 and one for a100: the seller takes the highest saving first.
    def held(name: str, rates: dict[str, float]) -> object:
        return commitment(
            name, AT - timedelta(days=1), AT + timedelta(days=400), gpus=None, instrument=Instrument.SAVINGS_PLAN,
            pools=tuple(rates), hourly_commitment_micros=4 * DOLLAR,
            rate_micros_per_gpu_hour={pool: round(rate * DOLLAR) for pool, rate in rates.items()},
        )  # fmt: skip

    two = replace(demand([1] * 24), pools=("h100", "a100"), gpus={"rigid": np.ones((1, 24, 2))})
    portfolio = [held("wide", {"h100": 4.0, "a100": 2.0}), held("narrow", {"h100": 3.9})]
    made = plan(two, [pool(), pool("a100")], [on_demand({"h100": 6, "a100": 3})], portfolio, PLAIN)  # type: ignore[arg-type]
    assert made.repriced_cost_micros >= made.expected_cost_micros - 1


def test_the_limit_that_cannot_be_kept_is_named_with_how_much_is_lacking() -> None:
    wanted = demand([40] * 100, "inference")
    policy = replace(PLAIN, inference_availability_ratio=0.99, power_cap_watts=20_000, power_usage_effectiveness=1)
    owned = offer(
        "owned", Instrument.OWNED, 0, upfront_micros_per_gpu=DOLLAR, life_months=48, power_watts_per_gpu=1_000
    )
    with pytest.raises(
        UsageError,
        match=r"inference in h100.* needs at least 41 GPUs, but 20 can be .*held back by power of owned GPUs \(at most 20,000 ",
    ):
        plan(wanted, [pool()], [on_demand(6), owned], [], policy)


def as_held(line: PlanLine) -> Commitment:
    """What is recorded once a purchase of a plan was made."""
    rates = line.offer.micros_per_gpu_hour
    return commitment(
        f"{line.offer.offer_id} bought", line.starts_at, line.ends_at, instrument=line.offer.instrument, pools=line.pools,
        gpus=None if line.gpus is None else round(line.gpus), hourly_commitment_micros=line.hourly_commitment_micros,
        rate_micros_per_gpu_hour=rates, has_capacity=line.offer.has_capacity,
    )  # fmt: skip


@pytest.mark.parametrize("recent", [None, {"h100": 24.0, "a100": 40.0}])
def test_what_was_bought_since_is_not_bought_again(recent: dict[str, float] | None) -> None:
    rng = np.random.default_rng(5)
    wanted = replace(
        demand([0]), pools=("h100", "a100"), probability=np.array([0.7, 0.3]),
        gpus={"rigid": rng.integers(0, 60, (2, 2_000, 2)).astype(float)},
    )  # fmt: skip
    pools = [pool(node_gpus=8), pool("a100")]
    offers = [on_demand({"h100": 6, "a100": 3}), reserved(3.5), savings_plan({"h100": 4.5, "a100": 2.0})]
    policy = PlanPolicy(later_use_ratio=1)
    first = plan(wanted, pools, offers, [], policy, recent_gpus=recent)
    assert {one.offer.instrument for one in first.lines} == {Instrument.RESERVED, Instrument.SAVINGS_PLAN}
    again = plan(wanted, pools, offers, [as_held(one) for one in first.lines], policy, recent_gpus=recent)
    bought = sum(one.gpus or 0 for one in again.lines), sum(one.hourly_commitment_micros or 0 for one in again.lines)
    assert bought[0] == 0
    assert bought[1] / DOLLAR < 0.5  # the solver's own gap


def test_no_demand_buys_nothing_and_costs_nothing() -> None:
    made = plan(demand([0] * 100), [pool()], [on_demand(6), reserved(4)], [], PLAIN)
    assert (made.lines, made.expected_cost_micros) == ((), 0)


def added_up(made: Plan, wanted: Scenarios, held: Commitment, policy: PlanPolicy) -> float:
    """Expected cost of a plan of on-demand at 6 (12 GPUs at most), spot at 3 a useful hour, and a shortfall at 18, by hand."""
    worth = [(1 + policy.discount_ratio) ** (-hour / YEAR) for hour in range(3 * YEAR)]
    share, hours = policy.spot_share_ratio["deferrable"], wanted.total().shape[1]
    total, gpus = 0.0, np.zeros(hours)
    for line in made.lines:
        start = round((line.starts_at - AT).total_seconds() / 3_600) + line.offer.lead_seconds // 3_600
        end = round((line.ends_at - AT).total_seconds() / 3_600)
        gpus[start : min(end, hours)] += line.gpus or 0
        counted = sum(worth[start : min(end, hours)]) + (1 - policy.later_use_ratio) * sum(worth[hours:end])
        paid_at_once = worth[start - line.offer.lead_seconds // 3_600] / sum(worth[start:end])
        hourly = line.offer.micros_per_gpu_hour["h100"] + line.offer.upfront_micros_per_gpu * paid_at_once
        total += (line.gpus or 0) * hourly / DOLLAR * counted
    ends = round((held.ends_at - AT).total_seconds() / 3_600)
    gpus[:ends] += held.gpus or 0
    total += 4 * (held.gpus or 0) * sum(worth[:ends])
    for chance, scenario in zip(wanted.probability, wanted.gpus["deferrable"], strict=True):
        for hour, asked in enumerate(scenario[:, 0]):
            rest = max(0.0, asked - gpus[hour])
            on_spot = min(rest, share * asked)
            bought = min(rest - on_spot, 12)
            cost = 3 * on_spot + 6 * bought + 18 * (rest - on_spot - bought)
            total += chance * worth[hour] * cost
    return total


def test_the_expected_cost_is_what_a_person_adds_up_hour_by_hour() -> None:
    rng = np.random.default_rng(11)
    wanted = replace(
        demand(rng.integers(5, 40, (3, 1_500)), "deferrable"), probability=np.array([0.6, 0.3, 0.1])
    )  # fmt: skip
    held = commitment("held", AT - timedelta(days=9), AT + timedelta(hours=700), gpus=5)
    offers = [
        on_demand(6), spot(2.4), reserved(2, 3),
        reserved(0, 1, upfront_micros_per_gpu=17_000 * DOLLAR),
        offer("block", Instrument.CAPACITY_BLOCK, 0, term_seconds=14 * 86_400, upfront_micros_per_gpu=1_400 * DOLLAR),
        offer("contract", Instrument.CONTRACT, 3.2, term_seconds=40 * 86_400, lead_seconds=100 * 3_600),
    ]  # fmt: skip
    policy = PlanPolicy(
        later_use_ratio=0.9, spot_goodput_ratio=0.8, spot_share_ratio={"deferrable": 0.3}, on_demand_gpus={"h100": 12.0},
        start_months=(0, 1),
    )  # fmt: skip
    made = plan(wanted, [pool()], offers, [held], policy)
    assert len({one.offer.offer_id for one in made.lines}) > 1
    assert made.expected_cost_micros / DOLLAR == pytest.approx(added_up(made, wanted, held, policy), rel=1e-9)
    assert made.bound_cost_micros <= made.objective_cost_micros == pytest.approx(made.expected_cost_micros, abs=9)


def test_a_purchase_is_tried_in_other_worlds() -> None:
    made = plan(office_hours(10, 10), [pool()], [on_demand(6), reserved(4)], [], PLAIN)
    worlds = {one.name: one for one in made.stresses}
    cut = worlds["on-demand prices fall by 44%"]
    assert cut.loss_micros == pytest.approx((4 - 6 * 0.56) * 10 * YEAR * DOLLAR)
    assert worlds["demand falls by 30%"].loss_micros == (10 * 4 - 7 * 6) * YEAR * DOLLAR


def test_a_price_that_does_not_exist_is_no_baseline() -> None:
    contract = offer("contract", Instrument.CONTRACT, 3, term_seconds=YEAR_SECONDS)
    made = plan(office_hours(2, 2), [pool()], [contract], [], PLAIN)
    by_name = {one.baseline: one for one in made.savings}
    assert by_name[ALL_ON_DEMAND].baseline_cost_micros is None
    assert (
        by_name[NOTHING_NEW].baseline_cost_micros == 2 * 9 * YEAR * DOLLAR
    )  # going without, at three times the contract


def test_offers_that_price_no_pool_are_refused() -> None:
    with pytest.raises(UsageError, match="no price of any instrument"):
        plan(demand([1] * 24), [pool()], [], [], PLAIN)
    with pytest.raises(UsageError, match="no price of any instrument"):
        plan(demand([0] * 24), [pool()], [on_demand({"a100": 6})], [], PLAIN)


def test_the_tail_is_the_mean_of_the_worst_with_the_border_counted_in_part() -> None:
    cost, probability = np.array([10.0, 20, 30]), np.array([0.5, 0.3, 0.2])
    assert tail_mean(cost, probability, 0.0) == pytest.approx(17)
    assert tail_mean(cost, probability, 0.6) == pytest.approx((0.2 * 30 + 0.2 * 20) / 0.4)


prices = st.integers(min_value=1, max_value=9)
hours = st.lists(st.integers(min_value=0, max_value=6), min_size=24, max_size=48)


def market(on_demand_price: int, reserved_price: int, spot_price: int) -> list[Offer]:
    """Three instruments."""
    return [on_demand(on_demand_price), reserved(reserved_price), spot(spot_price)]


@settings(max_examples=40)
@given(hours, st.tuples(prices, prices, prices))
def test_parts_add_up_and_everything_scales_as_it_must(gpus: list[int], price: tuple[int, int, int]) -> None:
    wanted = demand(gpus, "deferrable")
    made = plan(wanted, [pool()], market(*price), [], PLAIN)
    parts = sum(one.cost_micros for one in made.lines) + made.held_cost_micros + made.dispatch["cost_micros"].sum()
    assert parts == made.expected_cost_micros
    assert made.expected_cost_micros == pytest.approx(made.objective_cost_micros, abs=len(gpus) + 9)
    assert made.bound_cost_micros <= made.objective_cost_micros + 1
    doubled = plan(wanted, [pool()], market(*(2 * one for one in price)), [], PLAIN)
    assert doubled.objective_cost_micros == pytest.approx(2 * made.objective_cost_micros, rel=1e-9, abs=9)
    fewer = plan(wanted, [pool()], market(*price)[:2], [], PLAIN)
    assert fewer.objective_cost_micros >= made.objective_cost_micros - 9
    more = plan(demand([one + 1 for one in gpus], "deferrable"), [pool()], market(*price), [], PLAIN)
    assert more.objective_cost_micros >= made.objective_cost_micros - 9
    assert plan(wanted, [pool()], market(*price), [], PLAIN).lines == made.lines
