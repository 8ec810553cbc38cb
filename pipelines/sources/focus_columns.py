"""Columns of FOCUS Cost and Usage, 1.0 to 1.4: which of them the ledger keeps, and which version a header belongs to.

Source: the FOCUS specification, https://focus.finops.org. Does not belong here: reading files.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from models.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEXTS: dict[str, tuple[str, ...]] = {
    "issuer": ("InvoiceIssuerName", "ServiceProviderName", "ProviderName"),
    "billing_account_id": ("BillingAccountId",),
    "invoice_id": ("InvoiceId",),
    "provider": ("ServiceProviderName", "ProviderName"),
    "sub_account_id": ("SubAccountId",),
    "charge_category": ("ChargeCategory",),
    "charge_class": ("ChargeClass",),
    "charge_description": ("ChargeDescription",),
    "service_category": ("ServiceCategory",),
    "service_name": ("ServiceName",),
    "sku_id": ("SkuId",),
    "region_id": ("RegionId",),
    "resource_id": ("ResourceId",),
    "resource_name": ("ResourceName",),
    "pricing_category": ("PricingCategory",),
    "pricing_unit": ("PricingUnit",),
    "commitment_discount_id": ("CommitmentDiscountId",),
    "commitment_discount_status": ("CommitmentDiscountStatus",),
    "currency": ("BillingCurrency",),
    "tags": ("Tags",),
}
"""FOCUS columns of each text column of an event: the first that the row has a value in."""

DECIMALS = {
    "billed_amount": "BilledCost",
    "effective_amount": "EffectiveCost",
    "list_amount": "ListCost",
    "contracted_amount": "ContractedCost",
    "pricing_quantity": "PricingQuantity",
    "consumed_quantity": "ConsumedQuantity",
}
INSTANTS = {"charge_period_start_at": "ChargePeriodStart", "charge_period_end_at": "ChargePeriodEnd"}
MONTH = "BillingPeriodStart"
KNOWN = tuple(dict.fromkeys([*(name for names in TEXTS.values() for name in names), *DECIMALS.values(), *INSTANTS.values(), MONTH]))  # fmt: skip
"""Every FOCUS column that is read, once."""

MANDATORY = (
    "BilledCost", "EffectiveCost", "BillingAccountId", "BillingCurrency", "BillingPeriodStart", "ChargePeriodStart",
    "ChargePeriodEnd", "ChargeCategory",
)  # fmt: skip
"""Without these there is no bill: whose it is, for when, how much of what money. One of the issuer's comes on top."""

CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")

VERSION_MARKS: tuple[tuple[str, set[str], set[str]], ...] = (
    # version, one of these columns is there, none of these is
    ("1.4", {"InvoiceDetailId", "ServiceProviderName"}, {"ProviderName", "PublisherName"}),
    ("1.3", {"ServiceProviderName", "HostProviderName", "AllocatedMethodId", "ContractApplied"}, set()),
    ("1.2", {"InvoiceId", "BillingAccountType", "SubAccountType", "PricingCurrency"}, set()),
    ("1.1", {"CapacityReservationId", "CommitmentDiscountQuantity", "SkuMeter", "ServiceSubcategory"}, set()),
)
"""How a version is told from a header, newest first; 1.0 where none fits. Columns: those the version added or removed."""


def focus_version(header: Sequence[str]) -> str:
    """FOCUS version that a header belongs to.

    >>> focus_version(["BilledCost", "ProviderName"]), focus_version(["BilledCost", "ServiceProviderName"])
    ('1.0', '1.4')
    """
    names = set(header)
    return next((version for version, has, lacks in VERSION_MARKS if has & names and not lacks & names), "1.0")


def check_header(path: Path, header: Sequence[str]) -> None:
    """Refuse a file that cannot be a bill.

    Raises:
      SourceError: Wrong delimiter, a column given twice, or mandatory columns missing, with near misses.
    """
    expected = f"a comma-separated FOCUS header with at least {', '.join(MANDATORY)} and {' or '.join(TEXTS['issuer'])}"
    if len(header) == 1:
        raise SourceError(f"{path}: found a header of one column, {header[0][:200]!r}; expected {expected}")
    folded = [name.casefold() for name in header]
    twice = sorted({name for name in header if folded.count(name.casefold()) > 1})
    if twice:
        raise SourceError(f"{path}: found column {', '.join(twice)} more than once; give each column once")
    lacking = [name for name in MANDATORY if name not in header]
    if not set(TEXTS["issuer"]) & set(header):
        lacking.append(" or ".join(TEXTS["issuer"]))
    if lacking:
        hints = ", ".join(f"{name}{_near_miss(name, header)}" for name in lacking)
        raise SourceError(
            f"{path}: taken for FOCUS {focus_version(header)} by its columns, but mandatory columns are missing: {hints}"
        )


def _near_miss(name: str, header: Sequence[str]) -> str:
    plain = {other.replace("_", "").replace(" ", "").casefold(): other for other in header}
    found = difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.75)
    return f" (found {plain[found[0]]}: renamed?)" if found and plain[found[0]] not in MANDATORY else ""
