"""Ledgers for tests: a few facts in a person's words, the real projections over them, and questions in SQL.

``Book`` keeps its log in memory and projects only what a test asks for: about a second. ``home`` and ``append`` make a
ledger on disk, where a test is about the log itself.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

from models.events import (
    AssetRecorded,
    BillDelivered,
    ChargeBilled,
    CheckpointSaved,
    Event,
    FxRateObserved,
    GpuInventoried,
    GpuSampled,
    NodeStateChanged,
    OwnershipAssigned,
    PolicySet,
    RunInterrupted,
    RunPlaced,
    RunRecorded,
    polars_schema,
    table_name,
)
from pipelines.build import Builder
from pipelines.lake import Batch, Lake, ddl_by_table
from pipelines.projections import load, rebuild, violations
from pipelines.settings import Settings
from pipelines.sources.base import Chunk, Placed, placement_id
from pipelines.touched import windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Fact = tuple[type[Event], dict[str, Any]]
CLUSTER = "alps"
BILL = {"issuer": "AWS", "billing_account_id": "1"}


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, *, month: int = 9) -> datetime:
    """An instant of 2026, in September unless said otherwise; day 31 of September is 1 October."""
    over = month == 9 and day == 31
    return datetime(2026, month + over, 1 if over else day, hour, minute, second, tzinfo=UTC)


START, NEXT_DAY, LATER = at(1), at(2), at(1, month=11)


def run(
    name: str, account: str | None, start: datetime, end: datetime | None, *placed: Placed, **more: Any
) -> list[Fact]:
    """An attempt that held devices. Without an end it is still running."""
    state = {"state": "RUNNING" if end is None else "COMPLETED", "is_final": end is not None, "is_from_step": False}
    about = {
        "cluster": CLUSTER,
        "run_id": name,
        "account": account,
        "started_at": start,
        "ended_at": end,
        "is_from_step": False,
    }
    identity = placement_id(placed)
    return [
        (RunRecorded, {**about, **state, "placement_id": identity, **more}),
        *((RunPlaced, {"placement_id": identity, **_fields(one)}) for one in placed),
    ]


def _fields(one: Placed) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Placed.__slots__}


def gpus(
    node: str, count: int = 1, model: str | None = None, *, profile: str | None = None, shares: int | None = None
) -> Placed:
    """Devices of one type on a node, as a scheduler names them."""
    return Placed(node, profile or (model or "").lower(), count, model, profile, shares)


def node(
    name: str,
    cards: int = 1,
    model: str = "A100-40GB",
    *,
    mig: dict[str, int] | None = None,
    start: datetime = START,
    **more: Any,
) -> list[Fact]:
    """A node's GPUs from an instant on: whole cards, or cards each cut into ``mig`` (profile → instances)."""
    about = {
        "cluster": CLUSTER,
        "node": name,
        "gpu_model": model,
        "effective_from_at": start,
        "card_count": cards,
        **more,
    }
    if mig is None:
        return [(GpuInventoried, {**about, "mig_layout": "", "mig_profile": "", "slices_per_card_count": 1})]
    layout = "+".join(f"{profile}*{count}" for profile, count in sorted(mig.items()))
    return [
        (GpuInventoried, {**about, "mig_layout": layout, "mig_profile": profile, "slices_per_card_count": count})
        for profile, count in mig.items()
    ]


def line(
    resource: str | None, amount: str | Decimal, start: datetime = START, end: datetime = NEXT_DAY, **more: Any
) -> dict[str, Any]:
    """A bill line: what one resource cost in one period, billed and effective alike unless said otherwise."""
    about = {"charge_category": "Usage", "charge_period_start_at": start, "charge_period_end_at": end}
    amounts = {"billed_amount": Decimal(amount), "effective_amount": Decimal(amount), "currency": "USD"}
    return {**about, "resource_id": resource, **amounts, **more}


def bill(*lines: dict[str, Any], month: date = date(2026, 9, 1), **more: Any) -> list[Fact]:
    """A bill of one month, delivered whole with these lines."""
    whole = {**BILL, "billing_period_month": month, **more}
    content = hashlib.sha256(str(lines).encode()).hexdigest()[:16]
    currencies = {one["currency"] for one in lines}
    totals = {name: sum(one[name] for one in lines) for name in ("billed_amount", "effective_amount")}
    one_currency = {"currency": currencies.pop(), **totals} if len(currencies) == 1 else {}
    return [
        (BillDelivered, {**whole, "content_id": content, "line_count": len(lines), **one_currency}),
        *(
            (ChargeBilled, {**whole, "content_id": content, "line_digest": f"l{number}", "line_ordinal": 1, **one})
            for number, one in enumerate(lines)
        ),
    ]


