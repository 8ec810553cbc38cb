"""Instance types of the clouds: which GPU each holds, and how many. Each row names its source.

Belongs here: what an instance is. Does not belong here: what it costs, which the price book says and which changes.
An instance type that is not here has an unknown GPU: its price is set aside with the reason, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance or machine type.

    Attributes:
      provider: aws, gcp or azure.
      name: Name as the provider writes it.
      gpu_model: Canonical GPU model, as ``models.gpus.canonical_model`` writes it.
      gpu_count: GPUs of one instance.
      source: Where this is said.
    """

    provider: str
    name: str
    gpu_model: str
    gpu_count: int
    source: str


_EC2 = "Amazon EC2 instance types, accelerated computing"
_GCP = "Google Compute Engine, GPU machine types"
_AZURE = "Azure virtual machine sizes, GPU accelerated"

# GPUs of each instance type, by provider and GPU model. Partial GPUs (g6f, g4-standard-6 to -24) are left out: nothing is
# priced by the part of a card. So are accelerators that are no GPUs (inf, trn, dl).
_TYPES: tuple[tuple[str, str, str, dict[str, int]], ...] = (
    ("aws", _EC2, "K80", {"p2.xlarge": 1, "p2.8xlarge": 8, "p2.16xlarge": 16}),
    ("aws", _EC2, "V100-16GB", {"p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8}),
    ("aws", _EC2, "V100-32GB", {"p3dn.24xlarge": 8}),
    ("aws", _EC2, "A100-40GB", {"p4d.24xlarge": 8}),
    ("aws", _EC2, "A100-80GB", {"p4de.24xlarge": 8}),
    ("aws", _EC2, "H100-80GB", {"p5.4xlarge": 1, "p5.48xlarge": 8}),
    ("aws", _EC2, "H200-141GB", {"p5e.48xlarge": 8, "p5en.48xlarge": 8}),
    ("aws", _EC2, "B200-180GB", {"p6-b200.48xlarge": 8}),
    ("aws", _EC2, "B300", {"p6-b300.48xlarge": 8}),
    (
        "aws",
        _EC2,
        "T4",
        {
            "g4dn.xlarge": 1,
            "g4dn.2xlarge": 1,
            "g4dn.4xlarge": 1,
            "g4dn.8xlarge": 1,
            "g4dn.16xlarge": 1,
            "g4dn.12xlarge": 4,
            "g4dn.metal": 8,
        },
    ),
    (
        "aws",
        _EC2,
        "A10G",
        {
            "g5.xlarge": 1,
            "g5.2xlarge": 1,
            "g5.4xlarge": 1,
            "g5.8xlarge": 1,
            "g5.16xlarge": 1,
            "g5.12xlarge": 4,
            "g5.24xlarge": 4,
            "g5.48xlarge": 8,
        },
    ),
    (
        "aws",
        _EC2,
        "L4",
        {
            "g6.xlarge": 1,
            "g6.2xlarge": 1,
            "g6.4xlarge": 1,
            "g6.8xlarge": 1,
            "g6.16xlarge": 1,
            "g6.12xlarge": 4,
            "g6.24xlarge": 4,
            "g6.48xlarge": 8,
            "gr6.4xlarge": 1,
            "gr6.8xlarge": 1,
        },
    ),
    (
        "aws",
        _EC2,
        "L40S",
        {
            "g6e.xlarge": 1,
            "g6e.2xlarge": 1,
            "g6e.4xlarge": 1,
            "g6e.8xlarge": 1,
            "g6e.16xlarge": 1,
            "g6e.12xlarge": 4,
            "g6e.24xlarge": 4,
            "g6e.48xlarge": 8,
        },
    ),
    (
        "aws",
        _EC2,
        "RTX-PRO-6000-96GB",
        {
            "g7e.2xlarge": 1,
            "g7e.4xlarge": 1,
            "g7e.8xlarge": 1,
            "g7e.12xlarge": 2,
            "g7e.24xlarge": 4,
            "g7e.48xlarge": 8,
        },
    ),
    (
        "gcp",
        _GCP,
        "A100-40GB",
        {
            "a2-highgpu-1g": 1,
            "a2-highgpu-2g": 2,
            "a2-highgpu-4g": 4,
            "a2-highgpu-8g": 8,
            "a2-megagpu-16g": 16,
        },
    ),
    (
        "gcp",
        _GCP,
        "A100-80GB",
        {"a2-ultragpu-1g": 1, "a2-ultragpu-2g": 2, "a2-ultragpu-4g": 4, "a2-ultragpu-8g": 8},
    ),
    (
        "gcp",
        _GCP,
        "H100-80GB",
        {
            "a3-highgpu-1g": 1,
            "a3-highgpu-2g": 2,
            "a3-highgpu-4g": 4,
            "a3-highgpu-8g": 8,
            "a3-megagpu-8g": 8,
            "a3-edgegpu-8g": 8,
        },
    ),
    ("gcp", _GCP, "H200-141GB", {"a3-ultragpu-8g": 8}),
    ("gcp", _GCP, "B200-180GB", {"a4-highgpu-8g": 8}),
    (
        "gcp",
        _GCP,
        "L4",
        {
            "g2-standard-4": 1,
            "g2-standard-8": 1,
            "g2-standard-12": 1,
            "g2-standard-16": 1,
            "g2-standard-32": 1,
            "g2-standard-24": 2,
            "g2-standard-48": 4,
            "g2-standard-96": 8,
        },
    ),
    (
        "gcp",
        _GCP,
        "RTX-PRO-6000-96GB",
        {"g4-standard-48": 1, "g4-standard-96": 2, "g4-standard-192": 4, "g4-standard-384": 8},
    ),
    (
        "azure",
        _AZURE,
        "A100-80GB",
        {
            "Standard_NC24ads_A100_v4": 1,
            "Standard_NC48ads_A100_v4": 2,
            "Standard_NC96ads_A100_v4": 4,
            "Standard_ND96amsr_A100_v4": 8,
        },
    ),
    ("azure", _AZURE, "A100-40GB", {"Standard_ND96asr_v4": 8}),
    ("azure", _AZURE, "H100-80GB", {"Standard_ND96isr_H100_v5": 8}),
    ("azure", _AZURE, "H100-94GB", {"Standard_NC40ads_H100_v5": 1, "Standard_NC80adis_H100_v5": 2}),
    ("azure", _AZURE, "H200-141GB", {"Standard_ND96isr_H200_v5": 8}),
    ("azure", _AZURE, "V100-16GB", {"Standard_NC6s_v3": 1, "Standard_NC12s_v3": 2, "Standard_NC24s_v3": 4}),
    ("azure", _AZURE, "V100-32GB", {"Standard_ND40rs_v2": 8}),
    (
        "azure",
        _AZURE,
        "T4",
        {
            "Standard_NC4as_T4_v3": 1,
            "Standard_NC8as_T4_v3": 1,
            "Standard_NC16as_T4_v3": 1,
            "Standard_NC64as_T4_v3": 4,
        },
    ),
)

INSTANCE_TYPES: tuple[InstanceType, ...] = tuple(
    InstanceType(provider, name, gpu_model, gpu_count, source)
    for provider, source, gpu_model, types in _TYPES
    for name, gpu_count in types.items()
)
"""Every instance type known."""


@cache
def _by_name() -> dict[tuple[str, str], InstanceType]:
    return {(one.provider, one.name): one for one in INSTANCE_TYPES}


def instance_type(provider: str, name: str) -> InstanceType | None:
    """The instance type of that name, or None where its GPUs are not known.

    >>> found = instance_type("aws", "p5.48xlarge")
    >>> (found.gpu_model, found.gpu_count)
    ('H100-80GB', 8)
    """
    return _by_name().get((provider, name))
