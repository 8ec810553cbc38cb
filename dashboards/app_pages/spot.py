"""Spot: how often jobs are interrupted, how often to save their work, and whether spot pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboards import header, procurement, procurement_charts, spot_jobs, tables, words
from dashboards.published import ledger, query
from dashboards.tables import Column
from models.errors import UsageError
from models.interruptions import fit
from models.spot import Checkpointing
from models.spot_advice import Job, Market, Verdict, advise
from models.spot_replay import Resampling, trace_report
from models.units import format_share

if TYPE_CHECKING:
    import polars as pl

    from models.interruptions import Fit
    from models.spot_advice import Advice

SENTENCE = "How often a job should save its work, what a useful GPU-hour then costs on spot, and whether that pays."
BY_HAND = "Entered by hand"
RESTART_MINUTES = 10.0
RESAMPLED = Resampling(500, 1, 5)


def main() -> None:
    """The page."""
    header.show("Spot", SENTENCE)
    groups = query("job_groups")
    spells = query("spells")
    if groups.is_empty():
        st.info(
            "No run that held GPUs is known, so what follows starts from what you enter. With a scheduler's records it starts from "
            "what happened:\n```\ngpuledger ingest slurm FILE\ngpuledger build\ngpuledger publish\n```",
            icon=":material/inbox:",
        )
    fits = {one.group: one for one in fit(spells)}
    prices = query("prices", model=None, at=ledger()["recorded_until_at"])
    left, right = st.columns([1, 2.6], gap="large")
    with left:
        row, measured = _job(groups, fits)
        asked = _costs(row, measured)
        market = _market(prices, row)
    with right:
        if measured is not None:
            st.markdown(spot_jobs.mtbf_in_words(measured))
        if asked is None or market is None:
            _missing(asked, market)
        else:
            _answer(asked, market, spells, measured)
    if asked is not None and asked.checkpointing is not None and not groups.is_empty():
        _by_class(groups, prices, asked, asked.checkpointing)
    if fits:
        _fits(list(fits.values()))


def _job(groups: pl.DataFrame, fits: dict[str, Fit]) -> tuple[dict[str, Any], Fit | None]:
    """Which jobs, and where interruptions were seen: a class that never ran on spot is judged by one that did."""
    rows = {row["group"]: row for row in groups.iter_rows(named=True)}
    chosen = st.selectbox(
        "Jobs", [*rows, BY_HAND], help="Cluster, partition, workload class and GPU model; most interrupted first."
    )
    seen = st.selectbox(
        "Interrupted as",
        [*fits, BY_HAND],
        index=next((place for place, name in enumerate(fits) if name == next(iter(rows), None)), 0),
        help="Whose interruptions count. Jobs that never ran on spot are judged by jobs that did.",
    )
    return rows.get(chosen, {}), fits.get(seen)


def _costs(row: dict[str, Any], measured: Fit | None) -> Job | None:
    """The job as the person left it; None while something is unknown."""
    mtbf = spot_jobs.mtbf_minutes(measured)
    name = row.get("group", BY_HAND)
    told = f"{name}_{None if measured is None else measured.group}"
    interrupted = st.number_input(
        "Minutes between interruptions",
        min_value=0.1,
        value=mtbf,
        placeholder="unknown: enter it",
        format="%.1f",
        key=f"mtbf_{told}",
        help="Mean running time of the whole job until it is interrupted. Begins with what the ledger has seen.",
    )
    checkpoint = st.number_input(
        "Minutes that a checkpoint holds it up",
        min_value=0.01,
        value=row.get("checkpoint_minutes"),
        placeholder="unknown: enter it",
        format="%.2f",
        key=f"checkpoint_{told}",
        help="Only the time in which work stands still. Begins with the middle of what its jobs said.",
    )
    restart = st.number_input(
        "Minutes to restart",
        min_value=0.0,
        value=RESTART_MINUTES,
        format="%.1f",
        key=f"restart_{told}",
        help="From an interruption, with capacity there again, until work goes on. No source tells it: 10 is an assumption.",
    )
    work = st.number_input(
        "Hours of useful work",
        min_value=0.01,
        value=24.0,
        format="%.1f",
        key=f"work_{told}",
        help="Without checkpoints and interruptions. 24 is an assumption.",
    )
    gpus = st.number_input(
        "GPUs", min_value=1, value=row.get("gpus") or 8, key=f"gpus_{told}", help="GPUs that it holds."
    )
    with st.expander("Deadline, notice, availability", icon=":material/tune:"):
        deadline = st.number_input(
            "Deadline, hours from its start", min_value=0.1, value=None, placeholder="none", key=f"deadline_{told}"
        )
        notice = st.number_input(
            "Notice suffices to save, %",
            min_value=0.0,
            max_value=99.9,
            value=0.0,
            key=f"notice_{told}",
            help="How often the warning before an interruption is long enough to save the work in progress.",
        )
    if interrupted is None or checkpoint is None:
        return None
    checkpointing = Checkpointing(interrupted, checkpoint, restart, spot_jobs.from_percent(notice))
    return Job(name, int(gpus), work, checkpointing, deadline_hours=deadline)


def _market(prices: pl.DataFrame, row: dict[str, Any]) -> Market | None:
    """Prices to compare; None while one is unknown."""
    model = row.get("gpu_model")
    spots, others = procurement.sold(prices, model) if model else ({}, {})
    offer = st.selectbox(
        "Instead of", [*others, BY_HAND], help="What else the job could run on; what is paid by the hour first."
    )
    dearer = st.number_input(
        "Its price of a GPU-hour",
        min_value=0.0,
        value=spot_jobs.price_of(others.get(offer)),
        placeholder="unknown: enter it",
        format="%.4f",
        key=f"other_{model}_{offer}",
        help="After discounts; 0 where a commitment lies unused.",
    )
    cheapest = next(iter(spots.values()), None)
    price = st.number_input(
        "Spot price of a GPU-hour",
        min_value=0.0,
        value=spot_jobs.price_of(cheapest),
        placeholder="unknown: enter it",
        format="%.4f",
        key=f"spot_{model}",
        help=f"Begins with the cheapest in the price book: {next(iter(spots), 'it has none of this GPU')}.",
    )
    if dearer is None or price is None:
        return None
    return Market(spot_jobs.micros(price), spot_jobs.micros(dearer), offer)


def _missing(asked: Job | None, market: Market | None) -> None:
    lacking = [
        what
        for what, found in (
            ("how often it is interrupted and how long its checkpoints take", asked),
            ("its prices", market),
        )
        if found is None
    ]
    st.info(f"Still unknown: {' and '.join(lacking)}. Enter it on the left.", icon=":material/edit:")


def _answer(job: Job, market: Market, spells: pl.DataFrame, measured: Fit | None) -> None:
    c = job.checkpointing
    if c is None:
        return
    try:
        advice = advise(job, market)
    except UsageError as trouble:
        st.warning(str(trouble), icon=":material/warning:")
        return
    _verdict(advice, market)
    _numbers(advice, market)
    st.markdown("#### How long to work between checkpoints")
    st.caption(
        "Too short and the job spends its time saving; too long and an interruption takes much of it. The top is flat: near it, little is lost."
    )
    rules = spot_jobs.intervals(c)
    st.altair_chart(
        procurement_charts.goodput(spot_jobs.goodput_curve(c, rules["interval_minutes"][0]), rules), key="goodput"
    )
    columns = {
        "rule": Column(
            "Rule",
            basis="the exact optimum where interruptions may hit checkpoints and restarts too; Daly 2006; Young 1974",
        ),
        "interval_minutes": Column(
            "Minutes of work between checkpoints",
            "amount",
            "work between the end of one checkpoint and the start of the next",
        ),
        "goodput_ratio": Column("Useful part of the time", "ratio", "work that stays, of the running time"),
    }
    tables.show("Intervals", rules, columns, file_name="spot-intervals")
    if measured is not None:
        _replayed(c, spells, measured)


def _verdict(advice: Advice, market: Market) -> None:
    box, icon, words_of = {
        Verdict.SPOT: (st.success, ":material/bolt:", "Spot pays."),
        Verdict.ALTERNATIVE: (st.warning, ":material/block:", f"Not on spot: {market.alternative_name}."),
        Verdict.UNKNOWN: (st.info, ":material/help:", "Whether spot will do is unknown."),
    }[advice.verdict]
    box("\n".join([f"**{words_of}**", "", *(f"- {one}" for one in advice.reasons)]), icon=icon)


def _numbers(advice: Advice, market: Market) -> None:
    currency = ledger()["reporting_currency"]
    header.numbers(
        (
            "Save every (minutes)",
            spot_jobs.number(advice.interval_minutes, 1),
            "Work between checkpoints that leaves most of the running time useful: the exact optimum.",
        ),
        (
            "Useful time",
            format_share(advice.goodput_ratio),
            "Work that stays, of the running time; the rest is checkpoints, restarts and lost work.",
        ),
        (
            f"On spot ({currency})",
            spot_jobs.number(spot_jobs.price_of(advice.effective_micros_per_gpu_hour), 4),
            "A useful GPU-hour: spot's price divided by the useful part of the time.",
        ),
        (
            "Instead",
            spot_jobs.number(spot_jobs.price_of(advice.alternative_micros_per_gpu_hour), 4),
            f"A GPU-hour of {market.alternative_name}, all of it taken as useful.",
        ),
    )


def _replayed(c: Checkpointing, spells: pl.DataFrame, measured: Fit) -> None:
    up = spot_jobs.between_interruptions(spells, measured.group)
    if measured.mtbf_seconds is None or not up.any():
        return
    report = trace_report(c, up, RESAMPLED)
    rows = spot_jobs.replayed(report)
    columns = {
        "what": Column("Where"),
        "interval_minutes": Column(
            "Minutes between checkpoints", "amount", "work between the end of one checkpoint and the start of the next"
        ),
        "goodput_ratio": Column("Useful part", "ratio", "work that stays, of the running time"),
        "low_ratio": Column("Of nine in ten, lowest", "ratio", "90 % of traces resampled from it in blocks lie above"),
        "high_ratio": Column("Highest", "ratio", "and below"),
    }
    tables.show(
        "The formula beside what happened",
        rows,
        columns,
        file_name="spot-replay",
        note=f"{words.count(measured.spell_count, 'attempt')} of {measured.group} laid end to end and cut at "
        f"{words.count(measured.interruption_count, 'interruption')}: {report.mean_minutes:,.0f} minutes between them on average; resampled "
        "500 times in blocks of five (seed 1). Where the trace leaves less than the formula says, interruptions come in bursts.",
    )


def _by_class(groups: pl.DataFrame, prices: pl.DataFrame, job: Job, c: Checkpointing) -> None:
    columns = {
        "group": Column("Jobs", basis="cluster, partition, workload class, GPU model"),
        "verdict": Column("Advice"),
        "interval_minutes": Column("Save every (minutes)", "amount", "exact optimum; – where something is unknown"),
        "goodput_ratio": Column("Useful time", "ratio", "work that stays, of the running time"),
        "spot_cost": Column("Spot, useful", "price", "a useful GPU-hour at the cheapest spot price of its GPU"),
        "other_cost": Column("By the hour", "price", "the cheapest price of its GPU that is paid by the hour"),
        "checkpoint_minutes": Column(
            "A checkpoint (minutes)", "amount", "middle of what its jobs said; – where they say nothing"
        ),
        "why": Column("Why", width="large"),
    }
    tables.show(
        "Every class of jobs",
        spot_jobs.by_class(groups, prices, job, c),
        columns,
        file_name="spot-by-class",
        note=f"As if each were interrupted every {c.mtbf_minutes:,.1f} minutes and restarted in {c.restart_minutes:,.1f}, for {job.work_hours:,.1f} hours of work.",
    )


def _fits(fits: list[Fit]) -> None:
    columns = {
        "group": Column("Jobs", basis="cluster, partition, workload class, GPU model"),
        "spell_count": Column("Attempts", "count", "attempts of runs whose length is known"),
        "interruption_count": Column(
            "Interrupted", "count", "of them, ended from outside: preempted, node failed, spot taken back"
        ),
        "event_count": Column("Events", "count", "interruptions within 30 seconds of each other are one"),
        "up_hours": Column("Hours up", "hours", "all attempts together"),
        "mtbf_hours": Column(
            "Between interruptions (h)", "amount", "hours up, divided by interruptions; – with fewer than 5 events"
        ),
        "low_hours": Column("At least", "amount", "lower bound at 95 %; known even where nothing happened yet"),
        "high_hours": Column("At most", "amount", "upper bound at 95 %"),
        "weibull_shape": Column("Shape", "amount", "Weibull shape: 1 is memoryless, less is heavy-tailed"),
        "reason": Column("What to bear in mind", width="large"),
    }
    tables.show("What was seen", spot_jobs.fitted(fits), columns, file_name="interruptions")


main()
