"""From a trace to a ``Trial``: units, GPU work by kernel and place, host work by name.

GPU work belongs to the step that launched it (``steps.step_index``). The time of a step is the host range
extended to the end of its GPU work and begun no earlier than the step before ended (``steps.step_spans``), so
that the times of consecutive steps add up; of unprofiled trials it is what the hook measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.compare.host_ops import host_ops, overlap_by_unit
from profrun.analysis.compare.paths import launch_paths, paths, table_nodes
from profrun.analysis.compare.recording_conditions import conditions
from profrun.analysis.compare.stats import outlier_steps
from profrun.analysis.compare.trial import Atom, Facts, Rate, Trial, Unit
from profrun.analysis.compare.work import work_of_steps
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.frame import KIND, Frame, Index, frame
from profrun.analysis.trace.intervals import union
from profrun.analysis.trace.memory import memory
from profrun.analysis.trace.roles import ROLES, kernel_names, roles
from profrun.analysis.trace.roofline import roofline
from profrun.analysis.trace.runtime_calls import is_graph_launch
from profrun.analysis.trace.steps import StepIndex, step_index, step_spans

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

SERIES = 400
"""Kernel names whose time in each step is kept."""
SHAPES = 16
"""Launch shapes kept of one kernel name."""


def read_trial(
    trace: Trace, *, label: str | None = None, provenance: Mapping[str, Any] | None = None
) -> Trial:
    """Reduce a trace to what comparing needs.

    Args:
        label: name to show; the trial's or the folder's when None.
        provenance: ``provenance.json`` of the trial, for clocks, throttling and software.
    """
    source = frame(trace)
    index = step_index(source)
    units, unit_of = _units(source, index, trace)
    keep = np.array([not (unit.edge or unit.outlier) for unit in units] or [False])
    gpu = source.gpu
    mine = gpu[(unit_of[gpu] >= 0) & keep[unit_of[gpu]]]
    names = _normalised(source)
    facts = _facts(trace, source, mine, names)
    calls = np.unique(source.launch[mine])
    calls = calls[calls >= 0]
    graphs = source.name_ids(is_graph_launch)
    by_graph = mine[(source.launch[mine] >= 0) & np.isin(source.name[source.launch[mine]], graphs)]
    called = mine[np.append(source.kind == KIND["api"], False)[source.launch[mine]]]
    latency = source.ts[called] - source.ts[source.launch[called]]
    peaks = [row.peak_bytes for row in memory(trace) if row.device is not None]
    return Trial(
        conditions=conditions(trace, source, index, label, provenance, unit_of),
        units=tuple(units),
        atoms=_atoms(trace, source, mine, names, facts),
        facts=facts,
        series=_series(source, mine, names, unit_of, keep),
        host=host_ops(source, index, keep),
        work=work_of_steps(trace, source, index, keep, unit_of),
        rates=_rates(trace),
        launch_calls=len(calls),
        launch_ns=int(source.dur[calls].sum()),
        latency_ns=float(np.median(latency)) if len(latency) else None,
        graph_launches=int(np.isin(source.name[calls], graphs).sum()),
        graph_ns=int(source.dur[by_graph].sum()),
        streams=len(np.unique(source.track[mine])),
        memory_peak=max(peaks, default=None),
        outside=_outside(trace, source, unit_of),
    )


def _units(source: Frame, index: StepIndex, trace: Trace) -> tuple[list[Unit], Ints]:
    """(units of all ranks, unit of every slice id that a unit launched, -1 for none)."""
    windows: Mapping[str, Any] = trace.meta.get("extra", {}).get("windows") or {}
    measured = set(windows.values()) & {"active"}
    units: list[Unit] = []
    unit_of = np.full(len(source) + 1, -1, dtype=np.int64)
    for process in sorted({int(row["process"]) for row in source.processes}):
        mine = np.flatnonzero(index.process == process)
        starts, ends, numbers = step_spans(source, process)
        if not len(mine) and (not len(starts) or len(index.slices)):
            continue  # a helper beside processes that have steps
        spans = {int(n): (int(s), int(e)) for n, s, e in zip(numbers, starts, ends, strict=True)}
        first = len(units)
        gpu = source.gpu[source.track_process[source.track[source.gpu]] == process]
        if len(mine):
            local = np.where(index.of_gpu[gpu] >= 0, index.of_gpu[gpu] - mine[0], -1)
        else:
            local = np.zeros(len(gpu), dtype=np.int64)
        unit_of[gpu] = np.where(local >= 0, local + first, -1)
        rank = int(source.processes[process]["rank"])
        for place, slice_id in enumerate(index.slices[mine] if len(mine) else [-1]):
            number = int(mine[place]) if len(mine) else -1
            step = int(index.numbers[number]) if len(mine) else 0
            window = windows.get(str(step))
            if measured and window not in (None, "active"):
                unit_of[gpu[local == place]] = -1
                spans[number] = (0, -1)  # outside the measured window: not a unit of this trial
            units.append(_unit(source, gpu[local == place], int(slice_id), step, rank, spans.get(number)))
    overlap = overlap_by_unit(source, index)
    return _named(units, overlap, measured=bool(measured)), unit_of


def _unit(
    source: Frame, gpu: Index, slice_id: int, step: int, rank: int, span: tuple[int, int] | None
) -> Unit:
    host = int(source.dur[slice_id]) if slice_id >= 0 else 0
    low, high = span if span is not None else (0, host)
    calls = source.launch[gpu]
    kernels = int(np.isin(gpu, source.of("kernel")).sum()) if len(gpu) else 0
    return Unit(
        step=step, rank=rank, time_ns=high - low, host_ns=host or high - low,
        gpu_ns=int(source.dur[gpu].sum()), busy_ns=union(source.ts[gpu], source.end[gpu]).total,
        kernels=kernels, launches=len(np.unique(calls[calls >= 0])), edge=span is None or high < low,
    )  # fmt: skip


def _named(units: list[Unit], overlap: Ints, *, measured: bool) -> list[Unit]:
    """Units with their overlap, outliers named rank by rank."""
    from dataclasses import replace

    del measured
    outliers: set[int] = set()
    for rank in {unit.rank for unit in units}:
        whole = [place for place, unit in enumerate(units) if unit.rank == rank and not unit.edge]
        found = outlier_steps([units[place].time_ns for place in whole])
        outliers |= {whole[number] for number in found}
    return [
        replace(
            unit,
            outlier=place in outliers,
            overlap_ns=int(overlap[place]) if place < len(overlap) else 0,
        )
        for place, unit in enumerate(units)
    ]


def _normalised(source: Frame) -> dict[int, str]:
    """Name id -> normalised name for everything on a GPU."""
    kernels = kernel_names(source)
    found = {number: kernel.normalised for number, kernel in kernels.items()}
    for number in np.unique(source.name[source.of("memcpy", "memset")]):
        found.setdefault(int(number), source.names[int(number)])
    return found


def _atoms(
    trace: Trace, source: Frame, mine: Index, names: Mapping[int, str], facts: Mapping[str, Facts]
) -> tuple[Atom, ...]:
    """GPU work by (normalised name, role, place), most time first."""
    if not len(mine):
        return ()
    table = paths(source)
    path, adopted = launch_paths(source, mine)
    forward = _forward_paths(trace, source, mine)
    role = roles(trace)[mine].astype(np.int64)
    name_id, texts = _name_places(source, mine, names)
    keys = np.stack([name_id, role, path, adopted, forward])
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    place = np.ravel(inverse)
    calls = np.bincount(place, minlength=unique.shape[1])
    time = np.bincount(place, weights=source.dur[mine], minlength=unique.shape[1])
    merged: dict[tuple[Any, ...], list[int]] = {}
    for number, (name, part, at, above, fwd) in enumerate(unique.T):
        outer, outer_kinds = table.spell(int(above))
        inner, inner_kinds = table.spell(int(at))
        module, backward = _module(table.module, int(at), int(above), int(fwd))
        key = (texts[name], ROLES[part], outer + inner, outer_kinds + inner_kinds, module, backward)
        sums = merged.setdefault(key, [0, 0])
        sums[0] += int(calls[number])
        sums[1] += int(time[number])
    atoms = [
        Atom(name, _category(role_, facts[name]), role_, where, kinds, module, backward, *sums)
        for (name, role_, where, kinds, module, backward), sums in merged.items()
    ]
    return tuple(sorted(atoms, key=lambda atom: (-atom.ns, atom.name, atom.path)))


def _category(role: str, facts: Facts) -> str:
    """Copies and fills by role, so that AMD's copy kernels count like NVIDIA's copies; else by name."""
    return role if role in ("memcpy", "memset") else facts.category


def _module(modules: list[str | None], at: int, above: int, forward: int) -> tuple[str | None, bool]:
    if at >= 0 and modules[at]:
        return modules[at], False
    if forward >= 0 and modules[forward]:
        return modules[forward], True
    if above >= 0 and modules[above]:
        return modules[above], True
    return None, forward >= 0


def _forward_paths(trace: Trace, source: Frame, mine: Index) -> Ints:
    """Path of the forward op whose backward launched the slice, -1 for none."""
    rows = trace.tables.execute(
        "SELECT slice, backward_of FROM ops WHERE backward_of IS NOT NULL"
    ).fetchnumpy()
    found = np.full(len(mine), -1, dtype=np.int64)
    slices = np.asarray(rows["slice"], dtype=np.int64)
    if not len(slices):
        return found
    forward = np.full(len(source) + 1, -1, dtype=np.int64)
    forward[slices] = np.asarray(rows["backward_of"], dtype=np.int64)
    nearest = source.chase(forward[:-1] >= 0)
    table = paths(source)
    above = source.chase(table_nodes(source, table))
    calls = source.launch[mine]
    op = np.where(calls >= 0, forward[np.where(calls >= 0, nearest[calls], -1)], -1)
    own = np.where((op >= 0) & (table.of[op] >= 0), op, np.where(op >= 0, above[op], -1))
    return np.asarray(np.where(own >= 0, table.of[own], -1), dtype=np.int64)


def _name_places(source: Frame, mine: Index, names: Mapping[int, str]) -> tuple[Ints, list[str]]:
    place: dict[str, int] = {}
    of = np.full(len(source.names), -1, dtype=np.int64)
    for number in np.unique(source.name[mine]):
        of[number] = place.setdefault(names[int(number)], len(place))
    return of[source.name[mine]], list(place)


def _facts(trace: Trace, source: Frame, mine: Index, names: Mapping[int, str]) -> dict[str, Facts]:
    readings = kernel_names(source)
    shapes = _launch_shapes(trace, source, mine, names)
    found: dict[str, Facts] = {}
    for number in np.unique(source.name[mine]):
        name = names[int(number)]
        kernel = readings.get(int(number))
        if name in found:
            continue
        if kernel is None:
            found[name] = Facts(source.names[int(number)], name, "copy")
        else:
            found[name] = Facts(
                kernel.name, kernel.short, kernel.category, kernel.layout, kernel.dtype, kernel.tile,
                kernel.arch, kernel.epilogue, kernel.fused_ops, shapes.get(name, ()),
            )  # fmt: skip
    return found


def _launch_shapes(
    trace: Trace, source: Frame, mine: Index, names: Mapping[int, str]
) -> dict[str, tuple[tuple[str, int], ...]]:
    """Grid x block of the launches in the units, with how often, by normalised name."""
    if not len(mine):
        return {}
    trace.tables.register("compare_mine", {"slice": mine.astype(np.int64)})
    try:
        rows = trace.tables.execute(
            "SELECT s.name, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, count(*) AS n "
            "FROM compare_mine m JOIN kernels k USING (slice) JOIN slices s USING (slice) "
            "WHERE k.grid_x IS NOT NULL GROUP BY ALL ORDER BY n DESC, 1, 2, 3, 4, 5, 6, 7"
        ).fetchall()
    finally:
        trace.tables.unregister("compare_mine")
    by_text = {source.names[number]: name for number, name in names.items()}
    merged: dict[str, dict[str, int]] = {}
    for text, gx, gy, gz, bx, by, bz, count in rows:
        shape = f"{gx}x{gy}x{gz} blocks of {bx}x{by}x{bz}"
        counts = merged.setdefault(by_text[text], {})
        counts[shape] = counts.get(shape, 0) + int(count)
    return {name: tuple(list(counts.items())[:SHAPES]) for name, counts in merged.items()}


def _series(
    source: Frame, mine: Index, names: Mapping[int, str], unit_of: Ints, keep: np.ndarray[Any, Any]
) -> dict[str, tuple[int, ...]]:
    """GPU ns of each typical unit by kernel name."""
    if not len(mine):
        return {}
    place, texts = _name_places(source, mine, names)
    column = np.cumsum(keep) - 1
    width = int(keep.sum())
    flat = np.bincount(
        place * width + column[unit_of[mine]], weights=source.dur[mine], minlength=len(texts) * width
    )
    rows = flat.reshape(len(texts), width).astype(np.int64)
    most = np.argsort(-rows.sum(axis=1), kind="stable")[:SERIES]
    return {texts[number]: tuple(rows[number].tolist()) for number in most}


def _rates(trace: Trace) -> tuple[Rate, ...]:
    """Matrix ops with their achieved rate, most GPU time first."""
    found = []
    for row in roofline(trace).rows:
        flops = _attention_flops(row.op, row.shapes) or row.flops
        if not flops or row.op in ("aten::add", "aten::mul") or not row.gpu_ns:
            continue
        tflops = flops * row.calls / row.gpu_ns / 1e3
        share = tflops / row.peak_tflops if row.peak_tflops else None
        found.append(
            Rate(
                row.op,
                row.shapes,
                row.dtype,
                row.calls,
                row.gpu_ns,
                flops,
                tflops,
                row.peak_tflops,
                share,
            )
        )
    return tuple(found[:200])


def _attention_flops(op: str, shapes: str) -> int | None:
    """FLOPs of inner attention ops: 4 x B Sq H D x Sk, their tensors being batch, sequence, heads, width."""
    if op not in ("aten::_flash_attention_forward", "aten::_efficient_attention_forward"):
        return None
    tensors = [dims for dims in parse_list(shapes)[:2] if isinstance(dims, list) and len(dims) == 4]
    return 4 * prod(tensors[0]) * int(tensors[1][1]) if len(tensors) == 2 else None


def _outside(trace: Trace, source: Frame, unit_of: Ints) -> dict[str, int]:
    """GPU ns by category of what no whole step launched."""
    ids = source.gpu[unit_of[source.gpu] < 0]
    readings = kernel_names(source)
    role = roles(trace)
    found: dict[str, int] = {}
    keys = np.stack([source.name[ids].astype(np.int64), role[ids].astype(np.int64)])
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    time = np.bincount(np.ravel(inverse), weights=source.dur[ids], minlength=unique.shape[1])
    for (name, part), total in zip(unique.T, time, strict=True):
        word = ROLES[part]
        category = word if word in ("memcpy", "memset") else readings[int(name)].category
        found[category] = found.get(category, 0) + int(total)
    return found
