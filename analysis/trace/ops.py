"""The operator table: calls, CPU and device time by name, equal to torch's own ``key_averages()``.

The tree behind it follows torch's rules (``op_tree``); a row that differs from torch's on purpose says so
(``torch_table``). ``ProfilerStep#N`` are one row, ``ProfilerStep*``. GPU work that no op launched (a Triton
kernel called straight from Python) is in no row here: see ``ranges``. Copies of annotations on the GPU are
ranges, not work: an annotation is one row, counted once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.flops import flops_by_op
from profrun.analysis.trace.frame import KIND, Frame, Index, frame
from profrun.analysis.trace.memory import op_memory
from profrun.analysis.trace.op_tree import OpTree, op_tree, row_names, row_text
from profrun.analysis.trace.torch_table import device_unknown, torch_tree
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class OpWork:
    """The part of an ``OpRow`` that lies in steps; the same columns, ns."""

    calls: int
    self_cpu_ns: int
    cpu_ns: int
    self_device_ns: int
    device_ns: int


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
        torch: columns that have another value in torch's own table -> that value, None where it cannot be
            known. ``torch_table`` says why.
        in_steps: the part of all steps; None for a recording without steps (``per_step`` sets it).
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
    torch: dict[str, int | None] = field(default_factory=dict)
    in_steps: OpWork | None = None


def rows_of(source: Frame, ids: Index) -> tuple[list[tuple[str, str]], Index]:
    """(name, kind) of each row of the table, and the row of each of these slices."""
    key = row_names(source)[source.name[ids]] * 16 + source.kind[ids]
    keys = np.flatnonzero(np.bincount(key, minlength=1))
    place_of = np.zeros(int(keys[-1]) + 1 if len(keys) else 1, dtype=np.intp)
    place_of[keys] = np.arange(len(keys))
    kinds = {code: kind for kind, code in KIND.items()}
    return [(row_text(source, one // 16), kinds[one % 16]) for one in keys.tolist()], place_of[key]


def totals(source: Frame, tree: OpTree, ids: Index, place: Index, size: int) -> dict[str, Ints]:
    """Columns of the rows from one tree, int64, shape (size,); ``place``: the row of each of the ``ids``."""
    calls = ~tree.repeat[ids]
    once = slice(None) if calls.all() else np.flatnonzero(calls)

    def total(values: NDArray[np.number], rows: Index | slice = slice(None)) -> Ints:
        return np.bincount(place[rows], weights=values[rows], minlength=size).astype(np.int64)

    return {
        "calls": np.bincount(place[once], minlength=size).astype(np.int64),
        "self_cpu_ns": total(tree.self_cpu[ids]),
        "cpu_ns": total(source.durs(ids), once),
        "self_device_ns": total(tree.self_device[ids]),
        "device_ns": total(tree.device[ids], once),
    }


def _torchs(
    trace: Trace, columns: dict[str, Ints], ids: Index, place: Index, size: int
) -> list[dict[str, int | None]]:
    """For each row what torch's own table has instead, by column."""
    source, tree = frame(trace), torch_tree(trace)
    found: list[dict[str, int | None]] = [{} for _ in range(size)]
    if tree is op_tree(source):
        return found
    for name, values in totals(source, tree, ids, place, size).items():
        for number in np.flatnonzero(values != columns[name]):
            found[number][name] = int(values[number])
    for number in np.unique(place[device_unknown(trace)[ids]]):
        found[number]["device_ns"] = None
    return found


@memoised
def operators(trace: Trace) -> list[OpRow]:
    """The operator table, most device time first, then most self CPU time."""
    source = frame(trace)
    tree = op_tree(source)
    ids = np.flatnonzero(tree.counted)
    names, place = rows_of(source, ids)
    columns = totals(source, tree, ids, place, len(names))
    torch = _torchs(trace, columns, ids, place, len(names))
    flops = flops_by_op(trace)
    memory = op_memory(trace, ids, place, len(names), ~tree.repeat[ids])
    rows = []
    for number, (name, kind) in enumerate(names):
        rows.append(
            OpRow(
                name=name,
                kind=kind,
                flops=flops.get(name) if kind == "op" else None,
                cpu_memory_bytes=None if memory is None else int(memory[0][number]),
                device_memory_bytes=None if memory is None else int(memory[1][number]),
                torch=torch[number],
                calls=int(columns["calls"][number]),
                self_cpu_ns=int(columns["self_cpu_ns"][number]),
                cpu_ns=int(columns["cpu_ns"][number]),
                self_device_ns=int(columns["self_device_ns"][number]),
                device_ns=int(columns["device_ns"][number]),
            )
        )
    rows.sort(key=lambda item: (-item.self_device_ns, -item.self_cpu_ns, item.name))
    return rows
