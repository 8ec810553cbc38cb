"""``plan.yaml``: every key reaches the planner, and what means nothing is refused with its place."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from models.errors import UsageError
from models.prices import Pool
from models.procurement.policy import PlanPolicy
from models.scenarios import Growth, Migration, Ramp
from pipelines.demand import Origin
from pipelines.plan_settings import PLAN_TEMPLATE, DemandSettings, PlanSettings, read_plan_settings
from tests.ledgers import at
from tests.plans import PLAN, write_plan

if TYPE_CHECKING:
    from pathlib import Path

ASKED: dict[str, tuple[Any, Any]] = {
    "discount_ratio": (0.05, 0.05),
    "later_use_ratio": (0.5, 0.5),
    "start_months": ([0, 3], (0, 3)),
    "spot_share_ratio": ({"dev": 0.4}, {"dev": 0.4}),
    "spot_goodput_ratio": (0.7, 0.7),
    "spot_gpus": ({"h100": 3}, {"h100": 3}),
    "on_demand_gpus": ({"h100": 5}, {"h100": 5}),
    "shortfall_factor": (2, 2),
    "inference_availability_ratio": (0.99, 0.99),
    "inference_spare_nodes": (2, 2),
    "power_cap_watts": (9_000, 9_000),
    "power_usage_effectiveness": (1.2, 1.2),
    "energy_micros_per_kwh": ("0.123456", 123_456),
    "budget_micros": (1_000, 1_000_000_000),
    "exposure_micros": ("0.000001", 1),
    "ladder_ratio": (0.25, 0.25),
    "tail_weight_ratio": (0.3, 0.3),
    "tail_level_ratio": (0.9, 0.9),
    "whole_nodes": (False, False),
}
"""Of each field of the policy: what stands in the file, and what the planner reads. No value is a default."""


def read(folder: Path, **changes: Any) -> PlanSettings:
    return read_plan_settings(write_plan(folder, **changes))


def test_every_field_of_the_policy_can_be_said_in_the_file(tmp_path: Path) -> None:
    assert {one.name for one in fields(PlanPolicy)} == set(ASKED)
    said = {name.replace("_micros", "_amount"): value for name, (value, _) in ASKED.items()}
    found = read(tmp_path, policy=said).plan_policy()
    assert {name: getattr(found, name) for name in ASKED} == {name: value for name, (_, value) in ASKED.items()}
    assert all(getattr(PlanPolicy(), name) != value for name, (_, value) in ASKED.items())


def test_what_is_not_said_is_the_policys_own_default(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"pools": PLAN["pools"]}))
    assert read_plan_settings(path).plan_policy() == PlanPolicy()


@given(st.integers(0, 10**15))
def test_an_amount_becomes_the_same_number_of_micros(amount_micros: int) -> None:
    amount = str(Decimal(amount_micros).scaleb(-6))
    found = PlanSettings.model_validate({**PLAN, "policy": {"budget_amount": amount, "energy_amount_per_kwh": amount}})
    assert (found.plan_policy().budget_micros, found.plan_policy().energy_micros_per_kwh) == (amount_micros,) * 2


def test_pools_and_their_demand_are_named_as_the_ledger_names_them(tmp_path: Path) -> None:
    about = {**PLAN["pools"]["h100"], "gpu_model": "NVIDIA H100 80GB HBM3", "zone": "us-east-1a", "node_gpus": 8}
    demand = [{"cluster": "alps", "gpu_model": "NVIDIA H100 80GB HBM3"}, {"cluster": "andes", "gpu_model": "X9"}]
    found = read(tmp_path, pools={"h100": {**about, "other_providers": ["own"], "demand": demand}})
    assert found.plan_pools() == [
        Pool(
            name="h100",
            gpu_model="H100-80GB",
            provider="aws",
            region="us-east-1",
            zone="us-east-1a",
            node_gpus=8,
            other_providers=("own",),
        )
    ]
    assert found.origins() == {"h100": (Origin("alps", "H100-80GB"), Origin("andes", "X9"))}


def test_what_is_announced_is_counted_from_the_start_of_the_horizon(tmp_path: Path) -> None:
    """A month of the horizon has 730 hours. Two GPUs of the new pool do the work of one of the old."""
    pool = PLAN["pools"]["h100"]
    found = read(
        tmp_path,
        pools={"h100": pool, "b200": {**pool, "demand": [{"cluster": "andes", "gpu_model": "B200"}]}},
        demand={
            "growth": {"rigid": [-0.1, 0.1, 0.4]},
            "ramps": [
                {"pool": "h100", "workload_class": "rigid", "gpus": 16, "start_month": 1, "full_month": 3},
                {"pool": "h100", "workload_class": "dev", "gpus": 2, "start_month": 2},
            ],
            "migrations": [
                {"pool": "h100", "to_pool": "b200", "start_month": 1, "end_month": 2, "to_gpus_per_gpu": 2.0}
            ],
        },
    ).outlook(at(1))
    month = timedelta(hours=730)
    assert found.growth == {"rigid": Growth(low_ratio=-0.1, mode_ratio=0.1, high_ratio=0.4)}
    assert found.ramps == (
        Ramp(workload_class="rigid", pool="h100", starts_at=at(1) + month, full_from_at=at(1) + 3 * month, gpus=16),
        Ramp(workload_class="dev", pool="h100", starts_at=at(1) + 2 * month, full_from_at=at(1) + 2 * month, gpus=2),
    )
    assert found.migrations == (
        Migration(
            from_pool="h100",
            to_pool="b200",
            starts_at=at(1) + month,
            until_at=at(1) + 2 * month,
            to_reference_gpus=0.5,
        ),
    )


def test_the_digest_is_of_what_is_said_not_of_its_layout(tmp_path: Path) -> None:
    first = read(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text("# ours\n" + yaml.safe_dump(dict(reversed(PLAN.items())), default_flow_style=True))
    assert read_plan_settings(path).digest() == first.digest()
    assert read(tmp_path, demand={"seed": 8}).digest() != first.digest()


def test_the_template_can_be_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN_TEMPLATE)
    found = read_plan_settings(path)
    assert [pool.name for pool in found.plan_pools()] == ["h100"]
    assert found.plan_policy().spot_share_ratio == {"deferrable": 0.8}


RAMP = {"pool": "h100", "workload_class": "rigid", "gpus": 8}
MOVE = {"pool": "h100", "to_pool": "b200", "start_month": 1, "end_month": 2}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"pool": {}}, "pool: unknown key; see docs/procurement.md"),
        ({"policy": {"discount": 0.1}}, "policy.discount: unknown key"),
        ({"policy": {"budget_micros": 5}}, "policy.budget_micros: unknown key"),
        ({"pools": {}}, "pools: found {}: dictionary should have at least 1 item"),
        ({"pools": []}, "pools: found []: input should be a valid dictionary"),
        ({"pools": {"h100": {"provider": "aws"}}}, "pools.h100.demand: missing"),
        ({"pools": {"h100": {**PLAN["pools"]["h100"], "demand": []}}}, "pools.h100.demand: found []"),
        ({"pools": {"h 100": PLAN["pools"]["h100"]}}, "found 'h 100'"),
        ({"demand": {"scenarios": "many"}}, "demand.scenarios: found 'many': input should be a valid integer"),
        ({"demand": {"scenarios": 0}}, "demand.scenarios: found 0: input should be greater than or equal to 1"),
        ({"demand": {"horizon_months": 37}}, "demand.horizon_months: found 37: input should be less than"),
        ({"demand": {"growth": {"rigid": [0.1, 0.2]}}}, "demand.growth.rigid.2: missing"),
        ({"demand": {"growth": {"rigid": [-1.5, 0, 0]}}}, "demand: growth a year: found low -1.5, mode 0, high 0"),
        ({"demand": {"growth": {"rigid": [0.4, 0.1, 0.2]}}}, "expected -1 <= low <= mode <= high"),
        ({"demand": {"growth": {"batch": [0, 0, 0]}}}, "demand: growth: found workload class 'batch', expected one of"),
        ({"demand": {"growth": {"rigid": [0, 0, float("inf")]}}}, "demand.growth.rigid.2: found inf"),
        ({"demand": {"ramps": [{**RAMP, "pool": "b200"}]}}, "demand.ramps: found the pools b200, expected one of h100"),
        ({"demand": {"ramps": [{**RAMP, "gpus": -8}]}}, "demand.ramps.0.gpus: found -8"),
        ({"demand": {"ramps": [{**RAMP, "workload_class": "batch"}]}}, "found workload class 'batch', expected one of"),
        (
            {"demand": {"ramps": [{**RAMP, "start_month": 3, "full_month": 2}]}},
            "expected full_month at start_month or after it",
        ),
        ({"demand": {"migrations": [MOVE]}}, "demand.migrations: found the pools b200, expected one of h100"),
        (
            {"demand": {"migrations": [{**MOVE, "to_pool": "h100"}]}},
            "demand: migration from h100 to h100: expected two pools",
        ),
        ({"demand": {"migrations": [{**MOVE, "start_month": 5}]}}, "expected end_month at start_month or after it"),
        ({"prices": {"max_age_days": 0}}, "prices.max_age_days: found 0"),
        ({"policy": {"discount_ratio": 10}}, "policy: discount_ratio: found 10.0, expected 0 to 1"),
        (
            {"policy": {"budget_amount": -1}},
            "policy.budget_amount: found -1: input should be greater than or equal to 0",
        ),
        ({"policy": {"energy_amount_per_kwh": None}}, "policy.energy_amount_per_kwh: found None"),
        ({"policy": {"budget_amount": "a lot"}}, "policy.budget_amount: found 'a lot'"),
        ({"policy": {"shortfall_factor": float("inf")}}, "policy.shortfall_factor: found inf"),
        ({"policy": {"spot_share_ratio": {"inference": 0.5}}}, "inference never runs on spot"),
        ({"policy": {"spot_gpus": {"a100": 8}}}, "policy.spot_gpus: found the pools a100, expected one of h100"),
        ({"policy": {"on_demand_gpus": {"a100": 8}}}, "policy.on_demand_gpus: found the pools a100, expected one of"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    path = write_plan(tmp_path, **changes)
    with pytest.raises(UsageError) as refused:
        read_plan_settings(path)
    said = str(refused.value)
    assert said.startswith(f"{path}: ")
    assert complaint in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "pools: missing"),
        (b"- 1\n", "the file: found [1]: input should be a valid dictionary"),
        (b"pools: {h100\n", "expected YAML, found while parsing"),
        (b"pools: \xff\n", "expected YAML, found"),
        (b"pools: 2026-13-45\n", "expected YAML, found"),
    ],
)
def test_what_is_no_plan_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_plan_settings(path)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_can_be_made_from_the_template(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"plan\.yaml does not exist: .* plan-template\.yaml"):
        read_plan_settings(tmp_path / "plan.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory: expected a YAML file"):
        read_plan_settings(tmp_path)


def test_how_demand_is_drawn_is_stated_key_by_key(tmp_path: Path) -> None:
    stated = {key: value for key, value, meaning in read_plan_settings(write_plan(tmp_path)).demand.stated() if meaning}
    assert set(stated) == {f"demand.{name}" for name in DemandSettings.model_fields}
    assert stated["demand.migrations"] == "none"
