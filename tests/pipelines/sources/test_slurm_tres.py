from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sources.base import Placed
from pipelines.sources.slurm_tres import expand_nodes, gpus_in_gres, gpus_in_tres, place, placement

if TYPE_CHECKING:
    from random import Random


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("billing=54,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=208G,node=1", {"a100": 4}),
        ("gres/gpu=4,gres/gpu:a100=4", {"a100": 4}),
        ("gres/gpu=1,gres/gpu:a100_1g.5gb=1", {"a100_1g.5gb": 1}),
        ("gres/gpu=3,gres/gpu:3g.40gb=2,gres/gpu:4g.40gb=1", {"3g.40gb": 2, "4g.40gb": 1}),
        ("gres/gpu:a100=4", {"a100": 4}),
        ("gres/gpu=8,gres/gpu:a100=6", {"a100": 6, "": 2}),
        ("gres/gpu=0,cpu=1", {}),
        ("energy=,cpu=1,gres/gpumem=40G,gres/gpuutil=97,gres/nvme=2,mem=9223372036854775807", None),
        ("1=20,2=170000,4=1", None),
        ("(null)", None),
        ("", None),
        (None, None),
    ],
)
def test_gpus_in_alloc_tres(text: str, gpus: dict[str, int] | None) -> None:
    assert gpus_in_tres(text) == gpus


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1=20,2=170000,4=1,1002=2", "sacct --format"),
        ("gres/gpu=1,gres/gpu:a100=2", "the total gres/gpu says 1"),
        ("gres/gpu=two", "expected a whole number"),
        ("cpu=1,gres/shard=2", "how large a part"),
    ],
)
def test_what_cannot_be_metered_is_said_rather_than_counted_as_none(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gpus_in_tres(text)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:1", {"": 1}),
        ("gpu", {"": 1}),
        ("gpu:a100:2", {"a100": 2}),
        ("gres:gpu:a100:2(IDX:0-1),nvme:1", {"a100": 2}),
        ("gpu:0", {}),
        ("gpumem:5", None),
        ("", None),
    ],
)
def test_gpus_in_alloc_gres(text: str, gpus: dict[str, int] | None) -> None:
    assert gpus_in_gres(text) == gpus


def test_alloc_gres_counts_only_where_alloc_tres_names_no_gpu() -> None:
    assert placement("", "gpu:2", "n1") == (Placed("n1", "", 2),)
    assert placement("cpu=8", "gpu:2", "n1") == (Placed("n1", "", 2),)
    assert placement("gres/gpu=0", "gpu:2", "n1") == ()


def test_a_mig_slice_names_its_profile_and_model() -> None:
    assert placement("gres/gpu=1,gres/gpu:a100_1g.5gb=1", None, "n1") == (
        Placed("n1", "a100_1g.5gb", 1, gpu_model="A100", mig_profile="1g.5gb"),
    )


def test_gpus_without_a_node_list_lie_on_the_nameless_node() -> None:
    assert placement("gres/gpu=4", None, None) == (Placed("", "", 4),)


@given(
    st.dictionaries(st.sampled_from(["a100", "h100", "1g.10gb", "a100_3g.20gb"]), st.integers(1, 64)),
    st.integers(0, 9),
    st.randoms(use_true_random=False),
)
def test_types_are_part_of_the_total_in_any_order(typed: dict[str, int], rest: int, random: Random) -> None:
    entries = [f"gres/gpu:{kind}={count}" for kind, count in typed.items()]
    entries += [f"gres/gpu={sum(typed.values()) + rest}", "cpu=4", "gres/gpumem=3G", "node=1"]
    random.shuffle(entries)
    assert gpus_in_tres(",".join(entries)) == typed | ({"": rest} if rest else {})


@given(st.dictionaries(st.sampled_from(["", "a100", "t4"]), st.integers(1, 40)), st.integers(1, 9))
def test_devices_are_spread_evenly_and_none_is_lost(gpus: dict[str, int], node_count: int) -> None:
    placed = place(gpus, tuple(f"n{number}" for number in range(node_count)))
    for kind, count in gpus.items():
        here = [one.device_count for one in placed if one.gpu_type == kind]
        assert sum(here) == count
        assert here == sorted(here, reverse=True)
        assert max(here) - min(here) <= 1


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("node1", ("node1",)),
        ("n[1,3-4]-ib,x", ("n1-ib", "n3-ib", "n4-ib", "x")),
        (
            "cpn-f13-03-[01-02],cpn-f13-04-[01-02]",
            ("cpn-f13-03-01", "cpn-f13-03-02", "cpn-f13-04-01", "cpn-f13-04-02"),
        ),
        ("r[1-2]n[08-09]", ("r1n08", "r1n09", "r2n08", "r2n09")),
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
    ],
)
def test_node_lists(text: str, nodes: tuple[str, ...]) -> None:
    assert expand_nodes(text) == nodes


@pytest.mark.parametrize("text", ["n[1-", "n[3-1]", "n[a-b]", "n]1[", "n[1-999999999]", "n1 n2"])
def test_a_broken_node_list_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="node list"):
        expand_nodes(text)


def compress(prefix: str, numbers: list[int], width: int) -> str:
    """Write a sorted list of numbers the way Slurm does: neighbours as a range."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    texts = [f"{run[0]:0{width}}" + (f"-{run[-1]:0{width}}" if len(run) > 1 else "") for run in ranges]
    return f"{prefix}[{','.join(texts)}]"


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z]{1,5}(-f\d{1,2}-)?", fullmatch=True),
            st.sets(st.integers(0, 120), min_size=1).map(sorted),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_expanding_a_compressed_list_gives_the_nodes_back(groups: list[tuple[str, list[int], int]]) -> None:
    text = ",".join(compress(*group) for group in groups)
    nodes = [f"{prefix}{number:0{width}}" for prefix, numbers, width in groups for number in numbers]
    assert list(expand_nodes(text)) == nodes
