"""What the procurement pages show of the small ledger: prices, commitments with their use, interruptions, a recorded plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from models.events import (
    BillDelivered,
    ChargeBilled,
    CheckpointSaved,
    CommitmentRecorded,
    Event,
    PlanLineRecommended,
    PlanNoted,
    PlanRecommended,
    PlanSavingEstimated,
    PlanStressEstimated,
    PriceObserved,
    RunInterrupted,
    polars_schema,
)
from pipelines.sources.base import Chunk

MICROS = 1_000_000
MODEL = "H100-80GB"
SEEN = datetime(2026, 9, 1, tzinfo=UTC)
START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2027, 10, 1, tzinfo=UTC)
PLAN = "0123456789abcdef0123456789abcdef"


def chunk(*facts: tuple[type[Event], list[dict[str, Any]]]) -> Chunk:
    frames = {event: pl.DataFrame(rows, schema=polars_schema(event), strict=False) for event, rows in facts}
    return Chunk(frames, rows_read=sum(frame.height for frame in frames.values()))


def offer(name: str, instrument: str, hourly: str | None, **more: Any) -> dict[str, Any]:
    plain = {
        "offer_id": name,
        "gpu_model": MODEL,
        "region": "eu",
        "zone": "",
        "observed_at": SEEN,
        "instrument": instrument,
        "provider": "acme",
        "gpu_count": 8,
        "scope": "region",
        "has_capacity": False,
        "hourly_amount": None if hourly is None else Decimal(hourly),
        "currency": "USD",
        "price_source": "price list",
    }
    return plain | more


def prices() -> Chunk:
    year = {"term_seconds": 31_536_000, "payment_option": "no_upfront"}
    owned = {
        "upfront_amount": Decimal(40_000),
        "residual_amount": Decimal(4_000),
        "life_months_count": 48,
        "power_watts": 1_000.0,
        "monthly_fee_amount": Decimal(500),
        "lead_seconds": 0,
        "provider": "own",
        "region": "home",
        "has_capacity": True,
    }
    rows = [
        offer("acme/on_demand", "on_demand", "7.00"),
        offer("acme/reserved/1y", "reserved", "3.50", **year),
        offer("acme/plan/1y", "savings_plan", "4.00", **year, scope="global"),
        offer("acme/spot", "spot", "1.50", scope="zone", zone="eu-a"),
        offer("own/h100", "owned", None, **owned),
    ]
    return chunk((PriceObserved, rows))


def commitments() -> Chunk:
    common = {"provider": "acme", "has_capacity": False, "currency": "USD", "state": "active", "scope": "region"}
    rows = [
        {
            "commitment_id": "arn:acme:plans/abcdef",
            "instrument": "savings_plan",
            "offer_id": "acme/plan/1y",
            "gpu_model": MODEL,
            "starts_at": datetime(2026, 3, 1, tzinfo=UTC),
            "ends_at": datetime(2027, 3, 1, tzinfo=UTC),
            "hourly_commitment_amount": Decimal(16),
        },
        {
            "commitment_id": "own-2026",
            "instrument": "owned",
            "gpu_model": MODEL,
            "starts_at": datetime(2026, 7, 1, tzinfo=UTC),
            "ends_at": datetime(2030, 7, 1, tzinfo=UTC),
            "gpu_count": 12,
            "hourly_amount": Decimal("0.5"),
            "upfront_amount": Decimal(480_000),
        },
    ]
    return chunk((CommitmentRecorded, [common | row for row in rows]))


def use() -> Chunk:
    """The bill of September says that of 11,520 committed 10,000 were used, for GPU time of 17,500 on demand."""
    common = {
        "content_id": "plan-use",
        "issuer": "Acme",
        "provider": "Acme",
        "billing_account_id": "456",
        "billing_period_month": SEEN.date(),
        "currency": "USD",
    }
    line = common | {
        "line_ordinal": 1,
        "charge_category": "Usage",
        "charge_period_start_at": SEEN,
        "charge_period_end_at": START,
        "pricing_category": "Committed",
        "commitment_discount_id": "arn:acme:plans/abcdef",
        "billed_amount": Decimal(0),
    }
    lines = [
        line
        | {
            "line_digest": status,
            "commitment_discount_status": status,
            "effective_amount": Decimal(amount),
            "list_amount": Decimal(listed),
        }
        for status, amount, listed in (("Used", 10_000, 17_500), ("Unused", 1_520, 1_520))
    ]
    bill = common | {"line_count": 2, "billed_amount": Decimal(0), "effective_amount": Decimal(11_520)}
    return chunk((ChargeBilled, lines), (BillDelivered, [bill]))


def interruptions() -> Chunk:
    """Every third day the run of account vision is interrupted half an hour before it ends; it saves its work each hour."""
    ended, saved = [], []
    for number in range(0, 90, 3):
        run, start = str(1000 + 10 * number), datetime(2026, 7, 1, 1, tzinfo=UTC) + timedelta(days=number)
        ended.append(
            {
                "cluster": "alpha",
                "run_id": run,
                "started_at": start,
                "interrupted_at": start + timedelta(hours=5.5),
                "cause": "spot_reclaimed",
            }
        )
        saved += [
            {
                "cluster": "alpha",
                "run_id": run,
                "saved_at": start + timedelta(hours=hour),
                "blocking_seconds": 240 + hour,
            }
            for hour in range(1, 5)
        ]
    return chunk((RunInterrupted, ended), (CheckpointSaved, saved))


WINDOW = {"starts_at": START, "ends_at": END}
BOUGHT = {
    "line_kind": "purchase",
    "offer_id": "acme/reserved/1y",
    "pool": "h100",
    "gpu_count": 8,
    "cost_micros": 240_000 * MICROS,
    "upfront_micros": 0,
    "committed_micros": 245_280 * MICROS,
    "break_even_ratio": 0.5,
    "used_ratio": 0.8,
    "reason": "the last GPU is used in 80.0% of the hours and pays from 50.0% on",
}
LINES = [
    BOUGHT,
    {"line_kind": "held", "cost_micros": 100_000 * MICROS, "reason": "falls due"},
    {
        "line_kind": "on_demand",
        "pool": "h100",
        "gpu_hours_quantity": Decimal(10_000),
        "cost_micros": 70_000 * MICROS,
        "reason": "nothing cheaper covers",
    },
]
SAVINGS = [
    ("all_on_demand", 800_000, 390_000, 300_000, 450_000),
    ("nothing_new", 430_000, 20_000, -5_000, 60_000),
]
NOTES = [
    ("warning", None, None, "the price of acme/plan/1y is old"),
    ("assumption", "discount_ratio", "0.08", "cost of capital a year"),
    ("assumption", "spot_goodput_ratio", "0.75", "useful part of a spot GPU-hour"),
]
STRESSES = [
    ("demand falls by 30%", 350_000_000_000, 300_000_500_000),
    ("spot cannot be had", 400_000_000_000, 460_000_000_000),
]


def plan() -> Chunk:
    made = {
        "plan_id": PLAN,
        "made_at": datetime(2026, 10, 2, tzinfo=UTC),
        "inputs_digest": PLAN,
        "log_batch_id": 10,
        "policy_digest": "p",
        "horizon_start_at": START,
        "horizon_end_at": END,
        "seed": 7,
        "scenario_count": 10,
        "expected_cost_micros": 410_000 * MICROS,
        "cvar_cost_micros": 500_000 * MICROS,
        "objective_cost_micros": 410_000 * MICROS,
        "bound_cost_micros": 405_900 * MICROS,
        "repriced_cost_micros": 410_000 * MICROS + 20_000,
        "solved_by": "order statistics",
        "prices_from_at": SEEN,
        "prices_until_at": SEEN + timedelta(days=20),
    }
    return chunk(
        (PlanRecommended, [made]),
        (
            PlanLineRecommended,
            [{"plan_id": PLAN, "line": number} | WINDOW | line for number, line in enumerate(LINES, start=1)],
        ),
        (
            PlanSavingEstimated,
            [
                {
                    "plan_id": PLAN,
                    "baseline": name,
                    "baseline_cost_micros": cost * MICROS,
                    "saving_micros": saving * MICROS,
                    "low_micros": low * MICROS,
                    "high_micros": high * MICROS,
                }
                for name, cost, saving, low, high in SAVINGS
            ],
        ),
        (
            PlanNoted,
            [
                {"plan_id": PLAN, "note": number, "note_kind": kind, "setting": setting, "value": value, "text": text}
                for number, (kind, setting, value, text) in enumerate(NOTES, start=1)
            ],
        ),
        (
            PlanStressEstimated,
            [
                {"plan_id": PLAN, "world": world, "cost_micros": cost, "without_micros": without}
                for world, cost, without in STRESSES
            ],
        ),
    )


def everything() -> list[tuple[str, Chunk]]:
    """All batches, with their sources."""
    return [
        ("prices", prices()),
        ("commitments", commitments()),
        ("focus", use()),
        ("interruptions", interruptions()),
        ("plan", plan()),
    ]
