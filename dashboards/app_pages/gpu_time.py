"""GPU time: what became of every GPU-hour, by day, team and node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from dashboards import charts, header, tables, words
from dashboards.published import query
from dashboards.tables import Column
from models.units import format_hours, format_share

if TYPE_CHECKING:
    from datetime import date

HELD = ("active", "allocated_idle", "allocated_unmeasured")
IDLE = "part of the measured GPU time held by runs without activity; – where nothing was measured"


def main() -> None:
    """The page."""
    found = header.show_with_month("GPU time", "What became of every GPU-hour that the clusters had.")
    if found is None:
        return
    month = found[0]
    clusters = query("clusters", month=month)["cluster"].to_list()
    if not clusters:
        st.info(
            f"No GPU time is known for {words.month(month)}: ingest the nodes file and the scheduler's records, then run "
            "`gpuledger build` and `gpuledger publish`.",
            icon=":material/inbox:",
        )
        return
    everywhere = "All clusters"
    cluster = everywhere
    if len(clusters) > 1:
        cluster = st.segmented_control(
            "Cluster", [everywhere, *clusters], default=everywhere, required=True, label_visibility="collapsed"
        )
    chosen = None if cluster == everywhere else cluster
    _buckets(month, chosen)
    _teams(month, chosen)
    _nodes(month, chosen)


def _buckets(month: date, cluster: str | None) -> None:
    rows = query("buckets", month=month, cluster=cluster)
    hours = {bucket: float(value) for bucket, value in rows.select("bucket", "gpu_hours").iter_rows()}
    capacity, held = sum(hours.values()), sum(hours.get(bucket, 0.0) for bucket in HELD)
    active, idle = hours.get("active", 0.0), hours.get("allocated_idle", 0.0)
    measured = active + idle
    header.numbers(
        (
            "Capacity (GPU-hours)",
            format_hours(capacity),
            "All GPUs of the nodes that the ledger knows, each hour of the month; every GPU-hour is in exactly one of the parts below.",
        ),
        (
            "Held by runs",
            format_share(held / capacity if capacity else None),
            "Part of the capacity that the scheduler had given to runs.",
        ),
        (
            "Active",
            format_share(active / capacity if capacity else None),
            "Part of the capacity in which the activity counter (SM activity, else graphics engine, else GPU utilisation) showed at least 1 % in that minute.",
        ),
        (
            "Idle share",
            format_share(idle / measured if measured else None),
            "Part of the measured GPU time held by runs in which that counter stayed below 1 %.",
        ),
        (
            "Measured",
            format_share(measured / held if held else None),
            "Part of the GPU time held by runs for which telemetry exists.",
        ),
    )
    st.altair_chart(charts.buckets_by_day(query("buckets_daily", month=month, cluster=cluster)), key="buckets")
    shown = rows.with_columns(
        name=pl.col("bucket").replace_strict({one: words.BUCKETS[one][0] for one in rows["bucket"]}),
        meaning=pl.col("bucket").replace_strict({one: words.BUCKETS[one][1] for one in rows["bucket"]}),
    )
    columns = {
        "name": Column("GPU time"),
        "gpu_hours": Column("GPU-hours", "hours", "whole-GPU hours; all rows together are the capacity"),
        "capacity_ratio": Column("Of capacity", "ratio", "GPU-hours, divided by the capacity"),
        "cost": Column("Cost", "money", "the nodes' cost, divided by GPU time; – where no cost is known"),
        "meaning": Column("What it is"),
    }
    tables.show(
        "What became of it",
        shown,
        columns,
        file_name=f"gpu-time-{month:%Y-%m}",
        note="Cost is as known now, with everything that came after a month was closed.",
    )


def _teams(month: date, cluster: str | None) -> None:
    rows = query("idle_by_team", month=month, cluster=cluster)
    if rows.is_empty():
        st.info(f"No run held GPUs in {words.month(month)}.", icon=":material/inbox:")
        return
    columns = {
        "team": Column("Team"),
        "business_unit": Column("Business unit"),
        "gpu_hours": Column("GPU-hours held", "hours", "whole-GPU hours held by the team's runs"),
        "idle_gpu_hours": Column("Idle GPU-hours", "hours", "held and measured, but without activity"),
        "idle_ratio": Column("Idle", "ratio", IDLE),
        "idle_cost": Column(
            "Cost of idle time",
            "money",
            "the team's cost of GPU time used, in the proportion of its idle to its held GPU-hours; part of the charge, not on top of it",
        ),
        "measured_ratio": Column("Measured", "ratio", "part of the team's GPU time for which telemetry exists"),
    }
    if (rows["idle_gpu_hours"].fill_null(0) > 0).any():
        st.markdown("#### Where GPUs sit idle")
        st.altair_chart(charts.idle_by_team(rows), key="idle")
    tables.show("Idle by team", rows, columns, file_name=f"idle-by-team-{month:%Y-%m}")


def _nodes(month: date, cluster: str | None) -> None:
    columns = {
        "node": Column("Node"),
        "cluster": Column("Cluster"),
        "gpu_model": Column("GPU model"),
        "gpu_hours": Column("Capacity (GPU-hours)", "hours", "the node's GPUs, each hour that the node existed"),
        "allocated_ratio": Column("Held by runs", "ratio", "part of the capacity"),
        "idle_ratio": Column("Idle", "ratio", IDLE),
        "unallocated_ratio": Column("Free", "ratio", "part of the capacity that nobody held"),
        "down_ratio": Column("Down", "ratio", "part of the capacity"),
        "cost": Column("Cost", "money", "the node's cost in the month; – where it is unknown"),
    }
    tables.show(
        "By node",
        query("nodes", month=month, cluster=cluster),
        columns,
        file_name=f"nodes-{month:%Y-%m}",
        note="The least used first.",
    )


main()
