"""What all runs share: the days and months that they can be asked for, and how they fail.

Does not belong here: any asset.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster import BackfillPolicy, DailyPartitionsDefinition, Failure, MonthlyPartitionsDefinition

from models.errors import GpuLedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from dagster import AssetExecutionContext

FIRST_DAY = "2020-01-01"
"""First day that a run can be asked for by hand. New facts of earlier days are rebuilt all the same."""

DAYS = DailyPartitionsDefinition(FIRST_DAY, end_offset=1)
"""UTC days, today included: what is known of a day grows until it ends, and after."""

MONTHS = MonthlyPartitionsDefinition(FIRST_DAY)
"""Months that have ended."""

ONE_RUN = BackfillPolicy.single_run()


def asked_window(context: AssetExecutionContext) -> tuple[datetime, datetime] | None:
    """Start and end of the days that the run was asked for; None when it was asked for none."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return None
    window = context.partition_time_window
    return window.start, window.end


@contextmanager
def failing_plainly() -> Iterator[None]:
    """Let our own errors end the run with their message instead of a traceback."""
    try:
        yield
    except GpuLedgerError as error:
        raise Failure(str(error), allow_retries=False) from error
