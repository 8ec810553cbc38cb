"""Prices of AWS: the history of spot prices, the price list (on demand and reserved), and the rates of savings plans.

AWS quotes an instance; a price here is of one GPU, so that instance types compare: the quote over the instance's GPUs, exact
to twelve decimals (rounded to even beyond, for a count of GPUs that does not divide it). An instance type whose GPU model
is not known (``models/instances.py``) is set aside. Linux with shared tenancy, without software or licences of others.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import SourceError
from models.events import PriceObserved, polars_schema
from models.instances import INSTANCE_TYPES, InstanceType, instance_type
from models.prices import YEAR_SECONDS, Instrument, Scope
from pipelines.sources.base import Chunk, rejected_frame, rejected_row
from pipelines.sources.record_columns import instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = "aws_prices"

_LINUX = "Linux/UNIX"
_PLACES = Decimal("0.000000000001")
_API_REGION = "us-east-1"  # the price list and the savings plans answer there for all regions
_PAYMENT = {"No Upfront": "no_upfront", "Partial Upfront": "partial_upfront", "All Upfront": "all_upfront"}
_TERM_SECONDS = {"1yr": YEAR_SECONDS, "3yr": 3 * YEAR_SECONDS}
_PLAN = {"Compute": ("compute", Scope.GLOBAL), "EC2Instance": ("ec2_instance", Scope.FAMILY)}
_PRODUCT_FILTERS = {
    "productFamily": "Compute Instance",
    "instanceFamily": "GPU instance",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
_TYPES = {one.name: one for one in INSTANCE_TYPES if one.provider == "aws"}

Row = dict[str, Any]


def _client(service: str, region: str) -> Any:
    import boto3  # noqa: PLC0415 - slow to import, and no other command needs it
    from botocore.config import Config  # noqa: PLC0415

    make: Callable[..., Any] = boto3.client
    return make(service, region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 5}))


def read_aws_prices(
    region: str,
    *,
    start: datetime,
    end: datetime,
    client: Callable[[str, str], Any] = _client,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Chunk]:
    """Read the spot prices of a window, and the list prices and savings plan rates as they are offered now.

    Credentials are those that the AWS command line would use. The account must be allowed
    ``ec2:DescribeSpotPriceHistory``, ``pricing:GetProducts`` and ``savingsplans:DescribeSavingsPlansOfferingRates``.

    Args:
      region: AWS region such as us-east-1.
      start: Start of the window of spot prices; AWS keeps 90 days. What was in force at the start comes with it.
      end: End of the window.
      client: From a service's name and a region to a client of boto3; tests pass their own.
      now: The clock: the day on which a savings plan's rate was read, since AWS does not date it; read again on the
        same day it says nothing new.

    Raises:
      SourceError: AWS cannot be asked, or refuses.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as boto3

    try:
        yield from _spot(client("ec2", region), region, start, end)
        yield from _listed(client("pricing", _API_REGION), region)
        yield from _plan_rates(client("savingsplans", _API_REGION), region, _day(now()))
    except (BotoCoreError, ClientError) as error:
        raise SourceError(
            f"AWS did not give the prices of {region}: {error}; expected credentials as the AWS command line takes them, "
            "allowed ec2:DescribeSpotPriceHistory, pricing:GetProducts and savingsplans:DescribeSavingsPlansOfferingRates"
        ) from error


def _day(read_at: datetime) -> datetime:
    return read_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _spot(client: Any, region: str, start: datetime, end: datetime) -> Iterator[Chunk]:
    """Spot prices by zone, page by page."""
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=sorted(_TYPES),
        ProductDescriptions=[_LINUX],
        StartTime=start,
        EndTime=end,
        PaginationConfig={"PageSize": 1000},
    )
    for page in pages:
        rows = [
            _row(
                _TYPES[found["InstanceType"]],
                f"aws/{region}/{found['InstanceType']}/spot",
                region=region,
                zone=found["AvailabilityZone"],
                observed_at=found["Timestamp"].astimezone(UTC).replace(microsecond=0),
                instrument=Instrument.SPOT,
                scope=Scope.ZONE,
                hourly=found["SpotPrice"],
                price_source="AWS spot price history",
            )
            for found in page["SpotPriceHistory"]
        ]
        yield _chunk(rows)


