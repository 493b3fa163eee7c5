"""The table that ``torch.profiler.profile.key_averages()`` makes, with its rows and its values.

``key_averages`` is given a trace and returns a ``KeyAverages``. Where profrun's operator table differs from
torch's on purpose (``torch_table``), these are torch's values. A trace of several processes gives one table;
torch makes one for each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.columns import Ints, groups
from profrun.analysis.trace.frame import KIND, Frame, Index, frame
from profrun.analysis.trace.memory import changes, net_bytes
from profrun.analysis.trace.op_shapes import op_shapes
from profrun.analysis.trace.op_tree import UTILITY, OpTree, row_names, row_text
from profrun.analysis.trace.ops import totals
from profrun.analysis.trace.torch_table import device_unknown, torch_tree
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MEMORY = "[memory]"
"""Name of torch's row for allocations and frees outside of everything that it recorded."""


@dataclass(frozen=True)
class KeyAverage:
    """One row; times in ns, memory in bytes.

    Attributes:
        name: the op, runtime call, annotation or kernel.
        on_device: a kernel, a copy, or the copy of an annotation on the GPU: it has device times only.
        annotation: a range of the program.
        shapes: input shapes as torch prints them; empty unless the table is grouped by them.
        calls: how often.
        self_cpu_ns, cpu_ns: host time without and with children.
        self_device_ns, device_ns: GPU time of what it launched itself, and with children; None where torch's
            value is not in the file (``torch_table.device_unknown``, and the profiler's own overhead).
        self_cpu_bytes, cpu_bytes, self_device_bytes, device_bytes: allocated minus freed; 0 without memory
            records.
    """

    name: str
    on_device: bool
    annotation: bool
    shapes: str
    calls: int
    self_cpu_ns: int
    cpu_ns: int
    self_device_ns: int | None
    device_ns: int | None
    self_cpu_bytes: int = 0
    cpu_bytes: int = 0
    self_device_bytes: int = 0
    device_bytes: int = 0


@dataclass(frozen=True)
class KeyAverages:
    """The table.

    Attributes:
        rows: in the order in which the names first occur, as torch has them.
        self_cpu_total_ns: sum of ``self_cpu_ns``, the denominator of the CPU shares.
        self_device_total_ns: time of all kernels and copies, the denominator of the device shares.
        memory: whether allocations are recorded.
        by_shapes: whether rows are grouped by input shapes too.
    """

    rows: tuple[KeyAverage, ...]
    self_cpu_total_ns: int
    self_device_total_ns: int
    memory: bool
    by_shapes: bool


SORTS = {
    "self_cpu_time_total": "self_cpu_ns",
    "cpu_time_total": "cpu_ns",
    "self_cuda_time_total": "self_device_ns",
    "cuda_time_total": "device_ns",
    "self_cpu_memory_usage": "self_cpu_bytes",
    "cpu_memory_usage": "cpu_bytes",
    "self_cuda_memory_usage": "self_device_bytes",
    "cuda_memory_usage": "device_bytes",
    "count": "calls",
}
"""torch's ``sort_by`` -> field of ``KeyAverage``; ``device`` may stand for ``cuda``, as in torch."""
AVERAGES = {"cpu_time": "cpu_ns", "cuda_time": "device_ns"}
"""torch's names of averages -> the field that is divided by the calls."""


def sorted_as(table: KeyAverages, sort: str | None) -> KeyAverages:
    """The table with its largest rows first.

    Args:
        table: the table.
        sort: a key of ``SORTS`` or ``AVERAGES``; None for self GPU time, and for self CPU time where no GPU
            worked.

    Raises:
        UsageError: a key that torch does not know.
    """
    key = sort or ("self_cuda_time_total" if table.self_device_total_ns else "self_cpu_time_total")
    key = key.replace("device", "cuda")
    name = SORTS.get(key) or AVERAGES.get(key)
    if name is None:
        raise UsageError(f"torch's table has no column '{sort}'; it has {', '.join([*SORTS, *AVERAGES])}")

    def value(row: KeyAverage) -> float:
        found = float(getattr(row, name) or 0)
        return found / (row.calls or 1) if key in AVERAGES else found

    return replace(table, rows=tuple(sorted(table.rows, key=value, reverse=True)))


_Row = tuple[int, KeyAverage]
"""The start of the first call of a row, and the row."""


def key_averages(trace: Trace, *, by_shapes: bool = False) -> KeyAverages:
    """torch's table of a trace.

    Args:
        trace: any trace.
        by_shapes: group calls of an op by the shapes of their inputs, too.
    """
    memory, shapes = bool(changes(trace)), "[]" if by_shapes else ""
    found = [*_host(trace, by_shapes), *_device(frame(trace), shapes)]
    if memory:
        found += _outside(trace, shapes)
    rows = tuple(row for _, row in sorted(found, key=lambda pair: pair[0]))
    return KeyAverages(
        rows,
        sum(row.self_cpu_ns for row in rows),
        sum(row.self_device_ns or 0 for row in rows if row.on_device and not row.annotation),
        memory,
        by_shapes,
    )


