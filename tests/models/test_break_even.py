from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.break_even import (
    Cases,
    break_even,
    break_even_utilisations,
    node_watts,
    power_cost_per_node_month,
    upfront_returns,
)
from models.break_even_inputs import UpfrontOffer
from tests.owning import inputs, offer

if TYPE_CHECKING:
    from models.break_even_inputs import Inputs

NEVER = None
PUBLISHED = {
    6.88: [11, 14, 17, 28],
    5.19: [16, 20, 26, 44],
    4.86: [17, 21, 28, 50],
    2.95: [35, 47, 71, NEVER],
    2.35: [53, 76, NEVER, NEVER],
    2.20: [61, 91, NEVER, NEVER],
    1.70: [NEVER, NEVER, NEVER, NEVER],
}
"""Discounted payback in months at utilisations 1.0, 0.85, 0.7 and 0.5, by the rent of a GPU-hour."""


def node(of: Inputs) -> Cases:
    return Cases.of(of, of.comparators, {})


def months_of(of: Inputs) -> list[int]:
    """Paybacks, with never as a very late month."""
    return late(break_even(of), "payback_months")


def late(found: pl.DataFrame, column: str) -> list[int]:
    return found[column].fill_null(10**6).to_list()


@pytest.mark.parametrize("price", PUBLISHED)
def test_the_published_paybacks_come_out_to_the_month(price: float) -> None:
    assert break_even(inputs(comparators=(offer(price),)))["payback_months"].to_list() == PUBLISHED[price]


def test_the_published_running_cost_is_that_of_colocation_energy_support_and_staff() -> None:
    found = node(inputs())
    parts = (found.colo_per_month, found.energy_per_month, found.support_per_month)
    assert [float(part[0]) for part in parts] == pytest.approx([1_877.412, 619.507, 1_333.333], abs=1e-3)
    assert float(found.running_per_month[0]) == pytest.approx(5_330, abs=0.5)
    assert float(found.outlay[0]) == 360_000


@pytest.mark.parametrize(
    ("life_years", "residual_ratio", "published"),
    [
        (3, 0.30, [2.56, 3.02, 3.66, 5.13]),
        (4, 0.15, [2.39, 2.81, 3.41, 4.77]),
        (5, 0.05, [2.23, 2.62, 3.19, 4.46]),
    ],
)
def test_the_published_cost_of_an_owned_gpu_hour_comes_out_to_the_cent(
    life_years: float, residual_ratio: float, published: list[float]
) -> None:
    found = break_even(inputs(life_years=life_years, residual_ratio=residual_ratio))["owned_per_gpu_hour"]
    assert found.round(2).to_list() == published


def test_an_answer_names_comparator_utilisation_discount_rate_and_residual() -> None:
    found = break_even(inputs(comparators=(offer(6.88), offer(2.95))))
    assert found.select("comparator", "utilisation").rows()[3:6] == [("6.88", 0.5), ("2.95", 1.0), ("2.95", 0.85)]
    row = found.row(0, named=True)
    assert (row["discount_rate"], row["residual"], row["currency"]) == (0.1, 0.3, "USD")
    assert (row["source"], row["observed_at"]) == ("a price list", date(2026, 7, 30))


def by_hand(of: Inputs, used: float) -> dict[str, Any]:
    """Payback and NPV month by month, for one comparator: an independent formulation in plain Python."""
    one = of.comparators[0]
    outlay = of.purchase_per_node * (1 + of.network_ratio)
    watts = of.measured_node_watts or of.nameplate_kilowatts * 1_000 * of.load_ratio
    running = of.nameplate_kilowatts * of.colo_per_kilowatt_month + of.staff_per_node_month + of.fees_per_node_month
    running += watts / 1_000 * of.power_usage_effectiveness * of.price_per_kilowatt_hour * 730
    running += of.purchase_per_node * of.support_ratio / 12
    rent = of.gpus_per_node * 730 * one.price_per_gpu_hour * (1 if one.is_committed else used)
    end = of.lead_months + round(of.life_years * 12)
    residual = of.purchase_per_node * of.residual_ratio / (1 + of.discount_ratio) ** (end / 12)

    def flows(*, is_discounted: bool = True, is_cut: bool = False) -> list[float]:
        found = []
        for month in range(1, max(of.horizon_months, end) + 1):
            due = rent * (1 - of.price_cut_ratio) if is_cut and month > of.price_cut_after_months else rent
            saving = due - running if month > of.lead_months else 0
            found.append(saving / (1 + of.discount_ratio) ** (month / 12) if is_discounted else saving)
        return found

    def payback(savings: list[float], wanted: float) -> int | None:
        saved = accumulate(savings[: of.horizon_months])
        return next((month for month, sum_of in enumerate(saved, start=1) if sum_of >= wanted - 1e-6), None)

    return {
        "payback_months": payback(flows(), outlay),
        "undiscounted_payback_months": payback(flows(is_discounted=False), outlay),
        "payback_with_residual_months": payback(flows(), outlay - residual),
        "payback_after_price_cut_months": payback(flows(is_cut=True), outlay),
        "npv": math.fsum(flows()[:end]) - outlay + residual,
        "npv_without_residual": math.fsum(flows()[:end]) - outlay,
        "npv_after_price_cut": math.fsum(flows(is_cut=True)[:end]) - outlay + residual,
    }


