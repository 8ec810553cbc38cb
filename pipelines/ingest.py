"""From a kind of source, its files and its arguments to one batch in the log; and the sources a ledger's home declares.

The command line, the Dagster assets and the inbox all come through here. Does not belong here: how a source is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from models.errors import UsageError
from pipelines.sources import dcgm, focus, prometheus, records, slurm, telemetry_table, traces

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
}
"""Reader of each kind of source that comes as files: ``reader(paths, **arguments)``."""

LIVE_READERS: dict[str, Callable[..., Iterator[Chunk]]] = {
    "slurm": slurm.read_sacct_live,
    "prometheus": prometheus.read_prometheus,
}
"""Reader of each outside system that is asked for a window: ``reader(start=…, end=…, **arguments)``."""


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


def ingest_files(lake: Lake, kind: str, files: Sequence[Path], *, at: datetime | None = None, **arguments: Any) -> Batch:
    """Append files of one kind as one batch.

    Args:
      lake: The open log.
      kind: One of ``FILE_READERS``.
      files: The files; for a bill, all parts of one delivery.
      at: The source's own instant of this version: when the dump was taken or the bill delivered.
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
    leading = (arguments.pop("trace"),) if kind == "trace" else ()
    return lake.append(kind, window, FILE_READERS[kind](*leading, files, **arguments), at=at)


def ingest_live(lake: Lake, kind: str, start: datetime, end: datetime, **arguments: Any) -> Batch:
    """Ask an outside system for a window and append what it answers as one batch.

    Raises:
      UsageError: The kind is unknown.
      SourceError: The system did not answer; then nothing was appended.
    """
    if kind not in LIVE_READERS:
        raise UsageError(f"no live source of kind {kind!r}; known: {', '.join(LIVE_READERS)}")
    window = f"[{start:%Y-%m-%dT%H:%M:%SZ}, {end:%Y-%m-%dT%H:%M:%SZ})"
    return lake.append(kind, window, LIVE_READERS[kind](start=start, end=end, **arguments))


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
    found = []
    for name, entry in entries.items():
        known = FILE_READERS if isinstance(entry, dict) and entry.get("inbox") else LIVE_READERS
        if not isinstance(entry, dict) or entry.get("kind") not in known:
            raise UsageError(
                f"{path}: {name}: kind must be one of {', '.join(FILE_READERS)} with an inbox glob, "
                f"or one of {', '.join(LIVE_READERS)} without"
            )
        rest = {key: value for key, value in entry.items() if key not in {"kind", "inbox"}}
        found.append(Source(name, entry["kind"], entry.get("inbox", ""), rest))
    return found
