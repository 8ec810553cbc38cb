"""What lies in the inbox: deliveries, each read whole and under the instant at which it was last written.

A file is a delivery. A bill may come in parts: where the folder is part of the glob, such as ``bills/*/*.parquet``, each
folder is one delivery. Files stay where they are: a delivery read again adds nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.ingest import Source
    from pipelines.settings import Settings

SETTLED_SECONDS = 30
"""A file written to more recently may still be growing."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that are read as one.

    Attributes:
      name: Path below the inbox, of its file or of its folder.
      files: Its files.
      changed_at: When one of them was last written, to the second: the instant of this version.
      mark: Changes when a file is added, removed or written.
    """

    name: str
    files: tuple[Path, ...]
    changed_at: datetime
    mark: str


def deliveries(settings: Settings, source: Source) -> list[Delivery]:
    """Deliveries of a source that lie in the inbox, in the order of their names; hidden files are none."""
    files = sorted(
        path for path in settings.inbox_path.glob(source.inbox) if path.is_file() and not path.name.startswith(".")
    )
    in_parts = source.kind == "focus" and "*" in source.inbox.rpartition("/")[0]
    groups = groupby(files, lambda path: path.parent if in_parts else path)
    return [_delivery(str(whole.relative_to(settings.inbox_path)), tuple(parts)) for whole, parts in groups]


def _delivery(name: str, files: tuple[Path, ...]) -> Delivery:
    stats = [(path.name, path.stat()) for path in files]
    marks = [f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats]
    return Delivery(
        name,
        files,
        datetime.fromtimestamp(int(max(stat.st_mtime for _, stat in stats)), UTC),
        hashlib.sha256("\n".join(marks).encode()).hexdigest()[:16],
    )