def _listed(client: Any, region: str) -> Iterator[Chunk]:
    """On-demand and reserved prices of the price list, page by page."""
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in _PRODUCT_FILTERS.items()]
    filters.append({"Type": "TERM_MATCH", "Field": "regionCode", "Value": region})
    for page in client.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters):
        products = [json.loads(text) for text in page["PriceList"]]
        rows, aside = [], []
        for product in products:
            name = product["product"]["attributes"]["instanceType"]
            kind = instance_type("aws", name)
            if kind is None:
                aside.append(_set_aside(f"{region}/{name}", f"{name}: its GPU model is not known here", product))
                continue
            found = _on_demand(kind, region, product) + _reserved(kind, region, product)
            rows += [row for row in found if _is_offered(row)]
            aside += [
                _set_aside(row["offer_id"], "listed at a price of 0, so it is no offer", product)
                for row in found
                if not _is_offered(row)
            ]
        yield _chunk(rows, aside, read=len(products))


def _on_demand(kind: InstanceType, region: str, product: Row) -> list[Row]:
    return [
        _row(
            kind,
            f"aws/{region}/{kind.name}/on_demand",
            region=region,
            instrument=Instrument.ON_DEMAND,
            scope=Scope.REGION,
            **_dated(product, term),
            **_amounts(term),
        )
        for term in product["terms"].get("OnDemand", {}).values()
    ]


def _reserved(kind: InstanceType, region: str, product: Row) -> list[Row]:
    """Prices of a regional reservation, which holds no capacity; a convertible one is an offer of its own."""
    rows = []
    for term in product["terms"].get("Reserved", {}).values():
        about = term["termAttributes"]
        length, payment = about["LeaseContractLength"], _PAYMENT[about["PurchaseOption"]]
        offer = f"aws/{region}/{kind.name}/reserved/{length}/{payment}/{about['OfferingClass']}"
        rows.append(
            _row(
                kind,
                offer,
                region=region,
                instrument=Instrument.RESERVED,
                scope=Scope.REGION,
                term_seconds=_TERM_SECONDS[length],
                payment_option=payment,
                **_dated(product, term),
                **_amounts(term),
            )
        )
    return rows


def _dated(product: Row, term: Row) -> Row:
    return {
        "observed_at": instant(product["publicationDate"]),
        "valid_from_at": instant(term["effectiveDate"]),
        "price_source": f"AWS price list {product['version']}",
    }


def _amounts(term: Row) -> Row:
    """Currency, and what is paid by the hour and at the start: a price list states each as a dimension."""
    by_unit = {one["unit"]: one["pricePerUnit"] for one in term["priceDimensions"].values()}
    currency = next(iter(next(iter(by_unit.values()))))
    amounts = {"hourly": by_unit.get("Hrs"), "upfront": by_unit.get("Quantity")}
    return {"currency": currency, **{name: found[currency] for name, found in amounts.items() if found}}


def _is_offered(row: Row) -> bool:
    return bool(row["hourly_amount"] or row["upfront_amount"])


