"""Event types of the ledger: runs, devices, telemetry, bills, owned assets, who pays, and what a close posted.

Belongs here: what is said of using and paying for GPUs. ``models/events.py`` lists these with all other event types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.event_base import Event
from models.event_base import col as _col
from models.event_base import key as _key

# Needed at run time: columns are read from these annotations.
from models.units import (  # noqa: TC001
    Amount,
    Count,
    Effectiveness,
    Flag,
    Instant,
    Joules,
    Mebibytes,
    Micros,
    Month,
    Ordinal,
    Quantity,
    Rate,
    Ratio,
    Seconds,
    Shares,
    ShareSeconds,
    Text,
    Watts,
)


@dataclass(frozen=True, kw_only=True)
class RunRecorded(Event):
    """One attempt of a run (a job, in Slurm's words): a requeue is another attempt. Never-started runs are none."""

    partition_by: ClassVar[str | None] = "started_at"
    touches: ClassVar[tuple[str, str | None] | None] = ("started_at", "ended_at")

    cluster: Text = _key("scheduler's cluster name")
    run_id: Text = _key("scheduler's raw id (Slurm JobIDRaw, pod uid)")
    started_at: Instant = _key("when the attempt started")
    display_id: Text | None = _col("id as users know it (Slurm JobID such as 123_45)")
    run_name: Text | None = _col("name given by the user")
    account: Text | None = _col("scheduler's account (Slurm Account, namespace, virtual cluster)")
    user_name: Text | None = _col("who submitted it")
    partition: Text | None = _col("Slurm partition or queue")
    qos: Text | None = _col("quality of service or priority class")
    submitted_at: Instant | None = _col("when it was submitted; a requeue resets it")
    ended_at: Instant | None = _col("when the attempt ended; NULL while it runs")
    state: Text = _col("state as the scheduler names it, without its suffix (CANCELLED, not CANCELLED by 0)")
    is_final: Flag = _col("whether the state can no longer change")
    is_from_step: Flag = _col("a step (run_id such as 7.0), known without its job's own row; see staged.run")
    exit_code: Text | None = _col("exit code as written")
    placement_id: Text | None = _col("digest of the set of devices it held, see run_placed; NULL when it held no GPU")


@dataclass(frozen=True, kw_only=True)
class RunPlaced(Event):
    """A set of devices that attempts hold, stored once however many attempts hold it: one row a node and device type.

    The id is the digest of the whole set, so a changed placement is another set and never mixes with the old one.
    """

    placement_id: Text = _key("digest of the set")
    node: Text = _key("node name; empty when the scheduler names none")
    gpu_type: Text = _key("device type as the scheduler writes it; empty when untyped")
    gpu_model: Text | None = _col("canonical GPU model, where the type names one")
    mig_profile: Text | None = _col("MIG profile; NULL for whole or shared GPUs")
    device_count: Count = _col("devices (GPUs, or MIG slices) held on this node")
    device_shares: Shares | None = _col("share of one GPU that each device is, where the request says so (fractions)")


@dataclass(frozen=True, kw_only=True)
class GpuInventoried(Event):
    """GPUs of a node, effective-dated. A MIG card is one row a profile in its layout. A count of 0 takes a row back."""

    touches: ClassVar[tuple[str, str | None] | None] = ("effective_from_at", "effective_until_at")

    cluster: Text = _key("cluster")
    node: Text = _key("node name as the scheduler writes it")
    gpu_model: Text = _key("canonical GPU model")
    mig_layout: Text = _key("MIG layout of one card, such as 3g.40gb*1+4g.40gb*1; empty for whole cards")
    mig_profile: Text = _key("profile of this row within the layout; empty for whole cards")
    effective_from_at: Instant = _key("in force from")
    effective_until_at: Instant | None = _col("in force until (exclusive); NULL: open")
    card_count: Count = _col("cards with this model and layout")
    slices_per_card_count: Count = _col("instances of the profile on each card; 1 for whole cards")
    resource_id: Text | None = _col("the bill's ResourceId of this node, where it differs from the node's name")
    capacity_type: Text | None = _col("owned, reserved, on_demand or spot")


@dataclass(frozen=True, kw_only=True)
class NodeStateChanged(Event):
    """A node went up, down or into drain."""

    touches: ClassVar[tuple[str, str | None] | None] = ("changed_at", None)

    cluster: Text = _key("cluster")
    node: Text = _key("node name")
    changed_at: Instant = _key("when")
    state: Text = _col("up, down or drain; drain counts as down once nothing runs")
    reason: Text | None = _col("reason as written")


@dataclass(frozen=True, kw_only=True)
class GpuSampled(Event):
    """One telemetry sample of a GPU or MIG instance. NULL: the exporter gave no such value."""

    partition_by: ClassVar[str | None] = "sampled_at"
    touches: ClassVar[tuple[str, str | None] | None] = ("sampled_at", "sampled_at")

    cluster: Text = _key("cluster")
    gpu_uuid: Text = _key("UUID of the physical card (the parent's under MIG)")
    mig_instance: Text = _key("GPU_I_ID of the MIG instance; empty for a whole card")
    sampled_at: Instant = _key("when the sample was taken")
    node: Text = _col("node name")
    gpu_index: Text | None = _col("index on the node")
    gpu_model: Text | None = _col("canonical GPU model")
    mig_profile: Text | None = _col("MIG profile of the instance; NULL for a whole card")
    interval_seconds: Seconds = _col("how long the sample stands for: the scrape interval")
    gpu_util_ratio: Ratio | None = _col("DCGM_FI_DEV_GPU_UTIL / 100; does not exist under MIG")
    sm_active_ratio: Ratio | None = _col("DCGM_FI_PROF_SM_ACTIVE")
    gr_engine_active_ratio: Ratio | None = _col("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    tensor_active_ratio: Ratio | None = _col("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")
    framebuffer_used_mib: Mebibytes | None = _col("DCGM_FI_DEV_FB_USED")
    board_power_watts: Watts | None = _col("DCGM_FI_DEV_POWER_USAGE of the whole board, repeated on each instance")
    board_energy_joules: Joules | None = _col("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter of the whole board")
    holder: Text | None = _col(
        "namespace/pod that the exporter says holds the device; NULL when none or the exporter's own"
    )


@dataclass(frozen=True, kw_only=True)
class BillDelivered(Event):
    """A delivery of one bill (issuer, billing account, billing period), whole: it replaces the delivery before it."""

    touches: ClassVar[tuple[str, str | None] | None] = None  # through the lines of this and the replaced content

    issuer: Text = _key("InvoiceIssuerName, or the provider where a bill names no issuer")
    billing_account_id: Text = _key("BillingAccountId")
    billing_period_month: Month = _key("first day of the billing period")
    content_id: Text = _col("digest of the multiset of its lines; empty lines give the digest of nothing")
    line_count: Count = _col("lines")
    billed_amount: Amount | None = _col("sum of BilledCost; NULL if lines differ in currency")
    effective_amount: Amount | None = _col("sum of EffectiveCost; NULL if lines differ in currency")
    currency: Text | None = _col("BillingCurrency of all lines; NULL if they differ or there are none")
    focus_version: Text | None = _col("FOCUS version detected")


@dataclass(frozen=True, kw_only=True)
class ChargeBilled(Event):
    """One line of a bill, as its issuer wrote it. Amounts stay in the bill's currency."""

    partition_by: ClassVar[str | None] = "charge_period_start_at"
    touches: ClassVar[tuple[str, str | None] | None] = ("charge_period_start_at", "charge_period_end_at")

    content_id: Text = _key("the delivery's content that the line belongs to, see bill_delivered")
    line_digest: Text = _key("digest of the line's text")
    line_ordinal: Ordinal = _key("1, 2, … among equal lines of the same content")
    issuer: Text = _col("as in bill_delivered")
    billing_account_id: Text = _col("as in bill_delivered")
    billing_period_month: Month = _col("as in bill_delivered")
    invoice_id: Text | None = _col("InvoiceId")
    provider: Text | None = _col("ServiceProviderName or ProviderName")
    sub_account_id: Text | None = _col("SubAccountId")
    charge_category: Text = _col("Usage, Purchase, Tax, Credit or Adjustment")
    charge_class: Text | None = _col("Correction, or NULL")
    charge_description: Text | None = _col("ChargeDescription")
    charge_period_start_at: Instant = _col("ChargePeriodStart, inclusive")
    charge_period_end_at: Instant = _col("ChargePeriodEnd, exclusive")
    service_category: Text | None = _col("ServiceCategory")
    service_name: Text | None = _col("ServiceName")
    sku_id: Text | None = _col("SkuId")
    region_id: Text | None = _col("RegionId")
    resource_id: Text | None = _col("ResourceId")
    resource_name: Text | None = _col("ResourceName")
    pricing_category: Text | None = _col("Standard, Dynamic (spot), Committed or Other")
    pricing_quantity: Quantity | None = _col("PricingQuantity")
    pricing_unit: Text | None = _col("PricingUnit")
    consumed_quantity: Quantity | None = _col("ConsumedQuantity")
    commitment_discount_id: Text | None = _col("CommitmentDiscountId")
    commitment_discount_status: Text | None = _col("Used, Unused or NULL")
    billed_amount: Amount = _col("BilledCost: the basis of the invoice")
    effective_amount: Amount = _col("EffectiveCost: amortised, the basis of chargeback")
    list_amount: Amount | None = _col("ListCost")
    contracted_amount: Amount | None = _col("ContractedCost")
    currency: Text = _col("BillingCurrency, ISO 4217")
    tags: Text | None = _col("Tags as written (JSON text)")


@dataclass(frozen=True, kw_only=True)
class AssetRecorded(Event):
    """An owned asset of the register: bought once, depreciated in a straight line by month, running on power."""

    touches: ClassVar[tuple[str, str | None] | None] = ("in_service_at", None)

    asset_id: Text = _key("asset number in the register")
    cluster: Text = _col("cluster it serves")
    node: Text | None = _col("node it is; NULL: shared by the whole cluster (network, storage)")
    in_service_at: Instant = _col("in service from; depreciation starts with this month")
    retired_at: Instant | None = _col("out of service from; the rest of its value is charged in that month")
    life_months_count: Count = _col("months of depreciation")
    purchase_amount: Amount = _col("cost when bought")
    residual_amount: Amount = _col("value left at the end of its life")
    currency: Text = _col("ISO 4217")
    power_watts: Watts | None = _col("power it draws, at the wall")
    power_usage_effectiveness: Effectiveness | None = _col(
        "facility power / IT power; NULL counts as stated at the wall"
    )
    energy_price_amount: Amount | None = _col("price of one kWh in the asset's currency")
    monthly_fee_amount: Amount | None = _col("colocation, support and other fees a month")


@dataclass(frozen=True, kw_only=True)
class FxRateObserved(Event):
    """The rate of one month, frozen once the month is closed: 1 unit of ``currency`` in the reporting currency."""

    touches: ClassVar[tuple[str, str | None] | None] = ("observed_at", None)

    currency: Text = _key("ISO 4217 code of the bill")
    reporting_currency: Text = _key("ISO 4217 code of the ledger")
    observed_at: Instant = _key("first instant of the month it is for")
    fx_rate: Rate = _col("reporting currency for one unit")


@dataclass(frozen=True, kw_only=True)
class OwnershipAssigned(Event):
    """Who pays for an account from a day on: account → project → team → business unit. A later row ends the earlier."""

    touches: ClassVar[tuple[str, str | None] | None] = ("effective_from_at", None)

    cluster: Text = _key("cluster; * for all")
    account: Text = _key("account that the scheduler charges a run to")
    effective_from_at: Instant = _key("in force from")
    project: Text | None = _col("project")
    team: Text = _col("team")
    business_unit: Text = _col("business unit")


@dataclass(frozen=True, kw_only=True)
class PolicySet(Event):
    """A dated policy value. Known policies and their values: ``models/policies.py``."""

    touches: ClassVar[tuple[str, str | None] | None] = ("effective_from_at", None)

    policy: Text = _key("policy name")
    subject: Text = _key("what it is about: a cost pool, a team for fixed weights; empty for none")
    effective_from_at: Instant = _key("in force from")
    value: Text = _col("value as written")


@dataclass(frozen=True, kw_only=True)
class PeriodClosed(Event):
    """A month was closed: its statement is final, and later differences become corrections in a later month."""

    period_month: Month = _key("the month closed")
    closed_at: Instant = _col("when")
    log_batch_id: Ordinal = _col("last batch that the closing computation saw")
    billed_micros: Micros = _col("billed in the month, as computed then")
    postings_digest: Text = _col("digest of the postings made by this close")


@dataclass(frozen=True, kw_only=True)
class PostingMade(Event):
    """One posting = computed now − already posted, for one payer and kind of cost of one charge month."""

    charge_month: Month = _key("month the cost was incurred in")
    posted_month: Month = _key("month whose close posted it; later than charge_month: a correction")
    business_unit: Text = _key("business unit; Platform for what the platform holds")
    team: Text = _key("team")
    project: Text = _key("project; empty when there is none")
    cost_kind: Text = _key("usage, idle pools, unused commitment …: see docs/ledger.md")
    usage_share_seconds: ShareSeconds = _col("GPU time, signed")
    cost_micros: Micros = _col("cost, signed")
