"""The single checks behind ``integrity.doubts``: each a small function that returns what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.launches import is_graph_launch, is_launch, looks_blocking
from profrun.analysis.trace.roles import kernel_names
from profrun.analysis.trace.steps import step_index, step_spans

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt numbers.

    Attributes:
        code: stable short name.
        severity: 'wrong' (the affected numbers are withheld), 'care' (shown, marked) or 'note'.
        message: one sentence with the numbers in it.
        affects: names of the numbers, as in the summary's JSON.
        count: how many slices, calls or rows; share: of what ``of`` says, None where there is no share.
    """

    code: str
    severity: str
    message: str
    affects: tuple[str, ...]
    count: int
    share: float | None = None
    of: str | None = None


UNATTRIBUTED_SHARE = 0.05
"""GPU time without a known launch from which per-step and per-op GPU time is called doubtful."""
EMPTY_LAUNCH_SHARE = 0.05
"""Launch calls without GPU work from which the GPU side is called incomplete."""
GRAPH_SHARE = 0.2
"""GPU time launched by graphs from which per-op GPU time is called doubtful."""
OVERHEAD_SHARE = 0.05
"""Profiler overhead slices, of the host time of steps (or the span), from which host times are doubtful."""
NOTED_OVERHEAD = 0.001
"""Below this it is not mentioned."""

_STEPS = ("steps.kernels", "steps.kernel_ns", "steps.gpu_busy_ns")
_OPS = ("ops.self_device_ns", "ops.device_ns", "ranges.gpu_ns", "modules.gpu_ns")
_TIMES = (
    "devices.utilization", "devices.est_sm_efficiency", "devices.busy_ns", "devices.idle_ns",
    "devices.span_ns",
    "steps", "idle", "queues", "launches", "collectives",
)  # fmt: skip


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def _replayed(trace: Trace, source: Frame) -> list[Doubt]:
    if not trace.meta.get("replayed"):
        return []
    count = len(source.of("kernel"))
    wrong = (
        "there is no timeline, because kernels ran one by one, were replayed to read counters, or are known "
        "as means only: idle time, utilization, overlap and steps mean nothing"
    )
    care = (
        "kernel durations are means, or those under replay (clocks, caches and neighbours differ): never "
        "beside a timeline's"
    )
    return [
        Doubt("replayed", "wrong", wrong, _TIMES, count),
        Doubt("replayed_durations", "care", care, ("kernels", "categories"), count),
    ]


def _no_launch_order(trace: Trace, source: Frame) -> list[Doubt]:
    rows = trace.sql("SELECT sum(count)::BIGINT FROM issues WHERE code = 'no_launch_order'").rows
    message = "kernels do not lie in the order in which they ran: what followed what is not known"
    return [Doubt("no_launch_order", "wrong", message, ("kernels.order",), row[0]) for row in rows if row[0]]


def _no_gpu(trace: Trace, source: Frame) -> list[Doubt]:
    if len(source.gpu):
        return []
    calls = int(source.named(source.of("api"), is_launch).sum())
    if not calls:
        return []
    message = (
        f"{calls} launch calls but not one GPU slice: the profiler got no GPU records "
        "(another profiler attached, or the window closed before they were delivered)"
    )
    affects = ("devices", "kernels", *_STEPS, *_OPS)
    return [Doubt("no_gpu_records", "wrong", message, affects, calls, 1.0, "launch calls")]


def _empty_launches(trace: Trace, source: Frame) -> list[Doubt]:
    api = source.of("api")
    calls = api[source.named(api, is_launch)]
    if not len(calls) or not len(source.gpu):
        return []
    made = np.zeros(len(source), dtype=bool)
    made[source.launch[source.launched]] = True
    empty = int((~made[calls]).sum())
    if not empty:
        return []
    share = empty / len(calls)
    message = (
        f"{empty} of {len(calls)} launch calls have no GPU slice ({_percent(empty, len(calls))}): "
        "their kernels ran after the window closed, or the profiler lost them"
    )
    severity = "care" if share > EMPTY_LAUNCH_SHARE else "note"
    return [
        Doubt("launches_without_kernels", severity, message, (*_STEPS, *_OPS), empty, share, "launch calls")
    ]


