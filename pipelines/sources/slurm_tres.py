"""Slurm's small grammars: GPUs in AllocTRES and AllocGRES, node lists, and which device lies on which node.

Pure text in, values out; a text that cannot be read is a ``ValueError`` whose message becomes the row's reason.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from models.gpus import canonical_model, mig_profile
from pipelines.sources.base import Placed

FIRST_SITE_TRES = 1_001
"""Slurm numbers its own TRES (cpu, mem, …) below this, and those a site defines (gres/gpu) from it on."""

SHARED_GRES = ("gres/mps", "gres/shard")
"""Shared GPUs: how many shards or MPS parts a GPU has stands in gres.conf only, so such a run cannot be metered."""

MOST_NODES = 200_000
"""More nodes than any machine has: a longer list is a mistake, not a placement."""

_RANGE = re.compile(r"\[([^\[\]]*)\]")
_GRES = re.compile(r"(?:gres[:/])?(?P<name>[^:=(]+)(?::(?P<type>[^:=(]+))??(?:[:=](?P<count>\d+))?(?:\(.*\))?")


def gpus_in_tres(text: str | None) -> dict[str, int] | None:
    """GPUs (or MIG slices) by type in a TRES list; None where it names no GPU at all.

    An untyped ``gres/gpu`` is the total and typed entries are part of it, never added to it. What the types leave of
    the total has the type ''. ``gres/gpumem`` and ``gres/gpuutil`` are no GPUs.

    Raises:
      ValueError: A count is no number, the types exceed the total, a GPU is shared in parts of unknown size, or
        resources are written as ids without names.

    >>> gpus_in_tres("billing=54,gres/gpu:a100=4,gres/gpu=4,mem=208G"), gpus_in_tres("cpu=4,gres/gpumem=8G")
    ({'a100': 4}, None)
    >>> gpus_in_tres("gres/gpu=3,gres/gpu:3g.40gb=2")
    {'3g.40gb': 2, '': 1}
    """
    total: int | None = None
    typed: dict[str, int] = {}
    for entry in filter(None, (text or "").replace("(null)", "").split(",")):
        name, _, value = entry.partition("=")
        if name.isdecimal() and int(name) >= FIRST_SITE_TRES:
            raise ValueError(
                f"{entry!r} in {text!r} is a resource without a name, so its GPUs cannot be told; export with "
                "`sacct --format=…,AllocTRES` (names), not from the database's tres_alloc (ids)"
            )
        if name in SHARED_GRES:
            raise ValueError(f"{entry!r} in {text!r} is a part of a GPU, and sacct does not say how large a part")
        if name != "gres/gpu" and not name.startswith("gres/gpu:"):
            continue
        if not value.isdecimal():
            raise ValueError(f"{entry!r} in {text!r}: expected a whole number of GPUs")
        if name == "gres/gpu":
            total = int(value)
        else:
            kind = name.removeprefix("gres/gpu:")
            typed[kind] = typed.get(kind, 0) + int(value)
    return _with_rest(total, typed, text)


def _with_rest(total: int | None, typed: dict[str, int], text: str | None) -> dict[str, int] | None:
    if total is None and not typed:
        return None
    rest = 0 if total is None else total - sum(typed.values())
    if rest < 0:
        raise ValueError(f"{text!r}: the types name {sum(typed.values())} GPUs, the total gres/gpu says {total}")
    return {kind: count for kind, count in {**typed, "": rest}.items() if count}


def gpus_in_gres(text: str | None) -> dict[str, int] | None:
    """GPUs by type in the older AllocGRES list; None where it names no GPU.

    >>> gpus_in_gres("gpu:1"), gpus_in_gres("gpu:a100:2(IDX:0-1),nvme:1"), gpus_in_gres("nvme:1")
    ({'': 1}, {'a100': 2}, None)
    """
    found: dict[str, int] = {}
    for entry in re.findall(r"[^,(]+(?:\([^)]*\))?", text or ""):
        read = _GRES.fullmatch(entry.strip())
        if read and read["name"] == "gpu":
            kind = read["type"] or ""
            found[kind] = found.get(kind, 0) + int(read["count"] or 1)
    return {kind: count for kind, count in found.items() if count} if found else None


@lru_cache(maxsize=1_024)
def expand_nodes(text: str) -> tuple[str, ...]:
    """Node names of a Slurm host list, in its order.

    Raises:
      ValueError: The text is no host list.

    >>> expand_nodes("cpn-f13-[01-03,07],x1")
    ('cpn-f13-01', 'cpn-f13-02', 'cpn-f13-03', 'cpn-f13-07', 'x1')
    >>> expand_nodes("r[1-2]n[0-1]")
    ('r1n0', 'r1n1', 'r2n0', 'r2n1')
    """
    nodes: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        pieces = _RANGE.split(part)
        choices = [_numbers(piece, text) if index % 2 else [piece] for index, piece in enumerate(pieces)]
        nodes += ["".join(names) for names in product(*choices)]
        if len(nodes) > MOST_NODES:
            raise ValueError(f"node list {text[:80]!r} names more than {MOST_NODES} nodes")
    if re.search(r"[\[\]\s]", "".join(nodes)) or text.count("[") != len(_RANGE.findall(text)):
        raise ValueError(f"node list {text[:80]!r} cannot be read; expected such as n[01-04,07],x1")
    return tuple(nodes)


def _numbers(ranges: str, text: str) -> list[str]:
    found: list[str] = []
    for one in ranges.split(","):
        read = re.fullmatch(r"(\d+)(?:-(\d+))?", one)
        if read is None:
            raise ValueError(f"node list {text[:80]!r} cannot be read: {one!r} is no range such as 01-04")
        first, last = int(read[1]), int(read[2] or read[1])
        if not 0 <= last - first < MOST_NODES:
            raise ValueError(f"node list {text[:80]!r}: the range {one!r} runs backwards or is too long")
        found += [str(number).zfill(len(read[1])) for number in range(first, last + 1)]
    return found


def place(gpus: dict[str, int], nodes: tuple[str, ...]) -> tuple[Placed, ...]:
    """Devices by node and type: split evenly, since sacct gives only the sum; the first nodes take the remainder.

    >>> [(one.node, one.device_count) for one in place({"a100": 5}, ("n1", "n2"))]
    [('n1', 3), ('n2', 2)]
    """
    placed = []
    for kind, count in sorted(gpus.items()):
        each, remainder = divmod(count, len(nodes))
        for position, node in enumerate(nodes):
            here = each + (position < remainder)
            if here:
                placed.append(Placed(node, kind, here, canonical_model(kind), mig_profile(kind)))
    return tuple(placed)


def placement(alloc_tres: str | None, alloc_gres: str | None, node_list: str | None) -> tuple[Placed, ...]:
    """Devices that a run held; empty where it held none.

    AllocGRES counts where AllocTRES names no GPU (old Slurm, or a site that does not track gres/gpu). Requested
    resources never count: they are not what was held.

    Raises:
      ValueError: The resources or the node list cannot be read.
    """
    gpus = gpus_in_tres(alloc_tres)
    if gpus is None:
        gpus = gpus_in_gres(alloc_gres)
    if not gpus:
        return ()
    return place(gpus, expand_nodes(node_list) if node_list else ("",))
