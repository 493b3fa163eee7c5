"""What rules ask of a trace: ``Context``, with every answer computed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.kernel_names import KernelName
from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.gpu import DeviceMetrics, devices
from profrun.analysis.trace.idle import IdleRow, idle
from profrun.analysis.trace.intervals import Intervals, covered, union
from profrun.analysis.trace.kernels import KernelRow, kernels
from profrun.analysis.trace.quality import QualityFinding
from profrun.analysis.trace.roles import kernel_names, on_device
from profrun.analysis.trace.roofline import Roofline, roofline
from profrun.analysis.trace.runtime_calls import BLOCKING_SHARE, blocking_share
from profrun.analysis.trace.steps import Step, StepIndex, step_index, step_of_host, step_spans, steps
from profrun.contract.finding import Severity
from profrun.traces.labels import Labels, labels

if TYPE_CHECKING:
    from profrun.contract.provenance import Provenance
    from profrun.traces.trace import Trace

PYTHON_LINE = re.compile(r"\(\d+\): ")
"""torch writes frames as 'path/file.py(12): function'; built-ins have no line."""
TORCH_LINE = re.compile(r"^<|(?:^|/)torch/|(?:^|/)threading\.py")
"""Frames that tell nothing about the user's program."""
FELT = 0.05
"""Share of the steps' time from which a cost is worth a warning."""


class Context:
    """What rules ask of one trace.

    Args:
        trace: the trace.
        provenance: the trial's provenance, where there is one.
    """

    def __init__(self, trace: Trace, provenance: Provenance | None = None) -> None:
        self.trace = trace
        self.provenance = provenance

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
    def quality(self) -> list[QualityFinding]:
        """Findings about the quality of the recording."""
        return data_quality(self.trace)

    @cached_property
    def names(self) -> dict[int, KernelName]:
        """Readings of kernel names by name id."""
        return kernel_names(self.frame)

    @cached_property
    def blocking_share(self) -> float | None:
        """Share of placed launches that returned only after their kernel had ended; None without launches."""
        return blocking_share(self.frame)

    @property
    def blocking(self) -> bool:
        """Does the timing of the launches tell that they waited for their kernels?"""
        return self.blocking_share is not None and self.blocking_share > BLOCKING_SHARE

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
        ids = on_device(self.frame, self.frame.gpu_by_time, device)
        return union(self.frame.ts[ids], self.frame.end[ids])

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
        return np.asarray(ids[self.frame.has_name(ids, wanted)])

    def python_line(self, slice_id: int) -> str | None:
        """The innermost Python line round a host slice that is not torch's own, else the innermost line.

        It is the innermost built-in where there is no line at all, and None without recorded stacks.
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
    def per_step(self) -> str:
        """'per step', or 'in all' for recordings without steps: what follows a rate in a sentence."""
        return "per step" if self.steps else "in all"

    @property
    def span_name(self) -> str:
        """What shares of the host's time are shares of: 'the steps' or 'the recording'."""
        return "the steps" if self.steps else "the recording"

    def weight(self, gpu_ns: int) -> Severity | None:
        """'info' for a cost of less than ``FELT`` of the steps' time, else None: the rule's own severity."""
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
