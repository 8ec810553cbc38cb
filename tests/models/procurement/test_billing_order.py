from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.errors import UsageError
from models.prices import Instrument, Scope
from models.procurement.billing_order import BilledCommitment, Kind, Size, application_order, aws_size, sizes_reached

START = datetime(2026, 3, 2, tzinfo=UTC)
PLAN = BilledCommitment(
    commitment_id="sp",
    provider="aws",
    instrument=Instrument.SAVINGS_PLAN,
    scope=Scope.GLOBAL,
    starts_at=START,
    ends_at=START + timedelta(days=365),
    rates={"x": 4, "y": 3},
    hourly_commitment_micros=10,
)

# EC2 user guide, apply_ri.html, "Instance size flexibility determined by normalization factor".
FACTORS = {
    "nano": 0.25,
    "micro": 0.5,
    "small": 1,
    "medium": 2,
    "large": 4,
    "xlarge": 8,
    "2xlarge": 16,
    "3xlarge": 24,
    "4xlarge": 32,
    "6xlarge": 48,
    "8xlarge": 64,
    "9xlarge": 72,
    "10xlarge": 80,
    "12xlarge": 96,
    "16xlarge": 128,
    "18xlarge": 144,
    "24xlarge": 192,
    "32xlarge": 256,
    "56xlarge": 448,
    "112xlarge": 896,
}


@pytest.mark.parametrize(("size", "factor"), FACTORS.items())
def test_a_size_has_awss_normalisation_factor(size: str, factor: float) -> None:
    assert aws_size(f"m5.{size}").points == 4 * factor


@pytest.mark.parametrize("size", ["metal", "xxlarge", ""])
def test_a_size_without_a_factor_is_refused(size: str) -> None:
    with pytest.raises(UsageError, match="expected nano to xlarge"):
        aws_size(f"m5.{size}")


@pytest.mark.parametrize("family", ["g4ad", "g4dn", "g5", "g5g"])
def test_some_gpu_families_are_not_flexible(family: str) -> None:
    assert not aws_size(f"{family}.xlarge").is_flexible
    assert aws_size("g6.xlarge").is_flexible


@pytest.mark.parametrize(
    ("platform", "tenancy"), [("Windows", "default"), ("RHEL", "default"), ("Linux/UNIX", "dedicated")]
)
def test_only_linux_with_default_tenancy_is_flexible(platform: str, tenancy: str) -> None:
    assert not aws_size("m5.xlarge", platform=platform, tenancy=tenancy).is_flexible


def test_a_reservation_reaches_the_flexible_sizes_of_its_family() -> None:
    sizes = {name: aws_size(name) for name in ("m5.large", "m5.xlarge", "m4.large", "g5.xlarge", "g5.2xlarge")}
    sizes["m5.large Windows"] = Size(family="m5", points=16, is_flexible=False)
    assert sizes_reached("m5.xlarge", sizes, Scope.REGION) == {"m5.large": 16, "m5.xlarge": 32}
    assert sizes_reached("m5.xlarge", sizes, Scope.ZONE) == {"m5.xlarge": 32}
    assert sizes_reached("g5.2xlarge", sizes, Scope.REGION) == {"g5.2xlarge": 64}


def test_a_saving_that_is_unknown_goes_last() -> None:
    kinds = [Kind(resource="x"), Kind(resource="y")]
    order = application_order([PLAN], kinds, [5, None])
    assert [kinds[pair.kind].resource for pair in order] == ["x", "y"]
    # With a price, y saves 40 % and x 20 %.
    assert [pair.kind for pair in application_order([PLAN], kinds, [5, 5])] == [1, 0]


def test_savings_are_compared_exactly() -> None:
    # 1 - 3/10 and 1 - 300,000,000,000,000,001 / 10**18 are one number in floating point.
    plan = replace(PLAN, rates={"x": 3, "y": 3 * 10**17 + 1})
    kinds = [Kind(resource="y"), Kind(resource="x")]
    assert [pair.kind for pair in application_order([plan], kinds, [10**18, 10])] == [1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units_millionths": 1}, "sp: expected either units or money each hour, found both or neither"),
        ({"hourly_commitment_micros": None}, "found both or neither"),
        ({"hourly_commitment_micros": -1}, "sp: found an amount of -1, expected none below 0"),
        ({"rates": {"x": -2}}, "found an amount of -2"),
        ({"upfront_micros": -3}, "found an amount of -3"),
        ({"ends_at": START}, "expected after its start"),
    ],
)
def test_a_commitment_that_cannot_be_priced_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(PLAN, **change)


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        ({}, True),
        ({"account": "A", "is_shared": False}, False),
        ({"account": "B", "is_shared": False}, True),
        ({"region": "eu"}, False),
        ({"region": "us", "zone": "us-a"}, True),
        ({"zone": "us-b"}, False),
        ({"rates": {"y": 1}}, False),
    ],
)
def test_a_commitment_reaches_what_its_scope_says(change: dict[str, Any], reached: bool) -> None:
    kind = Kind(account="B", resource="x", region="us", zone="us-a")
    assert replace(PLAN, **change).reaches(kind) is reached


def test_idle_capacity_takes_no_zonal_discount() -> None:
    idle = Kind(resource="x", is_idle=True)
    assert PLAN.reaches(idle)
    assert not replace(PLAN, scope=Scope.ZONE).reaches(idle)
    assert not replace(PLAN, instrument=Instrument.CAPACITY_BLOCK).reaches(idle)
