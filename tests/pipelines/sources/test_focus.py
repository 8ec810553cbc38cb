"""FOCUS bills: money is exact, a delivery is its lines whatever files hold them, and half a file is no bill."""

from __future__ import annotations

import csv
import gzip
import random
import tempfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import SourceError
from models.events import BillDelivered, ChargeBilled, polars_schema
from pipelines.sources.base import REJECTED_SCHEMA
from pipelines.sources.focus import EMPTY_CONTENT_ID, read_focus

GPU_HOUR = {
    "BillingAccountId": "acct-1",
    "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-09-01T00:00:00Z",
    "BilledCost": "52.40",
    "EffectiveCost": "52.40",
    "ChargeCategory": "Usage",
    "ChargePeriodStart": "2026-09-03T04:00:00Z",
    "ChargePeriodEnd": "2026-09-03T05:00:00Z",
    "ProviderName": "Cloud",
    "ResourceId": "node-1",
}


def line(**cells: str) -> dict[str, str]:
    return {**GPU_HOUR, **cells}


def write(path: Path, lines: list[dict[str, str]], header: list[str] | None = None) -> Path:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header or list(dict.fromkeys(name for one in lines for name in one)), restval="")
        writer.writeheader()
        writer.writerows(lines)
    return path


class Delivery:
    """What reading one delivery gave."""

    def __init__(self, *paths: Path, **options: Any) -> None:
        chunks = list(read_focus(paths, **options))

        def joined(event: type, schema: pl.Schema) -> pl.DataFrame:
            return pl.concat([pl.DataFrame(schema=schema), *(c.events[event] for c in chunks if event in c.events)])

        self.lines = joined(ChargeBilled, polars_schema(ChargeBilled))
        self.bills = joined(BillDelivered, polars_schema(BillDelivered))
        self.rejected = pl.concat([pl.DataFrame(schema=REJECTED_SCHEMA), *(c.rejected for c in chunks)])
        self.rows_read = sum(c.rows_read for c in chunks)

    @property
    def reason(self) -> str:
        return str(self.rejected["reason"].item())

    @property
    def identity(self) -> Counter[Any]:
        return Counter(self.lines.select("content_id", "line_digest", "line_ordinal").rows())


def bill(tmp_path: Path, *lines: dict[str, str], name: str = "bill.csv") -> Delivery:
    return Delivery(write(tmp_path / name, list(lines)))


# What a line says


def test_a_line_becomes_a_charge_and_its_bill_a_delivery(tmp_path: Path) -> None:
    read = bill(tmp_path, line(Tags='{"team": "nlp"}', CommitmentDiscountStatus="NULL", InvoiceId="null"))
    charge = read.lines.row(0, named=True)
    assert charge["charge_period_start_at"] == datetime(2026, 9, 3, 4, tzinfo=UTC)
    assert (charge["billed_amount"], charge["currency"]) == (Decimal("52.40"), "USD")
    assert (charge["provider"], charge["issuer"]) == ("Cloud", "Cloud")  # no InvoiceIssuerName: the provider bills
    assert (charge["tags"], charge["line_ordinal"]) == ('{"team": "nlp"}', 1)
    assert (charge["commitment_discount_status"], charge["invoice_id"], charge["list_amount"]) == (None, None, None)
    delivered = read.bills.row(0, named=True)
    assert delivered["billing_period_month"] == date(2026, 9, 1)
    assert (delivered["line_count"], delivered["effective_amount"]) == (1, Decimal("52.40"))
    assert delivered["content_id"] == charge["content_id"]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1.5E-7", "0.00000015"),
        ("-30.00", "-30"),
        ("12345678901234567890123456.123456789012", "12345678901234567890123456.123456789012"),
        ("0.1234567890125", "0.123456789012"),  # a tie goes to even …
        ("-0.1234567890135", "-0.123456789014"),  # … either way
        ("0.12345678901250001", "0.123456789013"),
        ("139.73892696000000", "139.73892696"),
    ],
)
def test_amounts_are_exact_to_twelve_places(tmp_path: Path, text: str, amount: str) -> None:
    assert bill(tmp_path, line(BilledCost=text)).lines["billed_amount"].item() == Decimal(amount)