def _host(trace: Trace, by_shapes: bool) -> Iterator[_Row]:
    """Rows of ops, runtime calls, annotations and the profiler's own overhead."""
    source, tree = frame(trace), torch_tree(trace)
    ids = np.flatnonzero(tree.counted)
    if not len(ids):
        return
    owner = ids  # a slice that is the same call as its parent has the shapes of that
    while tree.repeat[owner].any():
        owner = np.where(tree.repeat[owner], tree.parent[owner], owner)
    texts, shape = _shapes(trace, owner) if by_shapes else ([""], np.zeros(len(ids), np.int64))
    keys = (row_names(source)[source.name[ids]], source.is_kind(ids, "range", "step").astype(np.int8), shape)
    example, place = groups(*keys)
    size = len(example)
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, place, source.ts[ids])
    overhead = source.is_kind(ids, "overhead")
    alone = set(place[overhead].tolist())
    unknown = set(place[device_unknown(trace)[ids] | overhead].tolist())
    columns = totals(source, tree, ids, place, size) | _memory(trace, tree, ids, place, size)
    for number, (name, annotation, shapes) in enumerate(np.stack([key[example] for key in keys], axis=1)):
        sums = {column: int(values[number]) for column, values in columns.items()}
        row = KeyAverage(row_text(source, name), False, bool(annotation), texts[shapes], **sums)
        if number in unknown:
            row = replace(row, device_ns=None)
        if number in alone:
            row = replace(row, self_device_ns=None)
        yield int(first[number]), row


def _memory(trace: Trace, tree: OpTree, ids: Index, place: Ints, size: int) -> dict[str, Ints]:
    """Columns of memory: int64, shape (size,), by name; none without single allocations and frees.

    Args:
        trace: the trace.
        tree: torch's tree.
        ids: the calls; ``place``: the row of each of them; ``size``: how many rows.
    """
    found = net_bytes(trace, ids) if changes(trace) else None
    if found is None:
        return {}
    once, above = ~tree.repeat[ids], tree.parent[ids]
    inside = above >= 0
    columns: dict[str, Ints] = {}
    for name, whole in zip(("cpu_bytes", "device_bytes"), found, strict=True):
        own = np.zeros(len(tree.parent), dtype=np.int64)
        own[ids] = whole
        np.subtract.at(own, above[inside], whole[inside])
        for column, values in ((f"self_{name}", own[ids]), (name, np.where(once, whole, 0))):
            columns[column] = np.bincount(place, weights=values, minlength=size).astype(np.int64)
    return columns


def _device(source: Frame, shapes: str) -> Iterator[_Row]:
    """Rows of kernels, copies and fills, and of annotations on the GPU."""
    same = row_names(source)
    copies = source.of("range", "step")
    copies = copies[source.on_gpu[source.track[copies]]]
    for annotation, ids in ((False, source.gpu), (True, copies)):
        names, place = np.unique(same[source.name[ids]], return_inverse=True)
        time = np.bincount(place, weights=source.durs(ids), minlength=len(names))
        calls = np.bincount(place, minlength=len(names))
        first = np.full(len(names), np.iinfo(np.int64).max)
        np.minimum.at(first, place, source.ts[ids])
        for name, ns, count, at in zip(names.tolist(), time, calls, first, strict=True):
            text = row_text(source, name)
            yield int(at), KeyAverage(text, True, annotation, shapes, int(count), 0, 0, int(ns), int(ns))


def _outside(trace: Trace, shapes: str) -> Iterator[_Row]:
    """torch's row ``[memory]``: allocations and frees at a time when nothing was recorded."""
    source = frame(trace)
    ids = source.of("op", "range", "step", "api", "overhead")
    ids = ids[~source.on_gpu[source.track[ids]]]
    ids = ids[~source.named(ids, UTILITY.__contains__)]
    calls, sums, first = 0, [0, 0], np.iinfo(np.int64).max
    for one in changes(trace):
        mine = ids[source.process_of(ids) == one.process]
        starts, ends = np.sort(source.ts[mine]), np.sort(source.end[mine])
        begun = np.searchsorted(starts, one.times, side="right")
        ended = np.searchsorted(ends, one.times, side="left")
        alone = begun == ended
        calls += int(alone.sum())
        sums[one.device is not None] += int(one.values[alone].sum())
        if alone.any():
            first = min(first, int(one.times[alone][0]))
    if calls:
        row = KeyAverage(MEMORY, False, False, shapes, calls, 0, 0, 0, 0, sums[0], sums[0], sums[1], sums[1])
        yield int(first), row


def _shapes(trace: Trace, ids: Index) -> tuple[list[str], Ints]:
    """(distinct texts of input shapes, place of each call's in them: int64, shape (n,))."""
    source, shapes = frame(trace), op_shapes(trace)
    code, _ = shapes.of(len(source), ids)
    place: dict[str, int] = {"[]": 0}
    of = np.array([place.setdefault(_printed(text), len(place)) for text in shapes.shapes] + [0])
    return list(place), np.where(source.kind[ids] == KIND["op"], of[code], 0)


def _printed(text: str) -> str:
    """Recorded shapes as torch prints them: a list of tensors is an empty shape there."""
    shapes = json.loads(text)
    flat: Sequence[object] = [
        [] if not isinstance(one, list) or any(isinstance(item, list) for item in one) else one
        for one in shapes
    ]
    return str(flat)
