"""The demo lives through its deliveries on their own timeline, so that its books tell the story of a restated bill."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from examples.organisation import Delivery
from models.errors import UsageError
from pipelines import demo
from pipelines.plan_settings import read_plan_settings
from pipelines.publish import query
from pipelines.statement import read_proof, read_statement
from tests.deliveries import write
from tests.ledgers import START, append, home, owner

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Settings

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)


def deliveries(folder: Path) -> list[Delivery]:
    """A bill for September, restated the day after its close, and one for October."""

    def come(kind: str, name: str, month: int, day: int, **about: str) -> Delivery:
        return Delivery(kind, (folder / name,), datetime(2026, month, day, 9, tzinfo=UTC), about)

    return [
        come("focus", "bill-10.csv", 11, 2),
        come("nodes", "nodes.csv", 9, 1),
        come("org", "org.csv", 9, 1),
        come("slurm", "sacct.txt", 10, 4, cluster="alps", timezone="UTC"),
        come("slurm", "sacct-11.txt", 11, 1, cluster="alps", timezone="UTC"),
        come("focus", "bill-09.csv", 10, 2),
        come("focus", "bill-09-restated.csv", 10, 6),
    ]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The demo's ledger, of a very small company."""
    folder = tmp_path_factory.mktemp("demo")
    settings = home(folder / "home")
    demo.fill(settings, deliveries(write(folder)))
    return settings


def test_each_delivery_is_recorded_when_it_came_and_each_month_closed_in_its_turn(lived: Settings) -> None:
    batches = query(lived, "select source, strftime(recorded_at, '%m-%d') from marts.batches order by batch_id").rows()
    assert batches == [
        ("nodes", "09-01"),
        ("org", "09-01"),
        ("focus", "10-02"),
        ("slurm", "10-04"),
        ("close", "10-05"),
        ("focus", "10-06"),
        ("slurm", "11-01"),
        ("focus", "11-02"),
        ("close", "11-05"),
    ]


def test_the_restated_bill_is_a_correction_in_october(lived: Settings) -> None:
    ask = partial(query, lived)
    september, october = read_statement(ask, SEPTEMBER), read_statement(ask, OCTOBER)
    assert september.total() == Decimal("103.51")
    corrections = october.lines.filter(october.lines["line_kind"] == "correction")
    assert corrections["cost"].sum() == Decimal(-10)
    assert corrections["charge_month"].unique().to_list() == [SEPTEMBER]
    assert {read_proof(ask, month)[0].difference_micros for month in (SEPTEMBER, OCTOBER)} == {0}


def test_it_prints_each_month_with_its_proof(lived: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    demo.show_books(lived)
    out = capsys.readouterr().out
    assert all(
        words in out for words in ("September 2026", "October 2026", "as closed: billed 103.51", "Findings: 0 error")
    )


def test_what_the_company_plans_for_is_laid_down_once(lived: Settings) -> None:
    path = demo.write_plan(lived)
    settings = read_plan_settings(path)
    assert [pool.gpu_model for pool in settings.plan_pools()] == ["H100-80GB", "A100-80GB", "A100-40GB"]
    path.write_text("changed by hand")
    assert demo.write_plan(lived).read_text() == "changed by hand"


def test_a_ledger_with_facts_is_left_alone(tmp_path: Path) -> None:
    settings = home(tmp_path)
    append(settings, *owner("vis", "vision"), recorded=START)
    with pytest.raises(UsageError, match="holds facts already: set GPULEDGER_HOME to another folder"):
        demo.run(settings)
    assert not (tmp_path / "demo-files").exists()
