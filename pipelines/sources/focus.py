"""Bills in FOCUS 1.0 to 1.4 (Cost and Usage), as CSV, CSV.gz or Parquet.

All files of one call are one delivery. A delivery replaces the one before it, bill by bill, so each bill's lines are
stored under the digest of their multiset: the same lines in other files, another order or another compression are the same
content, and a delivery that says nothing new adds nothing.

DuckDB reads and types the rows in a temporary file beside it, so a bill may be larger than memory.
Source of columns and versions: the FOCUS specification, https://focus.finops.org.
"""

from __future__ import annotations

import difflib
import gzip
import tempfile
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from models.errors import SourceError
from models.events import BillDelivered, ChargeBilled, columns, polars_schema
from pipelines.sources.base import CHUNK_ROWS, REJECTED_SCHEMA, Chunk, rejected_frame, rejected_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date
    from pathlib import Path

SOURCE = "focus"

TEXTS = {
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
    "billing_account_id": ("BillingAccountId",),
    "issuer": ("InvoiceIssuerName", "ServiceProviderName", "ProviderName"),
}
"""FOCUS columns of each text column of an event; the first that the row has a value for."""

DECIMALS = {
    "pricing_quantity": "PricingQuantity",
    "consumed_quantity": "ConsumedQuantity",
    "billed_amount": "BilledCost",
    "effective_amount": "EffectiveCost",
    "list_amount": "ListCost",
    "contracted_amount": "ContractedCost",
}
INSTANTS = {
    "charge_period_start_at": "ChargePeriodStart",
    "charge_period_end_at": "ChargePeriodEnd",
    "billing_period_start_at": "BillingPeriodStart",
}
MANDATORY = (
    "BilledCost", "EffectiveCost", "BillingAccountId", "BillingCurrency", "BillingPeriodStart", "ChargePeriodStart",
    "ChargePeriodEnd", "ChargeCategory",
)  # fmt: skip
"""Without these there is no bill: whose it is, for when, how much of what money."""

VERSION_MARKS: tuple[tuple[str, set[str], set[str]], ...] = (
    ("1.4", {"InvoiceDetailId"}, set()),
    ("1.4", {"ServiceProviderName"}, {"ProviderName"}),
    ("1.3", {"ServiceProviderName"}, set()),
    ("1.3", {"AllocatedMethodId"}, set()),
    ("1.2", {"InvoiceId"}, set()),
    ("1.2", {"PricingCurrency"}, set()),
    ("1.1", {"CapacityReservationId"}, set()),
    ("1.1", {"CommitmentDiscountQuantity"}, set()),
)
"""Version by columns that are there and columns that are not, newest first; 1.0 when none fits."""

CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")

_CHECKS = (
    ("currency IS NULL", "BillingCurrency: found nothing, expected an ISO 4217 code: a row without currency is refused"),
    ("NOT regexp_full_match(currency, '[A-Z]{3}')", "BillingCurrency: expected a three-letter ISO 4217 code"),
    ("billing_account_id IS NULL", "BillingAccountId: found nothing, expected the account of the bill"),
    ("issuer IS NULL", "InvoiceIssuerName, ServiceProviderName and ProviderName: found nothing in any, expected who bills"),
    ("billing_period_start_at IS NULL", "BillingPeriodStart: expected a UTC time such as 2026-09-01T00:00:00Z"),
    ("charge_period_start_at IS NULL", "ChargePeriodStart: expected a UTC time such as 2026-09-01T00:00:00Z"),
    ("charge_period_end_at IS NULL", "ChargePeriodEnd: expected a UTC time such as 2026-09-01T01:00:00Z"),
    ("charge_period_end_at <= charge_period_start_at", "ChargePeriodEnd: expected an instant after ChargePeriodStart"),
    ("billed_amount IS NULL", "BilledCost: expected a number without separators or currency sign"),
    ("effective_amount IS NULL", "EffectiveCost: expected a number without separators or currency sign"),
    (f"charge_category IS NULL OR charge_category NOT IN {CATEGORIES}", f"ChargeCategory: expected one of {', '.join(CATEGORIES)}"),
)  # fmt: skip