def _plan_rates(client: Any, region: str, read_at: datetime) -> Iterator[Chunk]:
    """Rates of savings plans, page by page; of a family's instance types the largest stands for its GPU.

    A plan's rates per GPU differ between instance types of one GPU model, as their processors and memory do. What is bought
    for a cluster is whole nodes, so a compute plan takes the largest type of a model, the newest of equal ones.
    """
    asked = {
        "productDescription": [_LINUX],
        "tenancy": ["shared"],
        "region": [region],
        "instanceType": sorted(_largest(_family)),
    }
    request: Row = {
        "savingsPlanTypes": sorted(_PLAN),
        "products": ["EC2"],
        "serviceCodes": ["AmazonEC2"],
        "filters": [{"name": name, "values": values} for name, values in asked.items()],
        "maxResults": 1000,
    }
    of_model = _largest(lambda kind: kind.gpu_model)
    while True:
        page = client.describe_savings_plans_offering_rates(**request)
        found = page["searchResults"]
        boxes = [one for one in found if one["unit"] == "Hrs" and "BoxUsage:" in one["usageType"]]
        rows = [_plan_rate(one, region, read_at) for one in boxes]
        kept = [row for row in rows if row["scope"] is Scope.FAMILY or row["instance_type"] in of_model]
        yield _chunk(kept, read=len(found))
        if not page.get("nextToken"):
            return
        request["nextToken"] = page["nextToken"]


def _plan_rate(found: Row, region: str, read_at: datetime) -> Row:
    offering = found["savingsPlanOffering"]
    kind = _TYPES[next(one["value"] for one in found["properties"] if one["name"] == "instanceType")]
    plan, scope = _PLAN[offering["planType"]]
    payment, years = _PAYMENT[offering["paymentOption"]], offering["durationSeconds"] // YEAR_SECONDS
    where = "aws" if scope is Scope.GLOBAL else f"aws/{region}/{_family(kind)}"
    return _row(
        kind,
        f"{where}/savings_plan/{plan}/{years}yr/{payment}",
        region=region,
        observed_at=read_at,
        instrument=Instrument.SAVINGS_PLAN,
        scope=scope,
        term_seconds=offering["durationSeconds"],
        payment_option=payment,
        currency=offering["currency"],
        hourly=found["rate"],
        price_source="AWS savings plan rates",
    )


def _family(kind: InstanceType) -> str:
    return kind.name.split(".", maxsplit=1)[0]


def _largest(group: Callable[[InstanceType], str]) -> set[str]:
    """Of each group of instance types the one with the most GPUs; of equal ones the last by name."""
    ordered = sorted(_TYPES.values(), key=lambda kind: (kind.gpu_count, kind.name))
    return set({group(kind): kind.name for kind in ordered}.values())


def _row(
    kind: InstanceType, offer_id: str, *, hourly: str | None = None, upfront: str | None = None, **about: Any
) -> Row:
    """One price of one GPU, from quotes for the instance."""
    quotes = {"hourly_amount": hourly, "upfront_amount": upfront}
    return {
        "offer_id": offer_id,
        "gpu_model": kind.gpu_model,
        "zone": "",
        "provider": "aws",
        "instance_type": kind.name,
        "operating_system": "Linux",
        "gpu_count": kind.gpu_count,
        "has_capacity": False,
        "currency": "USD",
        **{name: _per_gpu(quote, kind) for name, quote in quotes.items()},
        **about,
    }


def _per_gpu(quote: str | None, kind: InstanceType) -> Decimal | None:
    return None if quote is None else (Decimal(quote) / kind.gpu_count).quantize(_PLACES, ROUND_HALF_EVEN)


def _set_aside(position: str, reason: str, product: Row) -> dict[str, str]:
    return rejected_row(SOURCE, position, reason, json.dumps(product["product"]), "set_aside")


def _chunk(rows: list[Row], aside: list[dict[str, str]] | None = None, *, read: int | None = None) -> Chunk:
    """Rows as a chunk; of more that was read, what is neither a row nor set aside is no price of ours."""
    frame, rejected = pl.DataFrame(rows, schema=polars_schema(PriceObserved)), rejected_frame(aside or [])
    count = len(rows) if read is None else read
    return Chunk(
        {PriceObserved: frame}, rejected, rows_read=count, rows_ignored=max(0, count - len(rows) - rejected.height)
    )
