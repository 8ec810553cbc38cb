"""The bills of nimbus, in FOCUS 1.2: a commitment, instances on demand and spot, and what else a cloud invoices.

All money is exact decimal text. Prices, USD an hour in us-east-1 unless said otherwise (AWS price list of 2026-01 and
-07, see each line); the account, the ids and every quantity are invented.
"""

from __future__ import annotations

import csv
import gzip
import io
from decimal import Decimal
from typing import TYPE_CHECKING

from examples.company import DAY, HOUR, MONTHS, OUTAGES, START, iso, seconds
from examples.fleet import instance_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from examples.fleet import Stay

Line = dict[str, str]
Period = tuple[int, int]
"""Charge period ``[start, end)``."""

COMPUTE, PLANS = ("Compute", "Amazon EC2"), ("Compute", "Savings Plans")
SUPPORT, TRAFFIC = ("Other", "AWS Support"), ("Networking", "Amazon VPC")
"""FOCUS ServiceCategory and ServiceName."""

COLUMNS = (
    "ProviderName", "PublisherName", "InvoiceIssuerName", "InvoiceId", "BillingAccountId", "BillingAccountName",
    "BillingAccountType", "SubAccountId", "SubAccountName", "SubAccountType", "BillingPeriodStart", "BillingPeriodEnd",
    "ChargePeriodStart", "ChargePeriodEnd", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "ListUnitPrice", "ContractedUnitPrice",
    "PricingCategory", "PricingQuantity", "PricingUnit", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "BillingCurrency", "ConsumedQuantity",
    "ConsumedUnit", "ServiceName", "ServiceCategory", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceId",
    "SkuPriceDetails", "ResourceId", "ResourceName", "ResourceType", "RegionId", "RegionName", "AvailabilityZone",
    "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountCategory", "CommitmentDiscountType",
    "CommitmentDiscountStatus", "CommitmentDiscountQuantity", "CommitmentDiscountUnit", "CapacityReservationId",
    "CapacityReservationStatus", "Tags",
)  # fmt: skip
"""All columns of FOCUS 1.2; those that say nothing here stay empty."""

P5_LIST = Decimal("55.040000")  # p5.48xlarge, 8 H100
P4DE_LIST = Decimal("27.447050")  # p4de.24xlarge, 8 A100 80 GB
P4D_LIST = Decimal("21.957642")  # p4d.24xlarge, 8 A100 40 GB, since 2025-06
P5_GPU_LIST = Decimal("6.880000")  # p5.4xlarge, 1 H100: nimbus-m1 is billed as four of them
# Savings plan of one year, nothing upfront: 36.5 % off, the median of AWS's published grid (China regions; US rates for p5
# were not to be found).
P5_COMMITTED = Decimal("34.950400")
COMMITMENT = Decimal("75.0000")  # two nodes need 69.9008 an hour: a little too much was bought
# Spot against on demand: Spot Advisor says 67 % off p4d in us-east-1; zones scatter from 0.2 to 0.6.
SPOT_PER_MILLE = (270, 420)

PLAN_ID = "arn:aws:savingsplans::111122223333:savingsplan/5f2f7a0e-91c4-4c1e-8d0e-2b7c5d9f6a31"
STRAY_ID = "arn:aws:ec2:us-east-1:111122223333:instance/i-0feedc0ffee15bad1"
"""An instance that somebody started by hand: no inventory knows it."""

STRAY = "p5.4xlarge, on demand, started by hand"
CHANGED = "p4de.24xlarge, on demand, five hours of an impaired instance credited"
ADDED = "Data transfer out, late meter reading"
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


def cloud_bill(month: str, stays: Sequence[Stay], rng: np.random.Generator) -> list[Line]:
    """Lines of the cloud's bill of a month."""
    whole = MONTHS[month]
    lines = [*_commitment(whole), *_instances(whole, stays, rng), *_services(whole, rng)]
    if month == "2026-09":
        stray_days = range(seconds("2026-09-19"), seconds("2026-09-22"), DAY)
        lines += [_usage((day, day + DAY), STRAY, Decimal(24), P5_GPU_LIST, STRAY_ID) for day in stray_days]
    support = Decimal("0.03") * sum(Decimal(line["BilledCost"]) for line in lines)
    return [
        *lines,
        _line(whole, "Support, 3 % of the month", support, SUPPORT),
        _line(whole, "Sales tax on support, 8 %", support * Decimal("0.08"), SUPPORT, "Tax"),
        _line(whole, "Migration credit", Decimal("-2500.00"), COMPUTE, "Credit"),
    ]


