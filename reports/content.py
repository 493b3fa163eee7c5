"""What a report shows of a trace and of a run, as plain values that ``profrun.runner`` gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.contract.provenance import Provenance

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import Finding
    from profrun.analysis.trace.memory import MemorySeries
    from profrun.analysis.trace.recorded_tables import IssueRow, MetricRow
    from profrun.analysis.trace.summary import Summary
    from profrun.analysis.trace.timeline_slices import Timeline
    from profrun.store.state import RunState


@dataclass(frozen=True)
class TraceContent:
    """What a report shows of one trace.

    Attributes:
        name: what the trace is called: the name of its trial, or of its file.
        summary: whole tables; the page shows the first rows and says how many there are.
        findings: of the diagnosis.
        memory: series of allocated bytes.
        timeline: slices of a few steps; None for a trace without slices or of serialised kernels.
        issues: what the reader noticed.
        metrics: hardware counters of the longest kernels; metric_count: how many the trace has.
    """

    name: str
    summary: Summary
    findings: Sequence[Finding]
    memory: Sequence[MemorySeries] = ()
    timeline: Timeline | None = None
    issues: Sequence[IssueRow] = ()
    metrics: Sequence[MetricRow] = ()
    metric_count: int = 0


@dataclass(frozen=True)
class ReasonRow:
    """What differs between two sides; ``allowed``: it forbids the comparison, but the user allowed it."""

    severity: str
    message: str
    allowed: bool = False


@dataclass(frozen=True)
class ComparisonRow:
    """A comparison that the job implies, as ``comparison.json`` keeps it.

    Attributes:
        kind: variant, blocking, overhead or change.
        a, b: the two sides; a is the base.
        ratio, ci95, mde: step time of b over that of a, its 95 % interval, and the smallest change that
            would be found, as a share.
        trials: of a and b. reasons: what differs between the sides.
        text: the answer in one line; changed: what changed most inside a step, in words.
    """

    kind: str
    a: str
    b: str
    verdict: str
    text: str
    ratio: float | None = None
    ci95: tuple[float, ...] | None = None
    mde: float | None = None
    trials: tuple[int, ...] = ()
    reasons: tuple[ReasonRow, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class RatioRow:
    """Median step times of a point and its base in ns, and their ratio; None without measured steps."""

    variant: str
    collector: str
    blocking: bool
    median_step_ns: int | None
    base_median_step_ns: int | None
    ratio: float | None
    trials: tuple[int, ...]


@dataclass(frozen=True)
class TwinKernelsRow:
    """Whether launch-blocking twins launched the same kernels; ``equal`` is None without recorded kernels."""

    variant: str
    collector: str
    pairs: int
    equal: bool | None
    kernels: int
    steps: int
    difference: str | None = None


@dataclass(frozen=True)
class ExpectationRow:
    """An expectation of the job and what became of it: ``state`` is held, failed or unknown."""

    state: str
    expected: str
    found: str | None = None
    variant: str | None = None


@dataclass(frozen=True)
class RunContent:
    """What a report shows of a run.

    Attributes:
        state: the run and its trials.
        job: text of the spec as it was given; resolved: of the one that repeats the run.
        comparisons, overhead, blocking, blocking_kernels, expectations: the answers of the end of the run.
        machines: trial -> its provenance, for the trials that have one.
        troubles: what went wrong, a line each; missing: what could not be shown, a line each.
        shown, total: how many traces have a tab of their own, and how many there are.
    """

    state: RunState
    job: str | None = None
    resolved: str | None = None
    comparisons: Sequence[ComparisonRow] = ()
    overhead: Sequence[RatioRow] = ()
    blocking: Sequence[RatioRow] = ()
    blocking_kernels: Sequence[TwinKernelsRow] = ()
    expectations: Sequence[ExpectationRow] = ()
    machines: Mapping[str, Provenance] = field(default_factory=dict)
    troubles: Sequence[str] = ()
    missing: Sequence[str] = ()
    shown: int = 0
    total: int = 0