def _unattributed(trace: Trace, source: Frame) -> list[Doubt]:
    gpu = source.gpu
    stray = gpu[source.launch[gpu] < 0]
    total = int(source.durs(gpu).sum())
    if not len(stray):
        return []
    lost = int(source.durs(stray).sum())
    share = lost / total if total else 0.0
    message = (
        f"{len(stray)} GPU slices with {_percent(lost, total)} of GPU time have no launching call "
        "in the trace: they are in no step, op or range"
    )
    severity = "wrong" if share > 0.5 else ("care" if share > UNATTRIBUTED_SHARE else "note")
    affects = (*_STEPS, *_OPS, "launches", "queues", "idle")
    return [Doubt("unattributed_gpu_time", severity, message, affects, len(stray), share, "GPU time")]


def _graphs(trace: Trace, source: Frame) -> list[Doubt]:
    launched = source.launched
    mine = launched[source.named(source.launch[launched], is_graph_launch)]
    calls = int(source.named(source.of("api"), is_graph_launch).sum())
    if not calls:
        return []
    time, total = int(source.durs(mine).sum()), int(source.durs(source.gpu).sum())
    share = time / total if total else 0.0
    if not len(mine):
        message = (
            f"{calls} graph launches show no kernel: work inside graphs is hidden; record with "
            "`--cuda-graph-trace=node` (nsys) or a newer profiler"
        )
        affects = ("devices.utilization", "devices.est_sm_efficiency", "kernels", "idle", *_STEPS, *_OPS)
        return [Doubt("graph_kernels_hidden", "wrong", message, affects, calls)]
    message = (
        f"{calls} graph launches hold {len(mine)} GPU slices ({_percent(time, total)} of GPU time): "
        "inside a graph no op launches anything, so its GPU time is on the launch as a whole"
    )
    severity = "care" if share > GRAPH_SHARE else "note"
    return [
        Doubt("graph_launches", severity, message, (*_OPS, "launches", "queues"), calls, share, "GPU time")
    ]


def _edges(trace: Trace, source: Frame) -> list[Doubt]:
    """GPU work of steps before the window runs inside it, or the last steps' work is cut off."""
    index = step_index(source)
    found = []
    for process in np.unique(index.process):
        mine = np.flatnonzero(index.process == process)
        start = int(source.ts[index.slices[mine]].min())
        gpu = source.gpu[source.track_process[source.track[source.gpu]] == process]
        inside = gpu[(source.end[gpu] > start) & (index.of_gpu[gpu] < 0)]
        ends = source.end[index.slices[mine]]
        before = inside[source.ts[inside] < ends.max()]
        if len(before):
            message = (
                f"{len(before)} GPU slices that no step launched run during the steps "
                f"({_percent(int(source.durs(before).sum()), int(source.durs(gpu).sum()))} of GPU time): "
                "work of before the window; it counts as busy time, and in no step"
            )
            share = float(source.durs(before).sum() / max(1, source.durs(gpu).sum()))
            affects = ("devices.utilization", "steps.idle_ns")
            found.append(
                Doubt(
                    "window_edge",
                    "care" if share > 0.01 else "note",
                    message,
                    affects,
                    len(before),
                    share,
                    "GPU time",
                )
            )
    return found


