"""The small record files: what a line says, and what a bad one is told."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from models.errors import SourceError
from models.events import (
    AssetRecorded,
    FxRateObserved,
    GpuInventoried,
    NodeStateChanged,
    OwnershipAssigned,
    PolicySet,
    polars_schema,
)
from pipelines.sources import records
from pipelines.sources.record_columns import FIELDS, columns_help

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from models.events import Event
    from pipelines.sources.base import Chunk

OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
HEADERS = {
    "nodes": "cluster,node,gpu_model,gpu_count,mig_layout,effective_from,effective_until,resource_id,capacity_type",
    "node_states": "cluster,node,changed_at,state,reason",
    "org": "cluster,account,project,team,business_unit,effective_from",
    "assets": "asset_id,cluster,node,in_service,retired,life_months,purchase_amount,residual_amount,currency,power_watts,"
    "power_usage_effectiveness,energy_price,monthly_fee",
    "fx": "month,currency,rate",
    "policies": "policy,subject,effective_from,value",
}
ELSEWHERE = {"prices", "commitments", "interruptions", "checkpoints"}
READERS: dict[str, tuple[Callable[..., Iterator[Chunk]], type[Event]]] = {
    "nodes": (records.read_nodes, GpuInventoried),
    "node_states": (records.read_nodes, NodeStateChanged),
    "org": (records.read_org, OwnershipAssigned),
    "assets": (records.read_assets, AssetRecorded),
    "fx": (records.read_fx, FxRateObserved),
    "policies": (records.read_policies, PolicySet),
}


class Read:
    """What reading a file of a kind gave."""

    def __init__(self, folder: Path, kind: str, *lines: str, header: str | None = None) -> None:
        reader, event = READERS[kind]
        path = folder / f"{kind}.csv"
        path.write_text("\n".join([HEADERS[kind] if header is None else header, *lines, ""]), encoding="utf-8")
        options = {"reporting_currency": "USD"} if kind == "fx" else {}
        (chunk,) = reader([path], **options)
        assert chunk.events[event].schema == polars_schema(event)
        self.events = chunk.events[event]
        self.rows_read = chunk.rows_read
        self.rejected = chunk.rejected

    def row(self) -> dict[str, Any]:
        (row,) = self.events.to_dicts()
        return row

    @property
    def reason(self) -> str:
        return str(self.rejected["reason"].item())


def test_every_declared_column_is_tried_here() -> None:
    assert {kind: header.split(",") for kind, header in HEADERS.items()} == {
        kind: [field.name for field in fields] for kind, fields in FIELDS.items() if kind not in ELSEWHERE
    }
    assert columns_help("fx") == "month*, currency*, rate*"


# Nodes


def test_whole_cards(tmp_path: Path) -> None:
    row = Read(tmp_path, "nodes", "alps,n1,NVIDIA H100 80GB HBM3,8,,2026-10-01,2026-11-01,i-0abc,reserved").row()
    assert (row["gpu_model"], row["card_count"], row["slices_per_card_count"]) == ("H100-80GB", 8, 1)
    assert (row["mig_layout"], row["mig_profile"]) == ("", "")
    assert (row["effective_from_at"], row["effective_until_at"]) == (OCTOBER, datetime(2026, 11, 1, tzinfo=UTC))
    assert (row["resource_id"], row["capacity_type"]) == ("i-0abc", "reserved")


@pytest.mark.parametrize("layout", ["4g.40gb*1+3g.40gb*1", '"3g.40gb, 4g.40gb*1"', "3G.40GB*1+4g.40gb"])
def test_a_mig_layout_is_one_event_a_profile_in_one_spelling(tmp_path: Path, layout: str) -> None:
    read = Read(tmp_path, "nodes", f"alps,n1,H100-80GB,4,{layout},2026-10-01,,,")
    assert read.events.select("mig_layout", "mig_profile", "card_count", "slices_per_card_count").rows() == [
        ("3g.40gb*1+4g.40gb*1", "3g.40gb", 4, 1),
        ("3g.40gb*1+4g.40gb*1", "4g.40gb", 4, 1),
    ]


def test_a_node_may_hold_whole_and_cut_cards(tmp_path: Path) -> None:
    read = Read(tmp_path, "nodes", "alps,n1,H100-80GB,4,,2026-10-01,,,", "alps,n1,H100-80GB,4,1g.10gb*7,2026-10-01,,,")
    assert read.events["card_count"].sum() == 8
    assert read.rejected.is_empty()


def test_node_states_are_known_by_their_header(tmp_path: Path) -> None:
    row = Read(tmp_path, "node_states", "alps,n1,2026-10-01T02:00:00+02:00,drain,new fans").row()
    assert (row["changed_at"], row["state"], row["reason"]) == (OCTOBER, "drain", "new fans")


def test_nodes_and_their_states_in_one_call(tmp_path: Path) -> None:
    nodes, states = tmp_path / "a.csv", tmp_path / "b.csv"
    nodes.write_text(HEADERS["nodes"] + "\nalps,n1,A30,1,,2026-10-01,,,\n")
    states.write_text(HEADERS["node_states"] + "\nalps,n1,2026-10-01,up,\n")
    found = {
        event: frame.height for chunk in records.read_nodes([nodes, states]) for event, frame in chunk.events.items()
    }
    assert found == {GpuInventoried: 1, NodeStateChanged: 1}


# The others


def test_an_organisation_line_is_for_all_clusters_unless_it_names_one(tmp_path: Path) -> None:
    read = Read(tmp_path, "org", ",nlp-dev,,NLP,Research,2026-10-01", "alps,cv,vision,CV,Research,2026-10-01")
    assert read.events.select("cluster", "account", "project", "team").rows() == [
        ("*", "nlp-dev", None, "NLP"),
        ("alps", "cv", "vision", "CV"),
    ]


def test_an_asset(tmp_path: Path) -> None:
    row = Read(tmp_path, "assets", "A-1,alps,n1,2026-10-01,,60,250000.50,25000,EUR,10200,1.3,0.21,400").row()
    assert (row["purchase_amount"], row["residual_amount"]) == (Decimal("250000.50"), Decimal(25000))
    assert (row["life_months_count"], row["retired_at"]) == (60, None)
    assert (row["power_watts"], row["power_usage_effectiveness"]) == (10200.0, Decimal("1.3"))
    assert (row["energy_price_amount"], row["monthly_fee_amount"]) == (Decimal("0.21"), Decimal(400))


def test_what_an_asset_does_not_say_is_unknown(tmp_path: Path) -> None:
    row = Read(tmp_path, "assets", "A-1,alps,,2026-10-01,,60,250000,0,EUR,,,,").row()
    names = ("node", "power_watts", "power_usage_effectiveness", "energy_price_amount", "monthly_fee_amount")
    assert [row[name] for name in names] == [None] * 5


def test_a_rate_is_for_a_month(tmp_path: Path) -> None:
    row = Read(tmp_path, "fx", "2026-10,EUR,1.0812").row()
    assert row == {
        "currency": "EUR",
        "reporting_currency": "USD",
        "observed_at": OCTOBER,
        "fx_rate": Decimal("1.0812"),
    }


def test_policies(tmp_path: Path) -> None:
    read = Read(
        tmp_path,
        "policies",
        "distribute,unallocated,2026-10-01,proportional",
        "distribute,lost_work,2026-10-01,owner",
        "fixed_weight,NLP,2026-10-01,3",
        "mig_weight,,2026-10-01,compute",
        "close_min_priced_ratio,,2026-10-01,0.9",
        "workload_class,qos:serving,2026-10-01,inference",
        "restart_seconds,,2026-10-01,600",
        "restart_seconds,partition:gpu,2026-10-01,900",
    )
    values = ["proportional", "owner", "3", "compute", "0.9", "inference", "600", "900"]
    assert read.events["value"].to_list() == values
    subjects = ["unallocated", "lost_work", "NLP", "", "", "qos:serving", "", "partition:gpu"]
    assert read.events["subject"].to_list() == subjects


# Bad lines

BAD_LINES = [
    ("nodes", "alps,n1,H100,two,,2026-10-01,,,", "gpu_count: found 'two', expected a whole number"),
    ("nodes", "alps,n1,H100,99999999999999999999,,2026-10-01,,,", "gpu_count: found '99999999999999999999'"),
    ("nodes", "alps,n1,H100,8,,,,,", "effective_from: found nothing"),
    ("nodes", "alps,n1,H100,8,,01.10.2026,,,", "effective_from: found '01.10.2026', expected a date such as"),
    ("nodes", "alps,n1,H100,8,,2026-10-01T00:00:00,,,", "an instant with its zone such as"),
    ("nodes", "alps,n1,H100,8,,0001-01-01T00:00:00+05:00,,,", "expected a date such as"),
    ("nodes", "alps,n1,H100,8,,2026-10-01,2026-10-01,,", "effective_until: expected an instant after"),
    ("nodes", "alps,n1,H100,8,,2026-10-01,,,leased", "expected one of owned, reserved, on_demand, spot"),
    ("nodes", "alps,n1,GPU,8,,2026-10-01,,,", "gpu_model: found 'GPU'"),
    ("nodes", "alps,n1,A100-40GB,8,1g.12gb*7,2026-10-01,,,", "expected a profile of A100-40GB: 1g.10gb, 1g.5gb"),
    ("nodes", "alps,n1,V100-32GB,8,1g.5gb*7,2026-10-01,,,", "expected a profile of V100-32GB: it has none"),
    ("nodes", "alps,n1,H100-80GB,8,seven,2026-10-01,,,", "mig_layout: found 'seven', expected profiles such as"),
    ("nodes", "alps,n1,H100-80GB,8,1g.10gb*0,2026-10-01,,,", "mig_layout: found '1g.10gb*0'"),
    ("nodes", "alps,n1,H100-80GB,8,1g.10gb*8,2026-10-01,,,", "no more compute slices than one card has"),
    ("node_states", "alps,n1,2026-10-01,broken,", "state: found 'broken', expected one of up, down, drain"),
    ("org", "*,nlp,,,Research,2026-10-01", "team: found nothing, expected a value"),
    ("org", "*,nlp,,NLP,Research,2026-10-01,extra", "found 7 cells, expected 6"),
    ("assets", "A-1,alps,,2026-10-01,,60,250000,,EUR,,,,", "residual_amount: found nothing"),
    ("assets", "A-1,alps,,2026-10-01,,0,250000,0,EUR,,,,", "life_months: found 0, expected 1 or more"),
    ("assets", "A-1,alps,,2026-10-01,2026-09-01,60,250000,0,EUR,,,,", "retired: expected an instant after"),
    ("assets", "A-1,alps,,2026-10-01,,60,100,200,EUR,,,,", "residual_amount: expected no more than"),
    ("assets", 'A-1,alps,,2026-10-01,,60,"250,000",0,EUR,,,,', "purchase_amount: found '250,000'"),
    ("assets", "A-1,alps,,2026-10-01,,60,0.1234567890123,0,EUR,,,,", "at most 26 digits and 12 decimals"),
    ("assets", "A-1,alps,,2026-10-01,,60,1e30,0,EUR,,,,", "purchase_amount: found '1e30'"),
    ("assets", "A-1,alps,,2026-10-01,,60,1,0,EUR,nan,,0.2,", "power_watts: found 'nan'"),
    ("assets", "A-1,alps,,2026-10-01,,60,1,0,EUR,500,,,", "energy_price: expected a price of one kWh"),
    (
        "assets",
        "A-1,alps,,2026-10-01,,60,1,0,EUR,500,0.8,0.2,",
        "power_usage_effectiveness: found '0.8', expected 1 or",
    ),
    ("fx", "2026-13,EUR,1.1", "month: found '2026-13', expected a month such as 2026-10"),
    ("fx", "2026-10,euro,1.1", "currency: found 'euro', expected a three-letter"),
    ("fx", "2026-10,EUR,0", "rate: found '0', expected a rate above 0"),
    ("fx", "2026-10,EUR,-1", "rate: found '-1'"),
    ("fx", "2026-10,EUR,1.08123456789", "at most 9 digits and 9 decimals"),
    ("fx", "2026-10,USD,1.1", "rate: found 1.1, expected 1: USD is the reporting currency"),
    ("policies", "generosity,,2026-10-01,9", "policy: found 'generosity', expected one of distribute, fixed_weight"),
    (
        "policies",
        "distribute,down,2026-10-01,lottery",
        "value: found 'lottery', expected one of platform, proportional",
    ),
    ("policies", "distribute,,2026-10-01,even", "subject: found nothing"),
    ("policies", "distribute,down,2026-10-01,owner", "value: found 'owner', expected one of platform"),
    ("policies", "distribute,snacks,2026-10-01,even", "subject: found 'snacks', expected one of unallocated, down"),
    ("policies", "mig_weight,NLP,2026-10-01,max", "subject: found 'NLP', expected nothing"),
    ("policies", "fixed_weight,,2026-10-01,3", "subject: found nothing"),
    ("policies", "fixed_weight,NLP,2026-10-01,2.5", "value: found '2.5', expected a whole number"),
    ("policies", "close_min_priced_ratio,,2026-10-01,95", "value: found '95', expected a ratio of 0 to 1"),
    (
        "policies",
        "workload_class,gpu,2026-10-01,dev",
        "subject: found 'gpu', expected one of qos:NAME, partition:NAME, account:NAME",
    ),
    ("policies", "workload_class,qos:,2026-10-01,dev", "subject: found 'qos:', expected one of qos:NAME"),
    ("policies", "workload_class,,2026-10-01,dev", "subject: found nothing"),
    (
        "policies",
        "restart_seconds,qos:x,2026-10-01,9",
        "subject: found 'qos:x', expected one of partition:NAME, account",
    ),
    ("policies", "restart_seconds,,2026-10-01,9.5", "value: found '9.5', expected a whole number"),
    ("policies", "workload_class,qos:x,2026-10-01,batch", "value: found 'batch', expected one of inference, rigid"),
]


@pytest.mark.parametrize(("kind", "text", "reason"), BAD_LINES)
def test_a_bad_line_is_rejected_with_what_was_expected(tmp_path: Path, kind: str, text: str, reason: str) -> None:
    read = Read(tmp_path, kind, "", text)  # a blank line counts as a line, not as a row
    assert reason in read.reason
    assert read.rejected.row(0, named=True) | {"reason": ""} == {
        "source": kind,
        "position": f"{kind}.csv:3",
        "kind": "rejected",
        "reason": "",
        "raw_text": text.replace('"', ""),
    }
    assert read.events.is_empty()
    assert read.rows_read == 1


def test_a_later_line_wins_and_the_earlier_says_by_which(tmp_path: Path) -> None:
    cut = "alps,n1,H100-80GB,{},1g.10gb*4+3g.40gb*1,2026-10-01,,,"
    read = Read(tmp_path, "nodes", cut.format(4), cut.format(4), cut.format(8))
    assert read.events["card_count"].to_list() == [8, 8]
    assert read.rejected.select("position", "raw_text").rows() == [("nodes.csv:3", cut.format(4))]
    assert "overwritten by nodes.csv:4" in read.reason


def test_a_later_file_of_a_call_wins_too(tmp_path: Path) -> None:
    paths = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for path, rate in zip(paths, ("1.1", "1.2"), strict=True):
        path.write_text(f"month,currency,rate\n2026-10,EUR,{rate}\n")
    (chunk,) = records.read_fx(paths, reporting_currency="USD")
    assert chunk.events[FxRateObserved]["fx_rate"].to_list() == [Decimal("1.2")]
    assert chunk.rejected["position"].to_list() == ["old.csv:2"]


# Bad files


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "found an empty file; expected month"),
        ("month;currency;rate", "column month, currency, rate missing; found month;currency;rate"),
        ("month,currency", "column rate missing"),
        ("PK\x03\x04\x00", "column month, currency, rate missing"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Read(tmp_path, "fx", header=header)


def test_a_misspelt_optional_column_is_refused_since_its_values_would_be_lost(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="column effective_untill looks misspelt"):
        Read(tmp_path, "nodes", header=HEADERS["nodes"].replace("effective_until", "effective_untill"))


def test_columns_of_ones_own_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    read = Read(tmp_path, "fx", "ECB,2026-10,EUR,1.1,", header="\ufeffpublished_by, month,currency ,rate,")
    assert read.row()["fx_rate"] == Decimal("1.1")


def test_a_file_that_is_not_there_is_a_source_error(tmp_path: Path) -> None:
    for reader in (records.read_org, records.read_nodes):
        with pytest.raises(SourceError, match=r"gone\.csv: cannot be read"):
            next(reader([tmp_path / "gone.csv"]))


def test_frames_go_through_unchanged_when_empty(tmp_path: Path) -> None:
    assert Read(tmp_path, "org").events.equals(pl.DataFrame(schema=polars_schema(OwnershipAssigned)))
