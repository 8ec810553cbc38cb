"""The weekly plan in Dagster: made from what is published, recorded once, and published with its lines."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pytest
from dagster import DagsterInstance, build_schedule_context

from models.events import PriceObserved
from pipelines.build import build
from pipelines.definitions import definitions
from pipelines.publish import publish, query
from pipelines.settings import Settings
from tests.dagster_runs import execute, failure, ledger, made
from tests.ledgers import append, at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN_YAML = """
pools:
  a100:
    gpu_model: A100-40GB
    provider: aws
    region: us-east-1
    node_gpus: 1
    demand: [{cluster: alps, gpu_model: A100-40GB}]
demand: {horizon_months: 1, scenarios: 2, recent_days: null}
policy: {later_use_ratio: 1, discount_ratio: 0}
"""


def price(
    offer_id: str, instrument: str, hourly: str, term_seconds: int | None = None
) -> tuple[type, dict[str, object]]:
    """A price of one A100 in us-east-1."""
    return (
        PriceObserved,
        {
            "offer_id": offer_id, "gpu_model": "A100-40GB", "region": "us-east-1", "zone": "", "observed_at": at(1),
            "instrument": instrument, "provider": "aws", "gpu_count": 1, "scope": "region", "has_capacity": False,
            "term_seconds": term_seconds, "hourly_amount": Decimal(hourly), "currency": "USD", "price_source": "a test",
        },
    )  # fmt: skip


@pytest.fixture
def records(tmp_path: Path) -> Iterator[DagsterInstance]:
    with DagsterInstance.local_temp(str(tmp_path)) as one:
        yield one


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A ledger in which one A100 of two was held for two days of three, with prices."""
    found = ledger(tmp_path / "ledger")
    append(found, price("od", "on_demand", "4"), price("reserved", "reserved", "2", 31_536_000))
    build(found)
    publish(found)
    return found


def test_a_plan_is_recorded_once_and_published(settings: Settings, records: DagsterInstance) -> None:
    (settings.home / "plan.yaml").write_text(PLAN_YAML)
    first = made(execute(settings, "weekly_plan", records))["decisions.plan"]
    ask = partial(query, settings)
    assert first["recorded"] == "by this run"
    # Two thirds of the hours want one GPU; reserved at half the price pays from one half of the hours on.
    assert ask("select line_kind, gpu_count, break_even_ratio from marts.plan_line").rows() == [("purchase", 1, 0.5)]
    assert ask("select plan_id, is_latest, expected_cost from marts.plan").rows() == [
        (first["plan_id"], True, Decimal("1460.000000"))  # one GPU at 2 an hour for 730 hours
    ]
    again = made(execute(settings, "weekly_plan", records))["decisions.plan"]
    assert (again["plan_id"], again["recorded"]) == (
        first["plan_id"],
        "by an earlier run: its inputs have not changed",
    )


def test_a_plan_that_cannot_be_made_says_why(settings: Settings, records: DagsterInstance) -> None:
    (settings.home / "plan.yaml").write_text(PLAN_YAML.replace("us-east-1", "eu-west-9"))
    assert "no price of any instrument for a100: ingest prices" in failure(execute(settings, "weekly_plan", records))


def test_nobody_is_planned_for_who_did_not_ask(tmp_path: Path, settings: Settings) -> None:
    def tick(home: Settings) -> str:
        context = build_schedule_context(scheduled_execution_time=at(7))
        found = definitions(home).resolve_schedule_def("weekly_plan_schedule")(context)
        return getattr(found, "skip_message", None) or found.run_key

    assert tick(settings).startswith("there is no plan.yaml")
    (settings.home / "plan.yaml").write_text(PLAN_YAML)
    assert tick(settings) == "2026-09-07"
    empty = Settings(tmp_path / "empty")
    empty.home.mkdir()
    (empty.home / "plan.yaml").write_text(PLAN_YAML)
    assert tick(empty).startswith("nothing is published yet")
