"""The command line: ``gpuledger …``. Thin: each command is one call into the pipelines, and the printing of its answer.

What a command needs is imported inside it, so that ``--help`` answers at once. Does not belong here: deciding anything.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines import cli_break_even, cli_ingest, cli_plan, cli_spot
from pipelines.settings import Settings
from pipelines.terminal import Format, Month, PoliteGroup, Shape, instant, progress, rows, say, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from pipelines.projections import Projection

BEGIN, BOOKS, ANSWERS, DECIDE, UPKEEP = "Begin", "Keep the books", "Ask", "Decide what to buy", "Look after the log"

app = typer.Typer(cls=PoliteGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
as_of_app = typer.Typer(cls=PoliteGroup, no_args_is_help=True)
app.add_typer(cli_ingest.app, name="ingest", rich_help_panel=BOOKS)
app.add_typer(cli_spot.app, name="spot", rich_help_panel=DECIDE)
app.add_typer(as_of_app, name="as-of", rich_help_panel=ANSWERS)
app.command(rich_help_panel=DECIDE)(cli_plan.plan)
app.command(rich_help_panel=DECIDE)(cli_plan.backtest)
app.command("break-even", rich_help_panel=DECIDE)(cli_break_even.break_even)

DASHBOARD = Path(__file__).resolve().parents[1] / "dashboards" / "app.py"


@app.callback()
def gpuledger() -> None:
    """A cost and chargeback ledger for shared GPU clusters: every GPU-second and every billed cent is accounted for.

    The ledger lives in the folder GPULEDGER_HOME, ./ledger unless set. Begin with: gpuledger demo, or gpuledger init.
    """


@as_of_app.callback()
def as_of(
    ctx: typer.Context,
    cut: Annotated[datetime, typer.Argument(parser=instant, metavar="INSTANT", help="Such as 2026-10-05T08:00:00Z.")],
) -> None:
    """Answer from what was known at an instant: the log is cut there and replayed.

    Example: gpuledger as-of 2026-10-05 statement 2026-09
    """
    ctx.obj = cut


@app.command(rich_help_panel=BEGIN)
def demo() -> None:
    """Fill the ledger with two months of an example company, and show what comes out.

    Example: gpuledger demo
    """
    from pipelines.demo import run

    run(Settings.from_environment())


@app.command(rich_help_panel=BEGIN)
def init() -> None:
    """Make the ledger's home: its empty log, an inbox, sources.yaml and plan-template.yaml to fill in, and Dagster's dagster.yaml.

    What is there already stays as it is.

    Example: GPULEDGER_HOME=~/ledger gpuledger init
    """
    from pipelines.ingest import SOURCES_TEMPLATE
    from pipelines.instance import INSTANCE_YAML
    from pipelines.lake import Lake
    from pipelines.plan_settings import PLAN_FILE, PLAN_TEMPLATE, TEMPLATE_FILE

    settings = Settings.from_environment()
    with Lake(settings, on_wait=say):
        settings.inbox_path.mkdir(parents=True, exist_ok=True)
    declared = settings.home / "sources.yaml"
    template = settings.home / TEMPLATE_FILE
    for path, text in (
        (declared, SOURCES_TEMPLATE),
        (settings.home / "dagster.yaml", INSTANCE_YAML),
        (template, PLAN_TEMPLATE),
    ):
        if not path.exists():
            path.write_text(text, encoding="utf-8")
    tell(f"A ledger in {settings.reporting_currency} stands in {settings.home}.")
    tell("Next: append facts with gpuledger ingest …, then gpuledger build and gpuledger publish.")
    tell(f"Or declare sources in {declared} and let Dagster read what arrives in {settings.inbox_path}:")
    tell(f"  DAGSTER_HOME={settings.home} dagster dev -w workspace.yaml")
    tell(f"To plan purchases, fill in {template}, save it as {settings.home / PLAN_FILE}, and run: gpuledger plan")


@app.command(rich_help_panel=BOOKS)
def build(
    full: Annotated[bool, typer.Option("--full", help="Forget all projections and make them again.")] = False,
) -> None:
    """Bring the projections up to date with the log: the days that new facts touch, and all checks over them.

    Example: gpuledger build
    """
    from pipelines import build as building

    settings = Settings.of_existing_ledger()
    with _projecting() as on_projection:
        report = building.build(settings, full=full, on_projection=on_projection, on_wait=say)
    tell(
        f"Built up to batch {report.batch_id}: {len(report.days):,} days and {sum(report.rows.values()):,} rows rebuilt, "
        "all checks hold. Show it with: gpuledger publish"
    )


@app.command(rich_help_panel=BOOKS)
def publish() -> None:
    """Write the file that statements, queries and dashboards read; who has it open keeps the old one.

    Example: gpuledger publish
    """
    tell(f"Published {_publish(Settings.of_existing_ledger())}")


@app.command(rich_help_panel=ANSWERS)
@as_of_app.command()
def statement(
    ctx: typer.Context,
    month: Month,
    team: Annotated[str | None, typer.Option(help="Only this team's lines.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Print a month's statement: GPU-hours, idle part and cost, in cents that add up to what was billed.

    Example: gpuledger statement 2026-09 --team vision
    """
    from pipelines import show
    from pipelines.statement import read_statement

    with _books(ctx) as ask:
        found = read_statement(ask, month)
    found = found.of_team(team) if team else found
    if shape is Format.TABLE:
        tell(show.statement_heading(found))
    rows(show.statement_rows(found), shape, lambda _rows: show.statement_table(found))
    if shape is Format.TABLE:
        for note in show.statement_notes(found):
            tell(note)


