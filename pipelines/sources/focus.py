"""Bills in FOCUS 1.0 to 1.4 (Cost and Usage), as CSV, CSV.gz or Parquet.

All files of one call are one delivery. A delivery replaces the one before it, bill by bill, so each bill's lines are
stored under the digest of their multiset: the same lines in other files, another order or another compression are the
same content, and a delivery that says nothing new adds nothing.

The digest is known only after the last line, so DuckDB types the rows into a temporary file first, and nothing is
yielded before every file was read to its end. The file spills to disk: a bill may be larger than memory.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import shutil
import tempfile
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from models.errors import SourceError
from models.events import BillDelivered, ChargeBilled, polars_schema
from pipelines.sources.base import (
    CHUNK_ROWS,
    RAW_TEXT_LIMIT,
    Chunk,
    rejected_frame,
    rejected_row,
)
from pipelines.sources.focus_columns import (
    CATEGORIES,
    DECIMALS,
    INSTANTS,
    KNOWN,
    MONTH,
    TEXTS,
    check_header,
    focus_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

SOURCE = "focus"
SPOOL_MEMORY = "1GB"
"""Memory before the spool goes to disk."""
EMPTY_CONTENT_ID = hashlib.md5(b"", usedforsecurity=False).hexdigest()
"""Content of a bill without lines."""

_LONGEST_LINE_BYTES = 16 * 2**20
_NUMBER = "a number such as -1234.56, without separators or currency sign"
_TIME = "a UTC time such as 2026-09-01T00:00:00Z"


def read_focus(
    paths: Sequence[Path],
    *,
    billing_period: date | None = None,
    issuer: str | None = None,
    billing_account_id: str | None = None,
) -> Iterator[Chunk]:
    """Read one delivery of bills.

    Args:
      paths: All parts of the delivery.
      billing_period: A day of the month that a delivery without lines restates to nothing, with the two below.
      issuer: Issuer of that bill.
      billing_account_id: Account of that bill.

    Raises:
      SourceError: A file cannot be read, or is no FOCUS file; the message says what was found and expected.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gpuledger-focus-") as folder,
        duckdb.connect(f"{folder}/spool.duckdb") as con,
    ):
        con.execute(f"SET TimeZone = 'UTC'; SET memory_limit = '{SPOOL_MEMORY}'; SET temp_directory = '{folder}/spill'")
        con.execute(_SPOOL_DDL)
        versions = [_spool(con, path, Path(folder) / f"part{number}") for number, path in enumerate(paths)]
        try:
            con.execute(_CONTENT_SQL, [max(versions, default="")])
        except duckdb.Error as error:
            raise SourceError(f"{_names(paths)}: the lines of a bill cannot be added up: {error}") from error
        row_count = 0
        for event, sql in ((None, _REJECTED_SQL), (ChargeBilled, _CHARGES_SQL)):
            for frame in _frames(con, sql):
                row_count += frame.height
                yield Chunk({event: frame}, rows_read=frame.height) if event else Chunk({}, frame, frame.height)
        yield from (Chunk({BillDelivered: frame}) for frame in _frames(con, _BILLS_SQL))
        if not row_count:
            yield _empty(paths, billing_period, issuer, billing_account_id)


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _empty(paths: Sequence[Path], billing_period: date | None, issuer: str | None, account: str | None) -> Chunk:
    """A delivery without lines: it restates a named bill to nothing, or says what to name."""
    if billing_period is None or not issuer or not account:
        reason = (
            "the delivery has no lines and does not say which bill it empties: if that is meant, give the billing period, "
            "the issuer and the billing account (--billing-period 2026-09 --issuer NAME --account ID)"
        )
        return Chunk(rejected=rejected_frame([rejected_row(SOURCE, _names(paths), reason, "")]))
    row = {
        "issuer": issuer,
        "billing_account_id": account,
        "billing_period_month": billing_period.replace(day=1),
        "content_id": EMPTY_CONTENT_ID,
        "line_count": 0,
    }
    schema = polars_schema(BillDelivered)
    return Chunk({BillDelivered: pl.DataFrame([{name: row.get(name) for name in schema}], schema=schema)})


def _spool(con: duckdb.DuckDBPyConnection, path: Path, link: Path) -> str:
    """Type a file's rows into ``line``; returns its FOCUS version, empty for an empty file.

    Args:
      con: The spool.
      path: The file as the user names it, for messages.
      link: Where to put it under a name without quotes or wildcards.

    Raises:
      SourceError: See ``read_focus``.
    """
    try:
        header, relation = _opened(con, path, link)
        if not header:
            return ""
        check_header(path, header)
        con.execute(_typed_sql(header, relation), [path.name])
        if "store_rejects" in relation:
            con.execute(_BROKEN_SQL, [path.name])
            con.execute("TRUNCATE reject_errors; TRUNCATE reject_scans")
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read to its end: {error}; get the file again") from error
    except duckdb.Error as error:
        hint = "; end all lines alike, in LF or in CR LF" if "invalid state" in str(error) else ""
        raise SourceError(f"{path}: cannot be read as FOCUS: {str(error).splitlines()[0]}{hint}") from error
    return focus_version(header)


