"""What GPUs could be bought for, month by month, and what Meridian Labs had bought: files of prices and commitments.

List prices and discounts are published figures, each with its source below; that they held on these days is invented. An
instrument that does not exist has no row: AWS sells no reserved p5. Spot prices of p4d are those of the bill.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from examples.billing import COMMITMENT, P4D_LIST, P4DE_LIST, P5_COMMITTED, P5_LIST, PLAN_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from examples.billing import Line

Row = dict[str, str]

PRICE_COLUMNS = (
    "offer_id", "gpu_model", "region", "zone", "observed_at", "instrument", "provider", "instance_type",
    "operating_system", "gpu_count", "scope", "has_capacity", "term_seconds", "payment_option", "upfront_amount",
    "hourly_amount", "residual_amount", "life_months_count", "power_watts", "monthly_fee_amount", "lead_seconds",
    "currency", "price_source",
)  # fmt: skip
COMMITMENT_COLUMNS = (
    "commitment_id", "instrument", "provider", "offer_id", "region", "zone", "gpu_model", "instance_type", "scope",
    "has_capacity", "starts_at", "ends_at", "gpu_count", "hourly_commitment_amount", "hourly_amount", "upfront_amount",
    "payment_option", "currency", "state",
)  # fmt: skip

OBSERVED = ("2026-08-31", "2026-09-30", "2026-10-31")
"""When the prices were read."""

NODE_GPUS = 8
YEAR_HOURS = 8_760
REGION = "us-east-1"
INSTANCES = {
    "p5.48xlarge": ("H100-80GB", P5_LIST),
    "p4de.24xlarge": ("A100-80GB", P4DE_LIST),
    "p4d.24xlarge": ("A100-40GB", P4D_LIST),
}
"""GPU model and list price an hour of an instance of eight (AWS price list, us-east-1, 2026-01 and -07)."""

RESERVED = {"p4de.24xlarge": Decimal("17.401365"), "p4d.24xlarge": Decimal("13.921094")}
"""A year's reservation, nothing upfront, an hour (AWS price list, us-east-1, 2026-01): 36.6 % off."""
RESERVED_OFF = {(1, "all_upfront"): "0.4083", (3, "no_upfront"): "0.5731", (3, "all_upfront"): "0.6284"}
"""Part off list by years and payment: AWS's grid of p4d in cn-northwest-1, standard; no grid of us-east-1 was to be had."""
COMPUTE_PLAN_OFF = {1: "0.276", 3: "0.438"}
"""Part off list by years, nothing upfront: the median of convertible reservations of GPU instances in AWS's grid, whose
discounts Compute Savings Plans have (AWS: up to 66 % off both); rates of p5 were not to be had."""

INSTANCE_PLAN = "aws/us-east-1/p5/instance_savings_plan/1y/no_upfront"
INSTANCE_PLAN_SEEN, INSTANCE_PLAN_STARTS, INSTANCE_PLAN_ENDS = "2026-02-27", "2026-03-01", "2027-03-01"
"""The plan that the bill shows: its price was read before it was bought and never again, so it is old by now."""

BLOCK_DAYS, BLOCK_HOURLY = 14, Decimal("5.191")  # p5.48xlarge at 41.528 an hour, AWS Capacity Blocks, 2026-07-22

SPOT_RATIOS: dict[str, dict[str, tuple[str, str, str]]] = {
    "p5.48xlarge": {
        "us-east-1a": ("0.320", "0.410", "0.186"),
        "us-east-1b": ("0.480", "0.480", "0.480"),
        "us-east-1c": ("1", "1", "1"),
        "us-east-1d": ("1", "1", "1"),
    },
    "p4de.24xlarge": {"us-east-1a": ("0.35", "0.33", "0.36"), "us-east-1b": ("0.42", "0.45", "0.40")},
}
"""Spot as a part of list by zone and month. July 2026: p5 at 0.186 to 1 by zone, two zones of us-east-1 at list; AWS Spot
Advisor: p4de 65 % off, p5 52 % off."""
P4D_ADVISED, P4D_OTHER_ZONE = Decimal("0.33"), Decimal("1.2")
"""Spot of p4d as a part of list before the first bill (Spot Advisor: 67 % off), and its other zone against the bill's."""