@settings(max_examples=6)
@given(st.lists(st.decimals(-(10**9), 10**9, places=14), min_size=1, max_size=40))
def test_any_plain_amount_is_its_decimal(amounts: list[Decimal]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read = bill(Path(folder), *(line(BilledCost=f"{amount:f}") for amount in amounts))
    exact = [amount.quantize(Decimal("1e-12"), ROUND_HALF_EVEN, Context(prec=60)) for amount in amounts]
    assert sorted(read.lines["billed_amount"]) == sorted(exact)


@pytest.mark.parametrize(
    "text",
    ["2026-09-03 04:00:00", "2026-09-03T04:00:00.999Z", "2026-09-03T04:00Z", "2026-09-03T06:00:00+02:00", "2026-09-03 04:00:00 UTC"],
)  # fmt: skip
def test_times_are_utc_in_whole_seconds(tmp_path: Path, text: str) -> None:
    read = bill(tmp_path, line(ChargePeriodStart=text))
    assert read.lines["charge_period_start_at"].item() == datetime(2026, 9, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"BillingCurrency": ""}, "BillingCurrency: found nothing, expected an ISO 4217 code"),
        ({"BillingCurrency": "dollars"}, "BillingCurrency: found 'dollars'"),
        ({"BilledCost": "1,234.50"}, "BilledCost: found '1,234.50', expected a number"),
        ({"BilledCost": "1_234"}, "BilledCost: found '1_234'"),
        ({"BilledCost": "NULL"}, "BilledCost: found nothing"),
        ({"EffectiveCost": ""}, "EffectiveCost: found nothing"),
        ({"EffectiveCost": "nan"}, "EffectiveCost: found 'nan'"),
        ({"EffectiveCost": "1e30"}, "EffectiveCost: found '1e30'"),
        ({"ListCost": "$5"}, "ListCost: found '$5'"),
        ({"ChargePeriodStart": "2026-09-03 30:00:00"}, "ChargePeriodStart: found '2026-09-03 30:00:00', expected a UTC time"),
        ({"ChargePeriodStart": "infinity"}, "ChargePeriodStart: found 'infinity'"),
        ({"ChargePeriodEnd": "2026-09-03T04:00:00Z"}, "expected an instant after ChargePeriodStart"),
        ({"BillingPeriodStart": "September"}, "BillingPeriodStart: found 'September'"),
        ({"BillingAccountId": " "}, "BillingAccountId: found ' '"),
        ({"ProviderName": ""}, "InvoiceIssuerName: found nothing, expected who bills"),
        ({"ChargeCategory": "Usages"}, "ChargeCategory: found 'Usages', expected one of Usage, Purchase"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_understood_is_rejected_with_its_text(
    tmp_path: Path, cells: dict[str, str], reason: str
) -> None:
    read = bill(tmp_path, line(), line(**{"ListCost": "", "InvoiceIssuerName": ""} | cells))
    assert reason in read.reason
    assert (read.rejected["position"].item(), read.rows_read) == ("bill.csv:row 2", 2)
    assert "ResourceId=node-1" in read.rejected["raw_text"].item()
    assert read.bills["line_count"].item() == 1


def test_a_negative_quantity_keeps_its_money(tmp_path: Path) -> None:
    read = bill(tmp_path, line(ConsumedQuantity="-1", BilledCost="-5", EffectiveCost="-5"))
    assert read.lines["consumed_quantity"].item() == -1
    assert read.bills["billed_amount"].item() == -5


def test_a_bill_in_two_currencies_has_no_sum(tmp_path: Path) -> None:
    delivered = bill(tmp_path, line(), line(BillingCurrency="EUR")).bills.row(0, named=True)
    assert delivered["line_count"] == 2
    assert (delivered["currency"], delivered["billed_amount"], delivered["effective_amount"]) == (None, None, None)


def test_each_issuer_account_and_month_is_a_bill_of_its_own(tmp_path: Path) -> None:
    read = bill(
        tmp_path,
        line(),
        line(InvoiceIssuerName="Reseller"),
        line(BillingAccountId="acct-2"),
        line(BillingPeriodStart="2026-08-01T00:00:00Z"),
    )
    assert read.bills.height == read.lines["content_id"].n_unique() == 4


# A delivery is its lines


def in_files(folder: Path, lines: list[dict[str, str]], cuts: list[int], suffix: str) -> Delivery:
    header = sorted({name for one in lines for name in one})
    bounds = [0, *sorted(cuts), len(lines)]
    parts = [lines[start:end] for start, end in pairwise(bounds)]
    return Delivery(*(write(folder / f"{suffix}{n}.csv{suffix}", part, header) for n, part in enumerate(parts)))


CHARGE = st.builds(
    line,
    BilledCost=st.sampled_from(["1", "2.5", "-0.1"]),
    InvoiceIssuerName=st.sampled_from(["A", ""]),
    ChargeDescription=st.sampled_from(["", "two\nlines", 'a "quoted", comma', "größe"]),
)


@settings(max_examples=12)
@given(st.data(), st.lists(CHARGE, min_size=1, max_size=9))
def test_neither_order_nor_files_nor_compression_change_a_delivery(
    data: st.DataObject, lines: list[dict[str, str]]
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(lines)), max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        once = in_files(Path(folder), lines, [], "")
        again = in_files(Path(folder), data.draw(st.permutations(lines)), cuts, ".gz")
    assert again.identity == once.identity
    assert again.bills.equals(once.bills)
    assert once.bills["line_count"].sum() == len(lines)
    assert once.bills["billed_amount"].sum() == sum(Decimal(one["BilledCost"]) for one in lines)


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"bill\.csv: found a header of one column"):
        bill(tmp_path, {"BilledCost;EffectiveCost": "1;1"})


