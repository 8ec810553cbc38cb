"""``gpuledger ingest …``: one command a kind of source; each appends one batch and says what became of its rows.

Does not belong here: how a source is read.
"""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.errors import UsageError
from pipelines.settings import Settings
from pipelines.terminal import PoliteGroup, instant, month, progress, say, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.lake import Batch, Lake

REASONS_SHOWN = 3

app = typer.Typer(cls=PoliteGroup, no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Files to read, as one batch.")]


def named(text: str) -> str:
    """A name that says something.

    Raises:
      UsageError: It is empty, as an unset shell variable leaves it.
    """
    if not text.strip():
        raise UsageError("expected a name, found an empty text: is a shell variable unset?")
    return text.strip()


Cluster = Annotated[str, typer.Option(parser=named, metavar="NAME", help="Cluster that the rows come from.")]
SomeCluster = Annotated[
    str | None, typer.Option(parser=named, metavar="NAME", help="Cluster, where the files name none.")
]
Interval = Annotated[int | None, typer.Option("--interval-seconds", min=1, help="What one sample stands for.")]
At = Annotated[
    datetime | None,
    typer.Option(
        parser=instant,
        metavar="INSTANT",
        help="When this version was taken or delivered, such as 2026-10-04T06:00:00Z. Without it the newest word wins.",
    ),
]
Since = Annotated[datetime, typer.Option(parser=instant, metavar="INSTANT", help="Start of the window.")]
Until = Annotated[datetime, typer.Option(parser=instant, metavar="INSTANT", help="End of the window, exclusive.")]


class Trace(StrEnum):
    """Published traces that can be read."""

    HELIOS = "helios"
    ACME = "acme"
    PHILLY = "philly"
    OPENB = "openb"


@app.callback()
def ingest() -> None:
    """Append facts to the log. Rows already known add nothing; rows not understood are kept aside with the reason.

    Example: gpuledger ingest org organisation.csv
    """


@app.command()
def slurm(  # noqa: PLR0913 - each is one thing that the command's user chooses
    cluster: Cluster,
    timezone: Annotated[str, typer.Option(help="Time zone that sacct ran in, such as Europe/Berlin or UTC.")],
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="Dumps of sacct -P, plain or .gz.")] = None,
    fields: Annotated[str | None, typer.Option(help="Columns of a dump without header: jobid,jobidraw,…")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Delimiter, where the header does not tell it.")] = None,
    at: At = None,
    live: Annotated[bool, typer.Option("--live", help="Ask sacct itself, from --since to --until.")] = False,
    since: Annotated[datetime | None, typer.Option(parser=instant, metavar="INSTANT", help="With --live.")] = None,
    until: Annotated[datetime | None, typer.Option(parser=instant, metavar="INSTANT", help="With --live.")] = None,
) -> None:
    """Append runs from Slurm's accounting.

    Example: gpuledger ingest slurm sacct-2026-09.txt --cluster alps --timezone Europe/Zurich --at 2026-10-01T04:00:00Z
    """
    about: dict[str, Any] = {"cluster": cluster, "timezone": timezone}
    if live:
        if files or fields or delimiter or at or since is None or until is None:
            raise UsageError("--live takes --since and --until, and no files, --fields, --delimiter or --at")
        _append_live("slurm", start=since, end=until, **about)
        return
    if since or until:
        raise UsageError("--since and --until need --live: a dump is read whole")
    about |= {"fields": fields.split(",") if fields else None, "delimiter": delimiter}
    _append_files("slurm", files, at=at, **about)


@app.command()
def focus(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="All parts of one delivery.")],
    at: At = None,
    billing_period: Annotated[
        date | None,
        typer.Option(parser=month, metavar="YYYY-MM", help="Of an empty delivery: the month restated to nothing."),
    ] = None,
    issuer: Annotated[str | None, typer.Option(help="Of an empty delivery: who invoiced.")] = None,
    account: Annotated[str | None, typer.Option(help="Of an empty delivery: the account billed.")] = None,
) -> None:
    """Append one delivery of a bill in FOCUS columns; it replaces the bill's earlier deliveries as a whole.

    Example: gpuledger ingest focus bill-2026-09.parquet --at 2026-10-03T09:00:00Z
    """
    about = {"billing_period": billing_period, "issuer": issuer, "billing_account_id": account}
    _append_files("focus", files, at=at, **about)


@app.command()
def dcgm(
    files: Files,
    cluster: Cluster,
    at: Annotated[datetime, typer.Option(parser=instant, metavar="INSTANT", help="When the scrape was taken.")],
    interval_seconds: Interval = None,
) -> None:
    """Append scrapes of dcgm-exporter.

    Example: gpuledger ingest dcgm scrape.txt --cluster alps --at 2026-09-01T12:00:00Z
    """
    about = {} if interval_seconds is None else {"interval_seconds": interval_seconds}
    _append_files("dcgm", files, at=at, cluster=cluster, **about)


