"""The operator table: calls, CPU and device time by name, equal to torch's own ``key_averages()``.

torch's rules (``torch/autograd/profiler.py``, ``profiler_util.py``), followed here so that the numbers agree:

* ``ProfilerStep#N`` are one row, ``ProfilerStep*``; utility names (``aten::is_leaf``, ...) are no rows and
  their children belong to the op above;
* a slice that is the only child of a slice of the same name is the same call (``_remove_dup_nodes``);
* a runtime call is a child of the op or annotation round it and lowers its self time;
* GPU time belongs to the innermost op round the launch; an op's total adds its children's. GPU work that no
  op launched (a Triton kernel called straight from Python) is in no row here: see ``ranges``;
* copies of annotations on the GPU are ranges, not work: an annotation is one row, counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.flops import flops_by_op
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask, frame
from profrun.analysis.trace.memory import op_memory
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Floats = NDArray[np.float64]
_UTILITY = """
[memory] [OutOfMemory] profiler::_record_function_enter profiler::_record_function_enter_new
profiler::_record_function_exit aten::is_leaf aten::output_nr aten::_version
"""
UTILITY = frozenset(_UTILITY.split())
"""Names that torch leaves out of its table."""


@dataclass(frozen=True)
class OpRow:
    """One name; times in ns.

    Attributes:
        name: the name; ``ProfilerStep*`` for torch's own steps.
        kind: op, range, step or api.
        calls: how often.
        self_cpu_ns, cpu_ns: host time without and with children, summed over calls.
        self_device_ns, device_ns: GPU time of what it launched itself, and with its children.
        flops: by torch's counting, None where it counts none.
        cpu_memory_bytes, device_memory_bytes: allocated minus freed inside the calls, children included; None
            without memory records.
    """

    name: str
    kind: str
    calls: int
    self_cpu_ns: int
    cpu_ns: int
    self_device_ns: int
    device_ns: int
    flops: int | None
    cpu_memory_bytes: int | None = None
    device_memory_bytes: int | None = None


@dataclass(frozen=True)
class OpTree:
    """torch's tree over host slices, as arrays by slice id, shape (slices,).

    Attributes:
        counted: slices that are rows.
        repeat: slices that are the same call as their parent (not a call of their own).
        parent: int32, parent in torch's tree, -1 for none.
        self_cpu: ns, whole numbers in float64: they are exact, for they stay under 2**53.
        self_device, device: ns of GPU work, likewise.
    """

    counted: Mask
    repeat: Mask
    parent: NDArray[np.int32]
    self_cpu: Floats
    self_device: Floats
    device: Floats


@memoised
def op_tree(source: Frame) -> OpTree:
    """torch's tree of a frame."""
    size = len(source)
    nodes = np.zeros(size, dtype=bool)
    ids = source.host_order
    nodes[ids[source.is_kind(ids, "op", "range", "step", "api")]] = True
    ids = np.flatnonzero(nodes)
    nodes[ids[source.named(ids, UTILITY.__contains__)]] = False
    parent = source.chase(nodes)
    parent[~nodes] = -1
    children = np.flatnonzero(parent >= 0)
    above = parent[children]
    repeat = np.zeros(size, dtype=bool)
    same = _row_names(source)
    alike = same[source.name[children]] == same[source.name[above]]
    if alike.any():
        repeat[children] = alike & (np.bincount(above, minlength=size)[above] == 1)
    self_cpu = np.bincount(above, weights=source.durs(children), minlength=size)
    del children, above, alike
    np.subtract(source.dur, self_cpu, out=self_cpu)
    self_cpu[~nodes] = 0
    self_device = device_by_op(source)
    cpu = np.asarray(self_cpu, dtype=np.float64)
    return OpTree(nodes, repeat, parent, cpu, self_device, subtree_sum(source, self_device))


def device_by_op(source: Frame) -> Floats:
    """ns of GPU work by slice id: each GPU slice adds its duration to the innermost op round its launch."""
    launched = source.launched
    owner = source.launching_op(launched)
    keep = owner >= 0
    total = np.bincount(owner[keep], weights=source.durs(launched[keep]), minlength=len(source))
    return np.asarray(total, dtype=np.float64)


def subtree_sum(source: Frame, values: Floats) -> Floats:
    """For every host slice the sum of ``values`` over itself and everything nested in it (prefix sums)."""
    order = source.host_order
    found = np.zeros(len(source))
    if not len(order):
        return found
    total = np.zeros(len(order) + 1)
    np.cumsum(values[order], out=total[1:])
    cuts = np.flatnonzero(np.append(True, np.diff(source.track[order]) != 0))
    for start, stop in zip(cuts, np.append(cuts[1:], len(order)), strict=True):
        part = order[start:stop]
        last = np.searchsorted(source.ts[part], source.end[part], side="left")
        np.maximum(last, np.arange(1, stop - start + 1), out=last)
        found[part] = total[start:][last] - total[start:stop]
    return found


def _row_names(source: Frame) -> Ints:
    """Name id -> id of the row it belongs to."""
    same = np.arange(len(source.names), dtype=np.int64)
    profiler = source.name_ids(lambda text: text.startswith("ProfilerStep#"))
    if len(profiler):
        same[profiler] = profiler[0]
    return same


def _row_text(source: Frame, name: int) -> str:
    text = source.names[name]
    return "ProfilerStep*" if text.startswith("ProfilerStep#") else text


def operators(trace: Trace) -> list[OpRow]:
    """The operator table, most device time first, then most self CPU time."""
    source = frame(trace)
    tree = op_tree(source)
    same = _row_names(source)
    ids = np.flatnonzero(tree.counted)
    row = same[source.name[ids]] * 16 + source.kind[ids]
    used = np.flatnonzero(np.bincount(row, minlength=1))
    place_of = np.zeros(int(used[-1]) + 1 if len(used) else 1, dtype=np.intp)
    place_of[used] = np.arange(len(used))
    place, keys = place_of[row], used
    del row, place_of
    calls = ~tree.repeat[ids]
    once = slice(None) if calls.all() else np.flatnonzero(calls)

    def total(values: NDArray[np.number], rows: Index | slice = slice(None)) -> Ints:
        return np.bincount(place[rows], weights=values[rows], minlength=len(keys)).astype(np.int64)

    columns = {
        "calls": np.bincount(place[once], minlength=len(keys)).astype(np.int64),
        "self_cpu_ns": total(tree.self_cpu[ids]),
        "cpu_ns": total(source.durs(ids), once),
        "self_device_ns": total(tree.self_device[ids]),
        "device_ns": total(tree.device[ids], once),
    }
    flops = flops_by_op(trace)
    memory = op_memory(trace, ids, place, len(keys), calls)
    kinds = {code: kind for kind, code in KIND.items()}
    rows = []
    for number, key in enumerate(keys):
        name, kind = _row_text(source, int(key) // 16), kinds[int(key) % 16]
        rows.append(
            OpRow(
                name=name,
                kind=kind,
                flops=flops.get(name) if kind == "op" else None,
                cpu_memory_bytes=None if memory is None else int(memory[0][number]),
                device_memory_bytes=None if memory is None else int(memory[1][number]),
                **{column: int(values[number]) for column, values in columns.items()},
            )
        )
    rows.sort(key=lambda item: (-item.self_device_ns, -item.self_cpu_ns, item.name))
    return rows