def test_equal_lines_are_counted_not_merged(tmp_path: Path) -> None:
    read = Delivery(write(tmp_path / "a.csv", [line(), line()]), write(tmp_path / "b.csv", [line()]))
    assert sorted(read.lines["line_ordinal"]) == [1, 2, 3]
    assert read.lines["line_digest"].n_unique() == 1
    assert read.bills["content_id"].item() != bill(tmp_path, line(), line()).bills["content_id"].item()


def test_column_order_null_spellings_and_empty_columns_change_nothing(tmp_path: Path) -> None:
    plain = bill(tmp_path, line())
    header = [*reversed(GPU_HOUR), "Tags", "x_Custom"]
    other = Delivery(write(tmp_path / "other.csv", [line(Tags="NULL", x_Custom="null")], header))
    assert other.identity == plain.identity


def test_parquet_says_what_csv_says(tmp_path: Path) -> None:
    lines = [line(), line(BilledCost="1e-7"), line(Tags='{"a":"b"}')]
    once = bill(tmp_path, *lines)
    rows = pl.DataFrame([{"Tags": None, **one} for one in lines], schema=[*GPU_HOUR, "Tags"])
    rows.write_parquet(tmp_path / "bill.parquet")
    assert Delivery(tmp_path / "bill.parquet").identity == once.identity


def test_typed_parquet_with_tags_as_a_map(tmp_path: Path) -> None:
    write(tmp_path / "bill.csv", [line()])
    duckdb.execute(
        f"COPY (SELECT * REPLACE (CAST(BilledCost AS DECIMAL(20, 4)) AS BilledCost, CAST(EffectiveCost AS DOUBLE) AS EffectiveCost, "
        f"CAST(ChargePeriodStart AS TIMESTAMP) AS ChargePeriodStart), MAP {{'team': 'nlp'}} AS Tags "
        f"FROM '{tmp_path}/bill.csv') TO '{tmp_path}/bill.parquet'"
    )
    charge = Delivery(tmp_path / "bill.parquet").lines.row(0, named=True)
    assert (charge["billed_amount"], charge["effective_amount"]) == (Decimal("52.4"), Decimal("52.4"))
    assert charge["charge_period_start_at"] == datetime(2026, 9, 3, 4, tzinfo=UTC)
    assert charge["tags"] == '{"team":"nlp"}'


# Files as they come


