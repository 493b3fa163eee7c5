"""What rules ask of a trace: ``Context``, with every answer computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.kernel_names import KernelName
from profrun.analysis.rules.idle_time import DeviceIdle, device_idle, lies_in
from profrun.analysis.rules.judged_steps import JudgedSteps, judged_steps
from profrun.analysis.rules.program import Program, program
from profrun.analysis.rules.replay import REPLAY_ERROR, Floats, Replay, replay
from profrun.analysis.rules.step_cost import SLOWDOWN, Gain, StepCost, UnprofiledStep, usable
from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.gpu import DeviceMetrics, devices
from profrun.analysis.trace.intervals import Intervals, intersect, subtract, union
from profrun.analysis.trace.kernels import KernelRow, kernels
from profrun.analysis.trace.quality import QualityFinding
from profrun.analysis.trace.ranks import RankReport, compare_ranks
from profrun.analysis.trace.roles import COMM, kernel_names, on_device, roles
from profrun.analysis.trace.roofline import Roofline, roofline
from profrun.analysis.trace.runtime_calls import (
    LaunchWaits,
    is_blocking,
    is_launch,
    launch_waits,
    launches_blocked,
)
from profrun.analysis.trace.steps import Step, StepIndex, denominator, step_index
from profrun.contract.denominator import Denominator
from profrun.traces.labels import Labels, labels
from profrun.traces.memo import Memo

if TYPE_CHECKING:
    from profrun.analysis.trace.addresses import Addresses
    from profrun.contract.provenance import Provenance
    from profrun.traces.trace import Trace

NO_SLICES: Index = np.zeros(0, dtype=np.intp)
MOST_SEEN = 0.5
"""Part of the launches that must have GPU work in the trace; else it does not tell when the GPU works."""


class Context:
    """What rules ask of one trace. Shares and rates are of the judged steps (``judged_steps``).

    Args:
        trace: the trace.
        provenance: the trial's provenance, where there is one.
        unprofiled: the step time of the same variant without a profiler, where it is known.
        mapped: the addresses of its GPU work, where a mapping tells them.
    """

    def __init__(
        self,
        trace: Trace,
        provenance: Provenance | None = None,
        unprofiled: UnprofiledStep | None = None,
        mapped: Addresses | None = None,
    ) -> None:
        self.trace = trace
        self.provenance = provenance
        self.mapped = mapped
        cut = self.denominator.cut_ns is not None  # its time is no time of the whole run
        self.unprofiled = None if cut else unprofiled
        self.memo = Memo()

    @cached_property
    def frame(self) -> Frame:
        """Columns of the trace."""
        return frame(self.trace)

    @cached_property
    def index(self) -> StepIndex:
        """Step ranges and the step of each GPU slice."""
        return step_index(self.frame)

    @cached_property
    def judged(self) -> JudgedSteps:
        """The steps that count."""
        return judged_steps(self.trace)

    @property
    def steps(self) -> list[Step]:
        """The steps that count, of all ranks; empty for a recording without steps."""
        return self.judged.steps

    @cached_property
    def cost(self) -> StepCost:
        """What a step costs, and what bounds a gain."""
        return step_cost(self)

    @cached_property
    def program(self) -> Program:
        """What the program does already."""
        return program(self.trace, self.step_gpu)

    @cached_property
    def step_ns(self) -> int:
        """Host time of the steps, or of the recording when there are none."""
        return sum(int((ends - starts).sum()) for starts, ends in self.judged.host.values())

    @cached_property
    def window_ns(self) -> int:
        """Time of the steps, extended by their GPU work, or of the recording when there are none."""
        return sum(int((ends - starts).sum()) for starts, ends in self.judged.spans.values())

    @cached_property
    def waiting(self) -> list[DeviceIdle]:
        """Idle time of every GPU inside the steps."""
        return device_idle(self.frame, self.judged, run=self.denominator.of == "run")

    @cached_property
    def exposed(self) -> dict[int, Intervals]:
        """When each GPU communicates and does nothing else, inside the steps, by device."""
        return {one.device: _exposed_comm(self, one) for one in self.waiting}

    @cached_property
    def ranks(self) -> RankReport | None:
        """What several ranks show together; None for one."""
        return compare_ranks([self.trace])

    @property
    def labels(self) -> Labels:
        """What GPUs and ranks are called."""
        return labels(self.trace)

    @cached_property
    def devices(self) -> list[DeviceMetrics]:
        """GPUs that ran something."""
        return devices(self.trace)

    @cached_property
    def kernels(self) -> list[KernelRow]:
        """The kernel table."""
        return kernels(self.trace)

    @cached_property
    def kernel_time(self) -> dict[str, int]:
        """Time of the kernels that steps launched, ns by name, over all steps."""
        ids = self.step_kernels
        time = np.bincount(self.frame.name[ids], weights=self.frame.durs(ids)) if len(ids) else np.zeros(0)
        return {self.frame.names[number]: int(time[number]) for number in np.flatnonzero(time)}

    @cached_property
    def kernel_ns(self) -> int:
        """Time of all kernels that steps launched."""
        return self.total(self.step_kernels)

    @cached_property
    def roofline(self) -> Roofline:
        """Roofline rows."""
        return roofline(self.trace)

    @cached_property
    def quality(self) -> list[QualityFinding]:
        """Findings about the quality of the recording."""
        return data_quality(self.trace)

    @cached_property
    def names(self) -> dict[int, KernelName]:
        """Readings of kernel names by name id."""
        return kernel_names(self.frame)

    @property
    def launch_waits(self) -> LaunchWaits | None:
        """How launch calls lie to their kernels; None without launches."""
        return launch_waits(self.frame)

    @property
    def blocking(self) -> bool:
        """Did launches wait for their kernels: by the recording's own statement, else by their timing?"""
        return launches_blocked(self.trace)

    @cached_property
    def blocking_calls(self) -> Index:
        """Calls of the steps in which the host waits for the GPU."""
        return self.in_steps(self.named("api", is_blocking))

    @cached_property
    def unseen(self) -> bool:
        """Have most launches no GPU work in the trace? A graph is captured then, or records are lost."""
        calls = self.in_steps(self.named("api", is_launch))
        made = np.isin(calls, self.frame.launch[self.frame.launched])
        return len(calls) > 0 and float(made.mean()) < 1 - MOST_SEEN

    @property
    def gpu_busy_share(self) -> float | None:
        """Part of the step in which GPUs work; None without a GPU."""
        return self.cost.busy_share if self.waiting and self.cost.step_ns else None

    def per_step_ns(self, total: float) -> float:
        """A sum over all steps as ns per step; for a recording without steps of one process."""
        return total / self.judged.count

    def host_gain(self, total: float, *, beside: float = 0.0) -> Gain:
        """The gain of host time, given as a sum over all steps; ``beside``: GPU time that goes with it."""
        return self.cost.host_gain(self.per_step_ns(total), beside_ns=self.per_step_ns(beside))

    @cached_property
    def replays(self) -> list[tuple[DeviceIdle, Replay, Floats]]:
        """Each GPU with a replay of its steps, and the factors on the host's time in it, shape (n,).

        The factors make the steps as long as without a profiler, and as short as in the fastest trial, less
        the error of a replay: which of them gains more depends on what is changed, and a gain is told as
        'at most'. Where that time is not known, or the GPU sets the time of those steps, the one factor is
        that of a host without the most that a profiler costs. Recordings without steps, and those with
        blocking launches, have none.
        """
        if not self.steps or self.blocking:
            return []
        found = []
        for one in self.waiting:
            end = int(self.judged.host[one.process][1][-1])
            made = replay(self.frame, one, self.step_gpu, self.blocking_calls, end)
            if made is None or not made.faithful:
                continue
            comm = roles(self.trace)[made.ids] == COMM
            exposed = float(made.advance[comm].sum())
            if exposed:  # other ranks are not replayed: waiting for them goes
                made = made.shorter(np.where(comm, max(0.0, 1 - _rank_wait_ns(self, one) / exposed), 1.0))
            scales, known = [1 / SLOWDOWN], self.cost.unprofiled
            if known is not None and self.cost.host_sets_pace:
                count = len(self.judged.spans[one.process][0])
                wanted = (known.ns, (1 - REPLAY_ERROR) * known.low_ns)
                scales = [made.scale_for(step * count, 1 / SLOWDOWN) for step in wanted]
            found.append((one, made, np.array(scales)))
        return found

    def gpu_gain(self, ids: Index, saved: Floats, *, calls: Index = NO_SLICES) -> Gain:
        """The gain of shorter GPU work.

        Args:
            ids: GPU slices of the steps, shape (n,).
            saved: part of each one's time that could go, float64 from 0 to 1, the same shape.
            calls: host slices that would go with it, where the steps can be replayed: those that launch it,
                wait for it, or take as long as the work.
        """
        replays = {one.device: (made, scales) for one, made, scales in self.replays}
        part = np.zeros(len(self.frame), dtype=np.float64)
        part[ids] = saved
        whole = work = 0.0
        for one in self.waiting:
            mine = on_device(self.frame, ids, one.device)
            less = float((self.frame.durs(mine) * part[mine]).sum())
            work += less
            if one.device in replays:
                made, scales = replays[one.device]
                mine = calls[np.isin(self.frame.track[calls], made.threads)]
                gone = lies_in(self.frame, mine, one.process)
                whole += made.most_saved(scales, 1 - part[made.ids], gone, gone)
            else:
                every = self.total(on_device(self.frame, self.step_gpu, one.device))
                whole += less * min(1.0, one.busy.total / every) if every else 0.0
        return self.cost.gpu_gain(self.per_device_ns(whole), self.per_device_ns(work))

    @property
    def replayed(self) -> bool:
        """Can the steps of every GPU be replayed?"""
        return bool(self.replays) and len(self.replays) == len(self.waiting)

    def wait_gain(self, ids: Index) -> Gain:
        """The gain of steps without these blocking calls, by replay; else at most the time in them."""
        if not self.replayed:
            return self.host_gain(self.host_time(ids))
        less = 0.0
        for one, made, scales in self.replays:
            less += made.most_saved(scales, without=lies_in(self.frame, ids, one.process))
        return self.cost.host_gain(self.per_device_ns(less))

    def host_time(self, ids: Index) -> int:
        """Time that host slices cover, ns over all steps: what several threads do at once counts once."""
        source = self.frame
        return sum(lies_in(source, ids, int(process)).total for process in np.unique(source.process_of(ids)))

    def idle_inside(self, ids: Index) -> float:
        """Time in which GPUs wait for the host inside of these host slices, ns per step."""
        if not self.waiting:
            return self.per_step_ns(self.host_time(ids))
        held = [intersect(one.host, lies_in(self.frame, ids, one.process)).total for one in self.waiting]
        return self.per_device_ns(sum(held))

    def per_device_ns(self, total: float) -> float:
        """A sum over all GPUs and steps as ns per step of one GPU."""
        whole = sum(one.span.total for one in self.waiting)
        return total / whole * self.cost.recorded_ns if whole else 0.0

    @cached_property
    def host_wait_ns(self) -> float:
        """Time in which GPUs wait for the host, ns per step; without a GPU all of it."""
        if not self.waiting:
            return self.cost.recorded_ns
        return self.per_device_ns(sum(one.host.total for one in self.waiting))

    @cached_property
    def idle_ns(self) -> float:
        """Time in which GPUs do nothing, ns per step."""
        return self.per_device_ns(sum(one.idle.total for one in self.waiting))

    @cached_property
    def set_up_ns(self) -> float:
        """Idle time of GPUs that is set-up of a run (``DeviceIdle.set_up``), ns; 0 where there are steps."""
        return self.per_device_ns(sum(one.set_up.total for one in self.waiting))

    @cached_property
    def exposed_comm_ns(self) -> float:
        """Time in which GPUs communicate and do nothing else, ns per step."""
        return self.per_device_ns(sum(one.total for one in self.exposed.values()))

    def in_steps(self, ids: Index) -> Index:
        """The host slices that start inside a step; all of them when there are no steps."""
        return self.judged.of_host(self.frame, ids)

    def named(self, kind: str, matches: Callable[[str], bool]) -> Index:
        """Slices of a kind whose name satisfies the predicate."""
        ids = self.frame.of(kind)
        return np.asarray(ids[self.frame.named(ids, matches)])

    def total(self, ids: Index) -> int:
        """Sum of durations, ns."""
        return int(self.frame.durs(ids).sum())

    def worst(self, ids: Index, count: int = 5) -> list[int]:
        """The longest slices."""
        order = np.argsort(-self.frame.durs(ids), kind="stable")[:count]
        return [int(one) for one in ids[order]]

    def kernel_slices(self, matches: Callable[[KernelName], bool]) -> Index:
        """Kernels of the steps whose reading satisfies the predicate."""
        wanted = [number for number, kernel in self.names.items() if matches(kernel)]
        ids = self.step_kernels
        return np.asarray(ids[self.frame.has_name(ids, wanted)])

    @property
    def denominator(self) -> Denominator:
        """What rates and shares are of, with its words: steps, the run, or the recording."""
        return denominator(self.trace)

    @property
    def per(self) -> str:
        """What follows a time in a sentence: 'per step', 'of the run'."""
        return self.denominator.per

    @property
    def rate(self) -> str:
        """What follows a number of things in a sentence: 'per step', 'in the run'."""
        return self.denominator.rate

    @cached_property
    def step_gpu(self) -> Index:
        """GPU work (kernels, copies, fills) that steps launched; all of it when there are no steps."""
        return self.judged.gpu(self.frame, self.frame.gpu)

    @cached_property
    def step_kernels(self) -> Index:
        """Kernels that steps launched; every kernel when there are no steps."""
        return self.judged.gpu(self.frame, self.frame.of("kernel"))

    @property
    def step_count(self) -> int:
        """What a rate is divided by: the number of steps over all ranks; 1 without steps."""
        return self.judged.count if self.steps else 1


