"""Checkpoint advice from rows of the published file. Pure functions; the page asks and shows.

Does not belong here: the formulae (``models.spot``), the fit (``models.interruptions``), the verdict (``models.spot_advice``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dashboards import words
from dashboards.procurement import sold
from models import spot
from models.spot_advice import Job, Market, advise
from models.units import MICROS_PER_UNIT, SECONDS_PER_HOUR, money

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.interruptions import Fit
    from models.spot_replay import TraceReport


def intervals(c: spot.Checkpointing) -> pl.DataFrame:
    """The exact optimum, Daly's and Young's interval, with the useful part of the running time that each leaves."""
    rules = {"Exact optimum": spot.exact_minutes(c), "Daly": spot.daly_minutes(c), "Young": spot.young_minutes(c)}
    return pl.DataFrame(
        {
            "rule": list(rules),
            "interval_minutes": list(rules.values()),
            "goodput_ratio": [spot.goodput_ratio(c, one) for one in rules.values()],
        }
    )


def goodput_curve(c: spot.Checkpointing, around_minutes: float, points: int = 80) -> pl.DataFrame:
    """Useful part of the running time for intervals from a tenth to ten times one."""
    tried = around_minutes * np.logspace(-1, 1, points)
    return pl.DataFrame(
        {"interval_minutes": tried, "goodput_ratio": [spot.goodput_ratio(c, float(one)) for one in tried]}
    )


def fitted(fits: list[Fit]) -> pl.DataFrame:
    """Each group's mean time between interruptions in hours, with its bounds, or the reason why it is unknown."""
    hours = {"mtbf_hours": "mtbf_seconds", "low_hours": "mtbf_low_seconds", "high_hours": "mtbf_high_seconds"}
    rows = [
        {
            "group": one.group,
            "spell_count": one.spell_count,
            "interruption_count": one.interruption_count,
            "event_count": one.event_count,
            "up_hours": one.exposure_seconds / SECONDS_PER_HOUR,
            **{
                name: None if (value := getattr(one, field)) is None else value / SECONDS_PER_HOUR
                for name, field in hours.items()
            },
            "weibull_shape": one.weibull_shape_ratio,
            "reason": one.reason,
        }
        for one in fits
    ]
    whole = dict.fromkeys(("spell_count", "interruption_count", "event_count"), pl.Int64)
    real = dict.fromkeys(("up_hours", *hours, "weibull_shape"), pl.Float64)
    return pl.DataFrame(rows, schema={"group": pl.String, **whole, **real, "reason": pl.String})


def mtbf_in_words(fit: Fit) -> str:
    """A fit in one sentence: the mean with its bounds, or why there is none."""
    if fit.mtbf_seconds is None or fit.mtbf_low_seconds is None:
        least = (
            ""
            if fit.mtbf_low_seconds is None
            else f"; longer than {fit.mtbf_low_seconds / SECONDS_PER_HOUR:,.1f} h in 95 % of the cases"
        )
        return f"How often it is interrupted is unknown: {fit.reason}{least}."
    most = "any" if fit.mtbf_high_seconds is None else f"{fit.mtbf_high_seconds / SECONDS_PER_HOUR:,.1f}"
    caveat = f" {fit.reason[:1].upper()}{fit.reason[1:]}." if fit.reason else ""
    return (
        f"An attempt is interrupted every **{fit.mtbf_seconds / SECONDS_PER_HOUR:,.1f} h** on average "
        f"({fit.mtbf_low_seconds / SECONDS_PER_HOUR:,.1f} to {most} h at 95 % confidence), from "
        f"{words.count(fit.interruption_count, 'interruption')} in {fit.exposure_seconds / SECONDS_PER_HOUR:,.0f} h.{caveat}"
    )