NODE, FABRIC = Decimal(320_000), Decimal("0.125")
RACK, SUPPORT, STAFF = Decimal("1877.41"), NODE * Decimal("0.05") / 12, Decimal(1_500)
"""A node of eight H100 and the network's part on top; a month's rack of 10.2 kW at 184.06 USD (CBRE, H2 2024), support of
5 % a year, and staff. With 619.51 of power these are 5,330 USD a month. Purchase and staff: public estimates, weak."""
NODE_WATTS, FACILITY, ENERGY = Decimal(8_160), Decimal("1.3"), Decimal("0.08")
"""80 % of 10.2 kW; facility power over IT power; USD per kWh: as in the register of assets."""
LIFE_MONTHS, RESIDUAL, LEAD_SECONDS = 48, Decimal("0.15"), 12 * 7 * 86_400

PRICE_LIST, PUBLISHED_GRID = "AWS price list", "AWS price list with the discount of another region"


def prices_csv(observed_on: str, bill: Sequence[Line]) -> str:
    """Prices as they were read on a day; the first reading also has the price that the savings plan was bought at.

    Args:
      observed_on: One of ``OBSERVED``.
      bill: The month's bill of the cloud, which shows what spot cost last; empty before the first.
    """
    rows = [
        *_on_demand(),
        *_reserved(),
        *_compute_plans(),
        *_spot(OBSERVED.index(observed_on), _billed_spot(bill)),
        *_elsewhere(),
    ]
    seen = [{**row, "observed_at": observed_on} for row in rows]
    if observed_on == OBSERVED[0]:
        seen.append({**_instance_plan(), "observed_at": INSTANCE_PLAN_SEEN})
    return _csv(PRICE_COLUMNS, seen)


def commitments_csv(*, queued: bool) -> str:
    """What is held: the savings plan of the bill and the owned nodes; or what was bought later and is queued."""
    return _csv(COMMITMENT_COLUMNS, [_queued()] if queued else [_held_plan(), *_owned_nodes()])


def _aws(name: str, instrument: str, hourly: Decimal, **more: str) -> Row:
    """A price of an instance type in us-east-1, per GPU."""
    return {
        "gpu_model": INSTANCES[name][0], "region": REGION, "instrument": instrument, "provider": "aws", "instance_type": name,
        "operating_system": "Linux", "gpu_count": str(NODE_GPUS), "scope": "region", "has_capacity": "false",
        "hourly_amount": _text(hourly), "currency": "USD", "price_source": PRICE_LIST, **more,
    }  # fmt: skip


def _on_demand() -> Iterator[Row]:
    for name, (_, node_hourly) in INSTANCES.items():
        yield _aws(name, "on_demand", node_hourly / NODE_GPUS, offer_id=f"aws/{REGION}/{name}/on_demand")


def _reserved() -> Iterator[Row]:
    for name, node_hourly in RESERVED.items():
        yield _reservation(name, 1, "no_upfront", node_hourly / NODE_GPUS)
        for (years, payment), off in RESERVED_OFF.items():
            hourly = INSTANCES[name][1] / NODE_GPUS * (1 - Decimal(off))
            yield _reservation(name, years, payment, hourly.quantize(Decimal("0.000001")), price_source=PUBLISHED_GRID)


def _reservation(name: str, years: int, payment: str, hourly: Decimal, **more: str) -> Row:
    is_upfront = payment == "all_upfront"
    upfront = {"upfront_amount": _text((hourly * YEAR_HOURS * years).quantize(Decimal("0.01")))} if is_upfront else {}
    about = {"offer_id": reservation_id(name, years, payment), **_term(years, payment), **upfront, **more}
    return _aws(name, "reserved", Decimal(0) if is_upfront else hourly, **about)


