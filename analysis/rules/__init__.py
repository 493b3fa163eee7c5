"""Diagnosis rules: each a small function with an id, what it means, its threshold, and what to do.

A rule looks at a ``Context`` and yields what it found; ``diagnose.diagnose`` runs them all. ``RULES`` is the
one
list: the docs page of every rule is generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.kernel_names import KernelName
from profrun.analysis.trace.data_quality import Doubt, doubts
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.gpu import DeviceMetrics, devices
from profrun.analysis.trace.idle import IdleRow, idle
from profrun.analysis.trace.intervals import Intervals, covered, union
from profrun.analysis.trace.kernels import KernelRow, kernels
from profrun.analysis.trace.roles import kernel_names, roles
from profrun.analysis.trace.roofline import Roofline, roofline
from profrun.analysis.trace.steps import Step, StepIndex, step_index, step_of_host, step_spans, steps

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

PYTHON_LINE = re.compile(r"\(\d+\): ")
"""torch writes frames as 'path/file.py(12): function'; built-ins have no line."""
TORCH_LINE = re.compile(r"^<|(?:^|/)torch/|(?:^|/)threading\.py")
"""Frames that say nothing about the user's program."""
SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True)
class Hit:
    """What a rule found once.

    Attributes:
        message: one sentence with the numbers in it.
        numbers: evidence by name; keys end in their unit (_ns, _bytes, _share, ...).
        slices: slices to open, a few, the worst first.
        severity: overrides the rule's.
        names: kernels, ops or calls it is about.
        relies_on: names of numbers (as in ``integrity.Doubt.affects``) that it rests on.
    """

    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    slices: Sequence[int] = ()
    severity: str | None = None
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        id: stable short name.
        title: a few words.
        severity: 'critical', 'warning' or 'info'.
        meaning: what it means when it fires.
        threshold: when it fires, in words with numbers.
        advice: what to do.
        relies_on: numbers it rests on, by the names that ``integrity.Doubt.affects`` uses.
        find: the function.
    """

    id: str
    title: str
    severity: str
    meaning: str
    threshold: str
    advice: str
    relies_on: tuple[str, ...]
    find: Callable[[Context], Iterable[Hit]]


FELT = 0.05
"""Share of the steps' time from which a cost is worth a warning."""

_FOUND: dict[str, Rule] = {}


def rule(
    id_: str, title: str, *, meaning: str, threshold: str, advice: str, severity: str = "warning",
    relies_on: tuple[str, ...] = (),
) -> Callable[[Callable[[Context], Iterable[Hit]]], Callable[[Context], Iterable[Hit]]]:  # fmt: skip
    """Register a rule."""

    def register(find: Callable[[Context], Iterable[Hit]]) -> Callable[[Context], Iterable[Hit]]:
        _FOUND[id_] = Rule(id_, title, severity, meaning, threshold, advice, relies_on, find)
        return find

    return register


def all_rules() -> list[Rule]:
    """Every rule, in the order of the modules that hold them."""
    from profrun.analysis.rules import bound, comm, copies, device, fusion, host, recording, waits

    assert all((bound, comm, copies, device, fusion, host, recording, waits))
    return list(_FOUND.values())


