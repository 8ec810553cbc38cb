"""Open DuckDB the one way the ledger does: in UTC, with bounded memory, the extensions, and the log attached.

The extensions come as wheels of the same version as DuckDB, so nothing is fetched at run time.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from duckdb_extensions import import_extension

from models.errors import SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.settings import Settings

INLINED_ROWS = 500
"""Appends of fewer rows stay in the catalogue instead of making a tiny Parquet file."""


def _extensions(settings: Settings) -> list[str]:
    """What this ledger needs, and no more."""
    catalogue = "postgres_scanner" if settings.catalog else "sqlite_scanner"
    return ["ducklake", catalogue, *(["httpfs"] if settings.data_path.startswith("s3://") else [])]


def connect(settings: Settings, database: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """Open DuckDB in UTC with the extensions, bounded memory, and the log attached as ``lake``.

    Raises:
      UsageError: A folder cannot be made, or the memory limit is none.
      SourceError: The log's catalogue does not answer or is none.
    """
    for folder in (settings.home / "lake", settings.home / "tmp"):
        make_folder(folder, "GPULEDGER_HOME")
    # The extensions come out of wheels whose hashes the lock file holds. To check their signatures again at each open
    # would take a quarter of a second, nine tenths of an open.
    con = duckdb.connect(database, config={"allow_unsigned_extensions": "true"})
    con.execute("SET TimeZone = 'UTC'")
    try:
        con.execute(f"SET memory_limit = {quoted(settings.memory_limit)}")
    except duckdb.ParserException as error:
        raise UsageError(
            f"GPULEDGER_MEMORY_LIMIT: expected an amount such as 3GB, found {settings.memory_limit!r}"
        ) from error
    con.execute(f"SET temp_directory = {quoted(str(settings.home / 'tmp'))}")
    con.execute("SET preserve_insertion_order = false")
    for extension in _extensions(settings):
        import_extension(extension, con=con)
        con.execute(f"LOAD {extension}")
    if settings.data_path.startswith("s3://"):
        con.execute(_s3_secret(settings))
    else:
        make_folder(Path(settings.data_path), "GPULEDGER_DATA_PATH")
    catalog = (
        f"postgres:{settings.catalog}" if settings.catalog else f"sqlite:{settings.home / 'lake' / 'catalog.sqlite'}"
    )
    # The catalogue remembers where its data lies; a home that was moved or restored elsewhere takes its data along.
    moves = not settings.catalog and Path(settings.data_path).is_relative_to(settings.home)
    with catalogue_errors(settings):
        con.execute(
            f"ATTACH {quoted(f'ducklake:{catalog}')} AS lake (DATA_PATH {quoted(settings.data_path)}, "
            f"OVERRIDE_DATA_PATH {moves}, DATA_INLINING_ROW_LIMIT {INLINED_ROWS})"
        )
    return con


def quoted(text: str) -> str:
    """Text as an SQL literal: a connection string may hold quotes, and so may a path."""
    return "'" + text.replace("'", "''") + "'"


def make_folder(folder: Path, variable: str) -> None:
    """Make a folder that a setting names, unless it is there.

    Raises:
      UsageError: It cannot be made; the message names the variable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{variable}: the folder {folder} cannot be made: {error.strerror}; name one that you may write to"
        ) from error


@contextmanager
def catalogue_errors(settings: Settings) -> Iterator[None]:
    """Say in plain words that the log's catalogue cannot be opened; never repeats its connection string, which may hold a password.

    Raises:
      SourceError: It does not answer, is damaged, or its data lies elsewhere.
    """
    try:
        yield
    except duckdb.Error as error:
        said = str(error)
        if "DATA_PATH parameter" in said:
            raise SourceError(
                f"GPULEDGER_DATA_PATH: {said.splitlines()[0].rstrip('.')}; set it to where this log's files lie"
            ) from error
        if not settings.catalog:
            raise SourceError(
                f"{settings.home / 'lake' / 'catalog.sqlite'}: the log's catalogue cannot be opened: {said.splitlines()[-1]}; "
                "see that nothing else holds it, or put it back from a backup"
            ) from error
        _, found, reason = said.partition(f'Unable to connect to Postgres at "{settings.catalog}": ')
        reason = " ".join((reason if found else said).replace(settings.catalog, "…").split())
        raise SourceError(
            f"GPULEDGER_CATALOG: the log's catalogue in PostgreSQL cannot be opened: {reason}; "
            "expected a connection string such as 'host=db dbname=ledger user=ledger' of a server that is up"
        ) from error


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
