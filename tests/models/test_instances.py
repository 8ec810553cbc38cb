"""Instance types against the published price files that also count GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.gpus import canonical_model
from models.instances import INSTANCE_TYPES, instance_type

if TYPE_CHECKING:
    from pathlib import Path

NO_GPUS = r"^(inf|trn|dl)"
NAMED_ANEW = {"a100": "A100-40GB", "rtx6000": "RTX-PRO-6000-96GB"}
OLD = r"^(g2\.|g3|g3s|g4ad|g5g)"


def counted(folder: Path, file: str, name: str, count: str) -> dict[str, float]:
    frame = pl.read_csv(folder / "prices" / file, infer_schema_length=None).unique([name, count])
    return dict(frame.select(name, pl.col(count).cast(pl.Float64)).rows())


def test_a_model_is_written_as_everywhere() -> None:
    assert {one.gpu_model for one in INSTANCE_TYPES} == {canonical_model(one.gpu_model) for one in INSTANCE_TYPES}
    assert len({(one.provider, one.name) for one in INSTANCE_TYPES}) == len(INSTANCE_TYPES)
    assert all(one.gpu_count >= 1 and one.source for one in INSTANCE_TYPES)


def test_what_is_not_known_is_not_guessed() -> None:
    assert instance_type("aws", "p7.48xlarge") is None
    assert instance_type("gcp", "p5.48xlarge") is None


def test_aws_counts_as_the_price_list_does(shared_data: Path) -> None:
    """But for p2, of which the file counts K80 boards (two GPUs each) and EC2's own page GPUs."""
    published = counted(shared_data, "aws_gpu_on_demand_reserved_2026-01.csv", "instance_type", "gpu_count")
    ours = {one.name: one.gpu_count for one in INSTANCE_TYPES if one.provider == "aws"}
    assert {name: count for name, count in published.items() if name in ours and count != ours[name]} == {
        "p2.8xlarge": 4,
        "p2.16xlarge": 8,
    }
    whole = pl.Series([name for name, count in published.items() if count >= 1])
    unknown = set(whole.filter(~whole.str.contains(NO_GPUS) & ~whole.str.contains(OLD))) - set(ours)
    assert unknown == set()
    assert set(ours) - set(published) == {"p5e.48xlarge"}


def test_gcp_has_the_gpus_of_the_price_file(shared_data: Path) -> None:
    frame = pl.read_csv(shared_data / "prices" / "gcp_gpu_prices_2026-07-30.csv", infer_schema_length=None)
    whole = frame.filter(pl.col("gpus") >= 1).unique("machine_type")
    for name, gpu, count in whole.select("machine_type", "gpu", "gpus").rows():
        found = instance_type("gcp", name)
        assert found, name
        assert (found.gpu_model, found.gpu_count) == (NAMED_ANEW.get(gpu, canonical_model(gpu)), count)


def test_azure_has_the_gpus_of_the_comparison_file(shared_data: Path) -> None:
    frame = pl.read_csv(shared_data / "prices" / "fsdl_cloud_gpus_2025-04.csv", infer_schema_length=None)
    azure = frame.filter(pl.col("Cloud") == "Azure")
    published = {
        f"Standard_{name.replace(' ', '_')}": (gpu, count)
        for name, gpu, count in azure.select("Name", "GPU Type", "GPUs").rows()
    }
    compared = {name: instance_type("azure", name) for name in published}
    assert sum(found is not None for found in compared.values()) == 11
    for name, found in compared.items():
        gpu, count = published[name]
        assert found is None or (found.gpu_count, found.gpu_model.split("-")[0]) == (count, gpu.split(" ")[0])
