"""What a report shows of a trace and of a run, as plain values that ``profrun.runner`` gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.contract.denominator import STEP, Denominator
from profrun.contract.provenance import Provenance

if TYPE_CHECKING:
    from profrun.analysis.compare.history import Change
    from profrun.analysis.rules.finding import RuleFinding
    from profrun.analysis.trace.call_tree import CallTree
    from profrun.analysis.trace.key_averages import KeyAverages
    from profrun.analysis.trace.line_table import PlaceTable
    from profrun.analysis.trace.line_tree import LineTree
    from profrun.analysis.trace.memory import MemorySeries
    from profrun.analysis.trace.recorded_tables import IssueRow, MetricRow
    from profrun.analysis.trace.run_course import RunCourse
    from profrun.analysis.trace.step_spread import StepSpread
    from profrun.analysis.trace.summary import Summary
    from profrun.analysis.trace.timeline_slices import Timeline
    from profrun.analysis.trace.used_gpus import UsedGpus
    from profrun.store.improvement import Improvement
    from profrun.store.run_answer import VariantAnswer
    from profrun.store.run_claims import ClaimResult
    from profrun.store.run_result import PairResult
    from profrun.store.state import RunState


SOURCE_SHARE = 0.01
"""Share of the GPU time from which the source round a line is embedded, where that is asked for."""


@dataclass(frozen=True)
class SourceBlock:
    """Lines of a file that stand one below the other; ``first`` is the number of the first, from 1."""

    file: str
    first: int
    lines: Sequence[str]


@dataclass(frozen=True)
class Source:
    """Source text round the lines with most of the GPU time, without secrets.

    Attributes:
        blocks: that of one file after the other.
        notes: what is not shown and why, a line each.
    """

    blocks: Sequence[SourceBlock]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Places:
    """Where the GPU work of a trace comes from.

    Attributes:
        lines, modules: the tables.
        tree: modules, lines and kernels; None without any GPU work.
        mapping: trial whose mapping tells the lines; None for a trace that is a mapping itself.
        source: source text; None where nobody asked for it.
    """

    lines: PlaceTable
    modules: PlaceTable
    tree: LineTree | None
    mapping: str | None = None
    source: Source | None = None


@dataclass(frozen=True)
class TraceContent:
    """What a report shows of one trace.

    Attributes:
        name: what the trace is called: the name of its trial, or of its file.
        tab: name of its tab; ``name`` where it is empty.
        answer: what it tells first; None where nothing can be told.
        recorded_ns: mean time of a recorded step, ns; None for a recording without steps.
        summary: whole tables; the page shows the first rows and says how many there are.
        findings: of the diagnosis.
        spread: how the times of its steps are spread; None without steps.
        shapes: operators by the shapes of their inputs; None where no shapes are recorded.
        calls: call trees by module, call and Python stack.
        places: where its GPU work comes from; None where nothing tells it, with what went wrong in
            ``places_missing``.
        memory: series of allocated bytes.
        timeline: slices of a few steps; None for a trace without slices or of serialised kernels.
        run: the course of the whole run; None where its steps are not known.
        issues: what the reader noticed.
        metrics: hardware counters of the longest kernels; metric_count: how many the trace has.
    """

    name: str
    summary: Summary
    findings: Sequence[RuleFinding]
    spread: StepSpread | None = None
    shapes: KeyAverages | None = None
    calls: Sequence[CallTree] = ()
    places: Places | None = None
    places_missing: str = ""
    memory: Sequence[MemorySeries] = ()
    timeline: Timeline | None = None
    run: RunCourse | None = None
    issues: Sequence[IssueRow] = ()
    metrics: Sequence[MetricRow] = ()
    metric_count: int = 0
    tab: str = ""
    answer: VariantAnswer | None = None
    recorded_ns: float | None = None


@dataclass(frozen=True)
class RunContent:
    """What a report shows of a run.

    Attributes:
        state: the run and its trials.
        job: text of the spec as it was given; resolved: of the one that repeats the run.
        answers, comparisons, expectations: what its traces say; empty before the end of the run.
        machines: trial -> its provenance, for the trials that have one.
        used_gpus: trial -> the GPUs that it used, for the trials that have a trace as well.
        troubles: what went wrong, a line each; missing: what could not be shown, a line each.
        shown, total: how many traces have a tab of their own, and how many there are.
        improvement: what ``profrun improve`` tried on its program; None where it did not.
    """

    state: RunState
    job: str | None = None
    resolved: str | None = None
    answers: Sequence[VariantAnswer] = ()
    comparisons: Sequence[PairResult] = ()
    expectations: Sequence[ClaimResult] = ()
    machines: Mapping[str, Provenance] = field(default_factory=dict)
    used_gpus: Mapping[str, UsedGpus] = field(default_factory=dict)
    troubles: Sequence[str] = ()
    missing: Sequence[str] = ()
    shown: int = 0
    total: int = 0
    improvement: Improvement | None = None


@dataclass(frozen=True)
class HistoryRun:
    """One variant in one run, as the history shows it.

    Attributes:
        run: name of the run. created_ns: unix ns at which it was made.
        link: address of its report from the page; None where it has none.
        step_ns, low_ns, high_ns: step time with its range, as ``StepAnswer`` has them.
        trials, steps: that were measured.
        denominator: whether ``step_ns`` is the time of a step or of the program's run.
        change: against the run before; None for the first.
    """

    run: str
    created_ns: int
    link: str | None
    step_ns: int
    low_ns: int
    high_ns: int
    trials: int
    steps: int
    change: Change | None = None
    denominator: Denominator = STEP


@dataclass(frozen=True)
class HistorySeries:
    """The runs of one variant of a job, oldest first; ``collector``: under which its steps were timed."""

    job: str
    variant: str
    collector: str
    runs: Sequence[HistoryRun]


@dataclass(frozen=True)
class HistoryContent:
    """What the history page shows.

    Attributes:
        root: folder of the runs.
        runs: how many runs there are.
        series: of each job and variant, in the order of their newest runs.
        left_out: runs that are in no series and why, a line each.
    """

    root: str
    runs: int
    series: Sequence[HistorySeries]
    left_out: Sequence[str] = ()
