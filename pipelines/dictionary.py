"""The data dictionary: every published table and column with its comment, as Markdown.

Run ``python -m pipelines.dictionary PUBLISHED_FILE > docs/data-dictionary.md`` after a change of columns or comments.
"""

from __future__ import annotations

import sys

import duckdb


def dictionary(path: str) -> str:
    """Markdown of a published file's tables and columns, in order of their names.

    Args:
      path: The published DuckDB file.
    """
    with duckdb.connect(path, read_only=True) as con:
        tables = con.execute(
            "SELECT schema_name, table_name, comment FROM duckdb_tables() ORDER BY schema_name, table_name"
        ).fetchall()
        columns = con.execute(
            "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY schema_name, table_name, column_index"
        ).fetchall()
    parts = [
        "# Data dictionary\n\nGenerated from the comments in the published file; analysts see the same in any client.\n"
    ]
    for schema, table, comment in tables:
        rows = [
            f"| `{name}` | {dtype} | {text or ''} |" for s, t, name, dtype, text in columns if (s, t) == (schema, table)
        ]
        parts.append(
            f"\n## {schema}.{table}\n\n{comment}.\n\n| column | type | meaning |\n|---|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(dictionary(sys.argv[1]))
