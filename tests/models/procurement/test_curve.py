"""The screening curve against enumeration of all capacities, and the savings curve against the newsvendor's rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.demand import Scenarios
from models.prices import YEAR_SECONDS, Instrument, Offer, Pool, Scope
from models.procurement.compile import compile_problem
from models.procurement.curve import Line, break_evens, envelope, mix, savings_curve, screening
from models.procurement.policy import PlanPolicy
from models.procurement.recourse import evaluate
from models.procurement.solve import solve

if TYPE_CHECKING:
    from models.procurement.problem import Problem

START = datetime(2026, 1, 1, tzinfo=UTC)
POOL = Pool(name="h100", gpu_model="H100", provider="aws", region="us-east-1")


def offer(offer_id: str, instrument: Instrument, micros: int, **more: Any) -> Offer:
    base = Offer(
        offer_id=offer_id,
        instrument=instrument,
        provider="aws",
        scope=Scope.REGION,
        has_capacity=False,
        micros_per_gpu_hour={"h100": micros},
        observed_at=START,
        price_source="a test",
        term_seconds=None if instrument in {Instrument.ON_DEMAND, Instrument.SPOT} else YEAR_SECONDS,
    )
    return replace(base, **more)


ON_DEMAND = offer("od", Instrument.ON_DEMAND, 6_880_000)
RESERVED = offer("ri", Instrument.RESERVED, 4_330_000)
SPOT = offer("spot", Instrument.SPOT, 2_600_000)
PLAIN = PlanPolicy(discount_ratio=0.0, later_use_ratio=1.0, spot_share_ratio={}, whole_nodes=False)


def line(name: str, fixed: float, hourly: float) -> Line:
    return Line(offer_id=name, instrument=Instrument.CONTRACT, fixed_micros=fixed, hourly_micros=hourly)


def cheapest_capacities(lines: list[Line], demand: np.ndarray) -> float:
    """Least cost over all whole capacities; each hour is served by the lines cheapest in use first."""
    order = sorted(lines, key=lambda one: one.hourly_micros)
    best = np.inf
    for gpus in product(range(int(demand.max()) + 1), repeat=len(order)):
        if sum(gpus) < demand.max():
            continue
        left, cost = demand.copy(), 0.0
        for one, capacity in zip(order, gpus, strict=True):
            used = np.minimum(left, capacity)
            left = left - used
            cost += one.fixed_micros * capacity * len(demand) + one.hourly_micros * used.sum()
        best = min(best, cost)
    return float(best)


def cost_of_mix(lines: list[Line], demand: np.ndarray) -> float:
    return sum(
        one.line.fixed_micros * (one.high - one.low) * demand.size
        + one.line.hourly_micros * np.clip(demand - one.low, 0, one.high - one.low).sum()
        for one in mix(lines, demand)
    )


@given(
    prices=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3),
    demand=st.lists(st.integers(0, 4), min_size=1, max_size=12),
)
def test_the_mix_costs_as_little_as_the_best_of_all_capacities(
    prices: list[tuple[int, int]], demand: list[int]
) -> None:
    lines = [line(str(place), fixed, hourly) for place, (fixed, hourly) in enumerate(prices)]
    wanted = np.array(demand, dtype=float)
    assert cost_of_mix(lines, wanted) == pytest.approx(cheapest_capacities(lines, wanted))


def test_the_envelope_changes_where_two_lines_cross() -> None:
    lines = screening([ON_DEMAND, RESERVED], POOL, PLAIN)
    stretches = envelope(lines)
    assert [one.line.offer_id for one in stretches] == ["od", "ri"]
    assert stretches[0].high == stretches[1].low == pytest.approx(4.33 / 6.88)
    assert break_evens(lines).row(0) == ("od", "ri", pytest.approx(4.33 / 6.88))


@given(prices=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5))
def test_the_envelope_is_the_least_of_all_lines(prices: list[tuple[int, int]]) -> None:
    lines = [line(str(place), fixed, hourly) for place, (fixed, hourly) in enumerate(prices)]
    stretches = envelope(lines)
    assert [one.low for one in stretches] == [0.0, *(one.high for one in stretches[:-1])]
    assert stretches[-1].high == 1
    for one in stretches:
        inside = np.linspace(one.low, one.high, 5)
        least = np.min([each.at(inside) for each in lines], axis=0)
        assert one.line.at(inside) == pytest.approx(least)


def test_spot_is_a_line_per_useful_hour() -> None:
    (found,) = screening([SPOT], POOL, replace(PLAIN, spot_goodput_ratio=0.8))
    assert (found.fixed_micros, found.hourly_micros) == (0, 3_250_000)


def test_what_is_paid_upfront_is_an_annuity() -> None:
    upfront = offer("all", Instrument.RESERVED, 0, upfront_micros_per_gpu=35_000_000_000, payment_option="all_upfront")
    (plain,) = screening([upfront], POOL, PLAIN)
    assert plain.fixed_micros == pytest.approx(35e9 / 8760)
    (found,) = screening([upfront], POOL, replace(PLAIN, discount_ratio=0.10))
    # Continuous annuity of one year at ln(1.1): rate / (1 - 1/1.1).
    assert found.fixed_micros == pytest.approx(35e9 / 8760 * np.log(1.1) / (1 - 1 / 1.1), rel=1e-5)


def test_an_owned_gpu_costs_its_loss_of_value_its_power_and_its_fee() -> None:
    own = offer(
        "own",
        Instrument.OWNED,
        0,
        term_seconds=None,
        life_months=48,
        upfront_micros_per_gpu=45_000_000_000,
        residual_micros_per_gpu=5_000_000_000,
        power_watts_per_gpu=1_000,
        monthly_fee_micros_per_gpu=73_000_000,
    )
    (found,) = screening([own], POOL, replace(PLAIN, power_usage_effectiveness=1.5, energy_micros_per_kwh=100_000))
    assert found.fixed_micros == pytest.approx(40e9 / (48 * 730) + 150_000 + 100_000)


def test_an_instrument_that_does_not_exist_is_no_line() -> None:
    elsewhere = replace(RESERVED, micros_per_gpu_hour={"a100": 1})
    assert screening([elsewhere], POOL, PLAIN) == []
    assert envelope([]) == []


def compiled(hours: list[int], *offers: Offer, policy: PlanPolicy = PLAIN) -> Problem:
    demand = np.array(hours, dtype=float)[None, :, None]
    wanted = Scenarios(start_at=START, pools=("h100",), probability=np.ones(1), gpus={"rigid": demand}, seed=None)
    return compile_problem(wanted, [POOL], offers, [], policy).problem


@given(hours=st.lists(st.integers(0, 9), min_size=1, max_size=40).filter(any))
def test_the_savings_curve_is_least_where_the_newsvendor_says(hours: list[int]) -> None:
    curve = savings_curve(compiled(hours, ON_DEMAND, replace(RESERVED)), 0)
    best = curve.sort("cost_micros", "units").row(0, named=True)
    for row in curve.iter_rows(named=True):
        expected = row["units"] * 4.33 * len(hours) + 6.88 * sum(max(one - row["units"], 0) for one in hours)
        assert row["cost_micros"] == pytest.approx(expected * 1e6, abs=1)
        assert row["hours_above"] == sum(one > row["units"] for one in hours)
        assert row["break_even_ratio"] == pytest.approx(4.33 / 6.88)
        if row["units"] > best["units"] + 1:
            assert row["above_ratio"] <= 4.33 / 6.88
        if row["units"] <= best["units"] - 1:
            assert row["above_ratio"] >= 4.33 / 6.88


def test_the_curve_goes_through_the_plan_and_its_neighbours() -> None:
    problem = compiled([20] * 30 + [50] * 10, ON_DEMAND, RESERVED, policy=replace(PLAIN, whole_nodes=True))
    curve = savings_curve(problem, 0, others=np.array([24.0]))
    assert {0.0, 16.0, 24.0, 32.0, 56.0} <= set(curve["units"])
    assert not (curve["units"].to_numpy() % 8).any()
    assert curve["saving_micros"][0] == 0
    assert curve["units"].is_sorted()


def test_a_commitment_in_money_is_counted_in_money() -> None:
    plan = offer("sp", Instrument.SAVINGS_PLAN, 4_300_000)
    curve = savings_curve(compiled([2, 2, 2, 6], ON_DEMAND, plan), 0)
    best = curve.sort("cost_micros").row(0, named=True)
    assert best["units"] == pytest.approx(2 * 4.3, rel=0.05)
    assert curve["break_even_ratio"].unique().to_list() == [pytest.approx(4.3 / 6.88)]
    assert curve.filter(pl.col("units") < 8.5)["hours_above"].unique().to_list() == [4.0]


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_curve_costs_what_the_whole_plan_costs(column: int) -> None:
    names = ("a100", "h100", "h200")
    wanted = Scenarios(
        start_at=START,
        pools=names,
        probability=np.array([0.25, 0.75]),
        gpus={"deferrable": np.random.default_rng(6).integers(0, 20, (2, 30, 3)).astype(float)},
    )
    prices = {"a100": 3_000_000, "h100": 6_880_000, "h200": 8_000_000}
    offers = [
        replace(ON_DEMAND, micros_per_gpu_hour=prices),
        replace(SPOT, micros_per_gpu_hour=prices | {"h100": 2_600_000}),
        replace(RESERVED, offer_id="a", micros_per_gpu_hour={"a100": 2_000_000}),
        replace(RESERVED, offer_id="h", micros_per_gpu_hour={"h100": 4_330_000}),
        offer("sp", Instrument.SAVINGS_PLAN, 0, micros_per_gpu_hour={"h100": 4_500_000, "h200": 5_000_000}),
    ]
    pools = [replace(POOL, name=name) for name in names]
    policy = replace(PLAIN, spot_share_ratio={"deferrable": 0.5})
    problem = compile_problem(wanted, pools, offers, [], policy).problem
    units = np.array([4.0, 3.0, 30.0])
    for row in savings_curve(problem, column, others=units).iter_rows(named=True):
        tried = units.copy()
        tried[column] = row["units"]
        cost = tried @ problem.column_cost + problem.probability @ evaluate(problem, tried).cost
        assert row["cost_micros"] == pytest.approx(cost * 1e6, abs=1)


def test_the_mix_is_what_the_solver_buys() -> None:
    hours = np.random.default_rng(9).integers(0, 60, 500)
    base, peak = mix(screening([ON_DEMAND, RESERVED], POOL, PLAIN), hours.astype(float))
    assert (base.line.offer_id, peak.line.offer_id, peak.high) == ("ri", "od", hours.max())
    assert solve(compiled(hours.tolist(), ON_DEMAND, RESERVED)).units == pytest.approx([base.high])


def test_without_on_demand_there_is_no_break_even() -> None:
    curve = savings_curve(compiled([2, 3], RESERVED), 0)
    assert curve["break_even_ratio"].null_count() == curve.height