class Context:
    """What rules may ask, each thing computed once.

    Args:
        trace: the trace.
        provenance: the trial's provenance.json as a dict, where there is one.
    """

    def __init__(self, trace: Trace, provenance: Mapping[str, Any] | None = None) -> None:
        self.trace = trace
        self.provenance = provenance or {}

    @cached_property
    def frame(self) -> Frame:
        """Columns of the trace."""
        return frame(self.trace)

    @cached_property
    def index(self) -> StepIndex:
        """Step ranges and the step of each GPU slice."""
        return step_index(self.frame)

    @cached_property
    def steps(self) -> list[Step]:
        """Every step."""
        return steps(self.trace)

    @cached_property
    def step_ns(self) -> int:
        """Host time of all steps."""
        return sum(step.dur_ns for step in self.steps)

    @cached_property
    def window_ns(self) -> int:
        """Time of all extended steps, or of the whole recording when there are none."""
        return sum(step.span_ns for step in self.steps) or (self.frame.extent[1] - self.frame.extent[0])

    @cached_property
    def devices(self) -> list[DeviceMetrics]:
        """GPUs that ran something."""
        return devices(self.trace)

    @cached_property
    def kernels(self) -> list[KernelRow]:
        """The kernel table."""
        return kernels(self.trace)

    @cached_property
    def kernel_ns(self) -> int:
        """Time of all kernels."""
        return sum(row.total_ns for row in self.kernels)

    @cached_property
    def idle(self) -> list[IdleRow]:
        """Idle rows of whole devices."""
        return [row for row in idle(self.trace) if row.track is None]

    @cached_property
    def roofline(self) -> Roofline:
        """Roofline rows."""
        return roofline(self.trace)

    @cached_property
    def doubts(self) -> list[Doubt]:
        """What is doubtful."""
        return doubts(self.trace)

    @cached_property
    def names(self) -> dict[int, KernelName]:
        """Readings of kernel names by name id."""
        return kernel_names(self.frame)

    @cached_property
    def roles(self) -> Any:
        """Roles of GPU slices by slice id."""
        return roles(self.trace, self.frame)

    @cached_property
    def gpu_busy_share(self) -> float | None:
        """Union of all GPU work inside the extended steps / their time, over devices; None without a GPU."""
        if not self.devices:
            return None
        whole = inside = 0
        for row in self.devices:
            starts, ends, _ = step_spans(self.frame, row.process)
            whole += int((ends - starts).sum())
            inside += int(covered(self.busy(row.device), starts, ends).sum())
        return inside / whole if whole else None

    def busy(self, device: int) -> Intervals:
        """Union of the GPU slices of a device."""
        source = self.frame
        ids = source.gpu_by_time[source.device_of(source.gpu_by_time) == device]
        return union(source.ts[ids], source.end[ids])

    def in_steps(self, ids: Index) -> Index:
        """The host slices that start inside a step; all of them when there are no steps."""
        if not len(self.index.slices):
            return ids
        return np.asarray(ids[step_of_host(self.frame, self.index, ids) >= 0])

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
        """Kernel slices whose reading satisfies the predicate."""
        wanted = [number for number, kernel in self.names.items() if matches(kernel)]
        ids = self.frame.of("kernel")
        return np.asarray(ids[name_table(self.frame, wanted)[self.frame.name[ids]]])

    def python_line(self, slice_id: int) -> str | None:
        """The innermost Python line round a host slice that is not torch's own, else the innermost one.

        A built-in where there is no line at all, None without stacks.
        """
        source = self.frame
        above = source.nearest("python")
        at, frames = int(above[slice_id]), []
        while at >= 0:
            frames.append(source.text(at))
            at = int(above[at])
        lines = [text for text in frames if PYTHON_LINE.search(text)]
        own = (text for text in lines if not TORCH_LINE.search(text))
        return next(own, None) or next(iter(lines or frames), None)

    @property
    def each(self) -> str:
        """'a step', or 'in all' for recordings without steps: what per-step rates are rates of."""
        return "a step" if self.steps else "in all"

    @property
    def span_name(self) -> str:
        """What shares of the host's time are shares of."""
        return "the steps" if self.steps else "the recording"

    def weight(self, gpu_ns: int) -> str | None:
        """'info' for a cost that no step would feel (under 5 % of its time), else None: the rule's own."""
        return "info" if gpu_ns < FELT * self.window_ns else None

    @cached_property
    def step_kernels(self) -> Index:
        """Kernels that steps launched; every kernel when there are no steps."""
        ids = self.frame.of("kernel")
        return ids if not len(self.index.slices) else np.asarray(ids[self.index.of_gpu[ids] >= 0])

    @cached_property
    def step_gpu(self) -> Index:
        """GPU work (kernels, copies, fills) that steps launched; all of it when there are no steps."""
        ids = self.frame.gpu
        return ids if not len(self.index.slices) else np.asarray(ids[self.index.of_gpu[ids] >= 0])

    @property
    def step_count(self) -> int:
        """Number of steps, at least 1 so that per-step rates can be formed."""
        return max(1, len(self.steps))


def name_table(source: Frame, names: Sequence[int]) -> Any:
    """True at these name ids."""
    table = np.zeros(len(source.names) + 1, dtype=bool)
    table[list(names)] = True
    return table


def ms(value: float) -> str:
    """ns as s, ms or us, for sentences."""
    if value >= 1e10:
        return f"{value / 1e9:.2f} s"
    return f"{value / 1e6:.2f} ms" if value >= 1e6 else f"{value / 1e3:.1f} us"


def brief(name: str, limit: int = 72) -> str:
    """A kernel's name for a sentence: the middle of a very long one (Tensile's) is left out."""
    return name if len(name) <= limit else f"{name[: limit - 23]}...{name[-20:]}"


def percent(share: float) -> str:
    """A share as per cent."""
    return f"{100 * share:.1f} %"