def reservation_id(name: str, years: int, payment: str) -> str:
    """Offer of a reservation of an instance type.

    >>> reservation_id("p4d.24xlarge", 1, "no_upfront")
    'aws/us-east-1/p4d.24xlarge/reserved/1y/no_upfront'
    """
    return f"aws/{REGION}/{name}/reserved/{years}y/{payment}"


def _term(years: int, payment: str) -> Row:
    return {"term_seconds": str(years * YEAR_HOURS * 3_600), "payment_option": payment}


def _compute_plans() -> Iterator[Row]:
    """Money an hour over all models: a row for the rate of each, under one offer."""
    for years, off in COMPUTE_PLAN_OFF.items():
        about = {"offer_id": f"aws/compute_savings_plan/{years}y/no_upfront", "scope": "global", "gpu_count": "1"}
        for name, (_, node_hourly) in INSTANCES.items():
            hourly = (node_hourly / NODE_GPUS * (1 - Decimal(off))).quantize(Decimal("0.000001"))
            paid = _term(years, "no_upfront")
            yield _aws(name, "savings_plan", hourly, **about, **paid, price_source=PUBLISHED_GRID)


def _instance_plan() -> Row:
    about = {"offer_id": INSTANCE_PLAN, "scope": "family", "gpu_count": "1", "price_source": "quote"}
    return _aws("p5.48xlarge", "savings_plan", P5_COMMITTED / NODE_GPUS, **about, **_term(1, "no_upfront"))


def _spot(month: int, billed: Decimal | None) -> Iterator[Row]:
    """Spot by zone; p4d in the first zone as the bill shows it."""
    p4d = (P4D_LIST * P4D_ADVISED).quantize(Decimal("0.0001")) if billed is None else billed
    zones: dict[str, Mapping[str, Decimal]] = {
        name: {zone: INSTANCES[name][1] * Decimal(ratios[month]) for zone, ratios in found.items()}
        for name, found in SPOT_RATIOS.items()
    }
    zones["p4d.24xlarge"] = {"us-east-1a": p4d, "us-east-1b": p4d * P4D_OTHER_ZONE}
    for name, found in zones.items():
        for zone, node_hourly in found.items():
            about = {"offer_id": f"aws/{REGION}/{name}/spot", "zone": zone, "scope": "zone"}
            yield _aws(name, "spot", node_hourly / NODE_GPUS, **about, price_source="AWS spot price history")


def _billed_spot(bill: Sequence[Line]) -> Decimal | None:
    """What a p4d on spot cost an hour on the last day on which the bill has any."""
    lines = [line for line in bill if line["PricingCategory"] == "Dynamic"]
    if not lines:
        return None
    last = max(lines, key=lambda line: line["ChargePeriodStart"])
    return (Decimal(last["BilledCost"]) / Decimal(last["PricingQuantity"])).quantize(Decimal("0.0001"))


