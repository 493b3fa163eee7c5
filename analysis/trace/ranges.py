"""The table of host ranges: their calls, their host time, and the GPU work that was launched inside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask, frame
from profrun.analysis.trace.steps import step_index
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MODULE = re.compile(r"^nn\.Module: (?P<path>.*) \((?P<cls>[^()]*)\)$")
"""Ranges that profrun's hook puts round modules."""
TORCH_MODULE = re.compile(r"^nn\.Module: (?P<cls>\w+)_\d+$")
"""Calls of modules in torch's own Python stacks."""
BACKWARD = " backward"
"""End of the name of a range that profrun's hook puts round the backward of a module."""
LIBRARY = re.compile(
    r"^(?:cub|thrust|at|c10)::|^(?:NCCL|nccl|RCCL|rccl|cublas|cudnn|cusolver|cusparse|cufft|rocblas|hipblas|miopen)"
)
"""Ranges that libraries put round their own calls: they count as ops, not as ranges of the program."""


@dataclass(frozen=True)
class RangeRow:
    """One range name; times ns, summed over calls.

    Attributes:
        name, kind: range or step.
        calls: how often.
        host_ns: host time (a range inside one of the same name is not counted twice).
        gpu_ns, gpu_slices: GPU work launched inside it on its own thread, through launches.
        adopted_ns, adopted_slices: GPU work that threads without ranges of the program (autograd's) launched
            while this was the innermost range of the main thread, or of one inside it: backward work. For
            a step: what all other threads launched during it.
        module, module_class: qualified name and class when it is the range of an nn.Module.
    """

    name: str
    kind: str
    calls: int
    host_ns: int
    gpu_ns: int
    gpu_slices: int
    adopted_ns: int
    adopted_slices: int
    module: str | None
    module_class: str | None


@memoised
def _main_ranges(source: Frame) -> dict[int, Index]:
    """For each process the ranges of its main thread in pre-order.

    It is the thread of the steps, else the one with most ranges.
    """
    ids = _host_ranges(source)
    steps = step_index(source)
    step_track = dict(zip(steps.process.tolist(), source.track[steps.slices].tolist(), strict=True))
    owner = source.process_of(ids)
    found: dict[int, Index] = {}
    for process in np.unique(owner):
        mine = ids[owner == process]
        tracks, count = np.unique(source.track[mine], return_counts=True)
        main = mine[source.track[mine] == step_track.get(int(process), tracks[np.argmax(count)])]
        order = np.lexsort((main, -source.end[main], source.ts[main]))
        found[int(process)] = main[order]
    return found


def _host_ranges(source: Frame) -> NDArray[np.intp]:
    """Ranges and steps of host threads, in id order; copies of annotations on GPU tracks are left out."""
    ids = source.of("range", "step")
    return np.asarray(ids[~source.on_gpu[source.track[ids]]])


def range_at(source: Frame, process: int, times: Ints) -> Index:
    """Innermost range of the process's main thread at each time, -1 for none."""
    ids = _main_ranges(source).get(process, np.zeros(0, np.intp))
    return source.innermost_at(ids, source.nearest("range", "step"), times)


def adopting_range(source: Frame, calls: Index) -> Index:
    """The range of the main thread to which each launch of a thread without ranges of the program belongs.

    Ranges of libraries and those that profrun puts round the backward of modules do not count: autograd's
    threads have no others.

    Args:
        source: the frame.
        calls: host slices that launched something, shape (n,); -1 for an unknown one.

    Returns:
        Slice ids of ranges, shape (n,); -1 for launches of a thread with ranges, and where none is open.
    """
    names = [not (LIBRARY.match(text) or is_backward(text)) for text in source.names]
    own = np.array(names or [True], dtype=bool)
    marked = source.of("range", "step")
    with_ranges = np.zeros(len(source.track_kind) + 1, dtype=bool)
    with_ranges[source.track[marked[own[source.name[marked]]]]] = True
    found = np.full(len(calls), -1, dtype=np.intp)
    known = np.flatnonzero(calls >= 0)
    stray = known[~with_ranges[source.track[calls[known]]]]
    process = source.process_of(calls[stray])
    for number in np.unique(process):
        mine = stray[process == number]
        found[mine] = range_at(source, int(number), source.ts[calls[mine]])
    return found


