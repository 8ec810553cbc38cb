"""GPU models and MIG profiles: canonical names, slices and weights. Each figure names its source.

A profile's name is not a weight: ``1g.10gb`` is one of seven on an 80 GB card and one of four on an A100 of 40 GB.
So everything is keyed by (GPU model, profile).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import product

from models.units import SHARES_PER_GPU


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One MIG profile of one GPU model.

    Attributes:
      gpu_model: Canonical model.
      profile: Name as ``nvidia-smi mig -lgip`` prints it, without the MIG prefix.
      compute_slices: Compute slices it takes.
      memory_slices: Memory slices it takes.
      compute_total: Compute slices of the whole card.
      memory_total: Memory slices of the whole card.
    """

    gpu_model: str
    profile: str
    compute_slices: int
    memory_slices: int
    compute_total: int
    memory_total: int

    @property
    def max_shares(self) -> int:
        """Shares of a GPU when weighed by the larger of its compute and memory part (the ledger's default)."""
        return max(self.compute_shares, SHARES_PER_GPU * self.memory_slices // self.memory_total)

    @property
    def compute_shares(self) -> int:
        """Shares of a GPU when weighed by compute slices alone, as Koku does."""
        return SHARES_PER_GPU * self.compute_slices // self.compute_total


_SEVEN = {"1g": (1, 1), "1g2": (1, 2), "2g": (2, 2), "3g": (3, 4), "4g": (4, 4), "7g": (7, 8)}
_FOUR = {"1g": (1, 1), "2g": (2, 2), "4g": (4, 4)}

# Profile names by model. Sources: NVIDIA MIG user guide (supported GPUs and profile tables), `nvidia-smi mig -lgip`
# output for A100, A30, H100 and H200, NVIDIA mig-parted config-default.yaml for the others.
_NAMES: dict[str, dict[str, str]] = {
    "A30": {"1g": "1g.6gb", "2g": "2g.12gb", "4g": "4g.24gb"},
    "A100-40GB": {
        "1g": "1g.5gb",
        "1g2": "1g.10gb",
        "2g": "2g.10gb",
        "3g": "3g.20gb",
        "4g": "4g.20gb",
        "7g": "7g.40gb",
    },
    "A100-80GB": {
        "1g": "1g.10gb",
        "1g2": "1g.20gb",
        "2g": "2g.20gb",
        "3g": "3g.40gb",
        "4g": "4g.40gb",
        "7g": "7g.80gb",
    },
    "H100-80GB": {
        "1g": "1g.10gb",
        "1g2": "1g.20gb",
        "2g": "2g.20gb",
        "3g": "3g.40gb",
        "4g": "4g.40gb",
        "7g": "7g.80gb",
    },
    "H100-94GB": {
        "1g": "1g.12gb",
        "1g2": "1g.24gb",
        "2g": "2g.24gb",
        "3g": "3g.47gb",
        "4g": "4g.47gb",
        "7g": "7g.94gb",
    },
    "H100-96GB": {
        "1g": "1g.12gb",
        "1g2": "1g.24gb",
        "2g": "2g.24gb",
        "3g": "3g.48gb",
        "4g": "4g.48gb",
        "7g": "7g.96gb",
    },
    "H200-141GB": {
        "1g": "1g.18gb",
        "1g2": "1g.35gb",
        "2g": "2g.35gb",
        "3g": "3g.71gb",
        "4g": "4g.71gb",
        "7g": "7g.141gb",
    },
    "B200-180GB": {
        "1g": "1g.23gb",
        "1g2": "1g.45gb",
        "2g": "2g.45gb",
        "3g": "3g.90gb",
        "4g": "4g.90gb",
        "7g": "7g.180gb",
    },
    "GB200-186GB": {
        "1g": "1g.23gb",
        "1g2": "1g.47gb",
        "2g": "2g.47gb",
        "3g": "3g.93gb",
        "4g": "4g.93gb",
        "7g": "7g.186gb",
    },
    "RTX-PRO-6000-96GB": {"1g": "1g.24gb", "2g": "2g.48gb", "4g": "4g.96gb"},
}

MIG_PROFILES: tuple[MigProfile, ...] = tuple(
    MigProfile(model, name, *slices[kind], *((4, 4) if slices is _FOUR else (7, 8)))
    for model, names in _NAMES.items()
    for slices in [_FOUR if "7g" not in names else _SEVEN]
    for kind, name in names.items()
)
"""Every profile known, one row a (model, profile)."""

# How a model is written: the first pattern found in the upper-cased text wins. Memory decides where one name covers two
# cards; where a text says nothing of memory, the bare family name stays and MIG weights fall back to its profiles.
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"A100.*80", "A100-80GB"),
    (r"A100.*40", "A100-40GB"),
    (r"A100", "A100"),
    (r"A30\b", "A30"),
    (r"GH200.*144", "GH200-144GB"),
    (r"GH200", "GH200-96GB"),
    (r"H100.*(94|NVL)", "H100-94GB"),
    (r"H100.*96", "H100-96GB"),
    (r"H100.*80", "H100-80GB"),
    (r"H100", "H100"),
    (r"H200", "H200-141GB"),
    (r"GB200", "GB200-186GB"),
    (r"B200", "B200-180GB"),
    (r"RTX PRO 6000", "RTX-PRO-6000-96GB"),
    (r"V100.*32", "V100-32GB"),
    (r"V100.*16", "V100-16GB"),
    (r"V100", "V100"),
)
_MIG = re.compile(r"(?:^|[ _/-])(?:mig[ -])?(?P<profile>\d+g\.\d+gb)(?P<suffix>\+me|\+gfx)?$", re.IGNORECASE)
_VENDOR = re.compile(r"^(?:(?:NVIDIA(?:\.COM)?|TESLA)(?:[ /-]+|$))+")