def samples(
    card: str, start: datetime, minutes: Iterable[int], *, busy: float | None = 1.0, where: str = "n1", **more: Any
) -> list[Fact]:
    """One telemetry sample a minute of an hour for a card, each with this SM activity."""
    about = {"cluster": CLUSTER, "gpu_uuid": card, "mig_instance": "", "node": where, "interval_seconds": 60}
    return [
        (GpuSampled, {**about, "sampled_at": start.replace(minute=minute), "sm_active_ratio": busy, **more})
        for minute in minutes
    ]


def owner(account: str, team: str, unit: str = "Research", *, start: datetime = START, **more: Any) -> list[Fact]:
    """Who pays for an account from an instant on."""
    about = {"cluster": "*", "account": account, "effective_from_at": start, "team": team, "business_unit": unit}
    return [(OwnershipAssigned, {**about, **more})]


def policy(name: str, subject: str, value: str, *, start: datetime = START) -> list[Fact]:
    """A policy in force from an instant on."""
    return [(PolicySet, {"policy": name, "subject": subject, "effective_from_at": start, "value": value})]


def rate(currency: str, factor: str, month: datetime = START) -> list[Fact]:
    """One unit of ``currency`` in USD, for a month."""
    about = {"currency": currency, "reporting_currency": "USD", "observed_at": month}
    return [(FxRateObserved, {**about, "fx_rate": Decimal(factor)})]


def state(name: str, when: datetime, now: str) -> list[Fact]:
    """A node going up, down or into drain."""
    return [(NodeStateChanged, {"cluster": CLUSTER, "node": name, "changed_at": when, "state": now})]


def interrupted(name: str, start: datetime, when: datetime) -> list[Fact]:
    """An attempt that was preempted, as somebody else than the scheduler tells it."""
    about = {"cluster": CLUSTER, "run_id": name, "started_at": start}
    return [(RunInterrupted, {**about, "interrupted_at": when, "cause": "preempted"})]


def checkpoint(name: str, *saved: datetime, blocking_seconds: int | None = None) -> list[Fact]:
    """Checkpoints that a run saved."""
    about = {"cluster": CLUSTER, "run_id": name, "blocking_seconds": blocking_seconds}
    return [(CheckpointSaved, {**about, "saved_at": when}) for when in saved]


def heard(name: str, when: datetime) -> list[Fact]:
    """A node is still heard of, so that what happened is known until then."""
    return state(name, when, "up")


def asset(
    name: str, cost: str, months: int, *, residual: str = "0", start: datetime = START, **more: Any
) -> list[Fact]:
    """An owned node of the same name, bought and depreciated over months."""
    about = {"asset_id": name, "cluster": CLUSTER, "node": name, "in_service_at": start, "life_months_count": months}
    amounts = {"purchase_amount": Decimal(cost), "residual_amount": Decimal(residual), "currency": "USD"}
    return [(AssetRecorded, {**about, **amounts, **more})]


def frames(*facts: Fact) -> dict[type[Event], pl.DataFrame]:
    """The facts as frames by event type, what is not said being NULL."""
    rows: dict[type[Event], list[dict[str, Any]]] = {}
    for event, fact in facts:
        rows.setdefault(event, []).append(dict.fromkeys(polars_schema(event)) | fact)
    return {event: pl.DataFrame(found, schema=polars_schema(event)) for event, found in rows.items()}


