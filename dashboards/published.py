"""Read the published DuckDB file: one SELECT of ``sql/dashboards`` a question, read-only, remembered until the file changes.

Belongs here: how the file is found, opened and asked. Does not belong here: what is asked (SQL) and how it is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import streamlit as st

if TYPE_CHECKING:
    import polars as pl

SQL_FOLDER = Path(__file__).resolve().parents[1] / "sql" / "dashboards"
DEFAULT_PATH = Path("ledger/published/ledger.duckdb")


def open_file(path: Path) -> str | None:
    """Make ``path`` the file that this person's session asks, after a look at it.

    Returns:
      None when it can be shown; otherwise what is wrong and what to do, in Markdown.
    """
    st.session_state["published_path"] = path
    if not path.is_file():
        return (
            f"There is no published ledger at `{path}` yet.\n\n"
            "To look around with example data, run this in a terminal, with the same `GPULEDGER_HOME` as here:\n"
            "```\ngpuledger demo\n```\n"
            "With your own data, read the files of your nodes, scheduler and bills, build and publish "
            "(`gpuledger ingest --help` lists all sources):\n"
            "```\ngpuledger init\ngpuledger ingest nodes FILE\ngpuledger ingest slurm FILE --cluster NAME --timezone ZONE\n"
            "gpuledger ingest focus FILE --at DATE\ngpuledger build\ngpuledger publish\n```\n"
            "Then reload this page."
        )
    try:
        query("ledger")
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        return (
            f"`{path}` cannot be read as a published ledger: {reason}\n\n"
            "Write it again, then reload this page:\n```\ngpuledger build\ngpuledger publish\n```"
        )
    return None


def query(name: str, **parameters: Any) -> pl.DataFrame:
    """Answer ``sql/dashboards/<name>.sql`` with its ``$parameters``, from memory while the file is unchanged.

    Raises:
      duckdb.Error: The file is no published ledger, or one of another version.
    """
    path: Path = st.session_state["published_path"]
    return _answer((str(path), path.stat().st_mtime_ns), name, parameters)


@st.cache_data(max_entries=500, show_spinner="Reading the ledger …")
def _answer(file: tuple[str, int], name: str, parameters: dict[str, Any]) -> pl.DataFrame:
    """``file`` is path and instant of change: a new file gives new answers."""
    return read(Path(file[0]), name, parameters)


def read(path: Path, name: str, parameters: dict[str, Any]) -> pl.DataFrame:
    """Answer one question from a file, opened for this question only, so that it may be replaced at any time."""
    with duckdb.connect(str(path), read_only=True) as con:
        con.execute("SET TimeZone = 'UTC'")
        for view in sorted((SQL_FOLDER / "views").glob("*.sql")):
            con.execute(f"CREATE TEMP VIEW {view.stem} AS {view.read_text(encoding='utf-8')}")
        return con.execute((SQL_FOLDER / f"{name}.sql").read_text(encoding="utf-8"), parameters).pl()


def ledger() -> dict[str, Any]:
    """What the file shows: reporting_currency, known_from_at, known_until_at, batch_id, recorded_until_at."""
    return query("ledger").row(0, named=True)
