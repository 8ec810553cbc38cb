from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from models.errors import UsageError
from models.prices import Instrument, Scope
from models.procurement.billing import simulate
from models.procurement.billing_order import BilledCommitment, aws_size, sizes_reached
from models.procurement.billing_usage import USAGE_SCHEMA
from tests.models.procurement.billing_cases import CASES, START, Case

if TYPE_CHECKING:
    from random import Random

    from models.procurement.bill import Bill

HOURS = 3
DOLLAR = 1_000_000
SIZES = {name: aws_size(name) for name in ("p4.xlarge", "p4.2xlarge", "g5.xlarge", "p5.48xlarge")}


def told(bill: Bill) -> list[tuple[object, ...]]:
    """A bill's lines as the cases write them."""
    rows = []
    for line in bill.lines().iter_rows(named=True):
        what = "unused" if line["line"] == "unused" else ("idle " if line["is_idle"] else "") + line["resource"]
        hour = (line["hour_at"] - START) // timedelta(hours=1)
        quantity = line["quantity_millionths"] or 0
        rows.append((hour, line["commitment_id"] or "", line["account"] or "", what, quantity, line["cost_micros"]))
    return sorted(rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.vendor}: {case.name}")
def test_the_bill_is_what_was_added_up_by_hand(case: Case) -> None:
    lines, total = case.expected()
    bill = case.bill()
    assert told(bill) == lines
    assert bill.total_micros == total == sum(line[-1] for line in lines)


def test_there_are_cases_of_every_vendor() -> None:
    assert {case.vendor for case in CASES} == {"aws", "gcp", "azure"}
    assert len(CASES) >= 25


def usage(*rows: tuple[int, str, str, str, int, int | None]) -> pl.DataFrame:
    """Rows of hour, account, resource, zone, millionths and price on demand."""
    full = [
        (START + timedelta(hours=hour), account, resource, zone[:-1], zone, quantity, price)
        for hour, account, resource, zone, quantity, price in rows
    ]
    return pl.DataFrame(full, schema=USAGE_SCHEMA, orient="row")


def plan(name: str, committed: int, rates: dict[str, int], **more: Any) -> BilledCommitment:
    """A Compute Savings Plan of one year."""
    terms: dict[str, Any] = {
        "provider": "aws",
        "instrument": Instrument.SAVINGS_PLAN,
        "scope": Scope.GLOBAL,
        "starts_at": START,
        "ends_at": START + timedelta(days=365),
        **more,
    }
    return BilledCommitment(commitment_id=name, rates=rates, hourly_commitment_micros=committed, **terms)


def reservation(name: str, of: str, units: int, price: int, **more: Any) -> BilledCommitment:
    """A regional or zonal reservation of one year."""
    scope = Scope.ZONE if more.get("zone") else Scope.REGION
    terms: dict[str, Any] = {
        "provider": "aws",
        "instrument": Instrument.RESERVED,
        "starts_at": START,
        "ends_at": START + timedelta(days=365),
        **more,
    }
    return BilledCommitment(
        commitment_id=name,
        scope=scope,
        rates=sizes_reached(of, SIZES, scope),
        unit_points=SIZES[of].points,
        units_millionths=units,
        micros_per_unit_hour=price,
        **terms,
    )


# Quantities as people use them, whole, and as an LP leaves them, in odd millionths.
quantities = st.one_of(st.integers(0, 6).map(lambda count: count * DOLLAR), st.integers(0, 6 * DOLLAR))
prices = st.sampled_from([1_006_000, 4_000_000, 10_000_000, 55_040_000])
rates_of = st.fixed_dictionaries({name: st.integers(0, 30 * DOLLAR) for name in SIZES})
hours_of_term = st.integers(-2, HOURS).flatmap(lambda first: st.tuples(st.just(first), st.integers(first + 1, 6)))


@st.composite
def usages(draw: st.DrawFn) -> pl.DataFrame:
    """Usage of two accounts in two zones, one price a resource."""
    price = {name: draw(prices) for name in SIZES}
    kind = st.tuples(
        st.integers(0, HOURS - 1),
        st.sampled_from("AB"),
        st.sampled_from(sorted(SIZES)),
        st.sampled_from(["us-1a", "us-1b"]),
        quantities,
    )
    rows = draw(st.lists(kind, max_size=10))
    return usage(*((*row, price[row[2]]) for row in rows))


