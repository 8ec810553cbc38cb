"""``gpuledger spot …``: how often to save a job's work, and whether it should run on spot. Only ``fit`` needs a ledger.

Does not belong here: the formulae (``models.spot``) and what follows from them (``models.spot_advice``).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.errors import UsageError
from pipelines.cli_ingest import named
from pipelines.terminal import Format, PoliteGroup, Shape, cell, grid, rows, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from rich.table import Table

app = typer.Typer(cls=PoliteGroup, no_args_is_help=True)

MICROS = 1_000_000  # micros in one unit of a currency; models.units has it too, but loads Polars
MOST_PRICE = 1_000_000
"""No GPU-hour, checkpoint or restart costs more, in any currency's units that a person would type."""


def within(most: float, *, from_zero: bool = False, scale: int = 1) -> Callable[[typer.CallbackParam, str | None], Any]:
    """What turns the text after an option into a number in its range, times ``scale``, or refuses it by the option's name."""

    def asked(param: typer.CallbackParam, value: str | None) -> float | int | None:
        if value is None:
            return None
        try:
            found = Decimal(value.strip())
        except InvalidOperation:
            found = Decimal("NaN")
        if not found.is_finite() or not (found >= 0 if from_zero else found > 0) or found > Decimal(str(most)):
            least = "from 0" if from_zero else "above 0 and"
            raise UsageError(
                f"{param.opts[0]}: expected a number {least} {'to' if from_zero else 'up to'} {most:,.10g}, found {value!r}"
            )
        return float(found) if scale == 1 else round(found * scale)

    return asked


def _option(most: float, unit: str, words: str, *, from_zero: bool = False, scale: int = 1) -> Any:
    return typer.Option(parser=str, callback=within(most, from_zero=from_zero, scale=scale), metavar=unit, help=words)


Mtbf = Annotated[float, _option(1e9, "MINUTES", "Mean time between interruptions of the whole job.")]
Checkpoint = Annotated[float, _option(1e9, "MINUTES", "How long writing a checkpoint holds the job up.")]
Restart = Annotated[
    float, _option(1e9, "MINUTES", "From an interruption until work goes on, with capacity there.", from_zero=True)
]
Notice = Annotated[
    float,
    _option(0.999, "RATIO", "How often the notice suffices to save the work in progress.", from_zero=True),
]
Price = Annotated[int, _option(MOST_PRICE, "PRICE", "Of a GPU-hour on spot.", from_zero=True, scale=MICROS)]
Alternative = Annotated[
    int,
    _option(
        MOST_PRICE,
        "PRICE",
        "Of one more GPU-hour elsewhere, after discounts; 0 where a commitment lies unused.",
        from_zero=True,
        scale=MICROS,
    ),
]
Once = Annotated[
    int, _option(MOST_PRICE, "PRICE", "Storage and egress, of the whole job.", from_zero=True, scale=MICROS)
]
Hours = Annotated[float, _option(1e6, "HOURS", "Useful work, without checkpoints and interruptions.")]
Deadline = Annotated[float | None, _option(1e6, "HOURS", "By when it must be done, from its start.")]
Availability = Annotated[
    float | None, _option(1, "RATIO", "Part of the time in which spot has room for the whole job.")
]


Excel = Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as an .xlsx file too.")]


@app.callback()
def spot() -> None:
    """Work that may be interrupted: how often to save it, and whether spot pays.

    Example: gpuledger spot interval --mtbf-minutes 360 --checkpoint-minutes 5 --restart-minutes 10
    """