nodes = st.builds(
    inputs,
    purchase_per_node=st.integers(100_000, 500_000).map(float),
    network_ratio=st.floats(0, 0.3),
    lead_months=st.integers(0, 9),
    life_years=st.integers(12, 84).map(lambda months: months / 12),
    residual_ratio=st.floats(0, 0.6),
    load_ratio=st.floats(0, 1),
    measured_node_watts=st.none() | st.floats(1_000, 10_000),
    discount_ratio=st.just(0.0) | st.floats(0.01, 0.4),
    horizon_months=st.integers(1, 130),
    price_cut_ratio=st.floats(0, 1),
    price_cut_after_months=st.integers(0, 60),
    comparators=st.tuples(st.builds(offer, st.floats(0.5, 15), is_committed=st.booleans())),
)
some_use = st.floats(0.05, 1)


@given(of=nodes, used=some_use)
def test_paybacks_and_npv_are_those_of_adding_up_month_by_month(of: Inputs, used: float) -> None:
    row = break_even(replace(of, utilisations=(used,))).row(0, named=True)
    for name, expected in by_hand(of, used).items():
        assert row[name] == (pytest.approx(expected, abs=1e-4) if name.startswith("npv") else expected), name
    assert row["price_cut_loss"] == pytest.approx(row["npv"] - row["npv_after_price_cut"], abs=1e-5)


@given(of=nodes, used=some_use)
def test_undiscounted_payback_is_outlay_over_monthly_saving(of: Inputs, used: float) -> None:
    of = replace(of, lead_months=0, utilisations=(used,), comparators=(offer(of.comparators[0].price_per_gpu_hour),))
    found = break_even(of)["undiscounted_payback_months"].item()
    cases = node(replace(of, expected_utilisation=used))
    saving = float(cases.rent_per_month[0] - cases.running_per_month[0])
    exact = float(cases.outlay[0]) / saving if saving > 0 else math.inf
    if exact > of.horizon_months:
        assert found is None
    else:
        assert found - 1 < exact * (1 + 1e-9)
        assert found >= exact * (1 - 1e-9)


@given(of=nodes, uses=st.tuples(some_use, some_use))
def test_more_use_never_lengthens_the_payback_against_rent_of_used_hours(of: Inputs, uses: tuple[float, float]) -> None:
    on_demand = offer(of.comparators[0].price_per_gpu_hour)
    less, more = months_of(replace(of, comparators=(on_demand,), utilisations=tuple(sorted(uses))))
    assert more <= less


@given(of=nodes, rates=st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)))
def test_dearer_money_never_shortens_the_payback(of: Inputs, rates: tuple[float, float]) -> None:
    cheap, dear = (break_even(replace(of, discount_ratio=rate)) for rate in sorted(rates))
    for column in ("payback_months", "payback_with_residual_months"):
        pairs = zip(late(cheap, column), late(dear, column), strict=True)
        assert all(one <= other for one, other in pairs)


@given(of=nodes)
def test_a_residual_never_lengthens_the_payback(of: Inputs) -> None:
    found, worthless = break_even(of), break_even(replace(of, residual_ratio=0.0))
    pairs = zip(late(found, "payback_with_residual_months"), late(found, "payback_months"), strict=True)
    assert all(with_residual <= without for with_residual, without in pairs)
    assert worthless["payback_with_residual_months"].equals(worthless["payback_months"])


@given(of=nodes)
def test_doubled_prices_change_no_payback_and_double_all_money(of: Inputs) -> None:
    prices = ("purchase_per_node", "colo_per_kilowatt_month", "price_per_kilowatt_hour", "staff_per_node_month")
    rent = replace(of.comparators[0], price_per_gpu_hour=2 * of.comparators[0].price_per_gpu_hour)
    doubled = replace(of, comparators=(rent,), **{name: 2 * getattr(of, name) for name in prices})
    once, twice = break_even(of), break_even(doubled)
    months = pl.selectors.ends_with("_months")
    assert once.select(months).equals(twice.select(months))
    for name in ("owned_per_gpu_hour", "rented_per_gpu_hour", "npv", "price_cut_loss"):
        assert twice[name].to_list() == pytest.approx((once[name] * 2).to_list(), abs=1e-5)


def test_a_commitment_is_paid_for_all_hours_so_use_makes_no_difference() -> None:
    found = break_even(inputs(comparators=(offer(2.95, is_committed=True),)))
    assert found["payback_months"].to_list() == [35] * 4
    assert found["rented_per_gpu_hour"].to_list() == pytest.approx([2.95, 2.95 / 0.85, 2.95 / 0.7, 5.9], abs=1e-6)
    multiplied = [break_even(inputs(comparators=(offer(2.95 / used),), utilisations=(used,))) for used in (1, 0.7, 0.5)]
    assert [one["payback_months"].item() for one in multiplied] == [35] * 3


def test_savings_that_just_cover_the_outlay_are_enough() -> None:
    nothing = ("network_ratio", "nameplate_kilowatts", "support_ratio", "staff_per_node_month", "discount_ratio")
    free = inputs(comparators=(offer(0.1),), utilisations=(0.7,), **dict.fromkeys(nothing, 0.0))
    saved = 8 * 730 * 0.1 * 0.7  # a month; sums of it are not exact in binary
    found = [break_even(replace(free, purchase_per_node=saved * months)) for months in range(1, 61)]
    assert [one["payback_months"].item() for one in found] == [*range(1, 61)]


def test_a_year_until_delivery_costs_a_year_of_interest() -> None:
    late_node, dear_node = inputs(lead_months=12), inputs(network_ratio=1.125 * 1.1 - 1)
    shown = [break_even(one)["owned_per_gpu_hour"].to_list() for one in (late_node, dear_node)]
    assert shown[0] == pytest.approx(shown[1], abs=1e-6)


def test_a_payback_after_the_end_of_life_is_said_to_be_one() -> None:
    found = break_even(inputs(comparators=(offer(2.95),)))
    assert found["pays_within_life"].to_list() == [True, False, False, False]  # 35, 47 and 71 months, never


@given(of=nodes, months=st.integers(6, 120))
def test_at_the_break_even_utilisation_savings_just_cover_the_outlay(of: Inputs, months: int) -> None:
    of = replace(of, horizon_months=months, comparators=(offer(of.comparators[0].price_per_gpu_hour),))
    least = break_even_utilisations(of, [months])["break_even_utilisation"].item()
    if least is None:
        assert months_of(replace(of, utilisations=(1.0,))) == [10**6]
        return
    just_enough = min(1.0, least + 2e-6)  # it is printed to six places
    assert months_of(replace(of, utilisations=(just_enough,))) != [10**6]
    if least > 0.01:
        assert months_of(replace(of, utilisations=(least - 0.01,))) == [10**6]


def test_a_commitment_breaks_even_at_any_utilisation_or_at_none() -> None:
    dear, cheap = offer(6.88, is_committed=True), offer(1.70, is_committed=True)
    found = break_even_utilisations(inputs(comparators=(dear, cheap)), [36])
    assert found["break_even_utilisation"].to_list() == [0, None]


def test_measured_watts_take_the_place_of_the_assumed_load() -> None:
    assumed, measured = inputs(), inputs(measured_node_watts=node_watts(520, 8, 2_100))
    assert float(node(measured).energy_per_month[0]) == pytest.approx(6.26 * 1.3 * 0.08 * 730)
    saved = node(assumed).running_per_month - node(measured).running_per_month
    assert float(saved[0]) == pytest.approx(power_cost_per_node_month(8_160 - 6_260, 1.3, 0.08))


def test_a_price_cut_in_the_first_year_strands_who_bought() -> None:
    found = break_even(inputs(comparators=(offer(5.19),), utilisations=(0.7,))).row(0, named=True)
    assert (found["payback_months"], found["payback_after_price_cut_months"]) == (26, 59)
    assert found["npv"] > 0 > found["npv_after_price_cut"]


def test_an_upfront_offer_is_judged_by_what_money_costs() -> None:
    offers = (
        UpfrontOffer("p4d", 1, 102.294635, 109.601338, "a price list", date(2026, 1, 31)),
        UpfrontOffer("one payment", 1, 1, 12, "a price list", date(2026, 1, 31)),
    )
    cheap, dear = (upfront_returns(inputs(upfront_offers=offers, discount_ratio=rate)) for rate in (0.10, 0.20))
    assert cheap["implied_return_ratio"].to_list() == [pytest.approx(0.1649, abs=1e-4), None]
    assert cheap["pays_upfront"].to_list() == [True, True]
    assert dear["pays_upfront"].to_list() == [False, True]
