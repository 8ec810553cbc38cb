from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from models.break_even import break_even
from models.break_even_inputs import Shape
from models.break_even_risk import drawn, monte_carlo, tornado
from tests.owning import inputs, offer, span

COMPARATORS = (offer(6.88), offer(2.95))
RANGES = {
    "expected_utilisation": span(0.5, 0.9),
    "price_per_kilowatt_hour": span(0.06, 0.12),
    "rented_price_ratio": span(0.56, 1.32, Shape.UNIFORM),
    "life_years": span(2, 5, Shape.UNIFORM),
    "residual_ratio": span(0, 0.35),
}


def test_a_tornado_sets_one_input_at_a_time_and_puts_the_widest_swing_first() -> None:
    found = tornado(inputs(comparators=COMPARATORS, ranges=RANGES))
    assert found["comparator"].to_list() == ["6.88"] * 5 + ["2.95"] * 5
    for (_,), part in found.group_by("comparator"):
        assert part["npv_swing"].is_sorted(descending=True)
    used = found.filter(comparator="6.88", input="expected_utilisation").row(0, named=True)
    low, high = break_even(inputs(utilisations=(0.5, 0.9)))["npv"]
    assert (used["npv_at_low"], used["npv_at_high"]) == (low, high)
    assert used["npv_swing"] == pytest.approx(high - low)
    assert (used["stated"], used["payback_at_low_months"]) == (0.7, 28)
    energy = found.filter(comparator="6.88", input="price_per_kilowatt_hour").row(0, named=True)
    dear = break_even(inputs(utilisations=(0.7,), price_per_kilowatt_hour=0.12)).row(0, named=True)
    assert (energy["npv_at_high"], energy["payback_at_high_months"]) == (dear["npv"], dear["payback_months"])


def test_ranges_without_width_give_the_stated_answer() -> None:
    stated = inputs(comparators=COMPARATORS, utilisations=(0.7,))
    narrow = {name: span(getattr(stated, name), getattr(stated, name)) for name in RANGES}
    found = monte_carlo(inputs(comparators=COMPARATORS, ranges=narrow), draws=50, seed=3)
    certain = break_even(stated)
    for name in ("payback_p10_months", "payback_p50_months", "payback_p90_months"):
        assert found[name].to_list() == certain["payback_months"].to_list() == [17, 71]
    assert found["npv_p50"].to_list() == pytest.approx(certain["npv"].to_list())
    assert found["pays_within_life_ratio"].to_list() == [1, 0]
    assert found["standard_error_ratio"].to_list() == [0, 0]


def test_the_same_seed_gives_the_same_answer_and_another_seed_another() -> None:
    of = inputs(comparators=COMPARATORS, ranges=RANGES)
    once = monte_carlo(of, draws=300, seed=1)
    assert once.equals(monte_carlo(of, draws=300, seed=1))
    assert not once.drop("seed").equals(monte_carlo(of, draws=300, seed=2).drop("seed"))


def test_one_more_range_leaves_the_draws_of_the_others_as_they_were() -> None:
    of = inputs(ranges={"expected_utilisation": span(0.5, 0.9)})
    more = inputs(ranges={"staff_per_node_month": span(1_500, 1_500), **of.ranges})
    assert monte_carlo(of, draws=200, seed=5).equals(monte_carlo(more, draws=200, seed=5))


def test_the_chance_to_pay_within_the_life_is_that_of_using_the_node_enough() -> None:
    of = inputs(ranges={"expected_utilisation": span(0.2, 0.7, Shape.UNIFORM)}, expected_utilisation=0.5)
    enough = break_even(of)["break_even_utilisation"][0]  # closed form: the rest is a uniform distribution
    found = monte_carlo(of, draws=20_000, seed=11).row(0, named=True)
    expected = (0.7 - enough) / 0.5
    assert found["pays_within_life_ratio"] == pytest.approx(expected, abs=4 * found["standard_error_ratio"])
    assert found["payback_p90_months"] is None or found["payback_p90_months"] > 36
    assert found["payback_p10_months"] <= found["payback_p50_months"]


@pytest.mark.parametrize("shape", list(Shape))
def test_draws_have_the_mean_and_spread_of_their_distribution(shape: Shape) -> None:
    low, stated, high = 2.0, 3.0, 8.0
    values = drawn(span(low, high, shape), stated, (np.arange(200_000) + 0.5) / 200_000)
    if shape is Shape.UNIFORM:
        mean, variance = (low + high) / 2, (high - low) ** 2 / 12
    else:
        mean = (low + stated + high) / 3
        variance = (low**2 + stated**2 + high**2 - low * stated - low * high - stated * high) / 18
    assert values.mean() == pytest.approx(mean, rel=1e-4)
    assert values.var() == pytest.approx(variance, rel=1e-3)
    assert low <= values.min() <= values.max() <= high


def test_a_stated_value_at_the_edge_of_its_range_is_drawn_too() -> None:
    for stated in (2.0, 8.0):
        values = drawn(span(2, 8), stated, np.linspace(0, 1, 1_001))
        assert (values.min(), values.max()) == pytest.approx((2, 8))


def test_ranges_of_months_are_drawn_as_whole_months() -> None:
    of = inputs(ranges={"lead_months": span(0, 6), "life_years": span(2.9, 3.1)}, lead_months=3)
    found = monte_carlo(of, draws=500, seed=2)
    assert found.select(pl.col("payback_p10_months") < pl.col("payback_p90_months")).item()
