"""The rules of this house that no linter knows.

A rule is a function from the project's files (path → text) to its findings; its docstring says what to do about one.
Beside each rule stand offenders that it must find, so that every rule is known to be able to fail.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, get_args

import pytest
import sqlglot
import yaml
from sqlglot import exp

from models import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Files = dict[str, str]
    Check = Callable[[Files], Iterator[str]]

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {"__pycache__", "ledger", "dist", "node_modules"}
RULES: list[tuple[Check, tuple[Files, ...]]] = []


def rule(*offenders: Files) -> Callable[[Check], Check]:
    """Make a function a rule that finds something in each of ``offenders``."""

    def register(check: Check) -> Check:
        RULES.append((check, offenders))
        return check

    return register


@cache
def project_files() -> Files:
    """All text files of the project, without tools' folders and a ledger's home."""
    found = {}
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        skipped = any(part in NOT_OURS or (part.startswith(".") and part != ".ci") for part in parts)
        if path.is_file() and not skipped:
            found["/".join(parts)] = path.read_text(errors="replace")
    return found


@cache
def syntax(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, itself first."""
    return tuple(ast.walk(ast.parse(text)))


def nodes(files: Files, *folders: str) -> Iterator[tuple[str, Any]]:
    """Path and node, for every node of the Python files in ``folders`` (all where none is named)."""
    for path, text in files.items():
        if path.endswith(".py") and (not folders or path.split("/")[0] in folders):
            yield from ((path, node) for node in syntax(text))


def imports(files: Files, *folders: str) -> Iterator[tuple[str, str, str]]:
    """Folder, place and dotted name of all that is imported, also inside functions."""
    for path, node in nodes(files, *folders):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((path.split("/")[0], f"{path}:{node.lineno}", name) for name in names)


OURS = {
    "models": {"models"},
    "pipelines": {"models", "pipelines", "examples"},  # the demo makes its data with the examples
    "dashboards": {"models", "dashboards"},
    "examples": {"models", "examples"},
    "bench": {"models", "pipelines", "examples", "bench"},
}
OTHERS = {"models": {"polars", "numpy", "highspy"}, "examples": {"polars", "numpy"}}


@rule(
    {"models/a.py": "from pipelines.lake import Lake"},
    {"models/a.py": "def f():\n    import pandas"},
    {"examples/a.py": "import pandas"},
    {"pipelines/a.py": "import dashboards.app"},
    {"dashboards/a.py": "from pipelines.settings import Settings"},
    {"pipelines/a.py": "from tests.conftest import ROOT"},
)
def imports_point_inwards(files: Files) -> Iterator[str]:
    """Move what you need to where both sides may see it (OURS and OTHERS), most often to models."""
    for folder, place, name in imports(files, *OURS):
        top = name.split(".")[0]
        allowed = OURS[folder] if top in {*OURS, "tests"} else OTHERS.get(folder, {top}) | sys.stdlib_module_names
        if top not in allowed:
            yield f"{place}: {folder} must not import {name}"


OUTSIDE = {"os", "io", "pathlib", "tempfile", "shutil", "socket", "subprocess", "urllib", "http", "sqlite3", "time"}
OUTSIDE_CALL = re.compile(
    r"open|print|input|now|utcnow|today|(read|scan|write|sink)_(text|bytes|csv|parquet|n?json|ipc)"
)


@rule(
    {"models/a.py": "import os.path"},
    {"models/a.py": "at = datetime.now(UTC)"},
    {"models/a.py": "rows = pl.read_csv(path)"},
    {"models/a.py": "text = open(path)"},
)
def models_are_pure(files: Files) -> Iterator[str]:
    """Take the text, the rows, the instant or the seed as an argument; pipelines read them."""
    found = imports(files, "models")
    yield from (f"{place}: imports {name}" for _, place, name in found if name.split(".")[0] in OUTSIDE)
    for path, node in nodes(files, "models"):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if OUTSIDE_CALL.fullmatch(name):
                yield f"{path}:{node.lineno}: calls {name}"


@rule({"pipelines/a.py": "home = os.environ['HOME']"}, {"dashboards/a.py": "from os import getenv\nx = getenv('X')"})
def only_settings_read_the_environment(files: Files) -> Iterator[str]:
    """Add a field to pipelines/settings.py and pass the Settings on."""
    for path, node in nodes(files, "models", "pipelines", "dashboards", "examples"):
        name = getattr(node, "attr", getattr(node, "id", ""))
        if name in {"environ", "getenv"} and path != "pipelines/settings.py":
            yield f"{path}:{node.lineno}: reads the environment"


@rule({"models/a.py": "def f():\n" + "    x = 1\n" * 60})
def functions_have_at_most_60_lines(files: Files) -> Iterator[str]:
    """Split the function where its comments change the subject."""
    for path, node in nodes(files):
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 60:
            yield f"{path}:{node.lineno}: {node.name} ends on line {node.end_lineno}"


