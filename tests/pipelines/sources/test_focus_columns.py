"""A header says whether a file is a bill, and of which FOCUS version."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.errors import SourceError
from models.events import BillDelivered, ChargeBilled, columns
from pipelines.sources.focus_columns import DECIMALS, INSTANTS, MANDATORY, TEXTS, check_header, focus_version

FILE = Path("bill.csv")


@pytest.mark.parametrize(
    ("added", "version"),
    [
        (["ProviderName", "PublisherName"], "1.0"),
        (["ProviderName", "CapacityReservationId"], "1.1"),
        (["ProviderName", "InvoiceId", "CapacityReservationId"], "1.2"),
        (["ProviderName", "ServiceProviderName", "InvoiceId"], "1.3"),
        (["ProviderName", "AllocatedMethodId"], "1.3"),
        (["ServiceProviderName", "HostProviderName", "InvoiceId"], "1.4"),
        (["ServiceProviderName", "InvoiceDetailId"], "1.4"),
    ],
)
def test_the_version_is_told_by_columns(added: list[str], version: str) -> None:
    assert focus_version([*MANDATORY, *added]) == version
    check_header(FILE, [*MANDATORY, *added])


def test_every_column_of_a_charge_comes_from_somewhere() -> None:
    computed = {"content_id", "line_digest", "line_ordinal", "billing_period_month"}
    assert {column.name for column in columns(ChargeBilled)} <= {*TEXTS, *DECIMALS, *INSTANTS} | computed
    assert {"issuer", "billing_account_id"} <= {column.name for column in columns(BillDelivered)} & TEXTS.keys()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            [";".join(MANDATORY)],
            r"one column, 'BilledCost;.*expected a comma-separated FOCUS header .*BillingAccountId",
        ),
        (
            ["billed_cost", "Effective", "ProviderName", *MANDATORY[2:]],
            r"FOCUS 1\.0 .* missing: BilledCost \(found billed_cost: renamed\?\), EffectiveCost",
        ),
        (list(MANDATORY), "InvoiceIssuerName or ServiceProviderName or ProviderName"),
        ([*MANDATORY, "ProviderName", "Tags", "tags"], "found column Tags, tags more than once"),
        (["ContractId", "ContractCommitmentId", "ContractCommitmentCost"], "mandatory columns are missing: BilledCost"),
    ],
)
def test_a_file_that_is_no_bill_is_told_what_it_lacks(header: list[str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        check_header(FILE, header)