def _window(trace: Trace, source: Frame) -> list[Doubt]:
    """Steps whose work runs past their end, and steps that were cut."""
    index = step_index(source)
    found = []
    for process in np.unique(index.process):
        mine = np.flatnonzero(index.process == process)
        starts, _, _ = step_spans(source, int(process))
        cut = len(mine) - len(starts)
        if cut:
            message = f"the last {cut} of {len(mine)} steps launched less GPU work: not in the window"
            affects = ("devices.utilization", "devices.est_sm_efficiency", "devices.est_achieved_occupancy")
            found.append(Doubt("tail_steps", "note", message, affects, cut, cut / len(mine), "steps"))
        last = int(source.end[index.slices[mine]].max())
        gpu = source.gpu[index.of_gpu[source.gpu] >= 0]
        gpu = gpu[index.process[index.of_gpu[gpu]] == process]
        late = int(np.maximum(source.end[gpu] - np.maximum(source.ts[gpu], last), 0).sum())
        total = int(source.durs(gpu).sum())
        if total and late / total > 0.1:
            message = (
                f"{_percent(late, total)} of the steps' GPU time runs after the last step's host end: "
                "the host is ahead of the GPU, so a step's host time is not the time of its work"
            )
            found.append(
                Doubt(
                    "host_ahead",
                    "care",
                    message,
                    ("steps.dur_ns", "steps.idle_ns"),
                    len(mine),
                    late / total,
                    "GPU time of steps",
                )
            )
    return found


def _overlaps(trace: Trace, source: Frame) -> list[Doubt]:
    gpu = source.gpu
    order = np.lexsort((source.ts[gpu], source.track[gpu]))
    ids = gpu[order]
    same = source.track[ids[1:]] == source.track[ids[:-1]]
    clash = same & (source.ts[ids[1:]] < source.end[ids[:-1]])
    count = int(clash.sum())
    if not count:
        return []
    message = (
        f"{count} GPU slices start before the one before on the same stream ends "
        "(programmatic dependent launch, or a tool's rounding): counted once in unions, twice in sums"
    )
    share = count / len(gpu)
    affects = ("kernels.total_ns",)
    return [
        Doubt(
            "stream_overlap", "care" if share > 0.01 else "note", message, affects, count, share, "GPU slices"
        )
    ]


def _estimate(source: Frame, registers: int) -> str:
    """Whether occupancy can be estimated, and why not; ``registers`` is how many kernels have them."""
    if not registers:
        return "it cannot be estimated, because registers were not recorded either"
    if any(device["sm_count"] and device["arch"] for device in source.devices):
        return "it is estimated from registers and shared memory"
    return "it cannot be estimated, because the recording does not say which GPU this was"


def _no_occupancy(trace: Trace, source: Frame) -> list[Doubt]:
    row = trace.sql(
        "SELECT count(*), count(est_occupancy), count(registers), count(grid_x) FROM kernels"
    ).rows[0]
    kernels, occupancy, registers, grid = (int(value) for value in row)
    found = []
    if kernels and not occupancy:
        found.append(
            Doubt(
                "no_occupancy",
                "note",
                f"the profiler gave no occupancy: {_estimate(source, registers)}",
                ("devices.est_achieved_occupancy",),
                kernels,
                1.0,
                "kernels",
            )
        )
    zero = trace.sql(
        "SELECT count(*) FROM kernels WHERE est_occupancy = 0 AND grid_x * block_x >= 16384"
    ).scalar()
    if zero:
        message = f"the profiler gave {zero} of {kernels} kernels an occupancy of 0, though they ran"
        found.append(
            Doubt(
                "zero_occupancy",
                "care",
                message,
                ("devices.est_achieved_occupancy",),
                int(zero),
                zero / kernels,
                "kernels",
            )
        )
    if kernels and grid < kernels:
        message = f"{kernels - grid} of {kernels} kernels have no grid: not in the estimated SM efficiency"
        share = (kernels - grid) / kernels
        severity = "wrong" if share == 1.0 else ("care" if share > 0.05 else "note")
        found.append(
            Doubt(
                "no_grid", severity, message, ("devices.est_sm_efficiency",), kernels - grid, share, "kernels"
            )
        )
    return found