def restated(lines: Sequence[Line]) -> list[Line]:
    """September's bill as delivered again: one line changed, one added, one removed."""
    node = instance_id("nimbus", "nimbus-d2", START)
    changed = node, iso(seconds("2026-09-17"))
    removed = STRAY_ID, iso(seconds("2026-09-21"))
    found = []
    for line in lines:
        about = line["ResourceId"], line["ChargePeriodStart"]
        if about == changed:
            found.append({**line, **_hours(Decimal(19), P4DE_LIST), "ChargeDescription": CHANGED})
        elif about != removed:
            found.append(line)
    last_day = seconds("2026-09-30")
    return [*found, _line((last_day, last_day + DAY), ADDED, Decimal("412.75"), TRAFFIC)]


def storage_bill(month: str, rng: np.random.Generator) -> list[Line]:
    """Lines of another provider's small bill, in EUR: object storage by the day, and traffic once."""
    about = {
        **dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), "Nordlake Storage"),
        "BillingAccountId": "NS-20417", "SubAccountId": "", "BillingCurrency": "EUR", "InvoiceId": f"NS-{month}-0417",
        "RegionId": "eu-north-1",
    }  # fmt: skip
    price = Decimal("0.000492")  # EUR per GB and day: about 15 EUR a TB and month
    lines = []
    for day in range(*MONTHS[month], DAY):
        stored = Decimal(int(rng.integers(310_000, 330_000)))
        line = _line((day, day + DAY), "Object storage", stored * price, ("Storage", "Nordlake Objects"))
        lines.append({**line, **about, **_quantity(stored, "GB-Days")})
    traffic = Decimal(int(rng.integers(20_000, 30_000))) * Decimal("0.01")
    return [*lines, {**_line(MONTHS[month], "Traffic", traffic, ("Networking", "Nordlake Traffic")), **about}]