def by_class(groups: pl.DataFrame, prices: pl.DataFrame, job: Job, c: spot.Checkpointing) -> pl.DataFrame:
    """For every class of jobs: how often to save and whether spot pays, were it interrupted so often.

    Its checkpoints hold it up as they did in the middle; the cheapest spot price of its GPU stands against the cheapest that is
    paid by the hour. What is unknown leaves the advice empty and says what is missing.

    Args:
      groups: Rows with ``group``, ``gpu_model``, ``gpus`` and ``checkpoint_minutes``.
      prices: The price book in force.
      job: How much work each has.
      c: How often each is interrupted, and how long it takes to restart.
    """
    rows = []
    for row in groups.iter_rows(named=True):
        spots, others = sold(prices, row["gpu_model"])
        found: dict[str, Any] = {"group": row["group"], "checkpoint_minutes": row["checkpoint_minutes"]}
        lacking = [
            what
            for what, is_known in (
                ("how long its checkpoints take", row["checkpoint_minutes"]),
                (f"a spot price of {row['gpu_model']}", spots),
                (f"another price of {row['gpu_model']}", others),
            )
            if not is_known
        ]
        if lacking:
            rows.append({**found, "verdict": "unknown", "why": f"not known: {', '.join(lacking)}"})
            continue
        name, price = next(iter(others.items()))
        checkpointing = replace(c, checkpoint_minutes=row["checkpoint_minutes"])
        market = Market(next(iter(spots.values())), price, name)
        advice = advise(Job(row["group"], row["gpus"], job.work_hours, checkpointing), market)
        rows.append(
            {
                **found,
                "interval_minutes": advice.interval_minutes,
                "goodput_ratio": advice.goodput_ratio,
                "spot_cost": price_of(advice.effective_micros_per_gpu_hour),
                "other_cost": price_of(advice.alternative_micros_per_gpu_hour),
                "verdict": VERDICTS[advice.verdict],
                "why": advice.reasons[-1],
            }
        )
    schema = {
        "group": pl.String,
        "checkpoint_minutes": pl.Float64,
        "interval_minutes": pl.Float64,
        "goodput_ratio": pl.Float64,
        "spot_cost": pl.Float64,
        "other_cost": pl.Float64,
        "verdict": pl.String,
        "why": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


VERDICTS = {"spot": "spot pays", "alternative": "not on spot", "unknown": "unknown"}
"""How a verdict is said."""


def price_of(micros: int | None) -> float | None:
    """A price to look at."""
    return None if micros is None else float(money(micros))


def micros(price: float) -> int:
    """A price that was entered, in micros."""
    return round(price * MICROS_PER_UNIT)


def from_percent(shown: float) -> float:
    """A ratio from the per cent that a field shows."""
    return shown / 100


def number(value: float | None, places: int) -> str:
    """A number for a headline; an en dash where unknown.

    >>> number(1234.56, 1), number(None, 1)
    ('1,234.6', '–')
    """
    return "–" if value is None else f"{value:,.{places}f}"


def replayed(report: TraceReport) -> pl.DataFrame:
    """The formula beside the trace: useful part of the time at the formula's interval, and at the best in hindsight."""
    exact, best = report.at_exact, report.at_best
    return pl.DataFrame(
        {
            "what": ["Formula", "Trace, at the formula's interval", "Trace, at its best interval in hindsight"],
            "interval_minutes": [exact.interval_minutes, exact.interval_minutes, best.interval_minutes],
            "goodput_ratio": [report.predicted_ratio, exact.goodput_ratio, best.goodput_ratio],
            "low_ratio": [None, exact.low_ratio, best.low_ratio],
            "high_ratio": [None, exact.high_ratio, best.high_ratio],
        }
    )


def mtbf_minutes(fit: Fit | None) -> float | None:
    """Minutes between interruptions; None where they are unknown."""
    return None if fit is None or fit.mtbf_seconds is None else fit.mtbf_seconds / 60


def between_interruptions(spells: pl.DataFrame, group: str) -> NDArray[np.float64]:
    """Running minutes between interruptions of a group: its attempts laid end to end in the order in which they began.

    Their mean is the fitted one, but for what ran after the last interruption. Of unknown length or end: left out.
    """
    known = spells.filter(pl.col("group") == group).drop_nulls(["up_seconds", "is_interrupted"])
    ends = known.select(until=pl.col("up_seconds").cum_sum()).filter(known["is_interrupted"])["until"].to_numpy()
    return np.diff(ends, prepend=0) / 60