def _unknown_names(trace: Trace, source: Frame) -> list[Doubt]:
    kernels = source.of("kernel")
    unknown = [number for number, kernel in kernel_names(source).items() if kernel.category == "unknown"]
    if not unknown or not len(kernels):
        return []
    mine = kernels[np.isin(source.name[kernels], unknown)]
    share = float(source.durs(mine).sum() / max(1, source.durs(kernels).sum()))
    message = f"the names of {len(unknown)} kernels tell no category ({100 * share:.1f} % of kernel time)"
    return [
        Doubt(
            "unknown_kernels",
            "care" if share > 0.2 else "note",
            message,
            ("categories",),
            len(mine),
            share,
            "kernel time",
        )
    ]


def _no_steps(trace: Trace, source: Frame) -> list[Doubt]:
    if len(step_index(source).slices) or not len(source):
        return []
    message = "no step ranges: ratios are of the whole recorded host work, and nothing is per step"
    return [Doubt("no_steps", "note", message, ("steps", "devices.utilization"), 0)]


def _blocking(trace: Trace, source: Frame) -> list[Doubt]:
    stated = trace.meta.get("launch_blocking")
    if stated is False or (stated is None and not looks_blocking(source)):
        return []
    how = "" if stated else " (told from their timing)"
    message = (
        f"launches were blocking{how}: every kernel is waited for, so overlap, queues and "
        "utilization are not the program's own"
    )
    affects = ("devices.utilization", "idle", "queues", "launches", "steps.idle_ns")
    return [Doubt("launch_blocking", "care", message, affects, 1)]


def _overhead(trace: Trace, source: Frame) -> list[Doubt]:
    ids = source.of("overhead")
    if not len(ids):
        return []
    low, high = source.extent
    overhead = union(source.ts[ids], source.end[ids])
    index = step_index(source)
    if len(index.slices):
        starts, ends = source.ts[index.slices], source.end[index.slices]
        part, whole = int(covered(overhead, starts, ends).sum()), int((ends - starts).sum())
        of = "host time of steps"
    else:
        part, whole, of = overhead.total, high - low, "span"
    share = part / whole if whole else 0.0
    if share < NOTED_OVERHEAD:
        return []
    message = f"the profiler's own work takes {100 * share:.1f} % of the {of}"
    severity = "care" if share > OVERHEAD_SHARE else "note"
    return [
        Doubt("profiler_overhead", severity, message, ("steps.dur_ns", "steps.idle_ns"), len(ids), share, of)
    ]


def _issues(trace: Trace, source: Frame) -> list[Doubt]:
    rows = trace.sql("SELECT code, count, message FROM issues ORDER BY count DESC, code").rows
    return [Doubt(f"reader:{code}", "note", message, (), int(count)) for code, count, message in rows]


def _outside_ops(trace: Trace, source: Frame) -> list[Doubt]:
    """GPU work that no op launched although ops are recorded: a kernel called straight from Python."""
    launched = source.launched
    if not len(source.of("op")) or not len(launched):
        return []
    free = launched[source.op_of(source.launch[launched]) < 0]
    if not len(free):
        return []
    lost, total = int(source.durs(free).sum()), int(source.durs(source.gpu).sum())
    share = lost / total if total else 0.0
    message = (
        f"{len(free)} GPU slices with {_percent(lost, total)} of GPU time were launched by no op: "
        "in no row of the op table, but under their ranges and steps"
    )
    severity = "care" if share > UNATTRIBUTED_SHARE else "note"
    affects = ("ops.self_device_ns", "ops.device_ns")
    return [Doubt("gpu_time_outside_ops", severity, message, affects, len(free), share, "GPU time")]


CHECKS = (
    _replayed, _no_launch_order, _no_gpu, _empty_launches, _unattributed, _outside_ops, _graphs, _edges,
    _window, _overlaps, _no_occupancy, _unknown_names, _no_steps, _blocking, _overhead, _issues,
)  # fmt: skip
"""All checks, in the order in which equally grave doubts are listed."""