def as_csv_gz(lines: Sequence[Line]) -> bytes:
    """The lines as gzipped CSV; equal lines give equal bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return gzip.compress(text.getvalue().encode(), mtime=0)


def _commitment(whole: Period) -> Iterator[Line]:
    """The purchase of the month, and by the hour what of it was used by which node and what by none.

    The purchase is billed and has no effective cost; used and unused have effective cost and are not billed. Both sides add
    up to the same amount (FOCUS 1.2, commitment discounts).
    """
    start, end = whole
    plan = {
        "CommitmentDiscountId": PLAN_ID, "CommitmentDiscountName": "p5 savings plan, one year",
        "CommitmentDiscountCategory": "Spend", "CommitmentDiscountType": "Savings Plan", "CommitmentDiscountUnit": "USD",
    }  # fmt: skip
    own = {**plan, "ResourceId": PLAN_ID, "ResourceType": "Savings Plan"}
    amount = COMMITMENT * ((end - start) // HOUR)
    purchase = _line(whole, "Savings plan, monthly fee", amount, PLANS, "Purchase")
    yield {**purchase, **own, "EffectiveCost": "0", "ChargeFrequency": "Recurring", "PricingCategory": "Standard"}
    stopped = {outage.node: range(outage.from_at, outage.until_at) for outage in OUTAGES}
    for at in range(start, end, HOUR):
        hour = at, at + HOUR
        users = [node for node in ("nimbus-r1", "nimbus-r2") if at not in stopped.get(node, ())]
        for node in users:
            resource = instance_id("nimbus", node, START)
            used = _usage(hour, "p5.48xlarge, savings plan", Decimal(1), P5_LIST, resource)
            yield {**used, **plan, **_covered(P5_COMMITTED, "Used")}
        left = COMMITMENT - P5_COMMITTED * len(users)
        yield {**_line(hour, "Savings plan, unused", left, PLANS), **own, **_covered(left, "Unused")}


def _covered(amount: Decimal, status: str) -> Line:
    text = _text(amount)
    return {
        "BilledCost": "0", "EffectiveCost": text, "ContractedCost": text, "PricingCategory": "Committed",
        "CommitmentDiscountStatus": status, "CommitmentDiscountQuantity": text,
    }  # fmt: skip


def _instances(whole: Period, stays: Sequence[Stay], rng: np.random.Generator) -> Iterator[Line]:
    """Instances on demand and spot, by the day, for the seconds that they were there."""
    prices = {
        "demand": ("p4de.24xlarge, on demand", P4DE_LIST),
        "mig": ("4 x p5.4xlarge, on demand", 4 * P5_GPU_LIST),
        "spot": ("p4d.24xlarge, spot", P4D_LIST),
    }
    for day in range(*whole, DAY):
        spot_price = (P4D_LIST * Decimal(int(rng.integers(*SPOT_PER_MILLE))) / 1_000).quantize(Decimal("0.0001"))
        for stay in stays:
            lasted = min(stay.until_at, day + DAY) - max(stay.from_at, day)
            if stay.pool.partition not in prices or lasted <= 0:
                continue
            hours = (Decimal(lasted) / HOUR).quantize(Decimal("0.0001"))
            line = _usage(
                (day, day + DAY),
                prices[stay.pool.partition][0],
                hours,
                prices[stay.pool.partition][1],
                stay.resource_id,
            )
            if stay.pool.partition == "spot":
                line |= dict.fromkeys(("BilledCost", "EffectiveCost", "ContractedCost"), _text(hours * spot_price))
                line["PricingCategory"] = "Dynamic"
            yield line


def _services(whole: Period, rng: np.random.Generator) -> Iterator[Line]:
    """What no node matches: file system, volumes, object storage and traffic, by the day."""
    services = (
        ("Lustre file system, 48 TB", ("Storage", "Amazon FSx"), 232),
        ("Volumes of the login and control nodes", ("Storage", "Amazon EBS"), 18),
        ("Object storage, standard", ("Storage", "Amazon S3"), 96),
        ("Data transfer out", TRAFFIC, 42),
    )
    for day in range(*whole, DAY):
        for description, service, usual in services:
            amount = usual * Decimal(int(rng.integers(900, 1_100))) / 1_000
            yield _line((day, day + DAY), description, amount, service)


def _usage(period: Period, description: str, hours: Decimal, price: Decimal, resource: str) -> Line:
    """An instance's hours at list price."""
    return {
        **_line(period, description, hours * price, COMPUTE),
        **_hours(hours, price),
        "ResourceId": resource,
        "ResourceName": resource.rpartition("/")[2],
        "ResourceType": "Instance",
    }


def _hours(hours: Decimal, price: Decimal) -> Line:
    return {
        **dict.fromkeys(COSTS, _text(hours * price)),
        **_quantity(hours, "Hours"),
        "ListUnitPrice": _text(price),
    }


def _quantity(quantity: Decimal, unit: str) -> Line:
    text = _text(quantity)
    return {"PricingQuantity": text, "PricingUnit": unit, "ConsumedQuantity": text, "ConsumedUnit": unit}


def _line(period: Period, description: str, amount: Decimal, service: tuple[str, str], category: str = "Usage") -> Line:
    """A line of the cloud's bill of the period's month, with all four costs alike and no resource."""
    month, (period_start, period_end) = next(
        (name, whole) for name, whole in MONTHS.items() if whole[0] <= period[0] < whole[1]
    )
    return {
        "BillingAccountId": "111122223333", "BillingAccountName": "Meridian Labs", "BillingCurrency": "USD",
        "BillingPeriodStart": iso(period_start), "BillingPeriodEnd": iso(period_end),
        "ChargePeriodStart": iso(period[0]), "ChargePeriodEnd": iso(period[1]),
        "ChargeCategory": category, "ChargeDescription": description,
        "ChargeFrequency": "Usage-Based" if category == "Usage" else "One-Time",
        **dict.fromkeys(COSTS, _text(amount)),
        "PricingCategory": "Standard" if category == "Usage" else "",
        "ProviderName": "AWS", "PublisherName": "AWS", "InvoiceIssuerName": "AWS", "InvoiceId": f"EX-{month}-0001",
        "ServiceCategory": service[0], "ServiceName": service[1], "ResourceId": "",
        "RegionId": "us-east-1", "SubAccountId": "111122223333",
    }  # fmt: skip


def _text(amount: Decimal) -> str:
    """Exact text without an exponent or trailing zeros."""
    return f"{amount.normalize():f}"
