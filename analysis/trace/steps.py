"""Steps: which ranges they are, what GPU work each launched, and how long each took.

GPU work belongs to the step that launched it: GPU slice -> launching host slice -> the step of that process
running at that moment. Where a kernel happens to run never matters (work of one step may run during the
next).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, places_of
from profrun.analysis.trace.frame import Frame, Index, Mask, frame
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.roles import COMM, COMPUTE, MEMCPY, MEMSET, roles
from profrun.analysis.trace.wall_time import wall_breakdown
from profrun.contract.denominator import RECORDING, RUN, STEP, Denominator
from profrun.contract.step_names import FAMILIES
from profrun.contract.steps import RUN_RANGE
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

_NAMES = [re.compile(pattern) for pattern in FAMILIES]


@dataclass(frozen=True)
class Step:
    """One step and its work; all times ns.

    Attributes:
        step: its number, from the range's name (or its place when the name has none).
        process, rank, slice: whose it is, and the range.
        ts_ns, dur_ns: the host range.
        span_ns: dur_ns extended at its end to the last GPU slice it launched and at its start to the end of
            the step before, as the TensorBoard plugin does.
        kernels, memcpys, memsets: GPU slices it launched, by kind.
        kernel_ns, memcpy_ns, memset_ns, comm_ns: sum of durations of the GPU slices it launched, by role.
        gpu_busy_ns: union of those slices.
        idle_ns: ns of the host range in which no GPU slice of the process ran; of ``dur_ns``.
        wall_ns: exclusive wall-clock parts of the span by ``WALL_ROLES``; they add up to ``span_ns``.
        launches: host calls of the step that enqueued GPU work.
    """

    step: int
    process: int
    rank: int
    slice: int
    ts_ns: int
    dur_ns: int
    span_ns: int
    kernels: int
    memcpys: int
    memsets: int
    kernel_ns: int
    memcpy_ns: int
    memset_ns: int
    comm_ns: int
    gpu_busy_ns: int
    idle_ns: int
    wall_ns: dict[str, int]
    launches: int
    idle_of: str = field(default="dur_ns", init=False)
    wall_of: str = field(default="span_ns", init=False)


@dataclass(frozen=True)
class StepIndex:
    """The chosen step ranges of all processes, sorted by process and start.

    Attributes:
        slices: their slice ids, shape (steps,).
        numbers: int64, their step numbers, shape (steps,).
        process: int64, their processes, shape (steps,).
        of_gpu: int32, shape (slices,): for every slice id the index of the step that launched it, -1 for
            none.
    """

    slices: Index
    numbers: Ints
    process: Ints
    of_gpu: NDArray[np.int32]

    def launched_by(self, ids: Index, mine: Index) -> Mask:
        """Which GPU slices the steps ``mine`` launched, on whichever process's GPU they ran.

        Args:
            ids: GPU slices.
            mine: all steps of one process; their indices are consecutive.
        """
        owner = self.of_gpu[ids]
        return np.asarray((owner >= mine[0]) & (owner <= mine[-1]))


def step_of_host(source: Frame, index: StepIndex, ids: Index) -> Ints:
    """Index of the step (of ``index``) in whose host range each host slice starts, -1 for none."""
    return _step_of(source, index.slices, ids)


def _step_of(source: Frame, steps: Index, ids: Index) -> Ints:
    """Index of the step in which each host slice starts; ``steps`` are in order of time in each process."""
    found = np.full(len(ids), -1, dtype=np.int64)
    count = len(source.processes)
    of_process = places_of(source.process_of(steps), count)
    for mine, at in zip(of_process, places_of(source.process_of(ids), count), strict=True):
        if not len(mine) or not len(at):
            continue
        ts = source.ts[ids[at]]
        place = np.searchsorted(source.ts[steps[mine]], ts, side="right") - 1
        good = (place >= 0) & (ts < source.end[steps[mine]][place])
        found[at[good]] = mine[place[good]]
    return found


@memoised
def step_index(source: Frame) -> StepIndex:
    """Choose the step ranges of each process and attribute GPU slices to them.

    The steps of a process have names of one family (``contract.step_names``), lie on the thread that has most
    of them, and no step lies inside a step.
    """
    ids = source.of("step")
    ids = ids[~source.on_gpu[source.track[ids]]]
    chosen, numbers = [], []
    for process in range(len(source.processes)):
        picked = _of_process(source, ids[source.process_of(ids) == process])
        chosen += [slice_id for slice_id, _ in picked]
        numbers += [number for _, number in picked]
    slices = np.array(chosen, dtype=np.intp)
    process_of = source.process_of(slices).astype(np.int64)
    of_gpu = np.full(len(source), -1, dtype=np.int32)
    launched = source.launched
    of_gpu[launched] = _step_of(source, slices, source.launch[launched])
    return StepIndex(slices, np.array(numbers, dtype=np.int64), process_of, of_gpu)


def in_steps(source: Frame, gpu: Index) -> Mask:
    """Which GPU slices a step launched; all of them where there are no steps."""
    index = step_index(source)
    return np.asarray(index.of_gpu[gpu] >= 0) if len(index.slices) else np.ones(len(gpu), dtype=bool)


@memoised
def denominator(trace: Trace) -> Denominator:
    """What the numbers of a trace are of: its steps, the run that counts as one, or the whole recording."""
    source = frame(trace)
    index = step_index(source)
    if not len(index.slices):
        return RECORDING
    if not source.named(index.slices, lambda name: name == RUN_RANGE).all():
        return STEP
    if not (trace.meta.get("job") or {}).get("cut"):
        return RUN
    return replace(RUN, cut_ns=int(source.durs(index.slices).max()))


def _of_process(source: Frame, ids: Index) -> list[tuple[int, int]]:
    """(slice, step number) of the steps of one process, by start; ``ids`` are all its slices of kind step."""
    families: dict[int, list[tuple[int, int | None]]] = {}
    for slice_id in ids:
        text = source.text(slice_id)
        for family, pattern in enumerate(_NAMES):
            hit = pattern.match(text)
            if hit:
                number = int(hit[1]) if hit.re.groups else None
                families.setdefault(family, []).append((int(slice_id), number))
                break
        else:
            families.setdefault(len(_NAMES), []).append((int(slice_id), None))
    if not families:
        return []
    rows = families[min(families)]
    tracks = [int(source.track[slice_id]) for slice_id, _ in rows]
    best = max(sorted(set(tracks)), key=tracks.count)
    rows = sorted((row for row in rows if source.track[row[0]] == best), key=lambda row: source.ts[row[0]])
    outer: list[tuple[int, int]] = []
    reach = None
    for place, (slice_id, number) in enumerate(rows):
        if reach is not None and source.end[slice_id] <= reach:
            continue
        reach = source.end[slice_id]
        outer.append((slice_id, place if number is None else number))
    return outer


def host_bounds(source: Frame, process: int) -> tuple[int, int] | None:
    """Start and end of the host work of a process (ops, ranges, python; else api calls), None without any."""
    for kinds in (("op", "range", "step", "python"), ("api",)):
        ids = source.of(*kinds)
        tracks = source.track[ids]
        ids = ids[(source.track_process[tracks] == process) & ~source.on_gpu[tracks]]
        if len(ids):
            return int(source.ts[ids].min()), int(source.end[ids].max())
    return None


@memoised
def step_spans(source: Frame, process: int) -> tuple[Ints, Ints, Index]:
    """The extended steps of a process.

    The rule of the TensorBoard plugin (``event_parser.py``, ``_update_steps_duration``): a step ends at the
    later of its host end and the end of the last GPU slice launched inside it; it starts no earlier than the
    step before ended (for the first: than GPU work from before the steps ended). Tail steps that launched
    nothing, or a last one with under 80 % of the GPU slices of the one before, are cut off: the profiler may
    have missed their kernels (not of a phase: ``Frame.may_be_cut``). Without step ranges the whole host work
    of the process is one step (index -1).

    Returns:
        (starts in ns, ends in ns, indices into ``step_index``), each of shape (steps kept,).
    """
    steps = step_index(source)
    mine = np.flatnonzero(steps.process == process)
    own = source.process_of(source.gpu) == process
    if len(mine):
        starts, ends = source.ts[steps.slices[mine]].copy(), source.end[steps.slices[mine]].copy()
        launched = steps.launched_by(source.gpu, mine)
        owner = steps.of_gpu[source.gpu].astype(np.int64)
        gpu = source.gpu[own | launched]
        step_of = np.where(launched, owner - mine[0], -1)[own | launched]
        keep = step_of >= 0
        calls = source.launch[gpu[keep]]
        step_of[np.flatnonzero(keep)[source.end[calls] > ends[step_of[keep]]]] = -1  # must end inside, too
    else:
        gpu = source.gpu[own]
        bounds = host_bounds(source, process)
        if bounds is None:
            if not len(gpu):
                return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.intp)
            bounds = int(source.ts[gpu].min()), int(source.end[gpu].max())
        starts, ends = np.array([bounds[0]], np.int64), np.array([bounds[1]], np.int64)
        step_of = np.where(source.launch[gpu] >= 0, 0, -1).astype(np.int64)
    numbers = mine if len(mine) else np.array([-1], np.intp)
    first, last, count = _device_bounds(source, gpu, step_of, len(starts))
    if count.any():
        _extend(source, gpu, step_of, starts, ends, first, last, count)
        keep_steps = _tail(count) if source.may_be_cut else len(starts)
        starts, ends, numbers = starts[:keep_steps], ends[:keep_steps], numbers[:keep_steps]
    return starts, ends, numbers


def _device_bounds(source: Frame, gpu: Index, step_of: Ints, steps: int) -> tuple[Ints, Ints, Ints]:
    """(first start, last end, count) of the GPU slices of each step; ``step_of`` is -1 where there is
    none."""
    first = np.full(steps, np.iinfo(np.int64).max)
    last = np.full(steps, np.iinfo(np.int64).min)
    keep = step_of >= 0
    np.minimum.at(first, step_of[keep], source.ts[gpu[keep]])
    np.maximum.at(last, step_of[keep], source.end[gpu[keep]])
    return first, last, np.bincount(step_of[keep], minlength=steps).astype(np.int64)


def _extend(
    source: Frame, gpu: Index, step_of: Ints, starts: Ints, ends: Ints, first: Ints, last: Ints, count: Ints
) -> None:
    """Extend ``starts`` and ``ends`` in place; ``first``, ``last``, ``count`` are those of
    ``_device_bounds``."""
    before = int(starts[0])
    if count[0]:
        stray = source.end[gpu[step_of < 0]]
        stray = stray[stray < first[0]]
        if len(stray):
            before = max(before, int(stray.max()))
    for place in range(len(starts)):
        starts[place] = max(before, int(starts[place]))
        reach = int(last[place]) if count[place] else int(ends[place])
        ends[place] = max(int(ends[place]), reach, int(starts[place]))
        before = int(ends[place])


def _tail(count: Ints) -> int:
    """How many steps to keep."""
    if len(count) < 2:
        return len(count)
    last = int(np.flatnonzero(count).max())
    return last if last > 0 and count[last - 1] * 0.8 > count[last] else last + 1


@memoised
def steps(trace: Trace) -> list[Step]:
    """Every step of every process, in time order, with its work (see ``Step``)."""
    index = step_index(frame(trace))
    rows: list[Step] = []
    for process in sorted({int(number) for number in index.process}):
        rows += _rows(trace, process)
    return rows


def _rows(trace: Trace, process: int) -> list[Step]:
    source = frame(trace)
    index = step_index(source)
    mine = np.flatnonzero(index.process == process)
    slices = index.slices[mine]
    starts, ends, kept = step_spans(source, process)
    spans = {
        int(number): (int(start), int(end)) for start, end, number in zip(starts, ends, kept, strict=True)
    }
    bounds = [
        spans.get(int(number), (int(source.ts[place]), int(source.end[place])))
        for number, place in zip(mine, slices, strict=True)
    ]
    left = np.array([bound[0] for bound in bounds], np.int64)
    right = np.array([bound[1] for bound in bounds], np.int64)
    wall = wall_breakdown(trace, process, left, right)
    gpu = source.gpu_by_process[process]
    busy = union(source.ts[gpu], source.end[gpu])
    dur = source.durs(slices)
    idle = dur - covered(busy, source.ts[slices], source.end[slices])
    work = _work(trace, mine)
    return [
        Step(
            step=int(index.numbers[number]),
            process=process,
            rank=source.processes[process]["rank"],
            slice=int(slices[place]),
            ts_ns=int(source.ts[slices[place]]),
            dur_ns=int(dur[place]),
            span_ns=int(right[place] - left[place]),
            idle_ns=int(idle[place]),
            wall_ns={role: int(values[place]) for role, values in wall.items()},
            **{key: int(values[place]) for key, values in work.items()},
        )
        for place, number in enumerate(mine)
    ]


def _work(trace: Trace, mine: Index) -> dict[str, Ints]:
    """Columns of ``Step`` for the steps ``mine``, which are those of one process."""
    source, role = frame(trace), roles(trace)
    index = step_index(source)
    gpu = source.gpu[index.launched_by(source.gpu, mine)]
    step_of = index.of_gpu[gpu].astype(np.int64) - mine[0]
    size, dur = len(mine), source.durs(gpu)
    found: dict[str, Ints] = {}
    for key, kind in (("kernels", "kernel"), ("memcpys", "memcpy"), ("memsets", "memset")):
        ids = source.is_kind(gpu, kind)
        found[key] = np.bincount(step_of[ids], minlength=size)
    for key, wanted in (
        ("kernel_ns", COMPUTE),
        ("memcpy_ns", MEMCPY),
        ("memset_ns", MEMSET),
        ("comm_ns", COMM),
    ):
        ids = role[gpu] == wanted
        found[key] = np.bincount(step_of[ids], weights=dur[ids], minlength=size).astype(np.int64)
    busy = np.zeros(size, np.int64)
    order = np.argsort(step_of, kind="stable")
    cuts = np.searchsorted(step_of[order], np.arange(size + 1))
    for place in range(size):
        own = gpu[order[cuts[place] : cuts[place + 1]]]
        busy[place] = union(source.ts[own], source.end[own]).total
    found["gpu_busy_ns"] = busy
    owner = np.full(len(source), -1, dtype=np.int32)  # a call that enqueues several slices counts once
    owner[source.launch[gpu]] = step_of
    found["launches"] = np.bincount(owner[owner >= 0], minlength=size)
    return found
