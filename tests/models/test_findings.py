from __future__ import annotations

from pathlib import Path

from models.findings import FINDING_KINDS

PROJECTIONS = Path(__file__).resolve().parents[2] / "sql" / "projections"


def test_each_kind_is_declared_once_and_says_what_to_do() -> None:
    assert len({known.kind for known in FINDING_KINDS}) == len(FINDING_KINDS)
    for known in FINDING_KINDS:
        assert known.severity in {"error", "warning", "info"}
        assert known.explanation.endswith(".")
        assert known.unit
        assert known.expected


def test_each_kind_is_looked_for_by_a_projection() -> None:
    sql = "".join(path.read_text() for path in PROJECTIONS.rglob("*.sql"))
    assert [known.kind for known in FINDING_KINDS if f"'{known.kind}'" not in sql] == []
