from __future__ import annotations

import pytest

from models.gpus import (
    MIG_PROFILES,
    canonical_model,
    mig_profile,
    mig_weight_rows,
    named_compute_shares,
    profile_shares,
)
from models.units import SHARES_PER_GPU


@pytest.mark.parametrize(
    ("written", "model", "profile"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-80GB", None),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB", None),
        ("a100", "A100", None),
        ("nvidia_h100_80gb_hbm3", "H100-80GB", None),
        ("NVIDIA H100 NVL", "H100-94GB", None),
        ("NVIDIA H200", "H200-141GB", None),
        ("NVIDIA GH200 480GB", "GH200-96GB", None),
        ("NVIDIA B200", "B200-180GB", None),
        ("NVIDIA GB200", "GB200-186GB", None),
        ("Tesla V100-SXM2-32GB", "V100-32GB", None),
        ("Tesla T4", "T4", None),
        ("rtx_3090", "RTX-3090", None),
        ("a100_3g.20gb", "A100", "3g.20gb"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "H100-80GB", "1g.10gb"),
        ("1g.5gb", None, "1g.5gb"),
        ("gpu", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_names_as_schedulers_exporters_and_people_write_them(
    written: str | None, model: str | None, profile: str | None
) -> None:
    assert (canonical_model(written), mig_profile(written)) == (model, profile)


@pytest.mark.parametrize(
    ("model", "profile", "by_max", "by_compute"),
    [
        ("A100-80GB", "1g.10gb", 600, 600),  # 1/7 of compute, 1/8 of memory
        ("A100-80GB", "1g.20gb", 1050, 600),  # 1/7 of compute, 2/8 of memory
        ("A100-80GB", "3g.40gb", 2100, 1800),  # 3/7 of compute, 4/8 of memory
        ("A100-80GB", "7g.80gb", 4200, 4200),
        ("A30", "1g.6gb", 1050, 1050),  # 1/4 of both
        ("H200-141GB", "1g.35gb", 1050, 600),
    ],
)
def test_a_slice_weighs_the_larger_of_its_compute_and_memory(
    model: str, profile: str, by_max: int, by_compute: int
) -> None:
    assert profile_shares(model, profile) == by_max
    assert profile_shares(model, profile, "compute") == by_compute


def test_a_profile_name_is_not_a_weight_where_cards_disagree() -> None:
    assert profile_shares("A100-40GB", "1g.10gb") == 1050
    assert profile_shares("A100-80GB", "1g.10gb") == 600
    assert profile_shares("A100", "1g.10gb") is None
    assert profile_shares("A100", "3g.20gb") == 2100
    assert named_compute_shares("1g.10gb") == 600
    assert named_compute_shares("whole") is None


def test_every_profile_is_known_once_and_is_exact_in_shares() -> None:
    assert len({(known.gpu_model, known.profile) for known in MIG_PROFILES}) == len(MIG_PROFILES)
    for known in MIG_PROFILES:
        assert known.compute_shares * known.compute_total == SHARES_PER_GPU * known.compute_slices
        assert SHARES_PER_GPU * known.memory_slices % known.memory_total == 0
        assert known.compute_shares <= known.max_shares <= SHARES_PER_GPU


def test_the_reference_table_has_one_row_a_model_and_profile() -> None:
    rows = mig_weight_rows()
    assert len({row[:2] for row in rows}) == len(rows)
    assert ("A100", "1g.10gb") not in {row[:2] for row in rows}
    assert ("A100", "3g.20gb", 2100, 1800) in rows