def step_cost(ctx: Context) -> StepCost:
    """What a step of the trace costs."""
    judged = ctx.judged
    recorded = ctx.window_ns / judged.count
    whole = sum(one.span.total for one in ctx.waiting)
    busy = sum(one.busy.total for one in ctx.waiting)
    work = sum(one.busy.total - _rank_wait_ns(ctx, one) for one in ctx.waiting)
    return StepCost(
        recorded_ns=recorded,
        work_ns=work / whole * recorded if whole else 0.0,
        busy_ns=busy / whole * recorded if whole else 0.0,
        denominator=ctx.denominator,
        unprofiled=usable(ctx.unprofiled, recorded),
    )


def _rank_wait_ns(ctx: Context, one: DeviceIdle) -> int:
    """Time in which a GPU only waits for other ranks, inside the steps, as far as the trace shows it, ns.

    It is at most the communication that no computation covers.
    """
    rank = ctx.frame.processes[one.process]["rank"]
    row = next((row for row in ctx.ranks.ranks if row.rank == rank), None) if ctx.ranks else None
    if row is None or not row.waited_ns:
        return 0
    recorded = int((ctx.index.process == one.process).sum()) or 1
    judged = sum(step.process == one.process for step in ctx.steps) or 1
    return min(ctx.exposed[one.device].total, round(row.waited_ns * judged / recorded))


def _exposed_comm(ctx: Context, one: DeviceIdle) -> Intervals:
    source = ctx.frame
    ids = on_device(source, source.gpu_by_time, one.device)
    comm = roles(ctx.trace)[ids] == COMM
    return intersect(
        one.span,
        subtract(
            union(source.ts[ids[comm]], source.end[ids[comm]]),
            union(source.ts[ids[~comm]], source.end[ids[~comm]]),
        ),
    )