def is_backward(text: str) -> bool:
    """Is this the name of a range round the backward of a module?"""
    return text.endswith(BACKWARD) and MODULE.match(text.removesuffix(BACKWARD)) is not None


def _range_gpu(source: Frame, ids: Index) -> list[Ints]:
    """For each range: own GPU ns and slices, adopted GPU ns and slices, each over everything nested in it."""
    launched = source.launched
    calls, dur = source.launch[launched].astype(np.intp), source.durs(launched)
    owner = adopting_range(source, calls)
    good = owner >= 0
    found = [*_nested(source, ids, calls, dur), *_nested(source, ids, owner[good], dur[good])]
    index = step_index(source)
    place = np.searchsorted(ids, index.slices)  # a step has what all threads launched during it
    step = index.of_gpu[launched]
    inside = np.flatnonzero(step >= 0)
    apart = source.track[calls[inside]] != source.track[index.slices[step[inside]]]
    for first, mine in ((0, inside[~apart]), (2, inside[apart])):
        for column, weights in ((first, dur[mine]), (first + 1, None)):
            found[column][place] = np.bincount(step[mine], weights, minlength=len(index.slices))
    return found


def _nested(source: Frame, ids: Index, places: Index, dur: Ints) -> tuple[Ints, Ints]:
    """For each of ``ids`` the sum of ``dur``, and the count, of the ``places`` that lie in it on its track.

    Args:
        source: the frame.
        ids: ranges.
        places: host slices, one per GPU slice.
        dur: ns of those GPU slices.
    """
    order = np.lexsort((source.ts[places], source.track[places]))
    places = places[order]
    total = np.concatenate(([0], np.cumsum(dur[order])))
    track, ts = source.track[places], source.ts[places]
    sums, counts = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for number in np.unique(track):
        start, stop = np.searchsorted(track, [number, number + 1])
        mine = np.flatnonzero(source.track[ids] == number)
        low = start + np.searchsorted(ts[start:stop], source.ts[ids[mine]], side="left")
        high = start + np.searchsorted(ts[start:stop], source.end[ids[mine]], side="left")
        sums[mine], counts[mine] = total[high] - total[low], high - low
    return sums, counts


def _outermost(source: Frame, ids: Index) -> Mask:
    """True where no enclosing range has the same name."""
    parent = source.nearest("range", "step")
    outer = np.ones(len(ids), dtype=bool)
    above = parent[ids]
    while (above >= 0).any():
        outer &= ~((above >= 0) & (source.name[above] == source.name[ids]))
        above = np.where(above >= 0, parent[above], -1)
    return outer


def ranges(trace: Trace) -> list[RangeRow]:
    """Every host range by name, most GPU time first."""
    source = frame(trace)
    ids = _host_ranges(source)
    if not len(ids):
        return []
    columns = _range_gpu(source, ids)
    outer = _outermost(source, ids)
    keys, place = np.unique(source.name[ids].astype(np.int64) * 16 + source.kind[ids], return_inverse=True)

    def total(values: Ints) -> Ints:
        return np.bincount(place, weights=np.where(outer, values, 0), minlength=len(keys)).astype(np.int64)

    host = total(source.durs(ids))
    sums = [total(column) for column in columns]
    calls = np.bincount(place, minlength=len(keys))
    rows = []
    for number, key in enumerate(keys):
        name = source.names[int(key) // 16]
        hit = MODULE.match(name)
        other = TORCH_MODULE.match(name)
        rows.append(
            RangeRow(
                name,
                "step" if key % 16 == KIND["step"] else "range",
                int(calls[number]),
                int(host[number]),
                int(sums[0][number]),
                int(sums[1][number]),
                int(sums[2][number]),
                int(sums[3][number]),
                hit["path"] if hit else None,
                hit["cls"] if hit else (other["cls"] if other else None),
            )
        )
    return sorted(rows, key=lambda row: (-(row.gpu_ns + row.adopted_ns), -row.host_ns, row.name))