@rule({"models/a.py": "x = 1\n" * 401})
def modules_have_at_most_400_lines(files: Files) -> Iterator[str]:
    """Split the module by subject; its first docstring says which subject stays."""
    sizes = {path: text.count("\n") for path, text in files.items() if path.endswith(".py")}
    yield from (
        f"{path}: has {size} lines"
        for path, size in sizes.items()
        if size > (500 if path.startswith("tests/") else 400)
    )


@rule(
    {"models/events.py": "class Paid:\n    cost: Micros = _col('paid')"},
    {"models/events.py": "class Paid:\n    at_cost: Micros | None = _key('paid')"},
)
def event_columns_end_with_their_unit(files: Files) -> Iterator[str]:
    """Rename the column so that its last word is the unit's suffix in models/units.py."""
    for path, node in nodes(files, "models"):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=ast.Name(id="_key" | "_col"))):
                declared = get_args(getattr(units, ast.unparse(node.annotation).split(" ")[0]))
                if not name.endswith(declared[1].suffix):
                    yield f"{path}:{node.lineno}: {name} should end with {declared[1].suffix}"


TESTED_ELSEWHERE = {
    "models/errors.py": "only names",
    "models/event_base.py": "the form of a declaration: tested with events",
    "models/ledger_events.py": "declarations: tested with events",
    "models/procurement_events.py": "declarations: tested with events",
    "models/prices.py": "shapes: tested with price_book",
    "pipelines/assets/": "thin: run whole through the code location",
    "pipelines/definitions.py": "merges: run whole through the code location",
    "dashboards/app_pages/": "every page is run by one test",
    "pipelines/duck.py": "every test of the log opens DuckDB through it",
    "pipelines/spool.py": "half of an append: tested with the log",
    "pipelines/sources/focus_columns.py": "a table: tested with focus",
    "pipelines/sources/record_columns.py": "a table: tested with records",
    "pipelines/sources/record_files.py": "the reading of a file: tested with records",
}


@rule({"pipelines/sources/a.py": "x = 1"}, {"models/b.py": "x = 1", "tests/pipelines/test_b.py": ""})
def each_module_has_its_test(files: Files) -> Iterator[str]:
    """Write the test file of that name, or give the reason in TESTED_ELSEWHERE."""
    ours = re.compile(r"(models|pipelines|dashboards)/(\w+/)*(?!__init__)\w+\.py")
    for path in filter(ours.fullmatch, files):
        test = PurePosixPath("tests", path).with_name(f"test_{PurePosixPath(path).name}")
        if str(test) not in files and not path.startswith(tuple(TESTED_ELSEWHERE)):
            yield f"{path}: {test} is missing"


HEADER = {"grain": str, "keys": list, "partition_by": (str, type(None)), "units": dict, "invariants": dict}
GOOD_HEADER = "/*\ngrain: g\nkeys: [a]\npartition_by: null\nunits: {}\ninvariants: {}\n*/\n"


def projections(files: Files) -> Iterator[tuple[str, Any, list[Any]]]:
    """Path, header and statements of each projection."""
    for path, text in files.items():
        if re.fullmatch(r"sql/projections/\w+/\w+\.sql", path):
            found = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
            yield path, yaml.safe_load(found[1]) if found else None, sqlglot.parse(text, dialect="duckdb")


@rule(
    {"sql/projections/core/a.sql": "select a from events.b"},
    {"sql/projections/core/a.sql": "/* grain: g */ select a from events.b"},
    {"sql/projections/core/a.sql": GOOD_HEADER + "select b from events.b"},
    {"sql/projections/core/a.sql": GOOD_HEADER + "select a from events.b; select a from events.c"},
    {"sql/projections/core/a.sql": GOOD_HEADER + "select a from events.b where c >= $since"},
    {"sql/projections/marts/a.sql": GOOD_HEADER + "select a from events.b"},
)
def projections_say_what_they_are(files: Files) -> Iterator[str]:
    """Complete the header, a leading comment in YAML, as sql/README.md shows it."""
    for path, header, statements in projections(files):
        if not isinstance(header, dict) or len(statements) != 1 or not isinstance(statements[0], exp.Query):
            yield f"{path}: not a YAML comment and then one SELECT"
            continue
        bad = [key for key, kind in HEADER.items() if key not in header or not isinstance(header[key], kind)]
        yield from (f"{path}: {key} is missing, or not a {HEADER[key]}" for key in bad)
        selected = statements[0].named_selects
        named = {*header.get("keys", []), header.get("partition_by")} - {None, *selected}
        yield from (f"{path}: the header names {name}, which is not selected" for name in sorted(named))
        asked = {one.name for one in statements[0].find_all(exp.Parameter, exp.Placeholder)} - {"start", "end"}
        yield from (f"{path}: ${name} is neither $start nor $end" for name in sorted(asked))
        silent = set(selected) - set(header.get("columns", {})) if "/marts/" in path else set()
        yield from (f"{path}: columns lacks a comment for {name}" for name in sorted(silent))