def _opened(con: duckdb.DuckDBPyConnection, path: Path, link: Path) -> tuple[list[str], str]:
    """Column names, and the SQL that gives a file's rows as text."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        link.symlink_to(path.resolve())
        described = con.execute(f"DESCRIBE SELECT * FROM read_parquet('{link}')").fetchall()
        # Tags come as text, or as a map: written as JSON, they read alike.
        cells = [
            f"to_json({_quoted(name)}) AS {_quoted(name)}" if "(" in kind and "DECIMAL" not in kind else _quoted(name)
            for name, kind, *_ in described
        ]
        relation = (
            "(SELECT nullif(nullif(nullif(CAST(COLUMNS(*) AS VARCHAR), ''), 'NULL'), 'null') "
            f"FROM (SELECT {', '.join(cells)} FROM read_parquet('{link}')))"
        )
        return [name for name, *_ in described], relation
    text = _whole_text(path, link, is_gzip=start[:2] == b"\x1f\x8b")
    opener = gzip.open if text.suffix == ".gz" else open
    with opener(text, "rt", encoding="utf-8-sig", newline="") as file:
        header = [name.strip() or f"column{number}" for number, name in enumerate(next(csv.reader(file), []))]
    named = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header)
    # One thread: a parallel scan may split a file inside a quoted line break.
    return header, (
        f"read_csv('{text}', auto_detect = false, header = true, columns = {{{named}}}, delim = ',', quote = '\"', escape = '\"', "
        "comment = '', nullstr = ['', 'NULL', 'null'], strict_mode = true, store_rejects = true, parallel = false, "
        f"max_line_size = {_LONGEST_LINE_BYTES})"
    )


def _whole_text(path: Path, link: Path, *, is_gzip: bool) -> Path:
    """A file under another name, or a copy of it in which bytes that are no UTF-8 are replaced.

    It is read to its end, because DuckDB takes a truncated gzip for a short file and heeds no checksum.
    """
    opener = gzip.open if is_gzip else open
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    with opener(path, "rb") as file:
        for block in iter(partial(file.read, 2**20), b""):
            try:
                is_utf8 = is_utf8 and decoder.decode(block) is not None
            except UnicodeDecodeError:
                is_utf8 = False
    if is_utf8 and not decoder.getstate()[0]:
        found = link.with_suffix(".csv.gz" if is_gzip else ".csv")
        found.symlink_to(path.resolve())
        return found
    found = link.with_suffix(".csv")
    with (
        opener(path, "rt", encoding="utf-8", errors="replace", newline="") as damaged,
        found.open("w", encoding="utf-8", newline="") as repaired,
    ):
        shutil.copyfileobj(damaged, repaired)
    return found


def _frames(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pl.DataFrame]:
    """A query's rows, some at a time; none for no rows."""
    for batch in con.execute(sql).to_arrow_reader(CHUNK_ROWS):
        if batch.num_rows:
            yield pl.DataFrame(batch)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(name: str) -> str:
    """Text of a FOCUS column; under this name it cannot meet an event's column."""
    return _quoted(f"text of {name}")


def _decimal(name: str) -> str:
    """Exact number; beyond 12 places half to even, where a cast alone goes away from zero."""
    halved = f"regexp_replace({_cell(name)}, '^([+-]?[0-9]*[.][0-9]{{11}}[02468])50*$', '\\1')"
    text = f"CASE WHEN length({_cell(name)}) > 13 THEN {halved} ELSE {_cell(name)} END"
    return f"CASE WHEN NOT contains({_cell(name)}, '_') THEN TRY_CAST({text} AS DECIMAL(38,12)) END"


def _instant(name: str) -> str:
    """Instant in whole seconds; UTC where no zone is written, as FOCUS has it."""
    form = "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:]{5,8}([.][0-9]+)?(Z| ?UTC|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
    # DuckDB knows no zone after minutes.
    text = f"regexp_replace({_cell(name)}, '([ T][0-9]{{2}}:[0-9]{{2}})Z$', '\\1')"
    instant = f"date_trunc('second', TRY_CAST({text} AS TIMESTAMPTZ))"
    return f"CASE WHEN regexp_full_match({_cell(name)}, '{form}') THEN {instant} END"


