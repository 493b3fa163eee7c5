"""The result of comparing a point without and with launch blocking: frozen values that go to JSON.

All times are ns; pairs are [async, blocking]. "Per step" means per step and rank.
"""

from __future__ import annotations

from dataclasses import dataclass

from profrun.analysis.compare.kernel_agreement import KernelDifference
from profrun.analysis.compare.model import Row, StepRatio
from profrun.analysis.json import to_json
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.finding import Finding


@dataclass(frozen=True)
class OpTwin:
    """One op (or range, or runtime call) in both runs, per step.

    Attributes:
        async_ns, blocking_ns: host time with children. hidden_ns: blocking_ns - async_ns, for which the
            asynchronous run did not wait here.
        device_ns: GPU time of what it launched, with blocking; of a range also of what other threads launched
            while the main thread was in it.
        latency_ns: host time of one call under blocking, which contains its kernels: its true latency.
    """

    name: str
    kind: str
    calls: float
    async_ns: float
    blocking_ns: float
    hidden_ns: float
    device_ns: float
    latency_ns: float


@dataclass(frozen=True)
class SyncTwin:
    """One runtime call that waits for the GPU in both runs, per step: from where the waiting moved."""

    name: str
    async_calls: float
    blocking_calls: float
    async_ns: float
    blocking_ns: float


@dataclass(frozen=True)
class Blocking(StepRatio):
    """A point with and without launch blocking; its ratio is blocking over asynchronous step time.

    Without profiled trials on both sides everything from ``took_effect`` on is None or empty.

    Attributes:
        timed_by: the collector whose trials gave the ratio: 'none' where there are such trials.
        detailed_by: the collector whose trials gave everything from ``took_effect`` on; None without such.
        variables: the environment variables that make launches block, with their values.
        sentence: what the numbers mean for this job. next_steps: what can be said or done where the step time
            is inconclusive, most useful first.
        denominator: what a step is: a step or the run.
        took_effect: did the launches block? None when no trace tells.
        hidden_ns: mean typical step of the profiled trials, blocking - asynchronous.
        overlap_ns: GPU work per step that ran while the host went on, of the asynchronous run;
            blocking_overlap_ns: the same of the blocking run, about 0 when blocking took effect.
        kernel_multiset_equal: the same kernels, as often per step; None when no trace has kernels.
        kernel_ns: GPU time per step; kernel_ratio of it; kernels_same_speed: the ratio is within 2 % of 1.
        slower_kernels: rows of kernels whose time differs (clock effects).
        concurrent_ns: GPU time per step that ran beside other GPU work (streams).
        launch_ns: mean time in one launch call.
        graph_share: share of GPU time launched by graphs, which launch blocking does not serialise.
        per_op: ops, ranges and launching calls, those that hide most first.
        sync_points: calls that wait for the GPU.
    """

    timed_by: str | None
    detailed_by: str | None
    variables: tuple[str, ...]
    variant: str | None = None
    denominator: Denominator = STEP
    sentence: str = ""
    next_steps: tuple[Finding, ...] = ()
    took_effect: bool | None = None
    hidden_ns: float | None = None
    overlap_ns: float | None = None
    blocking_overlap_ns: float | None = None
    kernel_multiset_equal: bool | None = None
    kernel_differences: tuple[KernelDifference, ...] = ()
    kernel_ns: tuple[float, float] | None = None
    kernel_ratio: float | None = None
    kernels_same_speed: bool | None = None
    slower_kernels: tuple[Row, ...] = ()
    concurrent_ns: tuple[float, float] | None = None
    launch_ns: tuple[float | None, float | None] = (None, None)
    graph_share: float = 0.0
    per_op: tuple[OpTwin, ...] = ()
    sync_points: tuple[SyncTwin, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 with an interval, 2 without one or when the twins cannot be compared."""
        return 0 if self.ci95 is not None else 2

    def to_json(self) -> dict[str, object]:
        """Plain JSON values: what ``profrun blocking --json`` prints."""
        return {**to_json(self), "exit_code": self.exit_code}