def test_byte_order_mark_carriage_returns_blank_lines_and_line_breaks_in_quotes(tmp_path: Path) -> None:
    text = write(tmp_path / "bill.csv", [line(ChargeDescription="two\nlines"), line(ChargeDescription="b")]).read_text()
    marked = "\ufeff" + text.replace("\nacct-1", "\r\n\r\nacct-1").removesuffix("\n") + "\r\n"
    (tmp_path / "odd [1]'s.csv").write_text(marked, newline="", encoding="utf-8")
    read = Delivery(tmp_path / "odd [1]'s.csv")
    assert sorted(read.lines["charge_description"]) == ["b", "two\nlines"]
    assert read.rejected.is_empty()


def test_lines_that_end_in_two_ways_are_refused_as_such(tmp_path: Path) -> None:
    text = write(tmp_path / "bill.csv", [line(), line()]).read_bytes()
    (tmp_path / "mixed.csv").write_bytes(text.replace(b"\r\n", b"\n", 1))
    with pytest.raises(SourceError, match=r"mixed\.csv.*end all lines alike"):
        Delivery(tmp_path / "mixed.csv")


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_bytes_that_are_no_utf8_do_not_lose_a_line(tmp_path: Path, compress: Any) -> None:
    text = write(tmp_path / "bill.csv", [line(ChargeDescription="Gr__e"), line()]).read_bytes()
    (tmp_path / "latin").write_bytes(compress(text.replace(b"__", b"\xf6\xdf")))
    read = Delivery(tmp_path / "latin")
    assert read.bills["line_count"].item() == 2
    assert "Gr��e" in read.lines["charge_description"].to_list()


def test_a_line_with_too_few_or_too_many_cells_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "bill.csv", [line()])
    path.write_text(path.read_text() + "acct-1,USD\n" + "acct-1," * 12 + "\n#comment,1\n")
    read = Delivery(path)
    assert read.lines.height == 1
    assert sorted(read.rejected["position"]) == ["bill.csv:line 3", "bill.csv:line 4", "bill.csv:line 5"]
    assert read.rejected["raw_text"].to_list()[0].startswith("acct-1,USD")
    assert read.rows_read == 4


def truncated_gzip(path: Path) -> None:
    noise = [line(ResourceId=random.Random(n).randbytes(16).hex()) for n in range(500)]  # noqa: S311 - test data
    whole = write(path.with_suffix(".gz"), noise).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def wrong_checksum(path: Path) -> None:
    whole = write(path.with_suffix(".gz"), [line()]).read_bytes()
    path.write_bytes(whole[:-8] + b"\0" * 8)


def truncated_parquet(path: Path) -> None:
    pl.DataFrame([line()]).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("damage", [truncated_gzip, wrong_checksum, truncated_parquet, lambda _path: None])
def test_half_a_file_is_no_bill(tmp_path: Path, damage: Any) -> None:
    damage(tmp_path / "part2")
    with pytest.raises(SourceError, match="part2"):
        next(read_focus([write(tmp_path / "part1.csv", [line()]), tmp_path / "part2"]))


# A delivery without lines


@pytest.mark.parametrize("text", ["", ",".join(GPU_HOUR) + "\n"], ids=["empty", "header only"])
def test_a_delivery_without_lines_empties_the_bill_it_names(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(text)
    named = Delivery(path, billing_period=date(2026, 9, 1), issuer="Cloud", billing_account_id="acct-1")
    emptied = named.bills.row(0, named=True)
    assert (emptied["issuer"], emptied["billing_period_month"]) == ("Cloud", date(2026, 9, 1))
    assert (emptied["line_count"], emptied["content_id"], emptied["billed_amount"]) == (0, EMPTY_CONTENT_ID, None)
    unnamed = Delivery(path, issuer="Cloud")
    assert "--billing-period" in unnamed.reason
    assert unnamed.bills.is_empty()


def test_a_delivery_of_rejected_lines_empties_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "bill.csv", [line(BilledCost="")])
    read = Delivery(path, billing_period=date(2026, 9, 1), issuer="Cloud", billing_account_id="acct-1")
    assert read.bills.is_empty()
    assert read.rejected.height == 1


def test_a_bill_without_provider_name_is_read_by_its_service_provider(tmp_path: Path) -> None:
    cells = {name: cell for name, cell in GPU_HOUR.items() if name != "ProviderName"} | {"ServiceProviderName": "Cloud"}
    read = bill(tmp_path, cells)
    assert (read.lines["provider"].item(), read.bills["focus_version"].item()) == ("Cloud", "1.4")