def divides_money(node: exp.Expr) -> bool:
    """Whether ``node`` divides micros other than inside an explicit cast to DOUBLE, which says: only to look at."""
    if not isinstance(node, exp.Div):
        return False
    shown = {id(one) for cast in node.find_all(exp.Cast) if cast.is_type("double") for one in cast.find_all(exp.Column)}
    return any(one.name.endswith("_micros") and id(one) not in shown for one in node.find_all(exp.Column))


# Functions unknown to sqlglot that DuckDB and Spark both have, tried, under one name with one meaning.
UNTRANSLATED = {"bit_count"}
UNPORTABLE: dict[str, Callable[[Any], bool]] = {
    "SELECT *: name the columns": lambda node: isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count),
    "ASOF join: rank the candidates": lambda node: isinstance(node, exp.Join) and node.method == "ASOF",
    "QUALIFY: filter in an outer select": lambda node: isinstance(node, exp.Qualify),
    "money divided with /: use // and give out what remains": divides_money,
    "time_bucket: use date_trunc": lambda node: isinstance(node, exp.DateBin),
    "list in an order: lost elsewhere": lambda node: (
        isinstance(node, exp.Order) and isinstance(node.parent, exp.AggFunc)
    ),
    "not in UNTRANSLATED": lambda node: isinstance(node, exp.Anonymous) and node.name.lower() not in UNTRANSLATED,
}
UNPORTABLE_SELECTS = (
    "select * from events.b",
    "select b.* from events.b",
    "select a from events.b asof join events.c on b.a >= c.a",
    "select a from events.b qualify row_number() over (partition by a order by b) = 1",
    "select cost_micros / 2 as a from events.b",
    "select cast(a as double) / (1 + sum(cost_micros)) as a from events.b",
    "select time_bucket(interval 1 hour, a) as a from events.b",
    "select array_agg(a order by b) as a from events.b",
    "select string_agg(a, ',' order by b) as a from events.b",
    "select list_cosine_similarity(a, b) as a from events.b",
)


@rule(*({"sql/projections/core/a.sql": GOOD_HEADER + select} for select in UNPORTABLE_SELECTS))
def projections_are_portable(files: Files) -> Iterator[str]:
    """Say it in the subset that DuckDB and Spark compute alike: see sql/README.md."""
    for path, _header, statements in projections(files):
        for node in (node for one in statements if one for node in one.walk()):
            yield from (f"{path}: {node.sql()}: {why}" for why, is_so in UNPORTABLE.items() if is_so(node))


@rule({"sql/dashboards/a.sql": "select 1"}, {"dashboards/app.py": "published.query('missing', day=1)"})
def each_query_has_a_page(files: Files) -> Iterator[str]:
    """Remove the query that no page shows, or write the one that a page asks for."""
    written = {PurePosixPath(path).stem for path in files if re.fullmatch(r"sql/dashboards/\w+\.sql", path)}
    asked = set()
    for _path, node in nodes(files, "dashboards"):
        match node:
            case ast.Call(func=ast.Name(id="query") | ast.Attribute(attr="query"), args=[ast.Constant(value=name), *_]):
                asked.add(name)
    yield from (f"sql/dashboards/{name}.sql: no page asks for it" for name in sorted(written - asked))
    yield from (f"sql/dashboards/{name}.sql: a page asks for it, but it is missing" for name in sorted(asked - written))


BANNED = {
    r"(?<![\w.])/(home|root|Users|work)/\w": "a path of one machine: make it relative, or a setting",
    r"pypi\.org|pythonhosted\.org|npmjs\.|crates\.io|(docker|ghcr|quay|nvcr)\.io": "a registry's host: name the package",
    r"\b(TODO|FIXME|XXX)\b": "unfinished: do it, or file an issue",
}


@rule({"a.md": "see /home/ann/x"}, {"b.toml": "url = 'https://pypi.org/simple'"}, {"c.sql": "-- TODO later"})
def no_file_has_words_of_one_machine_or_day(files: Files) -> Iterator[str]:
    """Take the words out of every file, documents included."""
    for path, text in files.items():
        for pattern, remedy in BANNED.items() if path != "tests/test_tidy.py" else ():
            for hit in re.finditer(pattern, text):
                yield f"{path}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}: {remedy}"


@pytest.mark.parametrize("check", [check for check, _ in RULES], ids=lambda check: check.__name__)
def test_the_project_keeps_the_rule(check: Check) -> None:
    found = list(check(project_files()))
    assert not found, f"{check.__doc__}\n  " + "\n  ".join(found)


OFFENDERS = [(check, offender) for check, offenders in RULES for offender in offenders]


@pytest.mark.parametrize(("check", "offender"), OFFENDERS, ids=[check.__name__ for check, _ in OFFENDERS])
def test_the_rule_finds_its_offender(check: Check, offender: Files) -> None:
    assert list(check(offender))
