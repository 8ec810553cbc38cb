"""Prices of AWS, per GPU. Spot prices come from moto; it has no price list and no savings plans, so their answers are given
to boto3's own stub, which checks them against the service's model, in the shape of AWS's documentation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import boto3
import polars as pl
import pytest
from botocore.stub import ANY, Stubber
from moto import mock_aws

from models.errors import SourceError
from models.events import PriceObserved, polars_schema
from pipelines.sources.prices_aws import read_aws_prices

if TYPE_CHECKING:
    from pipelines.sources.base import Chunk

READ_AT = datetime(2026, 10, 1, 6, tzinfo=UTC)
WINDOW = {"start": datetime(2026, 9, 1, tzinfo=UTC), "end": datetime(2026, 10, 1, tzinfo=UTC)}


def client(service: str, region: str = "us-east-1") -> Any:
    make: Any = boto3.client
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return make(service, region_name=region, **keys)


def term(hourly: str, upfront: str | None = None, **attributes: str) -> dict[str, Any]:
    dimensions = {
        "S.T.6YS6EN2CT7": {"unit": "Hrs", "pricePerUnit": {"USD": hourly}, "beginRange": "0", "endRange": "Inf"}
    }
    if upfront is not None:
        dimensions["S.T.2TG2D8R56U"] = {"unit": "Quantity", "pricePerUnit": {"USD": upfront}}
    return {
        "priceDimensions": dimensions,
        "sku": "S",
        "offerTermCode": "T",
        "effectiveDate": "2026-08-01T00:00:00Z",
        "termAttributes": attributes,
    }


def reserved(length: str, option: str, hourly: str, upfront: str | None, of: str = "standard") -> dict[str, Any]:
    return term(hourly, upfront, LeaseContractLength=length, PurchaseOption=option, OfferingClass=of)


def product(name: str, on_demand: str, *reservations: dict[str, Any]) -> str:
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute Instance",
                "sku": "S",
                "attributes": {"instanceType": name, "regionCode": "us-east-1", "operatingSystem": "Linux"},
            },
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {"S.JRTCKXETXF": term(on_demand)},
                **({"Reserved": {str(number): one for number, one in enumerate(reservations)}} if reservations else {}),
            },
            "version": "20260929120000",
            "publicationDate": "2026-09-29T12:00:00Z",
        }
    )


def rate(
    name: str, plan: str, rate: str, *, payment: str = "No Upfront", years: int = 1, usage: str = "BoxUsage"
) -> dict[str, Any]:
    offering = {"planType": plan, "paymentOption": payment, "durationSeconds": years * 31_536_000, "currency": "USD"}
    return {
        "savingsPlanOffering": {"offeringId": "0" * 36, "planDescription": "", **offering},
        "rate": rate,
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": f"{usage}:{name}",
        "operation": "RunInstances",
        "properties": [{"name": "region", "value": "us-east-1"}, {"name": "instanceType", "value": name}],
    }


class Aws:
    """AWS as it answers here."""

    def __init__(self, listed: list[str] | None = None, rates: list[dict[str, Any]] | None = None) -> None:
        self.clients = {name: client(name) for name in ("ec2", "pricing", "savingsplans")}
        listing, plans = Stubber(self.clients["pricing"]), Stubber(self.clients["savingsplans"])
        half = len(listed or []) // 2
        pages = [(listed or [])[:half], (listed or [])[half:]]
        listing.add_response("get_products", {"PriceList": pages[0], "NextToken": "more"})
        again = {"ServiceCode": "AmazonEC2", "Filters": ANY, "NextToken": "more"}
        listing.add_response("get_products", {"PriceList": pages[1]}, again)
        plans.add_response("describe_savings_plans_offering_rates", {"searchResults": rates or []})
        listing.activate()
        plans.activate()

    def read(self) -> list[Chunk]:
        with mock_aws():
            return list(
                read_aws_prices(
                    "us-east-1", **WINDOW, client=lambda name, _region: self.clients[name], now=lambda: READ_AT
                )
            )

    def prices(self, instrument: str) -> list[dict[str, Any]]:
        chunks = self.read()
        assert all(chunk.events[PriceObserved].schema == polars_schema(PriceObserved) for chunk in chunks)
        frame = pl.concat(chunk.events[PriceObserved] for chunk in chunks)
        return frame.filter(pl.col("instrument") == instrument).to_dicts()


def test_a_spot_price_is_of_one_gpu_in_one_zone() -> None:
    found = Aws().prices("spot")
    one = next(row for row in found if row["offer_id"] == "aws/us-east-1/p4d.24xlarge/spot")
    assert (one["gpu_model"], one["gpu_count"], one["scope"], one["has_capacity"]) == ("A100-40GB", 8, "zone", False)
    assert one["zone"].startswith("us-east-1")
    assert one["hourly_amount"] == Decimal("0.00001") / 8
    assert one["observed_at"].tzinfo is not None
    assert len({row["zone"] for row in found}) > 1


def test_a_price_list_gives_on_demand_and_reserved_prices_per_gpu() -> None:
    aws = Aws(
        [
            product(
                "p4d.24xlarge",
                "21.9576400000",
                reserved("1yr", "No Upfront", "13.8333", None),
                reserved("3yr", "All Upfront", "0.0000000000", "240000"),
                reserved("1yr", "Partial Upfront", "7.5", "60000", "convertible"),
            )
        ]
    )
    chunks = aws.read()
    rows = {row["offer_id"]: row for row in pl.concat(one.events[PriceObserved] for one in chunks).to_dicts()}
    on_demand = rows["aws/us-east-1/p4d.24xlarge/on_demand"]
    assert (on_demand["hourly_amount"], on_demand["term_seconds"]) == (Decimal("2.744705"), None)
    assert on_demand["observed_at"] == datetime(2026, 9, 29, 12, tzinfo=UTC)
    assert on_demand["valid_from_at"] == datetime(2026, 8, 1, tzinfo=UTC)
    upfront = rows["aws/us-east-1/p4d.24xlarge/reserved/3yr/all_upfront/standard"]
    assert (upfront["upfront_amount"], upfront["hourly_amount"]) == (30_000, 0)
    assert (upfront["term_seconds"], upfront["payment_option"]) == (94_608_000, "all_upfront")
    one_year = rows["aws/us-east-1/p4d.24xlarge/reserved/1yr/no_upfront/standard"]
    assert (one_year["hourly_amount"], one_year["upfront_amount"]) == (Decimal("1.7291625"), None)
    assert rows["aws/us-east-1/p4d.24xlarge/reserved/1yr/partial_upfront/convertible"]["has_capacity"] is False
    assert all(row["price_source"] == "AWS price list 20260929120000" for row in rows.values() if row["zone"] == "")


def test_an_instrument_that_does_not_exist_is_absent() -> None:
    """p5 has no reservation; p5e is listed at 0 on demand, which is no offer."""
    aws = Aws([product("p5.48xlarge", "55.04"), product("p5e.48xlarge", "0.0000000000")])
    chunks = aws.read()
    frame = pl.concat(one.events[PriceObserved] for one in chunks).filter(pl.col("instrument") != "spot")
    assert frame["offer_id"].to_list() == ["aws/us-east-1/p5.48xlarge/on_demand"]
    assert frame["hourly_amount"].to_list() == [Decimal("6.88")]
    aside = pl.concat(one.rejected for one in chunks)
    assert aside["kind"].to_list() == ["set_aside"]
    assert "listed at a price of 0" in aside["reason"].item()


def test_an_instance_without_a_known_gpu_is_set_aside() -> None:
    (aside,) = [row for chunk in Aws([product("g9.xlarge", "1.0")]).read() for row in chunk.rejected.to_dicts()]
    assert (aside["source"], aside["kind"], aside["position"]) == ("aws_prices", "set_aside", "us-east-1/g9.xlarge")
    assert aside["reason"] == "g9.xlarge: its GPU model is not known here"


def test_a_savings_plan_has_one_rate_for_each_gpu_model() -> None:
    rates = [
        rate("p5.48xlarge", "Compute", "40.00"),
        rate("p5en.48xlarge", "Compute", "50.00"),
        rate("p5e.48xlarge", "Compute", "48.00"),
        rate("p5.48xlarge", "EC2Instance", "36.00", payment="All Upfront", years=3),
        rate("p5.48xlarge", "Compute", "40.00", usage="UnusedBox"),
    ]
    found = [
        (row["offer_id"], row["gpu_model"], row["hourly_amount"]) for row in Aws(rates=rates).prices("savings_plan")
    ]
    assert found == [
        ("aws/savings_plan/compute/1yr/no_upfront", "H100-80GB", 5),
        ("aws/savings_plan/compute/1yr/no_upfront", "H200-141GB", Decimal("6.25")),
        ("aws/us-east-1/p5/savings_plan/ec2_instance/3yr/all_upfront", "H100-80GB", Decimal("4.5")),
    ]


def test_a_plans_rate_is_dated_by_the_day_it_was_read_and_holds_no_capacity() -> None:
    (row,) = Aws(rates=[rate("p5.48xlarge", "Compute", "40.00", years=3)]).prices("savings_plan")
    assert (row["observed_at"], row["scope"], row["term_seconds"]) == (READ_AT.replace(hour=0), "global", 94_608_000)
    assert row["has_capacity"] is False


def test_a_refusal_is_told_with_what_the_account_must_be_allowed() -> None:
    aws = Aws()
    aws.clients["ec2"] = client("ec2")
    stub = Stubber(aws.clients["ec2"])
    stub.add_client_error("describe_spot_price_history", "UnauthorizedOperation", "not allowed")
    stub.activate()
    with pytest.raises(SourceError, match=r"us-east-1: .*not allowed.*ec2:DescribeSpotPriceHistory"):
        aws.read()