def read_focus(
    paths: Sequence[Path],
    *,
    billing_period: date | None = None,
    issuer: str | None = None,
    billing_account_id: str | None = None,
) -> Iterator[Chunk]:
    """Read one delivery of bills.

    Args:
      paths: All parts of the delivery.
      billing_period: First day of the month that an empty delivery restates to nothing, with the two below.
      issuer: Issuer of that bill.
      billing_account_id: Account of that bill.

    Raises:
      SourceError: A file cannot be read, or is no FOCUS file; the message says what was found and expected.
    """
    versions = {}
    with (
        tempfile.TemporaryDirectory(prefix="gpuledger-focus-") as folder,
        duckdb.connect(f"{folder}/spool.duckdb") as con,
    ):
        con.execute("SET TimeZone = 'UTC'")
        con.execute(f"SET temp_directory = '{folder}'")
        con.execute(_SPOOL_DDL)
        for path in paths:
            header = _header(path)
            if header:
                versions[path] = _checked_version(path, header)
                _spool(con, path, header)
        rejected = con.sql("SELECT * FROM rejected ORDER BY position").pl().cast(REJECTED_SCHEMA)
        total = con.execute("SELECT (SELECT count(*) FROM line), (SELECT count(*) FROM rejected)").fetchone() or (0, 0)
        yield Chunk(rejected=rejected, rows_read=total[0] + total[1])
        if total[0]:
            yield from _lines(con)
            yield Chunk({BillDelivered: _bills(con, max(versions.values(), default="1.0"))})
        elif not total[1]:
            yield _empty(paths, billing_period, issuer, billing_account_id)


def focus_version(header: Sequence[str]) -> str:
    """FOCUS version that a header belongs to.

    >>> focus_version(["BilledCost", "ProviderName"]), focus_version(["BilledCost", "ServiceProviderName"])
    ('1.0', '1.4')
    """
    names = set(header)
    return next((version for version, has, lacks in VERSION_MARKS if has <= names and not lacks & names), "1.0")


def _header(path: Path) -> list[str]:
    """Column names; empty for an empty file."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start == b"PAR1":
            return [
                row[0] for row in duckdb.execute("SELECT name FROM parquet_schema(?) OFFSET 1", [str(path)]).fetchall()
            ]
        opener = gzip.open if start[:2] == b"\x1f\x8b" else open
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            return [name.strip().strip('"') for name in file.readline().strip().split(",") if name.strip()]
    except (OSError, EOFError, duckdb.Error) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def _checked_version(path: Path, header: list[str]) -> str:
    version = focus_version(header)
    lacking = [name for name in MANDATORY if name not in header]
    if not lacking:
        return version
    if len(header) == 1:
        raise SourceError(f"{path}: found one column, {header[0][:120]!r}: expected a comma-separated FOCUS file")
    near = {name: difflib.get_close_matches(name, header, n=1, cutoff=0.75) for name in lacking}
    hints = "; ".join(f"{name} (found {found[0]}: renamed?)" if found else name for name, found in near.items())
    raise SourceError(f"{path}: taken for FOCUS {version}, but these mandatory columns are missing: {hints}")


_SPOOL_DDL = (
    "CREATE TABLE rejected (source VARCHAR, position VARCHAR, kind VARCHAR, reason VARCHAR, raw_text VARCHAR); CREATE TABLE line ("
    + ", ".join(f"{name} VARCHAR" for name in (*TEXTS, "line_digest"))
    + ", "
    + ", ".join(f"{name} DECIMAL(38,12)" for name in DECIMALS)
    + ", "
    + ", ".join(f"{name} TIMESTAMPTZ" for name in INSTANTS)
    + ")"
)


def _spool(con: duckdb.DuckDBPyConnection, path: Path, header: list[str]) -> None:
    """Type a file's rows into ``line``, those not understood into ``rejected``."""
    present = set(header)

    def text(name: str) -> str:
        return f"nullif(nullif(nullif(trim(\"{name}\"), ''), 'NULL'), 'null')"

    def first_of(names: tuple[str, ...]) -> str:
        found = [text(name) for name in names if name in present]
        return f"coalesce({', '.join(found)})" if found else "CAST(NULL AS VARCHAR)"

    selected = [f"{first_of(names)} AS {column}" for column, names in TEXTS.items()]
    selected += [
        f"TRY_CAST({text(name)} AS DECIMAL(38,12)) AS {column}"
        if name in present
        else f"CAST(NULL AS DECIMAL(38,12)) AS {column}"
        for column, name in DECIMALS.items()
    ]
    selected += [
        f"date_trunc('second', TRY_CAST({text(name)} AS TIMESTAMPTZ)) AS {column}" for column, name in INSTANTS.items()
    ]
    raw = " || chr(31) || ".join(
        f"coalesce('{name.replace(chr(39), chr(39) * 2)}=' || {text(name)}, '')" for name in sorted(header)
    )
    case = "CASE " + " ".join(f"WHEN {check} THEN '{reason}'" for check, reason in _CHECKS) + " END"
    try:
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE typed AS SELECT *, {case} AS reason FROM ("
            f"SELECT {', '.join(selected)}, {raw} AS raw_text, row_number() OVER () AS position FROM {_relation(path)})"
        )
    except duckdb.Error as error:
        raise SourceError(f"{path}: cannot be read as a FOCUS file: {error}") from error
    con.execute(
        "INSERT INTO rejected SELECT ?, ? || ':row ' || position, 'rejected', reason, left(replace(raw_text, chr(31), ' '), 2000) "
        "FROM typed WHERE reason IS NOT NULL",
        [SOURCE, path.name],
    )
    if not _is_parquet(path):
        con.execute(
            "INSERT INTO rejected SELECT ?, ? || ':line ' || line, 'rejected', any_value(error_message), left(any_value(csv_line), 2000) "
            "FROM reject_errors GROUP BY line",
            [SOURCE, path.name],
        )
        con.execute("TRUNCATE reject_errors; TRUNCATE reject_scans")
    con.execute(
        "INSERT INTO line BY NAME SELECT * EXCLUDE (raw_text, position, reason), md5(raw_text) AS line_digest FROM typed WHERE reason IS NULL"
    )


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _relation(path: Path) -> str:
    quoted = str(path).replace("'", "''")
    if _is_parquet(path):
        return f"(SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet('{quoted}'))"
    return (
        f"read_csv('{quoted}', header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"', "
        "strict_mode = true, store_rejects = true, compression = 'auto', max_line_size = 16777216)"
    )


