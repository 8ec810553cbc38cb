"""``gpuledger plan`` and ``gpuledger backtest``: what to buy, and whether that would have been right before.

Does not belong here: deciding anything.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.settings import Settings
from pipelines.terminal import Format, Shape, instant, progress, rows, say, tell

if TYPE_CHECKING:
    from pipelines.plan_settings import PlanSettings

PlanFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Pools, demand and policy; plan.yaml in the home unless given."),
]
Excel = Annotated[Path | None, typer.Option(metavar="FILE", help="Write all tables as an .xlsx file too.")]


def plan(
    settings_file: PlanFile = None,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=instant, metavar="INSTANT", help="First hour planned for; the end of what is known unless given."
        ),
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Append the plan to the log as a decision.")] = False,
    excel: Excel = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Recommend what to reserve, run on spot, and own, from the ledger's own demand and prices.

    The same published file and settings give the same plan, with the same id. Nothing is bought.

    Example: gpuledger plan --record --excel plan.xlsx
    """
    from pipelines import plan_tables as tables
    from pipelines import planning
    from pipelines.workbook import write_workbook

    settings = Settings.from_environment()
    with progress("planning"):
        planned = planning.planned_from_ledger(settings, _plan_settings(settings, settings_file), at=at)
    currency = settings.reporting_currency
    if excel:
        write_workbook(excel, tables.plan_sheets(planned, currency))
    if record:  # before it is shown, so that a reader who stops reading does not stop it
        is_new = planning.record(Settings.of_existing_ledger(), planned, on_wait=say)
        say("recorded; gpuledger build and gpuledger publish show it" if is_new else "the log holds this plan already")
    match shape:
        case Format.JSON:
            typer.echo(json.dumps(tables.as_object(planned, currency), default=_as_json))
        case Format.CSV:
            rows(tables.lines_frame(planned), shape)
        case Format.TABLE:
            for line in tables.heading(planned, currency):
                tell(line)
            rows(tables.lines_frame(planned), shape, lambda _rows: tables.lines_table(planned))
            tell()
            rows(tables.stresses_frame(planned), shape, tables.stresses_table)
            for note in planned.notes():
                tell(f"{note.note_kind}: {note}")


def backtest(  # noqa: PLR0913 - each is one thing that the command's user chooses
    settings_file: PlanFile = None,
    fold_days: Annotated[int, typer.Option(min=1, help="Length of a fold.")] = 7,
    step_days: Annotated[
        int | None, typer.Option(min=1, help="From one fold's start to the next; a fold's length unless given.")
    ] = None,
    first_days: Annotated[int, typer.Option(min=1, help="History before the first fold.")] = 14,
    excel: Excel = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Test the plan on the past: what it and each baseline would have cost, against the optimum in hindsight.

    Example: gpuledger backtest --fold-days 7 --format csv
    """
    from models.procurement.backtest import verdict
    from pipelines import plan_tables as tables
    from pipelines.backtesting import backtest_ledger
    from pipelines.workbook import write_workbook

    settings = Settings.from_environment()
    chosen = _plan_settings(settings, settings_file)
    with progress("testing on the past"):
        tested = backtest_ledger(
            settings, chosen, fold_days=fold_days, step_days=step_days or fold_days, first_days=first_days
        )
    sentences = verdict(tested)
    if excel:
        write_workbook(excel, tables.backtest_sheets(tested, sentences))
    rows(tested.summary, shape, lambda _rows: tables.backtest_table(tested))
    if shape is Format.TABLE:
        for sentence in sentences:
            tell(sentence)


def _plan_settings(settings: Settings, given: Path | None) -> PlanSettings:
    from pipelines.plan_settings import PLAN_FILE, read_plan_settings

    return read_plan_settings(given or settings.home / PLAN_FILE)


def _as_json(value: object) -> str:
    """Amounts and instants as text, so that no digit is lost."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value)