@app.command()
def prometheus(
    url: Annotated[str, typer.Argument(metavar="URL", help="Root of the API, such as http://prometheus:9090.")],
    cluster: Cluster,
    since: Since,
    until: Until,
    step: Annotated[int, typer.Option(min=1, help="Seconds that a sample stands for.")] = 60,
) -> None:
    """Append GPU telemetry that a Prometheus server keeps.

    Example: gpuledger ingest prometheus http://prometheus:9090 --cluster alps --since 2026-09-01 --until 2026-09-02
    """
    _append_live("prometheus", start=since, end=until, url=url, cluster=cluster, step_seconds=step)


@app.command()
def telemetry(files: Files, cluster: SomeCluster = None, interval_seconds: Interval = None, at: At = None) -> None:
    """Append tables of GPU samples, as CSV or Parquet.

    Example: gpuledger ingest telemetry samples-2026-09.parquet --cluster alps
    """
    _append_files("telemetry", files, at=at, cluster=cluster, interval_seconds=interval_seconds)


@app.command()
def org(files: Files, at: At = None) -> None:
    """Append who pays for which account, from when on.

    Columns, * required: cluster, account*, project, team*, business_unit*, effective_from*

    Example: gpuledger ingest org organisation.csv
    """
    _append_files("org", files, at=at)


@app.command()
def assets(files: Files, at: At = None) -> None:
    """Append owned machines with their purchase, life and running cost.

    Columns, * required: asset_id*, cluster*, node, in_service*, retired, life_months*, purchase_amount*, residual_amount*, currency*, power_watts, power_usage_effectiveness, energy_price, monthly_fee

    Example: gpuledger ingest assets assets.csv
    """
    _append_files("assets", files, at=at)


@app.command()
def fx(files: Files, at: At = None) -> None:
    """Append monthly exchange rates into the reporting currency.

    Columns, * required: month*, currency*, rate*

    Example: gpuledger ingest fx rates-2026.csv
    """
    _append_files("fx", files, at=at)


@app.command()
def nodes(files: Files, at: At = None) -> None:
    """Append nodes with their GPUs, or when nodes went down and up.

    Columns, * required: cluster*, node*, gpu_model*, gpu_count*, mig_layout, effective_from*, effective_until, resource_id, capacity_type

    or, for states: cluster*, node*, changed_at*, state*, reason

    Example: gpuledger ingest nodes nodes.csv
    """
    _append_files("nodes", files, at=at)


@app.command()
def policies(files: Files, at: At = None) -> None:
    """Append dated policies: who pays what no run used, and when a month may close.

    Columns, * required: policy*, subject, effective_from*, value*

    Example: gpuledger ingest policies policies.csv
    """
    _append_files("policies", files, at=at)


@app.command()
def trace(
    kind: Annotated[Trace, typer.Argument(help="Which trace.")],
    files: Files,
    cluster: SomeCluster = None,
    at: At = None,
) -> None:
    """Append the runs of a published trace.

    Example: gpuledger ingest trace helios cluster_log.csv
    """
    _append_files("trace", files, at=at, trace=kind.value, cluster=cluster)


@app.command()
def prices(files: Files, at: At = None) -> None:
    """Append prices of GPUs as they were offered; amounts are per GPU. What is not offered is a line that is not there.

    Columns, * required: offer_id*, gpu_model*, region, zone, observed_at*, instrument*, provider*, instance_type, operating_system, gpu_count*, scope*, has_capacity*, term_seconds, payment_option, upfront_amount, hourly_amount, residual_amount, life_months_count, power_watts, monthly_fee_amount, lead_seconds, reference_gpu_quantity, currency*, valid_from_at, valid_until_at, price_source*

    Example: gpuledger ingest prices prices-2026-09.csv
    """
    _append_files("prices", files, at=at)


@app.command()
def commitments(files: Files, at: At = None) -> None:
    """Append commitments bought or queued: reservations, plans, capacity blocks, contracts.

    Columns, * required: commitment_id*, instrument*, provider*, offer_id, region, zone, gpu_model, instance_type, scope*, has_capacity*, starts_at*, ends_at*, gpu_count, hourly_commitment_amount, hourly_amount, upfront_amount, payment_option, currency*, state*

    Example: gpuledger ingest commitments commitments.csv
    """
    _append_files("commitments", files, at=at)


@app.command()
def interruptions(files: Files, at: At = None) -> None:
    """Append interruptions of runs that the scheduler does not tell of, such as spot instances taken back.

    Columns, * required: cluster*, run_id*, started_at*, interrupted_at*, cause*, node, gpu_count, notice_seconds

    Example: gpuledger ingest interruptions spot-2026-09.csv
    """
    _append_files("interruptions", files, at=at)


