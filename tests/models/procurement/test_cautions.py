from __future__ import annotations

from datetime import timedelta

from models.prices import Instrument
from models.procurement.plan import plan
from models.procurement.policy import PlanPolicy
from tests.markets import AT, DOLLAR, commitment, demand, on_demand, pool, reserved

PLAIN = PlanPolicy(discount_ratio=0, later_use_ratio=1, whole_nodes=False)
DAY = timedelta(days=1)
YEAR = 8_760


def test_a_month_in_which_most_of_what_is_held_ends_is_told() -> None:
    # 8 of 10 GPUs end in March; the year bought for what follows ends after the horizon, in which 2 of them end in June.
    march = commitment("march", AT - 10 * DAY, AT + 140 * DAY, gpus=8)
    june = commitment("june", AT - 10 * DAY, AT + 220 * DAY, gpus=2)
    made = plan(demand([10] * YEAR), [pool()], [on_demand(6)], [march, june], PLAIN)
    first, second = made.notes
    assert first == (
        "2027-03: 80% of the GPUs held and 80% of what they cost end (march; 8 h100 come back to demand): spread the ends over "
        "more months, or plan what follows"
    )
    assert second.startswith("2027-06: 100% of the GPUs held")


def test_what_is_spread_or_ends_with_the_horizon_is_no_cliff() -> None:
    spread = [commitment(f"{month}", AT - DAY, AT + (15 + 30 * month) * DAY, gpus=2) for month in range(13)]
    made = plan(demand([30] * YEAR), [pool()], [on_demand(6), reserved(4)], spread, PLAIN)
    assert made.lines
    assert not made.notes


def test_a_commitment_in_money_counts_the_gpus_that_it_pays_for() -> None:
    paid = commitment("plan", AT - DAY, AT + 100 * DAY, gpus=None, hourly_commitment_micros=20 * DOLLAR,
                      instrument=Instrument.SAVINGS_PLAN)  # fmt: skip
    rest = commitment("rest", AT - DAY, AT + 400 * DAY, gpus=8, upfront_micros=401 * 24 * 8 * DOLLAR)
    (told,) = plan(demand([10] * YEAR), [pool()], [on_demand(6)], [paid, rest], PLAIN).notes
    # 20 an hour at 4 a GPU are 5 of 13 GPUs; the rest costs 32 an hour, and 8 of what was paid upfront.
    assert told.startswith("2027-02: 38% of the GPUs held and 33% of what they cost end (plan; 5 h100 come back")


def test_what_caps_the_purchases_is_told() -> None:
    made = plan(demand([50] * 10), [pool()], [on_demand(6), reserved(4)], [], PLAIN, recent_gpus={"h100": 12})
    assert made.notes == ("no more GPUs are committed than were wanted at once in the last days: h100 12.0",)
    assert not plan(demand([0]), [pool()], [on_demand(6)], [], PLAIN).notes
