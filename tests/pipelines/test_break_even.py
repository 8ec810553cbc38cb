"""The file of a break-even's inputs: read whole, or refused with one message that names file, key, found and expected."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from models.break_even_inputs import Shape
from models.errors import UsageError
from pipelines.break_even import read_inputs
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "break-even.yaml"
ABSENT = object()


def written(folder: Path, **changes: Any) -> Path:
    """The example with other values; ``ABSENT`` takes the key out."""
    found = yaml.safe_load(EXAMPLE.read_text()) | changes
    path = folder / "costs.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in found.items() if value is not ABSENT}))
    return path


def comparator(**changes: Any) -> dict[str, Any]:
    stated = {
        "name": "a",
        "price_per_gpu_hour": 1,
        "is_committed": True,
        "source": "s",
        "observed_at": date(2026, 7, 1),
    }
    return {key: value for key, value in (stated | changes).items() if value is not ABSENT}


def span(**changes: Any) -> dict[str, Any]:
    return {"low": 1, "high": 10**6, "shape": "uniform", "source": "s", "as_of": "2026"} | changes


def test_the_example_is_read_as_it_says() -> None:
    found = read_inputs(EXAMPLE)
    assert (found.currency, found.gpus_per_node, found.purchase_per_node) == ("USD", 8, 320_000)
    assert found.utilisations == (1.0, 0.85, 0.7, 0.5)
    assert [one.price_per_gpu_hour for one in found.comparators] == [6.88, 5.19, 4.86, 2.95, 2.35, 2.20, 1.70]
    assert found.comparators[0].observed_at == date(2026, 7, 20)
    assert found.ranges["residual_ratio"].shape is Shape.UNIFORM
    assert found.measured_node_watts is None


def test_the_figures_of_the_example_are_those_of_its_sources(shared_data: Path) -> None:
    sources = (shared_data / "prices" / "owned_and_colo_assumptions.csv").read_text()
    found = read_inputs(EXAMPLE)
    assert f"{found.colo_per_kilowatt_month},USD/kW/month" in sources
    assert f"{found.nameplate_kilowatts},kW/node" in sources
    purchase = found.ranges["purchase_per_node"]
    assert f"{purchase.low}-{purchase.high},USD/node" in sources
    assert "1.70 / 2.35,USD/GPU-h" in sources


def test_ranges_and_upfront_offers_may_be_left_out(tmp_path: Path) -> None:
    found = read_inputs(written(tmp_path, ranges=ABSENT, upfront_offers=ABSENT))
    assert (found.ranges, found.upfront_offers) == ({}, ())


def test_measured_watts_are_of_the_node_or_of_its_boards_and_its_host(tmp_path: Path) -> None:
    assert read_inputs(written(tmp_path, measured_node_watts=6_260)).measured_node_watts == 6_260
    boards = written(tmp_path, measured_board_watts=520, host_watts=2_100)
    assert read_inputs(boards).measured_node_watts == 6_260


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"currency": ABSENT}, "currency: expected a text that is not empty; found nothing"),
        ({"currency": "USX"}, "currency: expected a code of ISO 4217 such as USD; found USX"),
        ({"currency": "usd"}, "currency: expected a code of ISO 4217 such as USD; found usd"),
        ({"purchase_per_node": ABSENT}, "purchase_per_node: expected a number above 0; found nothing"),
        ({"purchase_per_node": -5}, "purchase_per_node: expected a number above 0; found -5"),
        ({"purchase_per_node": "320,000"}, "purchase_per_node: expected a number above 0; found 320,000"),
        ({"purchase_per_node": True}, "purchase_per_node: expected a number above 0; found True"),
        ({"purchase_per_node": float("nan")}, "purchase_per_node: expected a number above 0; found nan"),
        ({"purchase_per_nod": 1}, "did you mean purchase_per_node?"),
        ({"gpus_per_node": 7.5}, "gpus_per_node: expected a number of at least 1, whole; found 7.5"),
        ({"residual_ratio": 30}, "residual_ratio: expected a number of at least 0 and at most 1; found 30"),
        ({"discount_ratio": 10}, "discount_ratio: expected a number of at least 0 and at most 1; found 10"),
        ({"power_usage_effectiveness": 0.9}, "power_usage_effectiveness: expected a number of at least 1; found 0.9"),
        ({"utilisations": [0.5, 0]}, "utilisations 2: expected_utilisation: expected a number above 0 and at most 1"),
        ({"utilisations": [1.01]}, "expected a number above 0 and at most 1; found 1.01"),
        ({"utilisations": []}, "utilisations: expected a list of delivered parts of all GPU-hours, at least one"),
        ({"utilisations": [0.5, 0.5]}, "utilisations: expected each once; found 0.5 twice"),
        ({"comparators": []}, "comparators: expected a list of comparators, at least one; found []"),
        ({"comparators": ABSENT}, "comparators: expected a list of comparators, at least one; found nothing"),
        ({"comparators": [comparator(price_per_gpu_hour=-2)]}, "comparators 1: price_per_gpu_hour: expected a number"),
        ({"comparators": [comparator(), comparator()]}, "comparators: expected each once; found a twice"),
        ({"comparators": [comparator(source=ABSENT)]}, "comparators 1: source: expected a text that is not empty"),
        (
            {"comparators": [comparator(observed_at="July")]},
            "observed_at: expected a date such as 2026-07-30; found July",
        ),
        ({"comparators": [comparator(is_committed="yes")]}, "is_committed: expected true or false; found yes"),
        ({"comparators": [comparator(region="x")]}, "comparators 1: region: expected one of the keys"),
        ({"comparators": ["AWS"]}, "comparators 1: expected keys with values"),
        (
            {"ranges": {"purchase_per_node": span(high=2)}},
            "expected low and high around the stated 320000; found 1 to 2",
        ),
        (
            {"ranges": {"purchase_per_node": span(shape="normal")}},
            "shape: expected triangular or uniform; found normal",
        ),
        ({"ranges": {"purchase_per_node": span(source=" ")}}, "source: expected a text that is not empty"),
        ({"ranges": {"gpus_per_node": span()}}, "ranges: gpus_per_node: expected one of the keys"),
        ({"ranges": {"measured_node_watts": span()}}, "ranges: measured_node_watts: expected one of the keys"),
        ({"measured_node_watts": 7_000, "ranges": {"load_ratio": span(low=0, high=1)}}, "ranges: load_ratio: expected"),
        ({"measured_board_watts": 500}, "host_watts: expected a number above 0; found nothing"),
        ({"measured_node_watts": 7_000, "host_watts": 2_000}, "measured_board_watts with host_watts; found both"),
        ({"upfront_offers": [{"name": "p4d"}]}, "upfront_offers 1: term_years: expected a number"),
    ],
)
def test_what_is_missing_unknown_or_impossible_is_refused(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(UsageError) as refused:
        read_inputs(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "expected keys with values: "),
        (b"- 1\n", "expected keys with values: "),
        (b"currency: [USD\n", "expected YAML, found"),
        (b"currency: \xff\n", "expected YAML, found"),
        (b"currency: 2026-13-45\n", "expected YAML, found"),
    ],
)
def test_what_is_no_file_of_inputs_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "costs.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"costs\.yaml: ") as refused:
        read_inputs(path)
    assert complaint in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml: cannot be read: No such file"):
        read_inputs(tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_inputs(tmp_path)
