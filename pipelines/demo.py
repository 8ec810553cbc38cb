"""``gpuledger demo``: two months of an example company, lived through on their own timeline.

Each delivery is recorded at the instant it would have come, each month closed when its time had come, so that a restated
bill shows up as a correction and ``as-of`` answers as it would have then. Does not belong here: making the files.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from examples.organisation import generate
from models.errors import UsageError
from pipelines import ledger, show
from pipelines.build import build
from pipelines.ingest import ingest_files
from pipelines.lake import Lake
from pipelines.plan_settings import PLAN_FILE
from pipelines.publish import publish, query
from pipelines.statement import by_team, read_statement
from pipelines.terminal import Format, progress, rows, say, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from examples.organisation import Delivery
    from pipelines.settings import Settings

CLOSES = (
    (date(2026, 9, 1), datetime(2026, 10, 5, 8, tzinfo=UTC)),
    (date(2026, 10, 1), datetime(2026, 11, 5, 8, tzinfo=UTC)),
)
"""Months closed and when, on the demo's own timeline."""

NEXT = """
What to type next, with GPULEDGER_HOME={home}:
  gpuledger statement 2026-10                    October, and what it corrects of September
  gpuledger as-of 2026-10-06 prove 2026-09       September as it was known before its bill was restated
  gpuledger findings                             what a person should look at
  gpuledger sql "select team, sum(cost) as cost from marts.chargeback_monthly group by team order by cost desc"
  gpuledger plan                                 what to buy, as {plan} asks
  gpuledger serve                                the dashboards
  dagster dev -w workspace.yaml                  the pipelines"""


@dataclass(slots=True)
class _Clock:
    """The demo's own clock."""

    instant: datetime

    def __call__(self) -> datetime:
        return self.instant


def run(settings: Settings) -> None:
    """Fill the ledger's home and show what comes out.

    Raises:
      UsageError: The ledger holds facts already.
    """
    started = time.monotonic()
    with Lake(settings, on_wait=say) as lake:
        if lake.last_batch_id():
            raise UsageError(
                f"the ledger in {settings.home} holds facts already: set GPULEDGER_HOME to another folder, or delete it"
            )
    with progress("generating files"):
        deliveries = generate(settings.home / "demo-files")
    plan_path = write_plan(settings)
    fill(settings, deliveries)
    show_books(settings)
    folder = settings.home / "demo-files"
    tell(f"\n{len(deliveries):,} deliveries took {time.monotonic() - started:,.0f} s; their files are in {folder}.")
    tell(NEXT.format(home=settings.home, plan=plan_path))


def write_plan(settings: Settings) -> Path:
    """Lay what the example company plans for into the ledger's home; one that is there already stays as it is."""
    path = settings.home / PLAN_FILE
    if not path.exists():
        path.write_bytes(files("examples").joinpath(PLAN_FILE).read_bytes())
    return path


def fill(settings: Settings, deliveries: Sequence[Delivery]) -> None:
    """Append deliveries in the order they came, close each month when its time had come, and publish."""
    remaining = sorted(deliveries, key=lambda one: one.delivered_at)
    with progress("", total=len(remaining) + len(CLOSES) + 1) as shown:
        for month, closing_at in CLOSES:
            due = [one for one in remaining if one.delivered_at <= closing_at]
            remaining = remaining[len(due) :]
            _append(settings, due, shown)
            shown(description=f"closing {month:%B %Y}")
            ledger.close(settings, month, now=_Clock(closing_at), on_wait=say)
            shown(advance=1)
        _append(settings, remaining, shown)
        shown(description="publishing")
        build(settings, on_wait=say)
        publish(settings, on_wait=say)


def _append(settings: Settings, deliveries: Sequence[Delivery], shown: Callable[..., None]) -> None:
    if not deliveries:
        return
    clock = _Clock(deliveries[0].delivered_at)
    with Lake(settings, now=clock, on_wait=say) as lake:
        for one in deliveries:
            clock.instant = one.delivered_at
            shown(description=f"{one.delivered_at:%d %b %Y}: {one.kind}")
            about: dict[str, Any] = one.arguments
            ingest_files(lake, one.kind, one.files, at=one.delivered_at, **about)
            shown(advance=1)


def show_books(settings: Settings) -> None:
    """Each month by team with its proof, and the findings by severity."""
    ask = partial(query, settings)
    statements = [read_statement(ask, month) for month, _ in CLOSES]
    teams = by_team(ask, statements)
    for one in statements:
        rows(teams, Format.TABLE, partial(show.team_table, month=one.month, currency=one.currency))
        tell(f"as closed: {one.proof}\n")
    found = dict(ask("select severity, count(*) from marts.findings group by severity").rows())
    counts = ", ".join(f"{found.get(severity, 0):,} {severity}" for severity in ("error", "warning", "info"))
    tell(f"Findings: {counts}")
