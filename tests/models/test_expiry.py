from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from models.expiry import SCHEMA, expiries

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def on(year: int, month: int, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def held(*rows: tuple[str, str | None, datetime, datetime, float | None, int | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_a_third_of_the_money_in_one_month_is_a_cliff_and_an_eighth_is_not() -> None:
    found = expiries(
        held(
            ("plan", "H100-80GB", on(2026, 3), on(2027, 3), 17.2, 75_000_000),
            ("own", "H100-80GB", on(2025, 3), on(2029, 3), 32.0, 50_000_000),
            ("small", "A100-80GB", on(2026, 3), on(2027, 5), 4.0, 10_000_000),
        ),
        NOW,
    )
    assert found["names"].to_list() == ["plan", "small", "own"]
    assert found["is_cliff"].to_list() == [True, False, True]
    assert found["cost_ratio"].to_list() == [75 / 135, 10 / 60, 1.0]
    assert found["returning"].to_list() == ["17 H100-80GB", "4 A100-80GB", "32 H100-80GB"]


def test_what_starts_later_is_not_held_before() -> None:
    found = expiries(
        held(
            ("first", "H100-80GB", on(2026, 1), on(2026, 12, 15), 8.0, 1),
            ("queued", "H100-80GB", on(2027, 1), on(2028, 1), 8.0, 1),
        ),
        NOW,
    )
    assert found["gpu_ratio"].to_list() == [1.0, 1.0]


def test_what_has_ended_is_left_out_and_what_is_unknown_stays_unknown() -> None:
    found = expiries(
        held(
            ("over", "H100-80GB", on(2025, 1), on(2026, 10), 8.0, 1),
            ("money", None, on(2026, 1), on(2027, 1), None, None),
        ),
        NOW,
    )
    assert found["names"].to_list() == ["money"]
    assert found.select("gpu_ratio", "cost_ratio", "returning", "is_cliff").row(0) == (None, None, "unknown", False)


def test_nothing_held_has_no_expiry() -> None:
    assert expiries(held(), NOW).is_empty()


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 64), st.integers(0, 10**9)), min_size=1, max_size=8))
def test_all_that_is_held_ends_once(rows: list[tuple[int, int, int]]) -> None:
    found = expiries(
        held(
            *(
                (
                    str(number),
                    "H100-80GB",
                    on(2026, 1),
                    on(2026 + (10 + months) // 12, (10 + months) % 12 + 1),
                    gpus,
                    micros,
                )
                for number, (months, gpus, micros) in enumerate(rows)
            )
        ),
        NOW,
    )
    assert found["ended_gpus"].sum() == sum(gpus for _, gpus, _ in rows)
    assert found["ended_micros"].sum() == sum(micros for *_, micros in rows)
    assert found["gpu_ratio"].is_between(0, 1).all()