@app.command()
def checkpoints(files: Files, at: At = None) -> None:
    """Append checkpoints that runs saved, with the time they stood still for it.

    Columns, * required: cluster*, run_id*, saved_at*, blocking_seconds, size_mib

    Example: gpuledger ingest checkpoints checkpoints-2026-09.csv
    """
    _append_files("checkpoints", files, at=at)


@app.command()
def aws_prices(
    region: Annotated[str, typer.Option(parser=named, metavar="REGION", help="AWS region, such as us-east-1.")],
    since: Since,
    until: Until,
) -> None:
    """Append AWS's spot prices of a window, its list prices and its savings plan rates. AWS keeps 90 days of spot prices.

    Example: gpuledger ingest aws-prices --region us-east-1 --since 2026-09-01 --until 2026-10-01
    """
    _append_live("aws_prices", start=since, end=until, region=region)


def _append_files(kind: str, files: list[Path] | None, *, at: datetime | None, **arguments: Any) -> None:
    from pipelines.ingest import ingest_files

    if not files:
        raise UsageError("no file given: name the files to read, or see --help")
    _append(kind, lambda lake, on_rows: ingest_files(lake, kind, files, at=at, on_rows=on_rows, **arguments))


def _append_live(kind: str, *, start: datetime, end: datetime, **arguments: Any) -> None:
    from pipelines.ingest import ingest_live

    if start >= end:
        raise UsageError(f"the window is empty: --since {start:%Y-%m-%dT%H:%M:%SZ} is not before --until")
    _append(kind, lambda lake, on_rows: ingest_live(lake, kind, start, end, on_rows=on_rows, **arguments))


def _append(kind: str, read: Callable[[Lake, Callable[[int], None]], Batch]) -> None:
    from pipelines.lake import Lake

    with Lake(Settings.of_existing_ledger(), on_wait=say) as lake:
        with progress(f"reading {kind}: rows") as shown:
            batch = read(lake, lambda done: shown(completed=done))
        for line in batch_lines(batch, _first_reasons(lake, batch)):
            tell(line)
        for note in _emptied_unknown(lake, batch):
            say(note)


def _emptied_unknown(lake: Lake, batch: Batch) -> list[str]:
    """What to say of bills that a batch restates to nothing, though no delivery of them ever had a line: a misspelt name."""
    if batch.source != "focus" or batch.rows_read:
        return []
    found = lake.con.execute(
        """
        WITH delivered AS (
          SELECT issuer || '/' || billing_account_id AS bill, billing_period_month AS month, line_count, batch_id
          FROM lake.events.bill_delivered
        ), known AS (SELECT DISTINCT bill, month FROM delivered WHERE line_count > 0)
        SELECT bill, month, (SELECT string_agg(k.bill, ', ' ORDER BY k.bill) FROM known AS k WHERE k.month = e.month)
        FROM delivered AS e ANTI JOIN known USING (bill, month)
        WHERE batch_id = ?
        """,
        [batch.batch_id],
    ).fetchall()
    return [
        f"note: no bill {bill} of {month:%Y-%m} was delivered before, so this empties none; bills of that month: "
        f"{others or 'none'}"
        for bill, month, others in found
    ]


def _first_reasons(lake: Lake, batch: Batch) -> list[tuple[int, str, str]]:
    """The most frequent reasons for which rows of a batch were rejected: (rows, reason, first position)."""
    return lake.con.execute(
        "SELECT count(*), reason, min(position) FROM lake.events.rejected WHERE batch_id = ? AND kind = 'rejected' "
        "GROUP BY reason ORDER BY count(*) DESC, reason LIMIT ?",
        [batch.batch_id, REASONS_SHOWN],
    ).fetchall()


def batch_lines(batch: Batch, reasons: list[tuple[int, str, str]]) -> list[str]:
    """What became of a batch's rows, line by line, for a person."""
    lines = [
        f"batch {batch.batch_id}: {batch.source} {batch.source_window}",
        f"  read {batch.rows_read:,} source rows, ignored {batch.rows_ignored:,}, rejected {batch.rows_rejected:,}, set aside {batch.rows_set_aside:,}",
        f"  appended {batch.rows_appended:,} event rows, {batch.rows_duplicate:,} duplicates",
    ]
    lines += [f"  rejected {count:,}: {reason} (first at {position})" for count, reason, position in reasons]
    if not (batch.rows_read or batch.rows_appended or batch.rows_rejected):
        lines.append("  nothing was in it: if there should have been, export it again and ingest that")
    if batch.rows_rejected:
        lines.append("  see all of them with: gpuledger findings --rejected")
    return lines
