"""``gpuledger break-even``: owned against rented GPUs. Does not belong here: computing it, or reading its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import UsageError
from pipelines.terminal import Format, Shape, rows, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from rich.table import Table

MOST_DRAWS = 1_000_000

Draws = Annotated[
    int | None, typer.Option("--monte-carlo", metavar="N", min=1, max=MOST_DRAWS, help="Draw all ranges N times.")
]


def break_even(  # noqa: C901, PLR0913 - each is one thing that the command's user chooses
    inputs: Annotated[Path, typer.Option(metavar="FILE", help="YAML file, such as examples/break-even.yaml.")],
    shape: Shape = Format.TABLE,
    tornado: Annotated[bool, typer.Option("--tornado", help="Each ranged input alone, at its low and high.")] = False,
    draws: Draws = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws: the same seed, the same answer.")] = 0,
    within: Annotated[
        list[int] | None, typer.Option(metavar="MONTHS", min=1, help="Least utilisation that pays within; repeatable.")
    ] = None,
    upfront: Annotated[bool, typer.Option("--upfront", help="Yearly return of paying offers upfront.")] = False,
    excel: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all tables as an .xlsx file too.")] = None,
) -> None:
    """Tell when an owned node has paid for itself, against each offer to rent and at each utilisation.

    No answer comes without its comparator, utilisation, discount rate and residual.

    Example: gpuledger break-even --inputs examples/break-even.yaml --format json
    """
    from models import break_even as owning
    from models import break_even_risk as risk
    from pipelines import break_even_tables as tables
    from pipelines.break_even import read_inputs
    from pipelines.workbook import write_workbook

    if sum(map(bool, (tornado, draws, within, upfront))) > 1:
        raise UsageError("expected one of --tornado, --monte-carlo, --within and --upfront; found more than one")
    stated = read_inputs(inputs)
    if (tornado or draws) and not stated.ranges:
        raise UsageError(f"{inputs}: ranges: expected the range of at least one input; found nothing")
    if upfront and not stated.upfront_offers:
        raise UsageError(f"{inputs}: upfront_offers: expected at least one offer; found nothing")
    shown: list[Callable[[pl.DataFrame], Table]] = [tables.listed]
    if tornado:
        found = risk.tornado(stated)
    elif draws:
        found = risk.monte_carlo(stated, draws, seed)
    elif within:
        found, shown = owning.break_even_utilisations(stated, within), [tables.by_horizon]
    elif upfront:
        found = owning.upfront_returns(stated)
    else:
        found, shown = owning.break_even(stated), tables.grids(stated)
    if excel:
        write_workbook(excel, tables.sheets(stated, draws, seed))
    for line in tables.heading(stated) if shape is Format.TABLE else ():
        tell(line)
    for table in shown if shape is Format.TABLE else shown[:1]:
        rows(found, shape, table)