def _reason() -> str:
    """SQL of the first thing wrong with a row; NULL if nothing is."""

    def found(name: str, wrong: str, expected: str) -> str:
        seen = f"coalesce('''' || left({_cell(name)}, 100) || '''', 'nothing')"
        return f"WHEN {wrong} THEN '{name}: found ' || {seen} || ', expected {expected}'"

    known_category = f"coalesce(charge_category IN {CATEGORIES}, false)"
    cases = [
        found("BillingCurrency", "NOT coalesce(regexp_full_match(currency, '[A-Z]{3}'), false)", "an ISO 4217 code such as USD"),
        found("BillingAccountId", "coalesce(trim(billing_account_id), '') = ''", "the account of the bill"),
        found("InvoiceIssuerName", "coalesce(trim(issuer), '') = ''", "who bills, here or in ServiceProviderName or ProviderName"),
        found("ChargeCategory", f"NOT {known_category}", "one of " + ", ".join(CATEGORIES)),
        found(MONTH, "billing_period_month IS NULL", _TIME),
        *(found(name, f"{column} IS NULL", _TIME) for column, name in INSTANTS.items()),
        found("ChargePeriodEnd", "charge_period_end_at <= charge_period_start_at", "an instant after ChargePeriodStart"),
        *(
            found(name, f"{column} IS NULL" + ("" if column in ALWAYS else f" AND {_cell(name)} IS NOT NULL"), _NUMBER)
            for column, name in DECIMALS.items()
        ),
    ]  # fmt: skip
    return f"CASE {' '.join(cases)} END"


ALWAYS = ("billed_amount", "effective_amount")
"""Numbers that every line has."""


def _typed_sql(header: Sequence[str], relation: str) -> str:
    """INSERT of a file's rows into ``line``: cells as text, then typed, then judged."""
    present = set(header)
    cells = ", ".join(
        f"{_quoted(name) if name in present else 'CAST(NULL AS VARCHAR)'} AS {_cell(name)}"
        for name in dict.fromkeys([*header, *KNOWN])
    )
    typed = [f"coalesce({', '.join(map(_cell, names))}, NULL) AS {column}" for column, names in TEXTS.items()]
    typed += [f"{_decimal(name)} AS {column}" for column, name in DECIMALS.items()]
    typed += [f"{_instant(name)} AS {column}" for column, name in INSTANTS.items()]
    typed.append(f"CAST(date_trunc('month', {_instant(MONTH)}) AS DATE) AS billing_period_month")
    # The canonical text: cells with a value, by column name. A column that is empty throughout changes nothing.
    line_text = ", ".join(f"{_literal(name + '=')} || {_cell(name)}" for name in sorted(header))
    kept = ", ".join([*TEXTS, *DECIMALS, *INSTANTS, "billing_period_month"])
    return f"""
        INSERT INTO line BY NAME
        SELECT {kept}, md5(line_text) AS line_digest, reason, ? || ':row ' || row_number AS position,
          CASE WHEN reason IS NOT NULL THEN left(replace(line_text, chr(31), ', '), {RAW_TEXT_LIMIT}) END AS raw_text
        FROM (
          SELECT *, {_reason()} AS reason
          FROM (
            SELECT *, {", ".join(typed)}, concat_ws(chr(31), {line_text}) AS line_text, row_number() OVER () AS row_number
            FROM (SELECT {cells} FROM {relation})
          )
        )
    """


_SPOOL_DDL = (
    "CREATE TABLE line ("
    + ", ".join(f"{name} VARCHAR" for name in (*TEXTS, "line_digest", "reason", "position", "raw_text"))
    + "".join(f", {name} DECIMAL(38,12)" for name in DECIMALS)
    + "".join(f", {name} TIMESTAMPTZ" for name in INSTANTS)
    + ", billing_period_month DATE)"
)
_BROKEN_SQL = (
    "INSERT INTO line BY NAME SELECT ? || ':line ' || line AS position, min(error_message) || ' (CSV)' AS reason, "
    f"left(min(csv_line), {RAW_TEXT_LIMIT}) AS raw_text FROM reject_errors GROUP BY line"
)
_REJECTED_SQL = (
    f"SELECT '{SOURCE}' AS source, position, 'rejected' AS kind, reason, raw_text FROM line WHERE reason IS NOT NULL"
)
# The sum of digests of lines does not depend on their order, and counts equal lines.
_CONTENT_SQL = """
    CREATE TABLE content AS
    SELECT
      issuer, billing_account_id, billing_period_month,
      md5(printf('%032x%032x', sum(md5_number_lower(line_digest)), sum(md5_number_upper(line_digest)))) AS content_id,
      count(*) AS line_count,
      CASE WHEN count(DISTINCT currency) = 1 THEN sum(billed_amount) END AS billed_amount,
      CASE WHEN count(DISTINCT currency) = 1 THEN sum(effective_amount) END AS effective_amount,
      CASE WHEN count(DISTINCT currency) = 1 THEN min(currency) END AS currency,
      CAST(? AS VARCHAR) AS focus_version
    FROM line
    WHERE reason IS NULL
    GROUP BY issuer, billing_account_id, billing_period_month
"""
_BILLS_SQL = f"SELECT {', '.join(polars_schema(BillDelivered))} FROM content ORDER BY ALL"
# Equal lines name the same bill, so they are counted by their digest alone.
_CHARGES_SQL = f"""
    SELECT {", ".join(polars_schema(ChargeBilled))}
    FROM (SELECT *, row_number() OVER (PARTITION BY line_digest) AS line_ordinal FROM line WHERE reason IS NULL)
    JOIN (SELECT issuer, billing_account_id, billing_period_month, content_id FROM content)
      USING (issuer, billing_account_id, billing_period_month)
"""