_BILL = "issuer, billing_account_id, CAST(date_trunc('month', billing_period_start_at) AS DATE)"
_CONTENT = "printf('%032x', sum(md5_number_lower(line_digest))) || printf('%032x', sum(md5_number_upper(line_digest)))"


def _lines(con: duckdb.DuckDBPyConnection) -> Iterator[Chunk]:
    con.execute(
        f"CREATE TEMP TABLE content AS SELECT issuer, billing_account_id, CAST(date_trunc('month', billing_period_start_at) AS DATE) "
        f"AS billing_period_month, md5({_CONTENT}) AS content_id, count(*) AS line_count, sum(billed_amount) AS billed_amount, "
        f"sum(effective_amount) AS effective_amount, CASE WHEN count(DISTINCT currency) = 1 THEN min(currency) END AS currency "
        f"FROM line GROUP BY {_BILL}"
    )
    schema = polars_schema(ChargeBilled)
    named = ", ".join(
        {"content_id": "c.content_id", "billing_period_month": "c.billing_period_month"}.get(
            column.name, f"l.{column.name}"
        )
        for column in columns(ChargeBilled)
        if column.name != "line_ordinal"
    )
    reader = con.execute(
        f"SELECT {named}, row_number() OVER (PARTITION BY c.content_id, c.issuer, c.billing_account_id, c.billing_period_month, "
        "l.line_digest) AS line_ordinal FROM line AS l JOIN content AS c ON c.issuer = l.issuer "
        "AND c.billing_account_id = l.billing_account_id "
        "AND c.billing_period_month = CAST(date_trunc('month', l.billing_period_start_at) AS DATE)"
    ).to_arrow_reader(CHUNK_ROWS)
    for batch in reader:
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield Chunk({ChargeBilled: frame.select(schema.names()).cast(schema)})


def _bills(con: duckdb.DuckDBPyConnection, version: str) -> pl.DataFrame:
    schema = polars_schema(BillDelivered)
    frame = con.sql(
        "SELECT issuer, billing_account_id, billing_period_month, content_id, line_count, "
        "CASE WHEN currency IS NOT NULL THEN CAST(billed_amount AS DECIMAL(38,12)) END AS billed_amount, "
        "CASE WHEN currency IS NOT NULL THEN CAST(effective_amount AS DECIMAL(38,12)) END AS effective_amount, currency, "
        f"'{version}' AS focus_version FROM content ORDER BY ALL"
    ).pl()
    return frame.select(schema.names()).cast(schema)


def _empty(paths: Sequence[Path], billing_period: date | None, issuer: str | None, account: str | None) -> Chunk:
    """A delivery without lines: it restates a named bill to nothing, or says what to name."""
    if billing_period is None or issuer is None or account is None:
        reason = (
            "the delivery has no lines and does not say which bill it empties: give the billing period, the issuer and the "
            "billing account (--billing-period 2026-09 --issuer NAME --account ID) if that is meant"
        )
        return Chunk(rejected=rejected_frame([rejected_row(SOURCE, ", ".join(p.name for p in paths), reason, "")]))
    row = {
        "issuer": issuer,
        "billing_account_id": account,
        "billing_period_month": billing_period.replace(day=1),
        "content_id": "empty",
        "line_count": 0,
        "billed_amount": None,
        "effective_amount": None,
        "currency": None,
        "focus_version": None,
    }
    return Chunk({BillDelivered: pl.DataFrame([row], schema=polars_schema(BillDelivered))})
