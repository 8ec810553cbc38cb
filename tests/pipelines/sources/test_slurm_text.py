from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import pytest

from models.errors import SourceError
from pipelines.sources import slurm_text
from pipelines.sources.slurm_text import Dump, layout_of_header, open_dump, read_records

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobIDRaw|State|Start|End|AllocTRES|Comment|JobName|ExitCode"
RUN = "7|COMPLETED|2026-01-05T10:00:00|2026-01-05T11:00:00|gres/gpu=1|fine|train|0:0"


def read(text: str, **how: Any) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """(cells by record, reasons of what is none)."""
    parts = [records for _, records in read_records(Dump(io.BytesIO(text.encode())), "dump", **how)]
    cells = [row for part in parts for row in part.frame["cells"].to_list()]
    return cells, [(row["position"], row["reason"].partition(":")[0]) for part in parts for row in part.rejected]


@pytest.mark.parametrize("delimiter", ["|", "|#", "^", "\t", ";", "@@"])
def test_the_header_tells_the_delimiter(delimiter: str) -> None:
    assert layout_of_header(f"JobID{delimiter}State{delimiter}End", "f:1", None).delimiter == delimiter


def test_a_delimiter_at_the_end_of_each_line_is_a_column_without_a_name() -> None:
    assert layout_of_header("JobID|State|", "f:1", None).names == ("jobid", "state", "")


@pytest.mark.parametrize("header", ["       JobID    State ", "JobID State", "hello", "\x7fELF\x01|\x00"])
def test_what_is_no_header_is_quoted_and_the_remedy_named(header: str) -> None:
    with pytest.raises(SourceError, match="sacct -P"):
        layout_of_header(header, "f:1", None)


def test_a_wrong_delimiter_is_said_with_what_was_seen() -> None:
    with pytest.raises(SourceError, match=r"';'.*JobIDRaw\|State"):
        layout_of_header(HEADER, "f:1", ";")
    with pytest.raises(SourceError, match=r"3 cells with ';'.*7\|COMPLETED"):
        read(RUN, fields=["jobid", "state", "end"], delimiter=";")


def test_names_may_be_given_in_any_case_and_with_widths() -> None:
    cells, _ = read("7|a|b\n", fields=["JobIDRaw", "JOBNAME%40", "state"])
    assert cells == [["7", "a", "b"]]


def test_an_empty_dump_holds_nothing() -> None:
    assert read("") == ([], [])
    assert read(f"{HEADER}\n") == ([], [])


def test_windows_line_ends_a_byte_order_mark_and_repeated_headers_are_no_data() -> None:
    cells, rejected = read(f"\ufeff{HEADER}\r\n{RUN}\r\n\r\n{HEADER}\r\n{RUN}\r\n")
    assert cells == [RUN.split("|")] * 2
    assert rejected == []


def test_line_breaks_inside_a_cell_are_mended() -> None:
    broken = RUN.replace("fine", "not\n\nfine")
    cells, rejected = read(f"{HEADER}\n{RUN}\n{broken}\n{RUN}\n")
    assert [row[5] for row in cells] == ["fine", "not\n\nfine", "fine"]
    assert rejected == []


def test_a_truncated_record_never_swallows_the_next() -> None:
    cells, rejected = read(f"{HEADER}\n7|COMPLETED|2026\n{RUN}\n")
    assert cells == [RUN.split("|")]
    assert rejected == [("dump:2", "too few cells")]


def test_a_delimiter_in_a_name_is_told_by_the_cells_around_it() -> None:
    cells, _ = read(f"{HEADER}\n{RUN.replace('train', 'a|b|c')}\n")
    assert cells[0][6:] == ["a|b|c", "0:0"]


def test_a_delimiter_that_could_be_anywhere_rejects_the_row() -> None:
    header, row = "JobID|State|JobName|User|Comment", "7|COMPLETED|a|b|c|d"
    cells, rejected = read(f"{header}\n{row}\n")
    assert cells == []
    assert rejected == [("dump:2", "too many cells")]


def test_an_unfinished_last_line_is_no_record() -> None:
    cells, rejected = read(f"{HEADER}\n{RUN}\n{RUN[:40]}")
    assert len(cells) == 1
    assert rejected == [("dump:3", "unfinished last line")]


def test_a_whole_last_line_without_a_line_end_counts_unless_the_file_is_growing(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text(f"{HEADER}\n{RUN}\n{RUN}")
    for appended, count in ("", 2), ("7|…", 1):
        with open_dump(path) as dump:
            with path.open("a") as more:
                more.write(appended)
            records = [part for _, part in read_records(dump, "dump")]
        assert sum(part.frame.height for part in records) == count
        assert [row["position"] for part in records for row in part.rejected] == ["dump:3"] * (2 - count)


def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join([HEADER, RUN, RUN.replace("fine", "not\nso\nfine"), "7|cut", RUN, RUN.replace("train", "a|b"), ""])
    whole = read(text)
    for size in range(1, 120, 7):
        monkeypatch.setattr(slurm_text, "BLOCK_BYTES", size)
        assert read(text) == whole


def test_a_line_without_end_is_no_sacct_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_text, "BLOCK_BYTES", 100)
    monkeypatch.setattr(slurm_text, "LONGEST_LINE_BYTES", 800)
    with pytest.raises(SourceError, match="dump:2: a line longer than"):
        read(f"{HEADER}\n{RUN}" + "x" * 2_000)


def test_a_missing_or_cut_off_file_is_an_error_before_anything_is_kept(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"), open_dump(tmp_path / "none"):
        pass
    path = tmp_path / "dump.gz"
    path.write_bytes(gzip.compress(f"{HEADER}\n{RUN}\n".encode() * 50)[:-9])
    with pytest.raises(SourceError, match="cut off"), open_dump(path) as dump:
        list(read_records(dump, "dump"))
