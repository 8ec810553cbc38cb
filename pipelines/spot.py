"""How often the ledger's own runs are interrupted, by group, and how often to save work therefore.

Does not belong here: fitting (``models.interruptions``) and the formulae (``models.spot``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import UsageError
from models.interruptions import SPELLS, Fit, fit
from models.spot import Checkpointing, exact_minutes, goodput_ratio

if TYPE_CHECKING:
    from pipelines.statement import Ask

_SPELLS = """
select run_id, concat_ws(' · ', cluster, partition, workload_class, gpu_model) as "group", up_seconds, is_interrupted,
  interrupted_at, gpu_count as gpus
from marts.run_spell
order by started_at, cluster, run_id
"""
_BLOCKING = """
select concat_ws(' · ', s.cluster, s.partition, s.workload_class, s.gpu_model) as "group",
  cast(median(c.blocking_seconds) as double) / 60 as checkpoint_minutes
from marts.run_spell as s
join staged.checkpoint as c on c.cluster = s.cluster and c.run_id = s.run_id
where c.blocking_seconds is not null
group by all
"""


def fitted(ask: Ask, *, restart_minutes: float, checkpoint_minutes: float | None = None) -> pl.DataFrame:
    """One row a group of runs (cluster, partition, kind of work, GPU model): what its interruptions say.

    Args:
      ask: Asks the published file.
      restart_minutes: From an interruption until work goes on.
      checkpoint_minutes: How long a checkpoint holds a job up; None: the median that the group's runs told of.

    Returns:
      The fields of ``models.interruptions.Fit``; ``checkpoint_minutes``, and the best interval and its goodput, NULL where
      the mean time between interruptions or the checkpoint's length is not known.

    Raises:
      UsageError: The ledger knows no runs.
    """
    spells = ask(_SPELLS)
    if spells.is_empty():
        raise UsageError("the ledger knows no run that held GPUs: ingest a scheduler's records, build and publish")
    told: dict[str, float] = dict(ask(_BLOCKING).rows())
    found = fit(spells.cast(pl.Schema(SPELLS)))
    rows = [asdict(one) | _interval(one, checkpoint_minutes or told.get(one.group), restart_minutes) for one in found]
    return pl.DataFrame(rows, infer_schema_length=None).sort("event_count", "group", descending=[True, False])


def _interval(one: Fit, checkpoint_minutes: float | None, restart_minutes: float) -> dict[str, Any]:
    unknown = {"checkpoint_minutes": checkpoint_minutes, "interval_minutes": None, "goodput_ratio": None}
    if one.mtbf_seconds is None or checkpoint_minutes is None:
        return unknown
    c = Checkpointing(one.mtbf_seconds / 60, checkpoint_minutes, restart_minutes)
    return unknown | {"interval_minutes": exact_minutes(c), "goodput_ratio": goodput_ratio(c, exact_minutes(c))}
