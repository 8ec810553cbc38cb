"""From a kind of source, its files and its arguments to one batch in the log; and the sources a ledger's home declares.

The command line, the Dagster assets and the inbox all come through here. Does not belong here: how a source is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import yaml

from models.errors import UsageError
from pipelines.sources import (
    dcgm,
    focus,
    prices_aws,
    procurement_records,
    prometheus,
    records,
    slurm,
    telemetry_table,
    traces,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from pipelines.lake import Batch, Lake
    from pipelines.settings import Settings
    from pipelines.sources.base import Chunk

FILE_READERS: dict[str, Callable[..., Iterator[Chunk]]] = {
    "slurm": slurm.read_sacct,
    "focus": focus.read_focus,
    "telemetry": telemetry_table.read_table,
    "dcgm": dcgm.read_exposition,
    "org": records.read_org,
    "assets": records.read_assets,
    "fx": records.read_fx,
    "nodes": records.read_nodes,
    "policies": records.read_policies,
    "trace": traces.read_trace,
    "prices": procurement_records.read_prices,
    "commitments": procurement_records.read_commitments,
    "interruptions": procurement_records.read_interruptions,
    "checkpoints": procurement_records.read_checkpoints,
}
"""Reader of each kind of source that comes as files: ``reader(paths, **arguments)``."""

LIVE_READERS: dict[str, Callable[..., Iterator[Chunk]]] = {
    "slurm": slurm.read_sacct_live,
    "prometheus": prometheus.read_prometheus,
    "aws_prices": prices_aws.read_aws_prices,
}
"""Reader of each outside system that is asked for a window: ``reader(start=…, end=…, **arguments)``."""

_SUPPLIED = {"paths", "at", "start", "end", "on_progress", "reporting_currency", "client", "now"}
"""What readers are told by the ledger, not by ``sources.yaml``."""

SOURCES_TEMPLATE = """\
# Sources that Dagster reads by itself: a name, its kind, and what its reader takes besides.
#
# Files that arrive in the inbox folder, by glob:
#
# slurm_alps:
#   kind: slurm
#   inbox: "slurm/*.txt"
#   cluster: alps
#   timezone: Europe/Zurich
# bills:
#   kind: focus
#   inbox: "bills/*.parquet"
# organisation:
#   kind: org
#   inbox: "organisation*.csv"
#
# Systems that are asked for each day, without an inbox:
#
# prometheus_alps:
#   kind: prometheus
#   url: http://prometheus:9090
#   cluster: alps
# prices_aws:
#   kind: aws_prices
#   region: us-east-1
"""
"""What ``gpuledger init`` writes as ``sources.yaml``."""


@dataclass(frozen=True, slots=True)
class Source:
    """One source that the ledger's ``sources.yaml`` declares.

    Attributes:
      name: Name of the source; its Dagster asset is called after it.
      kind: One of ``FILE_READERS`` (files that arrive in the inbox) or ``LIVE_READERS``.
      inbox: Glob of its files below the inbox folder; empty for a live source.
      arguments: Arguments of its reader, such as cluster and timezone.
    """

    name: str
    kind: str
    inbox: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def ingest_files(
    lake: Lake,
    kind: str,
    files: Sequence[Path],
    *,
    at: datetime | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
    **arguments: Any,
) -> Batch:
    """Append files of one kind as one batch.

    Args:
      lake: The open log.
      kind: One of ``FILE_READERS``.
      files: The files; for a bill, all parts of one delivery.
      at: The source's own instant of this version: when the dump was taken or the bill delivered.
      on_rows: Told, after each chunk, how many rows were read until then.
      arguments: What the reader takes besides.

    Raises:
      UsageError: A file does not exist, or the kind is unknown.
      SourceError: A file cannot be read; then nothing was appended.
    """
    if kind not in FILE_READERS:
        raise UsageError(f"no source of kind {kind!r}; known: {', '.join(FILE_READERS)}")
    lacking = [str(path) for path in files if not path.is_file()]
    if lacking:
        raise UsageError(f"no such file: {', '.join(lacking)}")
    window = ", ".join(path.name for path in files)
    if kind == "dcgm":
        arguments["at"] = at
        at = None
    if kind == "fx":
        arguments["reporting_currency"] = lake.settings.reporting_currency
    leading = (arguments.pop("trace"),) if kind == "trace" else ()
    chunks = FILE_READERS[kind](*leading, files, **arguments)
    return lake.append(kind, window, _counted(chunks, on_rows), at=at)


def ingest_live(
    lake: Lake,
    kind: str,
    start: datetime,
    end: datetime,
    *,
    on_rows: Callable[[int], None] = lambda _rows: None,
    **arguments: Any,
) -> Batch:
    """Ask an outside system for a window and append what it answers as one batch.

    Args:
      lake: The open log.
      kind: One of ``LIVE_READERS``.
      start: Start of the window, inclusive.
      end: End of the window, exclusive.
      on_rows: Told, after each chunk, how many rows were read until then.
      arguments: What the reader takes besides.

    Raises:
      UsageError: The kind is unknown.
      SourceError: The system did not answer; then nothing was appended.
    """
    if kind not in LIVE_READERS:
        raise UsageError(f"no live source of kind {kind!r}; known: {', '.join(LIVE_READERS)}")
    window = f"[{start:%Y-%m-%dT%H:%M:%SZ}, {end:%Y-%m-%dT%H:%M:%SZ})"
    return lake.append(kind, window, _counted(LIVE_READERS[kind](start=start, end=end, **arguments), on_rows))


def _counted(chunks: Iterator[Chunk], on_rows: Callable[[int], None]) -> Iterator[Chunk]:
    rows = 0
    for chunk in chunks:
        rows += chunk.rows_read
        on_rows(rows)
        yield chunk


def declared_sources(settings: Settings) -> list[Source]:
    """Sources in ``sources.yaml`` of the ledger's home; none without the file.

    Raises:
      UsageError: The file is not what it should be; names the entry and the field.
    """
    path = settings.home / "sources.yaml"
    if not path.is_file():
        return []
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(entries, dict):
        raise UsageError(
            f"{path}: expected a name for each source, as gpuledger init writes it, found a {type(entries).__name__}"
        )
    found = []
    for name, entry in entries.items():
        if not re.fullmatch(r"[A-Za-z0-9_]+", str(name)):
            raise UsageError(f"{path}: {name}: expected a name of letters, digits and underscores, such as slurm_alps")
        known = FILE_READERS if isinstance(entry, dict) and entry.get("inbox") else LIVE_READERS
        if not isinstance(entry, dict) or entry.get("kind") not in known:
            raise UsageError(
                f"{path}: {name}: kind must be one of {', '.join(FILE_READERS)} with an inbox glob, "
                f"or one of {', '.join(LIVE_READERS)} without"
            )
        rest = {key: value for key, value in entry.items() if key not in {"kind", "inbox"}}
        _check_arguments(f"{path}: {name}", known[entry["kind"]], rest)
        found.append(Source(str(name), entry["kind"], entry.get("inbox", ""), rest))
    return found


def _check_arguments(where: str, reader: Callable[..., Iterator[Chunk]], given: dict[str, Any]) -> None:
    """Refuse a source whose reader would be called with a word it does not know, or without one it needs."""
    taken = {"trace" if name == "kind" else name: one for name, one in signature(reader).parameters.items()}
    taken = {name: one for name, one in taken.items() if name not in _SUPPLIED}
    wrong = [name for name in given if name not in taken]
    lacking = [name for name, one in taken.items() if one.default is Parameter.empty and name not in given]
    if wrong or lacking:
        found = [f"unknown: {', '.join(wrong)}"] * bool(wrong) + [f"missing: {', '.join(lacking)}"] * bool(lacking)
        raise UsageError(f"{where}: {'; '.join(found)}; it takes {', '.join(taken) or 'nothing besides'}")