@app.command(rich_help_panel=ANSWERS)
@as_of_app.command()
def prove(ctx: typer.Context, month: Month, shape: Shape = Format.TABLE) -> None:
    """Prove that a month adds up: billed = charged + held + unmatched, for the month and each bill. Exit code 1 if not.

    Example: gpuledger prove 2026-09
    """
    from pipelines import show
    from pipelines.statement import proofs_frame, read_proof

    with _books(ctx) as ask:
        proof, bills = read_proof(ask, month)
        currency = ask("select reporting_currency from marts.ledger").item()
    rows(proofs_frame(proof, bills), shape, partial(show.proof_table, currency=currency))
    if shape is Format.TABLE:
        tell(str(proof))
    if proof.difference_micros or (bills["difference_micros"] != 0).any():
        say(f"{month:%Y-%m} is not proved: the differences above are not 0")
        raise typer.Exit(1)


@app.command(rich_help_panel=BOOKS)
def close(month: Month) -> None:
    """Close a month: post its lines, and what has changed in earlier months as corrections; then publish.

    Example: gpuledger close 2026-09
    """
    from pipelines import ledger, show

    settings = Settings.of_existing_ledger()
    with progress(f"closing {month:%Y-%m}"):
        done = ledger.close(settings, month, on_wait=say)
    for line in show.closed_lines(done, settings.reporting_currency):
        tell(line)
    tell(f"Published {_publish(settings)}")


@app.command(rich_help_panel=ANSWERS)
@as_of_app.command()
def sql(
    ctx: typer.Context, query: Annotated[str, typer.Argument(metavar="QUERY")], shape: Shape = Format.TABLE
) -> None:
    """Ask the published file a question.

    Example: gpuledger sql "select team, sum(cost) as cost from marts.chargeback_monthly group by team" --format csv
    """
    with _books(ctx) as ask:
        rows(ask(query), shape)


@app.command(rich_help_panel=ANSWERS)
def findings(
    rejected: Annotated[bool, typer.Option("--rejected", help="Source rows that were not understood.")] = False,
    shape: Shape = Format.TABLE,
) -> None:
    """List what a person should look at: what was found, what was expected, and what to do.

    Example: gpuledger findings --rejected --format csv
    """
    from pipelines import show
    from pipelines.lake import Lake
    from pipelines.publish import query

    if not rejected:
        found = query(Settings.from_environment(), show.FINDINGS)
        rows(found, shape, show.findings_table)
        return
    with Lake(Settings.of_existing_ledger(), on_wait=say) as lake:
        rows(lake.con.sql(show.REJECTED).pl(), shape)


@app.command(rich_help_panel=UPKEEP)
def verify(
    since: Annotated[str, typer.Option(help="Digest that an earlier check printed: the log must still hold it.")] = "",
) -> None:
    """Recompute every digest of the log from what is stored. Exit code 1 if anything was changed after the fact.

    Keep the digest that it prints somewhere else, and give it next time: only so can it show that the last batches were
    removed with all their rows.

    Example: gpuledger verify
    """
    from pipelines.lake import Lake

    with Lake(Settings.of_existing_ledger(), on_wait=say) as lake, progress("verifying the log", total=1) as shown:
        count, digest = lake.verify(since, lambda done: shown(completed=done))
    tell(f"{count:,} batches, all as they were recorded" + (f"; the last has the digest {digest}" if digest else ""))


@app.command(rich_help_panel=ANSWERS)
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port that the dashboards listen on.")] = 8501,
    address: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets others in, without any login.")] = (
        "localhost"
    ),
) -> None:
    """Open the dashboards on the published file, for this machine alone unless told otherwise. Ctrl-C ends it.

    Example: gpuledger serve --port 8600
    """
    published = Settings.from_environment().published_path
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(DASHBOARD),
        "--server.port",
        str(port),
        "--server.address",
        address,
        "--",
        str(published),
    ]
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own interpreter, no shell


@app.command(rich_help_panel=UPKEEP)
def maintain() -> None:
    """Merge the log's small files and remove files that nothing needs; no answer changes.

    Example: gpuledger maintain
    """
    from pipelines.lake import Lake

    with Lake(Settings.of_existing_ledger(), on_wait=say) as lake, progress("merging small files"):
        lake.maintain()
    tell("The log's files are merged and cleaned.")


@contextmanager
def _books(ctx: typer.Context) -> Iterator[Callable[[str], pl.DataFrame]]:
    """The published file to ask, or under ``as-of`` one made from the log as it was."""
    from pipelines.ledger import replayed
    from pipelines.publish import query, write_published

    if ctx.obj is None:
        yield partial(query, Settings.from_environment())
        return
    settings = Settings.of_existing_ledger()
    with TemporaryDirectory(prefix="gpuledger-as-of-") as folder:
        aside = replace(settings, home=Path(folder))
        with (
            progress(f"replaying the log as of {ctx.obj:%Y-%m-%d %H:%M:%S} UTC"),
            replayed(settings, ctx.obj, say) as con,
        ):
            write_published(con, aside.published_path)
        yield partial(query, aside)


@contextmanager
def _projecting() -> Iterator[Callable[[Projection, int, list[Any]], None]]:
    """What to tell of each projection, to show how far a build is."""
    from pipelines.projections import load

    with progress("building", total=len(load())) as shown:
        yield lambda projection, _rows, _broken: shown(advance=1, description=f"building {projection.name}")


def _publish(settings: Settings) -> Path:
    from pipelines.publish import publish as write

    with progress("publishing"):
        return write(settings, on_wait=say)


def main() -> None:
    """Run the command line."""
    app(prog_name="gpuledger")
