"""The online rule against the best plan in hindsight, an LP whose matrix of intervals makes it exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from models.errors import UsageError
from models.procurement.online import active, reservations

ON_DEMAND = 1.0


def offline(demand: np.ndarray, term: int, fee: float, alpha: float) -> float:
    """Cost of the best reservations: every interval may be bought, every hour is served; integral by itself."""
    hours = len(demand)
    covers = np.array([[float(start <= hour < start + term) for start in range(hours)] for hour in range(hours)])
    # Reserved in each hour, on demand in each hour; what is not on demand is used at alpha.
    money = np.concatenate([np.full(hours, fee), np.full(hours, ON_DEMAND * (1 - alpha))])
    found = linprog(money, A_ub=-np.hstack([covers, np.eye(hours)]), b_ub=-demand, method="highs")
    return float(found.fun + alpha * ON_DEMAND * demand.sum())


def online(demand: np.ndarray, term: int, fee: float, alpha: float) -> float:
    made = reservations(demand, np.zeros(0), term_hours=term, on_demand_price=ON_DEMAND, fee=fee, usage_ratio=alpha)
    reserved = np.minimum(active(made, term), demand)
    return float(fee * made.sum() + ON_DEMAND * (demand - reserved).sum() + alpha * ON_DEMAND * reserved.sum())


def sequences(draw: np.random.Generator, count: int) -> list[tuple[np.ndarray, int, float, float]]:
    """Spells of demand on several levels, long against the term and short."""
    found = []
    for _ in range(count):
        hours, term = int(draw.integers(10, 60)), int(draw.integers(2, 20))
        spells = np.repeat(draw.integers(0, 5, hours), draw.integers(1, 12, hours))[:hours]
        demand = np.where(draw.random(hours) < 0.8, spells, draw.integers(0, 5, hours)).astype(float)
        found.append((demand, term, float(draw.uniform(0.1, 1) * term), float(draw.uniform(0, 0.9))))
    return found


def test_never_costs_more_than_two_less_alpha_times_the_best() -> None:
    ratios = []
    for demand, term, fee, alpha in sequences(np.random.default_rng(1305), 400):
        best = offline(demand, term, fee, alpha)
        cost = online(demand, term, fee, alpha)
        assert best <= cost * (1 + 1e-9)
        assert cost <= (2 - alpha) * best * (1 + 1e-9)
        ratios.append(cost / max(best, 1e-9) / (2 - alpha))
    assert max(ratios) > 0.85, "the sequences are too kind: the bound is nearly reached on hard ones"


def test_the_worst_case_reaches_the_bound() -> None:
    # On demand for exactly one fee, then one hour more, and never again.
    demand = np.array([1.0] * 101 + [0.0] * 200)
    assert online(demand, term=400, fee=100, alpha=0.0) == pytest.approx(200)
    assert offline(demand, term=400, fee=100, alpha=0.0) == pytest.approx(100)


def test_reserves_at_once_what_the_past_has_paid_for() -> None:
    made = reservations(np.full(3, 4.0), np.full(10, 4.0), term_hours=8, on_demand_price=1.0, fee=5.0)
    assert made.tolist() == [4, 0, 0]


def test_counts_levels_that_are_used_in_part() -> None:
    # The second level is half used: four hours of spend in eight, less than the fee.
    made = reservations(np.full(8, 1.5), np.zeros(0), term_hours=8, on_demand_price=1.0, fee=4.5)
    assert made.tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


def test_reserves_nothing_where_the_fee_is_never_spent() -> None:
    assert not reservations(np.full(20, 3.0), np.zeros(0), term_hours=5, on_demand_price=1.0, fee=5.0).any()


def test_reservations_end() -> None:
    made = reservations(np.ones(9), np.zeros(0), term_hours=3, on_demand_price=1.0, fee=1.0)
    assert made.tolist() == [0, 1, 0, 0, 0, 1, 0, 0, 0]
    assert active(made, 3).tolist() == [0, 1, 1, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(("term", "alpha"), [(0, 0.0), (3, 1.0), (3, -0.1)])
def test_refuses_what_means_nothing(term: int, alpha: float) -> None:
    with pytest.raises(UsageError):
        reservations(np.ones(3), np.zeros(0), term_hours=term, on_demand_price=1.0, fee=1.0, usage_ratio=alpha)