@st.composite
def portfolios(draw: st.DrawFn) -> list[BilledCommitment]:
    """Up to five commitments of all kinds, terms and vendors."""
    held = []
    for place in range(draw(st.integers(0, 5))):
        first, end = draw(hours_of_term)
        more = {
            "account": draw(st.sampled_from("AB")),
            "is_shared": draw(st.booleans()),
            "provider": draw(st.sampled_from(["aws", "gcp", "azure"])),
            "starts_at": START + timedelta(hours=first),
            "ends_at": START + timedelta(hours=end),
        }
        if draw(st.booleans()):
            scope = draw(st.sampled_from([Scope.FAMILY, Scope.GLOBAL]))
            held.append(plan(f"c{place}", draw(st.integers(0, 60 * DOLLAR)), draw(rates_of), scope=scope, **more))
        else:
            zone = draw(st.sampled_from(["", "us-1a"]))
            more["upfront_micros"] = draw(st.sampled_from([0, 7, 10 * DOLLAR + 1]))
            of = draw(st.sampled_from(sorted(SIZES)))
            held.append(reservation(f"c{place}", of, draw(quantities), draw(prices), zone=zone, **more))
    return held


@given(ran=usages(), held=portfolios())
def test_lines_add_up_to_the_commitments_and_what_is_on_demand(ran: pl.DataFrame, held: list[BilledCommitment]) -> None:
    bill = simulate(ran, held, start_at=START, hours=HOURS)
    lines = bill.lines()
    kinds = dict(lines.group_by("line").agg(pl.col("cost_micros").sum()).iter_rows())
    committed = kinds.get("committed", 0) + kinds.get("unused", 0)
    assert committed == bill.commitment_micros.sum() == bill.by_commitment()["cost_micros"].sum()
    assert lines["cost_micros"].sum() == bill.total_micros == bill.hourly_micros.sum()
    assert lines["list_micros"].sum() == bill.list_micros.sum()
    assert lines["quantity_millionths"].sum() == ran["usage_millionths"].sum()
    assert lines["cost_micros"].min() is None or lines["cost_micros"].min() >= 0
    assert (bill.left_millionths >= 0).all()
    assert (bill.unused_micros >= 0).all()


