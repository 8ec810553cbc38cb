"""``plan.yaml`` in a ledger's home: the pools that are planned for, how demand is drawn, and the policy.

Checked by pydantic, so that a misspelt key or a wrong value is refused with its place. Does not belong here: planning.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from models.errors import GpuLedgerError, UsageError
from models.gpus import canonical_model
from models.prices import Pool
from models.procurement.policy import PlanPolicy
from pipelines.demand import Origin

if TYPE_CHECKING:
    from pathlib import Path

PLAN_FILE = "plan.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OriginSettings(_Strict):
    """Where a pool's demand was observed."""

    cluster: str
    gpu_model: str


class PoolSettings(_Strict):
    """A pool of GPUs that can stand in for each other."""

    gpu_model: str
    provider: str
    region: str = ""
    zone: str = ""
    node_gpus: int = Field(default=8, ge=1)
    other_providers: tuple[str, ...] = ()
    demand: tuple[OriginSettings, ...] = Field(min_length=1)


class RampSettings(_Strict):
    """Work that is announced: it begins at a month of the horizon and has its full size some months later."""

    pool: str
    workload_class: str
    gpus: float = Field(gt=0)
    start_month: int = Field(default=0, ge=0)
    full_month: int = Field(default=0, ge=0)


class MigrationSettings(_Strict):
    """Work that moves off a generation of GPUs."""

    pool: str
    to_pool: str
    start_month: int = Field(ge=0)
    end_month: int = Field(ge=1)
    remaining_ratio: float = Field(default=0.0, ge=0, le=1)
    to_gpus_per_gpu: float = Field(default=1.0, gt=0)


class DemandSettings(_Strict):
    """How demand is drawn from the ledger's own history."""

    look_back_days: int = Field(default=60, ge=1)
    horizon_months: int = Field(default=12, ge=1, le=36)
    scenarios: int = Field(default=10, ge=1, le=200)
    seed: int = Field(default=1, ge=0)
    growth: dict[str, tuple[float, float, float]] = {}
    recent_days: int | None = Field(default=3, ge=1)
    ramps: tuple[RampSettings, ...] = ()
    migrations: tuple[MigrationSettings, ...] = ()


class PriceSettings(_Strict):
    """Which prices count."""

    max_age_days: int = Field(default=45, ge=1)
    without: tuple[str, ...] = ()


def _asked(name: str) -> str:
    """Name of a policy's field in the file, where money is an amount of the reporting currency, not micros."""
    return name.replace("_micros", "_amount")


def _policy_model() -> type[BaseModel]:
    """The policy's fields as pydantic checks them; their ranges are ``PlanPolicy``'s own."""
    hints = get_type_hints(PlanPolicy)
    plain = PlanPolicy()
    defaults: dict[str, Any] = {}
    for one in fields(PlanPolicy):
        kind, value = hints[one.name], getattr(plain, one.name)
        if _asked(one.name) != one.name:
            kind, value = Decimal | None, None if value is None else Decimal(value).scaleb(-6)
        defaults[_asked(one.name)] = (kind, value)
    made: type[BaseModel] = create_model("PolicySettings", __base__=_Strict, **defaults)
    return made


PolicySettings = _policy_model()


class PlanSettings(_Strict):
    """The whole file."""

    pools: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]+$")], PoolSettings] = Field(min_length=1)
    demand: DemandSettings = DemandSettings()
    prices: PriceSettings = PriceSettings()
    policy: PolicySettings = PolicySettings()  # type: ignore[valid-type]

    def plan_policy(self) -> PlanPolicy:
        """The policy as the planner reads it."""
        given: dict[str, Any] = {one.name: getattr(self.policy, _asked(one.name)) for one in fields(PlanPolicy)}
        money = {name: int(value.scaleb(6)) for name, value in given.items() if isinstance(value, Decimal)}
        return PlanPolicy(**(given | money))

    def plan_pools(self) -> list[Pool]:
        """The pools as the planner reads them."""
        return [
            Pool(
                name=name,
                gpu_model=canonical_model(one.gpu_model) or one.gpu_model,
                provider=one.provider,
                region=one.region,
                zone=one.zone,
                node_gpus=one.node_gpus,
                other_providers=one.other_providers,
            )
            for name, one in self.pools.items()
        ]

    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """Where each pool's demand was observed."""
        return {
            name: tuple(Origin(one.cluster, canonical_model(one.gpu_model) or one.gpu_model) for one in pool.demand)
            for name, pool in self.pools.items()
        }

    def digest(self) -> str:
        """SHA-256 of the settings' content, whatever their layout in the file."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def read_plan_settings(path: Path) -> PlanSettings:
    """Settings of a file.

    Raises:
      UsageError: It is missing, not YAML, or says something that means nothing; names the key, what was found and expected.
    """
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist: it names the pools to plan for; write one from the template that gpuledger init "
            "leaves in plan-template.yaml, or give another file with --settings"
        )
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid YAML: {error}") from error
    try:
        settings = PlanSettings.model_validate(found)
        settings.plan_policy()
    except ValidationError as error:
        raise UsageError("; ".join(f"{path}: {_place(one)}" for one in error.errors())) from error
    except GpuLedgerError as error:
        raise UsageError(f"{path}: policy: {error}") from error
    demand = settings.demand
    named = {one.pool for one in demand.ramps} | {name for one in demand.migrations for name in (one.pool, one.to_pool)}
    lacking = sorted(named - set(settings.pools))
    if lacking:
        raise UsageError(
            f"{path}: demand: found the pools {', '.join(lacking)}, expected one of {', '.join(settings.pools)}"
        )
    return settings


def _place(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; see docs/procurement.md for those that exist"
    if error["type"] == "missing":
        return f"{where}: missing"
    return f"{where}: found {error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:]}"


PLAN_TEMPLATE = """\
# What gpuledger plan and gpuledger backtest plan for. Copy to plan.yaml and fill in.
pools:
  h100:                        # a name of your own
    gpu_model: H100-80GB
    provider: aws              # whose on-demand, spot and commitments may serve it
    region: us-east-1
    node_gpus: 8
    other_providers: [own]     # whose contracts or machines may serve it too
    demand:                    # the ledger's GPUs whose use counts as its demand
      - {cluster: alps, gpu_model: H100-80GB}
demand:
  look_back_days: 60           # history that scenarios are drawn from
  horizon_months: 12
  scenarios: 10
  seed: 1
  recent_days: 3               # nothing is committed beyond the peak of the last days
  growth:                      # per year: low, most likely, high
    rigid: [-0.1, 0.1, 0.4]
prices:
  max_age_days: 45             # older ones are warned of
policy:
  discount_ratio: 0.10         # cost of capital a year
  later_use_ratio: 0.7         # of an obligation beyond the horizon, the part still worth its price
  spot_share_ratio: {deferrable: 0.8}
  spot_goodput_ratio: 0.85
"""
"""What ``gpuledger init`` leaves beside ``sources.yaml``."""