# Published totals


def test_unused_commitment_is_charged_with_the_used(tmp_path: Path) -> None:
    """FOCUS's spend plan at 75 % utilisation: 24 hours of 52.40, of which 6 are unused."""
    purchase = line(ChargeCategory="Purchase", BilledCost="459024.00", EffectiveCost="0", CommitmentDiscountStatus="")
    hours = [
        line(
            ChargePeriodStart=f"2026-09-03T{hour:02}:00:00Z",
            ChargePeriodEnd=f"2026-09-03T{hour:02}:59:59Z",
            BilledCost="0",
            ListCost="78.60" if hour < 18 else "",
            CommitmentDiscountStatus="Used" if hour < 18 else "Unused",
        )
        for hour in range(24)
    ]
    read = bill(tmp_path, purchase, *hours)
    by_status = dict(read.lines.group_by("commitment_discount_status").agg(pl.col("effective_amount").sum()).rows())
    assert by_status == {"Used": Decimal("943.20"), "Unused": Decimal("314.40"), None: Decimal(0)}
    assert read.bills["effective_amount"].item() == Decimal("1257.60")
    assert read.bills["billed_amount"].item() == Decimal("52.40") * 8760


def test_toolkit_files_bill_what_they_amortise(shared_data: Path) -> None:
    files = sorted((shared_data / "billing-focus-toolkit").glob("*_cost_and_usage_rows100_*.csv"))
    assert len(files) == 6
    for path in files:
        read = Delivery(path)
        assert read.rejected.is_empty()
        assert read.lines.height == 100
        assert read.bills["billed_amount"].sum() == read.bills["effective_amount"].sum()
        assert set(read.bills["focus_version"]) == {path.name.split("_cost")[0].split("_", 1)[1].replace("_", ".")}


def test_toolkit_aws_total(shared_data: Path) -> None:
    read = Delivery(shared_data / "billing-focus-toolkit" / "focus_1_2_cost_and_usage_aws.csv.gz")
    assert read.lines.height == read.bills["line_count"].sum() == 5_000
    assert round(read.bills["billed_amount"].sum(), 4) == Decimal("115598.5241")


def test_the_public_sample_sums_the_same_two_ways(shared_data: Path) -> None:
    path = shared_data / "billing-focus-1.0" / "focus_sample.csv"
    read = Delivery(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for name, column in (("BilledCost", "billed_amount"), ("EffectiveCost", "effective_amount")):
        by_hand = sum(Decimal(row[name]) for row in rows)
        assert read.lines[column].sum() == read.bills[column].sum() == by_hand
    assert read.lines.height == len(rows) == 1_000


def test_specification_excerpts_completed_with_who_bills(shared_data: Path, tmp_path: Path) -> None:
    """They leave out account, currency and issuer; two lines end at 30:00, an hour that no day has."""
    whose = {name: GPU_HOUR[name] for name in ("BillingAccountId", "BillingCurrency", "ProviderName")}
    rejected = []
    for path in sorted((shared_data / "billing-focus-spec").rglob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [{**row, **whose} for row in csv.DictReader(file)]
        read = Delivery(write(tmp_path / path.name, rows))
        understood = [row for row in rows if "30:00:00" not in row["ChargePeriodEnd"]]
        assert read.lines.height == len(understood)
        for name, column in (("BilledCost", "billed_amount"), ("EffectiveCost", "effective_amount")):
            assert read.lines[column].sum() == sum(Decimal(row[name]) for row in understood)
        rejected += read.rejected["reason"].to_list()
    assert len(rejected) == 2
    assert all("ChargePeriodEnd: found '2023-02-01T30:00:00Z'" in reason for reason in rejected)


def test_duckdb_holds_the_frames_exactly(tmp_path: Path) -> None:
    lines = bill(tmp_path, line(BilledCost="12345678901234567890123456.123456789012")).lines
    with duckdb.connect() as con:
        con.register("charges", lines)
        found = con.execute("SELECT typeof(billed_amount), CAST(billed_amount AS VARCHAR) FROM charges").fetchone()
    assert found == ("DECIMAL(38,12)", "12345678901234567890123456.123456789012")
