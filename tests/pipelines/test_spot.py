"""What the ledger's own interruptions say, by group of runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from models.errors import UsageError
from models.events import CheckpointSaved
from models.spot import Checkpointing, exact_minutes
from pipelines.spot import fitted
from tests.ledgers import CLUSTER, Book, at, gpus, node, run

if TYPE_CHECKING:
    import polars as pl

    from pipelines.statement import Ask


def asker(*facts: object) -> Ask:
    """A ledger that knows the facts, asked in SQL."""
    book = Book(*facts).project("marts.run_spell", "staged.checkpoint")  # type: ignore[arg-type]

    def ask(sql: str) -> pl.DataFrame:
        return book.con.sql(sql).pl()

    return ask


def attempts(count: int, hours: int, state: str, first_day: int) -> list[object]:
    """Attempts of one GPU on the spot partition, one a day, each so long."""
    return [
        fact
        for number in range(count)
        for fact in run(
            f"{state}{number}", "A", at(first_day + number), at(first_day + number) + timedelta(hours=hours),
            gpus("n1", 1, "A100-40GB"), partition="spot", state=state, is_final=True,
        )
    ]  # fmt: skip


def saved(run_id: str, hour: int, blocking_seconds: int) -> tuple[type, dict[str, object]]:
    """A checkpoint on the first day."""
    about = {"cluster": CLUSTER, "run_id": run_id, "saved_at": at(1, hour), "blocking_seconds": blocking_seconds}
    return CheckpointSaved, about


def test_the_mean_is_the_time_up_over_the_interruptions_and_gives_the_interval() -> None:
    # Ten attempts of 5 h that were preempted, and ten of 1 h that ended by themselves: 60 h up, 10 interruptions, 6 h.
    ask = asker(
        *node("n1", 8), *attempts(10, 5, "PREEMPTED", 1), *attempts(10, 1, "COMPLETED", 11),
        saved("PREEMPTED0", 1, 240), saved("PREEMPTED0", 2, 300), saved("PREEMPTED0", 3, 360),
    )  # fmt: skip
    (row,) = fitted(ask, restart_minutes=10).to_dicts()
    assert row["group"] == "alps · spot · unclassified · A100-40GB"
    assert (row["spell_count"], row["interruption_count"], row["mtbf_seconds"]) == (20, 10, 6 * 3_600)
    assert row["checkpoint_minutes"] == 5
    assert row["interval_minutes"] == pytest.approx(exact_minutes(Checkpointing(360, 5, 10)))
    assert 0.8 < row["goodput_ratio"] < 0.83
    assert fitted(ask, restart_minutes=10, checkpoint_minutes=20)["interval_minutes"][0] > row["interval_minutes"]


def test_too_few_interruptions_are_no_rate() -> None:
    (row,) = fitted(asker(*node("n1", 8), *attempts(2, 5, "PREEMPTED", 1)), restart_minutes=10).to_dicts()
    assert (row["mtbf_seconds"], row["interval_minutes"], row["goodput_ratio"]) == (None, None, None)
    assert "2" in row["reason"]


def test_a_ledger_without_runs_says_what_to_bring() -> None:
    with pytest.raises(UsageError, match="knows no run that held GPUs: ingest a scheduler's records"):
        fitted(asker(*node("n1", 8)), restart_minutes=10)
