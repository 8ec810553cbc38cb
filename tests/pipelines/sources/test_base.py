"""What sources share: placements under the digest of their set, and rejected rows of bounded size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.events import RunPlaced, polars_schema
from pipelines.sources.base import (
    RAW_TEXT_LIMIT,
    REJECTED_SCHEMA,
    Placed,
    placement_frame,
    placement_id,
    rejected_frame,
    rejected_row,
)

PLACED = st.builds(
    Placed, node=st.sampled_from(["n1", "n2"]), gpu_type=st.sampled_from(["a100", ""]), device_count=st.integers(1, 8)
)


@given(
    st.lists(PLACED, min_size=1, max_size=4, unique=True).flatmap(
        lambda some: st.tuples(st.just(some), st.permutations(some))
    )
)
def test_the_order_of_a_set_does_not_matter(pair: tuple[list[Placed], list[Placed]]) -> None:
    one, other = pair
    assert placement_id(one) == placement_id(other)


@given(PLACED)
def test_another_count_is_another_set(placed: Placed) -> None:
    more = Placed(placed.node, placed.gpu_type, placed.device_count + 1)
    assert placement_id([placed]) != placement_id([more])


def test_nothing_held_has_no_placement() -> None:
    assert placement_id([]) is None


def test_a_set_becomes_rows_of_run_placed() -> None:
    placed = [Placed("n1", "a100", 4, "A100"), Placed("n2", "1g.5gb", 1, None, "1g.5gb", None)]
    frame = placement_frame({"x": placed})
    assert frame.schema == polars_schema(RunPlaced)
    assert frame["device_count"].to_list() == [4, 1]
    assert frame["placement_id"].unique().to_list() == ["x"]


def test_a_rejected_row_keeps_its_text_within_bounds() -> None:
    frame = rejected_frame([rejected_row("slurm", "f:1", "too long", "x" * 10_000)])
    assert frame.schema == REJECTED_SCHEMA
    assert frame["raw_text"].str.len_chars().item() == RAW_TEXT_LIMIT
    assert frame["kind"].item() == "rejected"