def canonical_model(text: str | None) -> str | None:
    """Canonical GPU model of a name as schedulers, exporters, clouds and people write it; None of nothing.

    A name that no pattern knows is kept, upper-cased and without the vendor, so that an unknown card is still a card.

    >>> canonical_model("NVIDIA H100 80GB HBM3"), canonical_model("a100_1g.5gb"), canonical_model("T4")
    ('H100-80GB', 'A100', 'T4')
    >>> canonical_model("nvidia.com/gpu"), canonical_model("MIG 1g.10gb+me"), canonical_model("nvidia.com/mig-1g.10gb")
    (None, None, None)
    """
    if text is None:
        return None
    upper = _VENDOR.sub("", _MIG.sub("", text.strip()).upper().replace("_", "-"))
    if upper in {"", "GPU"}:
        return None
    return next((model for pattern, model in _PATTERNS if re.search(pattern, upper)), upper)


def mig_profile(text: str | None) -> str | None:
    """MIG profile in a device type such as ``1g.10gb``, ``a100_3g.20gb`` or ``MIG 1g.5gb+me``; None of a whole GPU.

    >>> mig_profile("a100_1g.5gb"), mig_profile("a100"), mig_profile("1g.10gb+me")
    ('1g.5gb', None, '1g.10gb')
    """
    found = _MIG.search((text or "").strip())
    return found["profile"].lower() if found else None


def profile_shares(gpu_model: str | None, profile: str, basis: str = "max") -> int | None:
    """Shares of a whole GPU (4,200) that one instance of a profile is worth, before a card's sum is scaled.

    Args:
      gpu_model: Canonical model; a bare family (A100) or None takes the value all its cards agree on.
      profile: Profile name.
      basis: ``max`` (larger of compute and memory part) or ``compute``.

    Returns:
      The shares, or None where the cards that offer the profile disagree, or none does.

    >>> profile_shares("A100-40GB", "3g.20gb"), profile_shares("A100-80GB", "1g.10gb"), profile_shares(None, "1g.10gb")
    (2100, 600, None)
    """
    found = {
        known.max_shares if basis == "max" else known.compute_shares
        for known in MIG_PROFILES
        if known.profile == profile and gpu_model in {None, known.gpu_model, _family(known.gpu_model)}
    }
    return found.pop() if len(found) == 1 else None


def _family(gpu_model: str) -> str:
    """A model's name without its memory."""
    return re.sub(r"-\d+GB$", "", gpu_model)


def named_compute_shares(profile: str) -> int | None:
    """Shares by the compute slices in the profile's name, sevenths of a card: the floor of every convention.

    Used, with a finding, where the card's model is unknown.

    >>> named_compute_shares("1g.10gb"), named_compute_shares("3g.40gb")
    (600, 1800)
    """
    found = re.match(r"(\d)g\.", profile)
    return SHARES_PER_GPU * int(found[1]) // 7 if found else None


@cache
def mig_weight_rows() -> tuple[tuple[str, str, int, int], ...]:
    """(gpu_model, profile, max_shares, compute_shares) for the SQL reference table, bare families included.

    A bare family (``A100``) has a row only where its cards agree.
    """
    rows = [(known.gpu_model, known.profile, known.max_shares, known.compute_shares) for known in MIG_PROFILES]
    families = {_family(known.gpu_model) for known in MIG_PROFILES} - {known.gpu_model for known in MIG_PROFILES}
    for family, profile in product(sorted(families), sorted({known.profile for known in MIG_PROFILES})):
        by_max, by_compute = profile_shares(family, profile), profile_shares(family, profile, "compute")
        if by_max is not None and by_compute is not None:
            rows.append((family, profile, by_max, by_compute))
    return tuple(rows)