def _elsewhere() -> Iterator[Row]:
    """What holds capacity: a block of two weeks, a neocloud's contract and its on-demand price, and machines of one's own."""
    zone = {"zone": "us-east-1b", "scope": "zone", "has_capacity": "true", "payment_option": "all_upfront"}
    block = _aws("p5.48xlarge", "capacity_block", Decimal(0), **zone, price_source="AWS Capacity Blocks page")
    days = {
        "offer_id": f"aws/us-east-1/p5.48xlarge/capacity_block/{BLOCK_DAYS}d",
        "term_seconds": str(BLOCK_DAYS * 86_400),
    }
    yield {**block, **days, "upfront_amount": _text(BLOCK_HOURLY * 24 * BLOCK_DAYS)}
    h100 = {"gpu_model": "H100-80GB", "gpu_count": str(NODE_GPUS), "scope": "region", "currency": "USD"}
    nebius = {**h100, "provider": "nebius", "region": "eu-north1"}
    yield {
        **nebius, "offer_id": "nebius/h100/on_demand", "instrument": "on_demand", "has_capacity": "false",
        "hourly_amount": "2.95", "price_source": "Nebius price page",
    }  # fmt: skip
    yield {
        **nebius, "offer_id": "nebius/h100/contract/1y", "instrument": "contract", "has_capacity": "true",
        **_term(1, "no_upfront"), "hourly_amount": "2.35", "price_source": "quote",
    }  # fmt: skip
    per_gpu = NODE * (1 + FABRIC) / NODE_GPUS
    yield {
        **h100, "offer_id": "own/h100", "provider": "own", "region": "atlas", "instrument": "owned", "has_capacity": "true",
        "upfront_amount": _text(per_gpu), "residual_amount": _text(per_gpu * RESIDUAL),
        "life_months_count": str(LIFE_MONTHS), "power_watts": _text(NODE_WATTS / NODE_GPUS),
        "monthly_fee_amount": _text(((RACK + SUPPORT + STAFF) / NODE_GPUS).quantize(Decimal("0.01"))),
        "lead_seconds": str(LEAD_SECONDS), "price_source": "quote",
    }  # fmt: skip


def _held_plan() -> Row:
    return {
        "commitment_id": PLAN_ID, "instrument": "savings_plan", "provider": "aws", "offer_id": INSTANCE_PLAN,
        "region": REGION, "gpu_model": "H100-80GB", "scope": "family", "has_capacity": "false",
        "starts_at": INSTANCE_PLAN_STARTS, "ends_at": INSTANCE_PLAN_ENDS, "hourly_commitment_amount": _text(COMMITMENT),
        "payment_option": "no_upfront", "currency": "USD", "state": "active",
    }  # fmt: skip


def _owned_nodes() -> Iterator[Row]:
    """The six nodes of the register, by the year they were bought in; an hour of a GPU costs its rack and its power."""
    energy = NODE_WATTS / 1_000 * FACILITY * ENERGY
    hourly = ((RACK / 730 + energy) / NODE_GPUS).quantize(Decimal("0.000001"))
    for year, nodes, starts_at, ends_at in (
        (2025, 4, "2025-03-10", "2029-03-10"),
        (2026, 2, "2026-02-02", "2031-02-02"),
    ):
        yield {
            "commitment_id": f"atlas-{year}", "instrument": "owned", "provider": "own", "region": "atlas",
            "gpu_model": "H100-80GB", "scope": "region", "has_capacity": "true", "starts_at": starts_at,
            "ends_at": ends_at, "gpu_count": str(nodes * NODE_GPUS), "hourly_amount": _text(hourly),
            "upfront_amount": _text(nodes * NODE), "currency": "USD", "state": "active",
        }  # fmt: skip


def _queued() -> Row:
    """A reservation of one p4de from December on: October's bill still has both on demand."""
    name = "p4de.24xlarge"
    return {
        "commitment_id": f"arn:aws:ec2:{REGION}:111122223333:reserved-instances/3c8e7a52-40d1-4b7f-9d25-6f0a1be2c914",
        "instrument": "reserved", "provider": "aws", "offer_id": reservation_id(name, 1, "no_upfront"), "region": REGION,
        "gpu_model": "A100-80GB", "instance_type": name, "scope": "region", "has_capacity": "false",
        "starts_at": "2026-12-01", "ends_at": "2027-12-01", "gpu_count": str(NODE_GPUS),
        "hourly_amount": _text(RESERVED[name] / NODE_GPUS), "payment_option": "no_upfront", "currency": "USD",
        "state": "queued",
    }  # fmt: skip


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    return "\n".join([",".join(columns), *(",".join(row.get(name, "") for name in columns) for row in rows)]) + "\n"


def _text(amount: Decimal) -> str:
    """Exact text without an exponent or trailing zeros; nothing for nothing."""
    return f"{amount.normalize():f}" if amount else ""
