"""The steps that a diagnosis judges: all except a first one that the start of the recording made longer.

``judged_steps`` is given a trace and returns ``JudgedSteps``. What the profiler's own start causes (the first
step is slow, or nothing is recorded at its begin) is a finding about the recording, and no part of any share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from profrun.analysis.trace.columns import Ints, distinct
from profrun.analysis.trace.frame import Frame, Index, Mask, frame
from profrun.analysis.trace.runtime_calls import is_event_call
from profrun.analysis.trace.steps import Step, step_index, step_of_host, step_spans, steps
from profrun.analysis.trace.wall_time import is_dataloader
from profrun.contract.steps import RUN_RANGE
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

COLD_FACTOR = 1.5
"""A first step that takes so many times the median of the others is cold; its begin is dead only if it takes
so many times the median of theirs."""
COLD_STEPS = 3
"""With fewer steps there is no median to compare with."""
DEAD_SHARE = 0.25
DEAD_NS = 50_000
"""Part and time of a first step before its first work (``_gaps``) from which its begin is dead."""


@dataclass(frozen=True)
class LeftOut:
    """A first step that is not judged; times ns.

    Attributes:
        step: which.
        why: ``cold``: it takes much longer than the others. ``dead``: nothing is recorded at its begin.
        usual_ns: median host time of the other steps of its process, None without enough of them.
        gap_ns: time before its first op, call or fetch of a batch, None where none is inside of it. Calls
            that only handle events do not count.
        judged: whether it counts all the same, because the recording has no other step.
    """

    step: Step
    why: Literal["cold", "dead"]
    usual_ns: float | None
    gap_ns: int | None
    judged: bool = False


@dataclass(frozen=True)
class JudgedSteps:
    """The steps that count, and what they enclose.

    Attributes:
        steps: those that count, of all processes; empty for a recording without steps.
        left_out: first steps that do not, at most one of each process and reason.
        spans: process -> starts and ends of its judged steps, ns, each of shape (steps,), extended by their
            GPU work. Without steps the whole host work of the process is one.
        host: the same of their host ranges.
        chosen: True for each step of ``step_index`` that counts, shape (steps,).
    """

    steps: list[Step]
    left_out: list[LeftOut]
    spans: dict[int, tuple[Ints, Ints]]
    host: dict[int, tuple[Ints, Ints]]
    chosen: Mask

    @property
    def count(self) -> int:
        """Steps over all ranks; without steps the number of processes."""
        return max(1, sum(len(starts) for starts, _ in self.spans.values()))

    def gpu(self, source: Frame, ids: Index) -> Index:
        """The GPU slices that judged steps launched; all of them where no steps are recorded."""
        if not len(self.chosen):
            return ids
        step = step_index(source).of_gpu[ids]
        return np.asarray(ids[(step >= 0) & self.chosen[step]])

    def of_host(self, source: Frame, ids: Index) -> Index:
        """The host slices that start inside a judged step; all of them where no steps are recorded."""
        if not len(self.chosen):
            return ids
        step = step_of_host(source, step_index(source), ids)
        return np.asarray(ids[(step >= 0) & self.chosen[step]])


def judged_steps(trace: Trace) -> JudgedSteps:
    """Choose the steps that count."""
    source = frame(trace)
    index = step_index(source)
    every = steps(trace)
    left_out = [found for mine in _by_process(every) for found in _first(source, mine)]
    out = {one.step.slice for one in left_out}
    spans: dict[int, tuple[Ints, Ints]] = {}
    host: dict[int, tuple[Ints, Ints]] = {}
    chosen = np.zeros(len(index.slices), dtype=bool)
    with_gpu = set(distinct(source.process_of(source.gpu)))
    for process in range(len(source.processes)):
        starts, ends, numbers = step_spans(source, process)
        if not len(numbers) or (len(index.slices) and numbers[0] < 0):
            continue  # a process without steps beside processes that have some
        if numbers[0] < 0 and with_gpu and process not in with_gpu:
            continue  # a helper process beside processes that use a GPU
        if numbers[0] < 0:
            spans[process] = host[process] = starts, ends
            continue
        keep = np.array([int(index.slices[number]) not in out for number in numbers], dtype=bool)
        if not keep.any():
            keep[:] = True  # there is no other step
        own = index.slices[numbers[keep]]
        spans[process] = starts[keep], ends[keep]
        host[process] = source.ts[own], source.end[own]
        chosen[numbers[keep]] = True
    kept = {int(slice_id) for slice_id in index.slices[chosen]}
    left_out = [replace(one, judged=one.step.slice in kept) for one in left_out]
    return JudgedSteps([step for step in every if step.slice in kept], left_out, spans, host, chosen)


def _by_process(every: list[Step]) -> list[list[Step]]:
    return [
        [step for step in every if step.process == process]
        for process in sorted({step.process for step in every})
    ]


def _first(source: Frame, mine: list[Step]) -> list[LeftOut]:
    """What is odd about the first step of a process; ``mine`` are its steps, in order."""
    first, rest = mine[0], mine[1:]
    usual = float(np.median([step.dur_ns for step in rest])) if len(mine) >= COLD_STEPS else None
    gap, *others = _gaps(source, mine)
    gaps = [one for one in others if one is not None]
    usual_gap = float(np.median(gaps)) if gaps else 0.0
    found: list[LeftOut] = []
    if source.text(first.slice) == RUN_RANGE:
        return found  # what comes before its first op is the program's set-up
    if usual and first.dur_ns > COLD_FACTOR * usual:
        found.append(LeftOut(first, "cold", usual, gap))
    longest = max(DEAD_NS, DEAD_SHARE * first.dur_ns, COLD_FACTOR * usual_gap)
    if gap is not None and gap > longest:  # a begin that the other steps have as well is the program's
        found.append(LeftOut(first, "dead", usual, gap))
    return found


def _gaps(source: Frame, mine: list[Step]) -> list[int | None]:
    """Time from the start of each step of a process to the first work inside it; None for none."""
    starts = np.sort(source.ts[_work(source)[mine[0].process]])
    following = np.searchsorted(starts, [step.ts_ns for step in mine])
    return [
        int(starts[place]) - step.ts_ns
        if place < len(starts) and starts[place] < step.ts_ns + step.dur_ns
        else None
        for step, place in zip(mine, following, strict=True)
    ]


@memoised
def _work(source: Frame) -> list[Index]:
    """Ops, calls and fetches of a batch, by process.

    Calls that only handle events are no work: the hook itself records an event at each edge of a step.
    """
    ranges, calls = source.of("range"), source.of("api")
    return source.by_process(
        np.concatenate(
            (
                source.of("op"),
                calls[~source.named(calls, is_event_call)],
                ranges[source.named(ranges, is_dataloader)],
            )
        )
    )
