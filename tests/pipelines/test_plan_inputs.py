"""What a plan is made from: the published file at one instant, and a message for each thing that it cannot tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from models.errors import UsageError
from pipelines.plan_inputs import read_inputs
from pipelines.plan_settings import read_plan_settings
from pipelines.publish import query
from tests.ledgers import append, at, gpus, home, node, run
from tests.plans import FIRST, IDLE, LAST, MODEL, PLAN, brought_up, commitment, ledger, price, write_plan

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.plan_inputs import Inputs
    from pipelines.settings import Settings
    from tests.ledgers import Fact

BERLIN = ZoneInfo("Europe/Berlin")
CAME = at(20, month=10)
ANDES = {**PLAN["pools"]["h100"], "demand": [{"cluster": "andes", "gpu_model": MODEL}]}


def inputs(settings: Settings, at: datetime | None = None, **changes: Any) -> Inputs:
    """Inputs of the settings with changes."""
    path = write_plan(settings.home, **changes)
    return read_inputs(partial(query, settings), read_plan_settings(path), at=at)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return ledger(tmp_path_factory.mktemp("books"))


@pytest.fixture(scope="module")
def fuller(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """With more clusters, prices and commitments."""
    return ledger(
        tmp_path_factory.mktemp("fuller"),
        *in_cluster("andes", run("a", "web", CAME, LAST, gpus("a1", 2, MODEL), submitted_at=CAME, qos="serve")),
        *in_cluster("fuji", run("f", "web", CAME, CAME + timedelta(days=1), gpus("f1", 2, MODEL))),
        *in_cluster("fuji", node("f1", 2, MODEL, start=FIRST)),
        price("early", "on_demand", "12", observed_at=at(2, month=10)),
        price("yen", "on_demand", "100", currency="JPY"),
        commitment("r-3", starts_at=at(1, month=12), state="queued", offer_id="reserved"),
        commitment("r-2", starts_at=at(1, 9, month=12), state="queued", offer_id="reserved"),
        commitment("r-4", starts_at=at(1, month=12), state="cancelled", offer_id="reserved"),
        commitment("r-5", ends_at=CAME, offer_id="reserved"),
        commitment("r-6", ends_at=CAME, offer_id="reserved"),
    )


def in_cluster(name: str, facts: list[Fact]) -> list[Fact]:
    """The same facts of another cluster."""
    return [(event, {**fact, "cluster": name} if "cluster" in fact else fact) for event, fact in facts]


def test_all_that_is_known_is_read_up_to_its_end(books: Settings) -> None:
    """34 days of 4 GPUs at all hours, and 8 for 12 hours of each of the 24 working days that were worked."""
    found = inputs(books)
    assert (found.at, found.history.start_at) == (LAST, FIRST)
    assert {name: wanted.sum() for name, wanted in found.history.gpus.items()} == {
        "inference": 34 * 24 * 4,
        "deferrable": 24 * 12 * 8,
    }
    assert found.scenarios.gpus["inference"].shape == (3, 2 * 730, 1)
    assert [one.offer_id for one in found.offers] == ["on_demand", "reserved", "spot"]
    assert [(one.commitment_id, one.gpus) for one in found.portfolio] == [("r-1", 2)]
    assert found.basis == "demand is drawn from 35 days, 2026-10-01 to 2026-11-05"
    assert found.notes == ()


def test_only_the_asked_days_are_looked_back_on(books: Settings) -> None:
    found = inputs(books, demand={"look_back_days": 7})
    assert (found.history.start_at, found.history.total().shape) == (LAST - timedelta(days=7), (1, 7 * 24, 1))


def test_nothing_is_committed_beyond_what_was_wanted_lately(books: Settings) -> None:
    """On 31 October, a Saturday, the last working hour was on Friday evening."""
    saturday = at(31, 20, month=10)
    assert inputs(books, saturday, demand={"recent_days": 1}).recent_gpus == {"h100": 4.0}
    assert inputs(books, saturday, demand={"recent_days": 2}).recent_gpus == {"h100": 12.0}
    announced = [{"pool": "h100", "workload_class": "rigid", "gpus": 8}]
    assert inputs(books, demand={"recent_days": 1, "ramps": announced}).recent_gpus == {}


def test_hours_are_whole_over_a_change_of_clocks(books: Settings) -> None:
    """In Berlin Sunday 25 October has 25 hours, of which the one from 2 to 3 o'clock comes twice: 0 and 1 o'clock UTC."""
    morning = datetime(2026, 10, 26, 8, tzinfo=BERLIN)
    found = inputs(books, morning, demand={"look_back_days": 2})
    assert (found.at, found.history.total().shape) == (at(26, 7, month=10), (1, 48, 1))
    assert found.history.total().sum() == 48 * 4
    twice = [inputs(books, datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=BERLIN)) for fold in (0, 1)]
    assert [one.at for one in twice] == [at(25, 0, month=10), at(25, 1, month=10)]
    assert twice[1].history.total().shape[1] == twice[0].history.total().shape[1] + 1


def test_prices_and_commitments_are_those_in_force_then(fuller: Settings) -> None:
    """The prices of 20 October are not known on the 19th; what is queued for December is."""
    found = inputs(fuller, at(19, month=10))
    assert [one.offer_id for one in found.offers] == ["early"]
    assert [(one.commitment_id, one.is_queued) for one in found.portfolio] == [
        ("r-1", False),
        ("r-2", True),
        ("r-3", True),
        ("r-5", False),
        ("r-6", False),
    ]


def test_a_stale_price_counts_and_is_warned_of(books: Settings) -> None:
    found = inputs(books, prices={"max_age_days": 15})
    assert len(found.offers) == 3
    assert found.notes[0] == (
        "on_demand: its price was observed on 2026-10-20, 16 days before the plan (at most 15 are expected): observe it again"
    )
    assert [one.offer_id for one in inputs(books, prices={"without": ["spot"]}).offers] == ["on_demand", "reserved"]


def test_what_a_reader_must_know_of_the_inputs_is_said(fuller: Settings) -> None:
    """On the only day of the third cluster 48 of 240 GPU-hours, its own, are of no class and asked for nobody knows when."""
    fuji = {**ANDES, "demand": [{"cluster": "fuji", "gpu_model": MODEL}]}
    found = inputs(fuller, pools={**PLAN["pools"], "fuji": fuji})
    assert found.basis == "demand is drawn from 1 day, 2026-10-20 to 2026-10-21"
    assert "yen" not in [one.offer_id for one in found.offers]
    assert found.notes == (
        "20.0% of the GPU-hours wanted are of no workload class, so they count as rigid: set policy workload_class",
        "of 20.0% of the GPU-hours it is not known when they were asked for: what waited in the queue is not in their demand",
        "yen: left out, its price is not known in the reporting currency: ingest the exchange rate",
        (
            "r-2, r-3: commitments of one offer, reserved, begin and end together: if they are one purchase recorded twice, record "
            "the surplus as cancelled, or it counts twice"
        ),
    )


def test_history_is_of_the_days_in_which_all_clusters_are_known(fuller: Settings) -> None:
    """The second cluster came on 20 October and says nothing of the time before it."""
    both = inputs(fuller, pools={**PLAN["pools"], "andes": ANDES})
    assert (both.history.start_at, both.at) == (CAME, LAST)
    assert both.basis == "demand is drawn from 16 days, 2026-10-20 to 2026-11-05"
    assert inputs(fuller).history.start_at == FIRST


def test_the_digest_is_of_the_content_not_of_the_batch(books: Settings) -> None:
    found = inputs(books)
    assert inputs(books).digest() == found.digest()
    assert replace(found, log_batch_id=99, notes=("other words",)).digest() == found.digest()
    offer = found.offers[0]
    for changed in (
        {"at": found.at + timedelta(hours=1)},
        {"offers": (replace(offer, micros_per_gpu_hour={"h100": 9_999_999}), *found.offers[1:])},
        {"offers": found.offers[1:]},
        {"portfolio": []},
        {"recent_gpus": {"h100": 1.0}},
        {"pools": [replace(found.pools[0], node_gpus=8)]},
        {"scenarios": replace(found.scenarios, seed=8)},
        {"policy_digest": "other"},
    ):
        assert replace(found, **changed).digest() != found.digest(), changed


@pytest.mark.parametrize(
    ("when", "changes", "complaint"),
    [
        (FIRST, {}, "no demand is known before 2026-10-01 00:00 UTC: the pools' runs begin on 2026-10-01"),
        (at(1), {}, "no demand is known before 2026-09-01 00:00 UTC"),
        (at(1, 1, month=10), {}, "the history has 1 hours, expected 24 or more: look back further"),
        (IDLE + timedelta(days=1), {"demand": {"look_back_days": 1}}, "the history wants no GPU in any hour"),
        (LAST + timedelta(hours=1), {}, "alps: its runs are known from 2026-10-01 to 2026-11-04"),
        (
            None,
            {"pools": {"andes": ANDES}},
            "andes: nobody is known to have held its GPUs: ingest its runs, build and publish",
        ),
        (
            None,
            {"pools": {**PLAN["pools"], "again": PLAN["pools"]["h100"]}},
            "alps/H100-80GB named more than once: its demand would count twice",
        ),
    ],
)
def test_a_history_that_nothing_can_be_drawn_from(
    books: Settings, when: datetime | None, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        inputs(books, when, **changes)
    assert complaint in str(refused.value)


def test_a_ledger_without_runs_has_no_demand(tmp_path: Path) -> None:
    settings = home(tmp_path)
    append(settings, *node("n1", 8, MODEL, start=FIRST))
    brought_up(settings)
    with pytest.raises(
        UsageError, match="alps: nobody is known to have held its GPUs: ingest its runs, build and publish"
    ):
        inputs(settings)