class Book:
    """A ledger whose log is in memory: tell it facts batch by batch, then ask for tables."""

    def __init__(self, *facts: Fact, currency: str = "USD", delivered: datetime = LATER) -> None:
        """Open a book and tell it facts."""
        self.con = duckdb.connect(config={"threads": 1})
        self.con.execute("SET TimeZone = 'UTC'; ATTACH ':memory:' AS lake; CREATE SCHEMA lake.events")
        for statement in ddl_by_table("lake.events").values():
            self.con.execute(statement)
        self._settings = Settings(home=Path(), reporting_currency=currency)
        self._batch = 0
        self._spans: list[tuple[datetime, datetime]] = []
        self._built: set[str] = set()
        self.tell(*facts, delivered=delivered)

    def tell(self, *facts: Fact, delivered: datetime = LATER) -> Book:
        """Record facts as one more batch, stated for an instant: what was said for it before adds nothing, as in the log."""
        self._batch += 1
        told = frames(*facts)
        digests = json.dumps({table_name(event): "" for event in told})
        names = "batch_id, source, source_window, recorded_at, content_digests, previous_digest, digest"
        counts = [name for name in Batch.__slots__ if name.startswith("rows_")]
        self.con.execute(
            f"INSERT INTO lake.events.batches ({names}, {', '.join(counts)}) "
            f"VALUES (?, 'test', '', ?, ?, '', ''{', 0' * len(counts)})",
            [self._batch, delivered, digests],
        )
        for event, frame in told.items():
            self.con.register("told", frame.to_arrow())
            names, table = ", ".join(frame.columns), f"lake.events.{table_name(event)}"
            version = f"TIMESTAMPTZ '{delivered.isoformat()}'"
            known = f"SELECT {names} FROM {table} WHERE version_at = {version}"
            self.con.execute(
                f"INSERT INTO {table} ({names}, batch_id, version_at) "
                f"SELECT *, {self._batch}, {version} FROM (SELECT {names} FROM told EXCEPT {known})"
            )
            self.con.unregister("told")
        self._built = set()
        return self

    def project(self, *tables: str) -> Book:
        """Bring tables, and all that they read, up to date; every invariant must hold.

        Raises:
          AssertionError: One does not.
        """
        wanted = set(tables)
        for one in reversed(load()):
            if one.name in wanted:
                wanted |= one.reads
        if not self._built:
            self._spans = windows(Builder(self.con, self._batch, self._settings).prepare(full=True))
        for one in load():
            if one.name in wanted - self._built:
                rebuild(self.con, one, self._spans)
                self.substitute(one.name)
                broken = violations(self.con, one, self._spans)
                assert not broken, "; ".join(map(str, broken))
        self._built |= wanted
        return self

    def build(self, *, full: bool = False) -> Book:
        """Build all that is new, as ``gpuledger build`` does."""
        builder = Builder(self.con, self._batch, self._settings)
        builder.project(builder.prepare(full=full), lambda *_: None)
        self._built = {one.name for one in load()}
        return self

    def prepared(self) -> list[datetime]:
        """Days that the next build would rebuild."""
        return Builder(self.con, self._batch, self._settings).prepare(full=False)

    def substitute(self, table: str) -> None:
        """Hook: put given rows in the place of a projection."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query, ordered, over tables that are brought up to date first."""
        self.project(*(one.name for one in load() if one.name in query))
        return sorted(self.con.execute(query).fetchall(), key=repr)

    def one(self, query: str) -> Any:
        """The only value of a query."""
        [[value]] = self.ask(query)
        return value

    def charged(self) -> dict[tuple[str, str], Decimal]:
        """What each team bears of each kind of cost, over all months; the ledger's own proof must add up."""
        assert {row[0] for row in self.ask("SELECT difference_micros FROM marts.proof_monthly")} <= {0}
        assert {row[0] for row in self.ask("SELECT difference_micros FROM marts.proof_by_bill")} <= {0}
        return {
            (team, kind): cost
            for team, kind, cost in self.ask(
                "SELECT team, cost_kind, sum(cost) FROM marts.chargeback_monthly GROUP BY ALL HAVING sum(cost) IS DISTINCT FROM 0"
            )
        }

    def buckets(self) -> dict[str, Decimal]:
        """GPU-hours in each bucket."""
        rows = self.ask("SELECT bucket, sum(share_seconds) FROM core.bucket_hourly GROUP BY ALL")
        return {bucket: Decimal(int(share_seconds)) / 15_120_000 for bucket, share_seconds in rows}

    def findings(self) -> set[str]:
        """Kinds of findings."""
        return {row[0] for row in self.ask("SELECT kind FROM marts.findings")}


def tables(con: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all projections, without when and in which batch we learned of them."""
    hidden = {"marts.findings": "EXCLUDE (first_seen_at, last_seen_at)"}
    return {
        one.name: con.execute(f"SELECT * {hidden.get(one.name, '')} FROM {one.name} ORDER BY ALL").fetchall()
        for one in load()
    }


@cache
def _empty_home() -> Path:
    folder = Path(mkdtemp(prefix="gpuledger-empty-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Lake(Settings(home=folder, data_path=str(folder / "lake" / "data"))).con.close()
    return folder


def home(folder: Path) -> Settings:
    """An empty ledger on disk, copied because making a log takes most of a second."""
    shutil.copytree(_empty_home(), folder, dirs_exist_ok=True)
    return Settings(home=folder, data_path=str(folder / "lake" / "data"))


def append(settings: Settings, *facts: Fact, stated: datetime | None = None, recorded: datetime | None = None) -> Batch:
    """Append facts to a ledger on disk as one batch."""
    clock = {} if recorded is None else {"now": lambda: recorded}
    with Lake(settings, **clock) as lake:
        return lake.append("test", "facts", [Chunk(frames(*facts), rows_read=len(facts))], at=stated)


@contextmanager
def opened_file(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB file, read-only, in UTC."""
    with duckdb.connect(str(path), read_only=True) as con:
        con.execute("SET TimeZone = 'UTC'")
        yield con
