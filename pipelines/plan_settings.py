"""``plan.yaml`` in a ledger's home: the pools that are planned for, how demand is drawn, and the policy.

Checked by pydantic, so that a misspelt key or a wrong value is refused with its place. Does not belong here: planning.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from models.errors import GpuLedgerError, UsageError
from models.gpus import canonical_model
from models.prices import HOURS_PER_MONTH, Pool
from models.procurement.policy import PlanPolicy, setting_name
from models.scenarios import Growth, Migration, Outlook, Ramp
from pipelines.demand import Origin

if TYPE_CHECKING:
    from pathlib import Path

PLAN_FILE, TEMPLATE_FILE = "plan.yaml", "plan-template.yaml"
_ANY_START = datetime(2000, 1, 1, tzinfo=UTC)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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


def _as_set(value: Any) -> str:
    """A value as a person would write it."""
    if value is None or value in ({}, ()):
        return "none"
    if isinstance(value, tuple):
        return "; ".join(str(one) for one in value)
    return str(value)


class RampSettings(_Strict):
    """Work that is announced: it begins at a month of the horizon and has its full size some months later."""

    pool: str
    workload_class: str
    gpus: float = Field(gt=0)
    start_month: int = Field(default=0, ge=0)
    full_month: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.full_month is not None and self.full_month < self.start_month:
            raise ValueError("expected full_month at start_month or after it")
        return self


class MigrationSettings(_Strict):
    """Work that moves off a generation of GPUs."""

    pool: str
    to_pool: str
    start_month: int = Field(ge=0)
    end_month: int = Field(ge=1)
    remaining_ratio: float = Field(default=0.0, ge=0, le=1)
    to_gpus_per_gpu: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_month < self.start_month:
            raise ValueError("expected end_month at start_month or after it")
        return self


class DemandSettings(_Strict):
    """How demand is drawn from the ledger's own history."""

    look_back_days: int = Field(default=60, ge=1, description="history that scenarios are drawn from, at most")
    horizon_months: int = Field(default=12, ge=1, le=36, description="time planned for, in months of 730 hours")
    scenarios: int = Field(default=10, ge=1, le=200, description="scenarios drawn")
    seed: int = Field(default=1, ge=0, description="seed they are drawn with")
    growth: dict[str, tuple[float, float, float]] = Field(
        default={}, description="growth a year by workload class: low, most likely, high"
    )
    recent_days: int | None = Field(
        default=3, ge=1, description="last days whose peak no commitment exceeds; none: no such cap"
    )
    ramps: tuple[RampSettings, ...] = Field(default=(), description="work that is announced")
    migrations: tuple[MigrationSettings, ...] = Field(default=(), description="work that moves to other GPUs")

    def stated(self) -> tuple[tuple[str, str, str], ...]:
        """Each setting as (key in plan.yaml, value, meaning)."""
        return tuple(
            (f"demand.{name}", _as_set(getattr(self, name)), str(field.description))
            for name, field in type(self).model_fields.items()
        )


class PriceSettings(_Strict):
    """Which prices count."""

    max_age_days: int = Field(default=45, ge=1)
    without: tuple[str, ...] = ()


def _policy_model() -> type[BaseModel]:
    """The policy's fields as pydantic checks them; their ranges are ``PlanPolicy``'s own."""
    hints = get_type_hints(PlanPolicy)
    plain = PlanPolicy()
    defaults: dict[str, Any] = {}
    for one in fields(PlanPolicy):
        kind, value = hints[one.name], getattr(plain, one.name)
        if setting_name(one.name) != one.name:
            amount = Annotated[Decimal, Field(ge=0)]
            kind = amount | None if kind == int | None else amount
            value = None if value is None else Decimal(value).scaleb(-6)
        defaults[setting_name(one.name)] = (kind, value)
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
        given: dict[str, Any] = {one.name: getattr(self.policy, setting_name(one.name)) for one in fields(PlanPolicy)}
        money = {name: round(value.scaleb(6)) for name, value in given.items() if isinstance(value, Decimal)}
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

    def outlook(self, start_at: datetime) -> Outlook:
        """What is expected to change, with months of the horizon as instants.

        Raises:
          UsageError: A growth, a move or announced work is none.
        """

        def month(number: int) -> datetime:
            return start_at + timedelta(hours=number * HOURS_PER_MONTH)

        demand = self.demand
        return Outlook(
            growth={
                name: Growth(low_ratio=low, mode_ratio=mode, high_ratio=high)
                for name, (low, mode, high) in demand.growth.items()
            },
            migrations=tuple(
                Migration(
                    from_pool=one.pool,
                    to_pool=one.to_pool,
                    starts_at=month(one.start_month),
                    until_at=month(one.end_month),
                    remaining_ratio=one.remaining_ratio,
                    to_reference_gpus=1 / one.to_gpus_per_gpu,
                )
                for one in demand.migrations
            ),
            ramps=tuple(
                Ramp(
                    workload_class=one.workload_class,
                    pool=one.pool,
                    starts_at=month(one.start_month),
                    full_from_at=month(one.start_month if one.full_month is None else one.full_month),
                    gpus=one.gpus,
                )
                for one in demand.ramps
            ),
        )

    def digest(self) -> str:
        """SHA-256 of the settings' content, whatever their layout in the file."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def read_plan_settings(path: Path) -> PlanSettings:
    """Settings of a file.

    Raises:
      UsageError: It is missing, not YAML, or says something that means nothing; names the key, what was found and expected.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise UsageError(
            f"{path} does not exist: it names the pools to plan for; write one from {TEMPLATE_FILE}, which gpuledger init "
            "leaves in the ledger's home, or give another file with --settings"
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}: expected a YAML file") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path}: expected YAML, found {' '.join(str(error).split())}") from None
    try:
        settings = PlanSettings.model_validate(found)
    except ValidationError as error:
        raise UsageError("; ".join(f"{path}: {_place(one)}" for one in error.errors())) from None
    for section, made in (("policy", settings.plan_policy), ("demand", partial(settings.outlook, _ANY_START))):
        try:
            made()
        except GpuLedgerError as error:
            raise UsageError(f"{path}: {section}: {error}") from error
    _check_pools(path, settings)
    return settings


def _check_pools(path: Path, settings: PlanSettings) -> None:
    """Refuse names of pools that are not among the pools."""
    demand, policy = settings.demand, settings.plan_policy()
    named = {
        "demand.ramps": {one.pool for one in demand.ramps},
        "demand.migrations": {name for one in demand.migrations for name in (one.pool, one.to_pool)},
        "policy.spot_gpus": set(policy.spot_gpus),
        "policy.on_demand_gpus": set(policy.on_demand_gpus),
    }
    for place, names in named.items():
        lacking = sorted(names - set(settings.pools))
        if lacking:
            raise UsageError(
                f"{path}: {place}: found the pools {', '.join(lacking)}, expected one of {', '.join(settings.pools)}"
            )


def _place(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; see docs/procurement.md for those that exist"
    if error["type"] == "missing":
        return f"{where}: missing"
    said = error["msg"].removeprefix("Value error, ")
    return f"{where}: found {error['input']!r}: {said[:1].lower()}{said[1:]}"


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