@settings(max_examples=50)
@given(ran=usages(), held=portfolios(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(ran: pl.DataFrame, held: list[BilledCommitment], order: Random) -> None:
    rows, other = list(range(ran.height)), list(held)
    order.shuffle(rows)
    order.shuffle(other)
    one = simulate(ran, held, start_at=START, hours=HOURS)
    again = simulate(ran[rows], other, start_at=START, hours=HOURS)
    assert one.lines().equals(again.lines())


@settings(max_examples=50)
@given(ran=usages(), held=portfolios(), more=usages())
def test_more_usage_never_costs_less(ran: pl.DataFrame, held: list[BilledCommitment], more: pl.DataFrame) -> None:
    price = dict(ran.select("resource", "on_demand_micros").iter_rows())
    extra = more.with_columns(pl.col("resource").replace_strict(price, default=DOLLAR).alias("on_demand_micros"))
    extra = extra.filter(pl.col("resource").is_in(list(price))).cast(dict(USAGE_SCHEMA))
    before = simulate(ran, held, start_at=START, hours=HOURS)
    after = simulate(pl.concat([ran, extra]), held, start_at=START, hours=HOURS)
    assert (after.hourly_micros >= before.hourly_micros).all()


@settings(max_examples=20)
@given(ran=usages())
def test_without_commitments_the_cost_is_the_list_price(ran: pl.DataFrame) -> None:
    bill = simulate(ran, [], start_at=START, hours=HOURS)
    assert bill.total_micros == bill.list_micros.sum()
    assert bill.summary().effective_savings_ratio in {0, None}


@given(
    counts=st.lists(st.integers(0, 5), min_size=3, max_size=3),
    rates=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    committed=st.integers(0, 60),
)
def test_one_plan_covers_as_much_as_the_best_plan_could(counts: list[int], rates: list[int], committed: int) -> None:
    # A knapsack in fractions: the highest saving first is the optimum, so a solver finds no more.
    names, listed = sorted(SIZES)[:3], [10, 10, 10]
    ran = usage(*((0, "A", name, "us-1a", n * DOLLAR, 10 * DOLLAR) for name, n in zip(names, counts, strict=True)))
    rate = {name: one * DOLLAR for name, one in zip(names, rates, strict=True)}
    bill = simulate(ran, [plan("sp", committed * DOLLAR, rate)], start_at=START, hours=1)
    best = linprog([-price for price in listed], [rates], [committed], bounds=[(0, n) for n in counts])
    left = sum(n * price for n, price in zip(counts, listed, strict=True)) + best.fun
    assert bill.on_demand_micros.sum() == pytest.approx(left * DOLLAR, abs=60)


def test_a_plan_that_runs_out_has_nothing_left() -> None:
    # 2.00 / 55.04 = 0.036337 instances, which are worth 1.999988: the rest of the 2.00 is used too, and is not lost.
    ran = usage((0, "A", "p5.48xlarge", "us-1a", DOLLAR, 60 * DOLLAR))
    bill = simulate(ran, [plan("sp", 2 * DOLLAR, {"p5.48xlarge": 55_040_000})], start_at=START, hours=1)
    assert told(bill) == [
        (0, "", "A", "p5.48xlarge", 963_663, 57_819_780),
        (0, "sp", "A", "p5.48xlarge", 36_337, 2_000_000),
    ]


def test_a_price_cut_changes_the_order_from_its_hour_on() -> None:
    # p4 saves 30 % and p5 27 %. Cut to 15.00, p4 saves 7 % only and comes second: 14.00 / 40.00 = 0.35 of the p5.
    ran = usage(
        (0, "A", "p4.xlarge", "us-1a", DOLLAR, 20 * DOLLAR),
        (0, "A", "p5.48xlarge", "us-1a", DOLLAR, 55 * DOLLAR),
        (1, "A", "p4.xlarge", "us-1a", DOLLAR, 15 * DOLLAR),
        (1, "A", "p5.48xlarge", "us-1a", DOLLAR, 55 * DOLLAR),
    )
    bill = simulate(
        ran,
        [plan("sp", 14 * DOLLAR, {"p4.xlarge": 14 * DOLLAR, "p5.48xlarge": 40 * DOLLAR})],
        start_at=START,
        hours=2,
    )
    covered = bill.lines().filter(pl.col("line") == "committed")
    assert covered.select("resource", "quantity_millionths").rows() == [
        ("p4.xlarge", 1_000_000),
        ("p5.48xlarge", 350_000),
    ]


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_a_local_day_is_billed_for_its_own_number_of_hours(day: str, hours: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime.fromisoformat(day).replace(tzinfo=berlin)
    start, end = (at.astimezone(UTC) for at in (first, first + timedelta(days=1)))
    held = plan("sp", 2 * DOLLAR, {"p4.xlarge": DOLLAR}, starts_at=start, ends_at=end)
    ran = pl.DataFrame(
        [
            (start + timedelta(hours=hour), "A", "p4.xlarge", "us-1", "us-1a", DOLLAR, 3 * DOLLAR)
            for hour in range(hours)
        ],
        schema=USAGE_SCHEMA,
        orient="row",
    )
    bill = simulate(ran, [held], start_at=start, hours=26)
    assert bill.total_micros == hours * 2 * DOLLAR
    assert bill.unused_micros.sum() == hours * DOLLAR


def test_the_hours_of_a_whole_term_cost_what_was_paid_upfront() -> None:
    held = reservation("ri", "p4.xlarge", DOLLAR, 0, upfront_micros=1_000_000_007)
    bill = simulate(usage(), [held], start_at=START - timedelta(hours=5), hours=8_770)
    assert bill.total_micros == 1_000_000_007
    assert set(np.unique(bill.commitment_micros)) == {0, 1_000_000_007 // 8_760, 1_000_000_007 // 8_760 + 1}


def test_usage_without_a_price_on_demand_may_be_covered_but_not_left_over() -> None:
    ran = usage((0, "A", "p4.xlarge", "us-1a", 2 * DOLLAR, None))
    enough = reservation("ri", "p4.xlarge", 2 * DOLLAR, DOLLAR)
    bill = simulate(ran, [enough], start_at=START, hours=1)
    assert bill.total_micros == 2 * DOLLAR
    assert bill.summary().cost_without_benefit_micros is None
    with pytest.raises(UsageError, match=r"p4.xlarge us-1a: 1.000000 unit-hours at .* have no price on demand"):
        simulate(ran, [replace(enough, units_millionths=DOLLAR)], start_at=START, hours=1)


def test_a_name_stands_once() -> None:
    with pytest.raises(UsageError, match="found sp more than once"):
        simulate(usage(), [plan("sp", 1, {}), plan("sp", 2, {})], start_at=START, hours=1)


def test_amounts_that_cannot_be_counted_exactly_are_refused() -> None:
    with pytest.raises(UsageError, match="sp: too large to count"):
        simulate(usage(), [plan("sp", 10**13, {})], start_at=START, hours=1)
    with pytest.raises(UsageError, match=r"price of .* too large to count"):
        simulate(usage((0, "A", "x", "us-1a", 10**15, 10**10)), [], start_at=START, hours=1)