@app.command()
def interval(  # noqa: PLR0913 - each is one thing that the command's user chooses
    mtbf_minutes: Mtbf,
    checkpoint_minutes: Checkpoint,
    restart_minutes: Restart,
    notice_success: Notice = 0,
    excel: Excel = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Tell how long to work between checkpoints: the exact optimum, and Daly's and Young's rules.

    The goodput is the part of the running time that is useful work at the exact optimum, where interruptions may hit
    checkpoints and restarts too. Daly and Young know no notice.

    Example: gpuledger spot interval --mtbf-minutes 360 --checkpoint-minutes 5 --restart-minutes 10 --format json
    """
    from models import spot as model

    c = model.Checkpointing(mtbf_minutes, checkpoint_minutes, restart_minutes, notice_success)
    exact = model.exact_minutes(c)
    goodput = model.goodput_ratio(c, exact)
    is_hopeless = goodput < model.LEAST_GOODPUT_RATIO
    answer = {
        "exact_minutes": exact,
        "daly_minutes": model.daly_minutes(c),
        "young_minutes": model.young_minutes(c),
        "goodput": goodput,
        "is_hopeless": is_hopeless,
    }
    _print(answer, shape, excel)
    if is_hopeless and shape is Format.TABLE:
        tell("The goodput is effectively 0: interrupted so often, such a job does not finish.")


@app.command()
def advise(  # noqa: PLR0913 - each is one thing that the command's user chooses
    mtbf_minutes: Mtbf,
    checkpoint_minutes: Checkpoint,
    restart_minutes: Restart,
    price: Price,
    alternative_price: Alternative,
    alternative_name: Annotated[
        str, typer.Option(parser=named, metavar="NAME", help="What the alternative is, such as 'on demand'.")
    ],
    work_hours: Hours,
    gpus: Annotated[int, typer.Option(min=1, max=1_000_000, help="GPUs that the job holds.")] = 1,
    notice_success: Notice = 0,
    deadline_hours: Deadline = None,
    availability: Availability = None,
    checkpoint_cost: Once = 0,
    restart_cost: Once = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated deadline: the same seed, the same answer.")] = 0,
    excel: Excel = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Tell whether a job should run on spot: interval, running time, price of a useful GPU-hour, deadline, and why.

    All prices are in one currency, whichever it is.

    Example: gpuledger spot advise --mtbf-minutes 360 --checkpoint-minutes 5 --restart-minutes 10 --price 2.20 --alternative-price 6.88 --alternative-name "on demand" --work-hours 200 --gpus 64 --deadline-hours 400 --availability 0.7
    """
    from models import spot_advice as model
    from models.spot import Checkpointing
    from models.spot_replay import Resampling

    c = Checkpointing(mtbf_minutes, checkpoint_minutes, restart_minutes, notice_success)
    job = model.Job("this job", gpus, work_hours, c, deadline_hours=deadline_hours)
    market = model.Market(price, alternative_price, alternative_name, availability, checkpoint_cost, restart_cost)
    found = model.advise(job, market, Resampling(model.DRAWN.replications, seed))
    answer = asdict(found) | {"verdict": found.verdict.value, "reasons": list(found.reasons)}
    answer = {name: value for name, value in answer.items() if name != "job"} | {
        "alternative_name": alternative_name,
        "seed": seed,
    }
    if shape is not Format.TABLE:
        _print(answer, shape, excel)
        return
    where = {"spot": "Run it on spot.", "alternative": f"Do not run it on spot, but: {alternative_name}."}
    tell(where.get(found.verdict.value, "It cannot be told whether to run it on spot."))
    for reason in found.reasons:
        tell(f"  · {reason}")
    _print({name: value for name, value in answer.items() if name not in {"verdict", "reasons"}}, shape, excel)


@app.command("fit")
def fit(
    restart_minutes: Restart,
    checkpoint_minutes: Annotated[
        float | None,
        _option(1e9, "MINUTES", "How long a checkpoint holds a job up; what the runs told of unless given."),
    ] = None,
    excel: Excel = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Tell from the ledger's own runs how often each group is interrupted, and how often to save its work.

    Example: gpuledger spot fit --restart-minutes 10
    """
    from functools import partial

    from pipelines.publish import query
    from pipelines.settings import Settings
    from pipelines.spot import fitted
    from pipelines.workbook import write_workbook

    ask = partial(query, Settings.from_environment())
    found = fitted(ask, restart_minutes=restart_minutes, checkpoint_minutes=checkpoint_minutes)
    if excel:
        write_workbook(excel, {"Interruptions": found})
    rows(found, shape, _fits)


def _fits(found: pl.DataFrame) -> Table:
    """A line a group; durations in hours and minutes."""
    from models.units import format_share

    def hours(seconds: float | None) -> str:
        return "–" if seconds is None else f"{seconds / 3_600:,.1f}"

    def minutes(value: float | None) -> str:
        return "–" if value is None else f"{value:,.1f}"

    body = [
        (
            one["group"], f"{one['spell_count']:,}", f"{one['interruption_count']:,}", f"{one['event_count']:,}",
            hours(one["mtbf_seconds"]), f"{hours(one['mtbf_low_seconds'])} to {hours(one['mtbf_high_seconds'])}",
            minutes(one["checkpoint_minutes"]), minutes(one["interval_minutes"]), format_share(one["goodput_ratio"]),
            one["reason"],
        )
        for one in found.iter_rows(named=True)
    ]  # fmt: skip
    columns = [
        ("Group", False), ("Attempts", True), ("Interrupted", True), ("Events", True), ("MTBF (h)", True),
        ("95 % (h)", True), ("Checkpoint (min)", True), ("Save every (min)", True), ("Goodput", True), ("Mind", False),
    ]  # fmt: skip
    return grid(columns, body)


def _print(answer: dict[str, Any], shape: Format, excel: Path | None) -> None:
    """One answer: a JSON object, a CSV of one row, or a table of a line a figure; and a workbook where it is asked for."""
    import polars as pl

    from pipelines.workbook import write_workbook

    if excel:
        figures = {name: "; ".join(value) if isinstance(value, list) else str(value) for name, value in answer.items()}
        write_workbook(excel, {"Spot": pl.DataFrame({"figure": list(figures), "value": list(figures.values())})})
    if shape is Format.JSON:
        typer.echo(json.dumps(answer, allow_nan=False))
    else:
        rows(pl.DataFrame([answer]), shape, _figures)


def _figures(answer: pl.DataFrame) -> Table:
    """A line a figure; prices in whole units of their currency."""
    from models.units import money

    body = []
    for name, value in answer.row(0, named=True).items():
        is_price = name.endswith("_micros_per_gpu_hour") and value is not None
        body.append(
            (name.replace("_micros_", "_").replace("_", " "), f"{money(value):,.4f}" if is_price else cell(value))
        )
    return grid([("Figure", False), ("Value", True)], body)
