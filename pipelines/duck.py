"""Open DuckDB the one way the ledger does: in UTC, with bounded memory, the extensions, and the log attached.

The extensions come as wheels of the same version as DuckDB, so nothing is fetched at run time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from duckdb_extensions import import_extension

if TYPE_CHECKING:
    from pipelines.settings import Settings

INLINED_ROWS = 500
"""Appends of fewer rows stay in the catalogue instead of making a tiny Parquet file."""


def _extensions(settings: Settings) -> list[str]:
    """What this ledger needs, and no more."""
    catalogue = "postgres_scanner" if settings.catalog else "sqlite_scanner"
    return ["ducklake", catalogue, *(["httpfs"] if settings.data_path.startswith("s3://") else [])]


def connect(settings: Settings, database: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """Open DuckDB in UTC with the extensions, bounded memory, and the log attached as ``lake``."""
    for folder in (settings.home / "lake", settings.home / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    # The extensions come out of wheels whose hashes the lock file holds. To check their signatures again at each open
    # would take a quarter of a second, nine tenths of an open.
    con = duckdb.connect(database, config={"allow_unsigned_extensions": "true"})
    con.execute("SET TimeZone = 'UTC'")
    con.execute(f"SET memory_limit = '{settings.memory_limit}'")
    con.execute(f"SET temp_directory = '{settings.home / 'tmp'}'")
    con.execute("SET preserve_insertion_order = false")
    for extension in _extensions(settings):
        import_extension(extension, con=con)
        con.execute(f"LOAD {extension}")
    if settings.data_path.startswith("s3://"):
        con.execute(_s3_secret(settings))
    else:
        Path(settings.data_path).mkdir(parents=True, exist_ok=True)
    catalog = (
        f"postgres:{settings.catalog}" if settings.catalog else f"sqlite:{settings.home / 'lake' / 'catalog.sqlite'}"
    )
    # The catalogue remembers where its data lies; a home that was moved or restored elsewhere takes its data along.
    moves = not settings.catalog and Path(settings.data_path).is_relative_to(settings.home)
    con.execute(
        f"ATTACH 'ducklake:{catalog}' AS lake (DATA_PATH '{settings.data_path}', OVERRIDE_DATA_PATH {moves}, "
        f"DATA_INLINING_ROW_LIMIT {INLINED_ROWS})"
    )
    return con


def has_table(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a table or view of that name (``schema.table``) is there; a list of all would read the log's catalogue."""
    try:
        con.execute(f"DESCRIBE {name}")
    except duckdb.CatalogException:
        return False
    return True


def _s3_secret(settings: Settings) -> str:
    options = [f"KEY_ID '{settings.s3_key_id}'", f"SECRET '{settings.s3_secret}'", f"REGION '{settings.s3_region}'"]
    if settings.s3_endpoint:
        plain = settings.s3_endpoint.startswith("http://")
        options += [f"ENDPOINT '{settings.s3_endpoint.split('://')[-1]}'", "URL_STYLE 'path'", f"USE_SSL {not plain}"]
    return f"CREATE OR REPLACE SECRET lake_storage (TYPE s3, {', '.join(options)})"
