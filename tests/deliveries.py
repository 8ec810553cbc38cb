"""Raw files of a very small company: one node, one team, the last days of September and the first of October 2026.

September's bill comes twice, the second time with 10 USD less; one row of the dump cannot be understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NODES = """\
cluster,node,gpu_model,gpu_count,effective_from,resource_id
alps,n1,A100-40GB,4,2026-09-29,i-1
"""
ORG = """\
account,project,team,business_unit,effective_from
vis,seg,vision,Research,2026-09-01
"""
SACCT = """\
JobID|JobIDRaw|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES|NodeList
1|1|ann|vis|gpu|COMPLETED|2026-09-29T09:00:00|2026-09-29T10:00:00|2026-09-30T10:00:00|86400|cpu=8,gres/gpu=2|n1
2|2|ann|vis|gpu|COMPLETED|2026-10-01T09:00:00|2026-10-01T10:00:00|2026-10-02T10:00:00|86400|cpu=8,gres/gpu=2|n1
3|3|ann|vis|gpu|COMPLETED|2026-10-01T09:00:00|soon|2026-10-02T10:00:00|86400|cpu=8,gres/gpu=2|n1
"""
LAST_OF_OCTOBER = """\
JobID|JobIDRaw|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES|NodeList
4|4|ann|vis|gpu|FAILED|2026-10-31T09:00:00|2026-10-31T10:00:00|2026-10-31T10:10:00|600|cpu=8,gres/gpu=2|n1
"""
_BILL = (
    "BilledCost,BillingAccountId,BillingCurrency,BillingPeriodEnd,BillingPeriodStart,ChargeCategory,ChargeClass,"
    "ChargeDescription,ChargePeriodEnd,ChargePeriodStart,ContractedCost,EffectiveCost,InvoiceIssuerName,ListCost,"
    "PricingQuantity,PricingUnit,ProviderName,PublisherName,ResourceId,ServiceCategory,ServiceName\n"
)


def bill(month: int, days: tuple[str, str], **costs: str) -> str:
    """A month's bill in FOCUS columns: what each resource cost between two days; ``_`` in a name stands for ``-``."""
    period = f"2026-{month + 1:02}-01T00:00:00Z,2026-{month:02}-01T00:00:00Z"
    return _BILL + "".join(
        f"{cost},1,USD,{period},Usage,,node,{days[1]}T00:00:00Z,{days[0]}T00:00:00Z,{cost},{cost},AWS,{cost},1,Hours,AWS,AWS,"
        f"{resource.replace('_', '-')},Compute,EC2\n"
        for resource, cost in costs.items()
    )


def write(folder: Path) -> Path:
    """Write all of them; returns the folder."""
    september, october = ("2026-09-29", "2026-10-01"), ("2026-10-01", "2026-10-03")
    files = {
        "nodes.csv": NODES,
        "org.csv": ORG,
        "sacct.txt": SACCT,
        "sacct-11.txt": LAST_OF_OCTOBER,
        "bill-09.csv": bill(9, september, i_1="96.005", bucket="7.5"),
        "bill-09-restated.csv": bill(9, september, i_1="86.005", bucket="7.5"),
        "bill-10.csv": bill(10, october, i_1="80"),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder
