"""The result of a comparison: frozen values that go to JSON.

All times are ns. "Per step" means per step and rank: sums over ranks are divided by the numbers of steps and
ranks, so that the rows of two sides with different numbers of recorded steps can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from profrun.analysis.compare.compared_trial import Rate, StepWork
from profrun.analysis.compare.stats import RatioVerdict
from profrun.analysis.json import to_json
from profrun.analysis.step_time import Statistic
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.finding import Finding
from profrun.contract.window_phase import WindowPhase

Verdict = RatioVerdict | Literal["incomparable"]
Interval = tuple[float, float]
By = Literal["kernel", "op", "range", "module", "line", "category", "step"]
BREAKDOWNS: tuple[By, ...] = get_args(By)
"""By what the difference can be broken down into rows."""
RowStatus = Literal["added", "removed", "replaced", "faster", "slower", "same", "more", "fewer", "unclear"]
MetricName = Literal[
    "step, median", "step, mean", "step, p99", "GPU work", "GPU busy", "kernel time", "host", "energy"
]
MetricVerdict = RatioVerdict | Literal["more", "less"]
"""Of an energy it is said that there is more or less of it; of a time that it is slower or faster."""
TOO_WIDE = 4.0
"""An interval that proves nothing and whose ends differ by more than this factor says nothing at all."""


@dataclass(frozen=True)
class Reason(Finding):
    """One thing that differs between the sides, or that makes a number doubtful.

    ``critical``: no number is given unless the code is allowed. ``warning``: a number must be read with this
    in mind. ``info``: nothing is restricted.

    Attributes:
        allowed: critical, and the caller asked to compare in spite of it.
    """

    allowed: bool = False

    @property
    def stops(self) -> bool:
        """Does this reason prevent the comparison?"""
        return self.severity == "critical" and not self.allowed


@dataclass(frozen=True)
class StepRatio:
    """Step time of side b over step time of side a, the base: above 1 side b takes longer.

    Attributes:
        ratio: None when the sides cannot be compared; then the reasons tell why.
        ci95: interval of the ratio, None with fewer than two trials on a side.
        mde: smallest relative change that these trials would find with 80 % power, or None.
        trials: on each side. trials_needed: per side, for an ``mde`` of the threshold; None where the trials
            are enough, or where more than ``stats.MOST_TRIALS`` would be needed. trials_for_this: the same
            for an ``mde`` of the change that was seen.
        step_ns: of each side the geometric mean over trials of the statistic of each; None without a ratio.
        reasons: what speaks against the comparison, gravest first.
    """

    verdict: Verdict
    ratio: float | None
    ci95: Interval | None
    mde: float | None
    trials: tuple[int, int]
    trials_needed: int | None
    trials_for_this: int | None
    step_ns: tuple[float, float] | None
    reasons: tuple[Reason, ...]

    @property
    def too_wide(self) -> bool:
        """Does the interval say nothing, not even roughly?"""
        return self.verdict == "inconclusive" and is_too_wide(self.ci95)


def is_too_wide(ci95: Interval | None) -> bool:
    """Do the ends of an interval that proves nothing differ by more than ``TOO_WIDE``?"""
    return ci95 is not None and ci95[0] <= 1 <= ci95[1] and ci95[1] > TOO_WIDE * ci95[0]


@dataclass(frozen=True)
class Metric:
    """Ratio b / a of one number, with its interval; see ``stats.Estimate``.

    Attributes:
        unit: ns, or J of an energy.
        a, b: geometric mean over trials of the statistic of each trial, in ``unit``; b / a is the ratio.
    """

    name: MetricName
    unit: str
    a: float
    b: float
    ratio: float
    ci95: Interval | None
    mde: float | None
    verdict: MetricVerdict


@dataclass(frozen=True)
class Row:
    """One line of what changed, per step and rank.

    Attributes:
        name: what the row is about; of a replacement the names of side a. label: the same, for people.
        status: faster, slower and same are about time and proven, faster and slower among all rows of the
            table (``rows.judged``); unclear: nothing about its time is proven. more and fewer are about
            calls.
        a_ns, b_ns, delta_ns: time per step; the deltas of all rows add up to the difference of the GPU part.
        a_calls, b_calls: per step. a_names, b_names: kernels by their full normalised names.
        ratio: b_ns / a_ns, None where one is 0. ci95: its interval where both sides have repeats, of this
            row alone.
        by: how the two sides were matched: name, op, fusion, variant, place, category; None for one side.
        changes: differences that a name or a launch tells: layout, dtype, tile, arch, epilogue, grid.
        basis: gpu or cpu time, or the time of a whole step.
        only_ci95: of an added or removed line or module the interval of its time per step on the side that
            has it, where that side has repeats.
    """

    name: str
    category: str | None
    status: RowStatus
    a_ns: float
    b_ns: float
    delta_ns: float
    a_calls: float
    b_calls: float
    ratio: float | None = None
    ci95: Interval | None = None
    by: str | None = None
    changes: tuple[str, ...] = ()
    a_names: tuple[str, ...] = ()
    b_names: tuple[str, ...] = ()
    replaced_by: str | None = None
    basis: Literal["gpu", "cpu", "step"] = "gpu"
    label: str = ""
    only_ci95: Interval | None = None


@dataclass(frozen=True)
class Part:
    """One part of the mean typical step; parts add up to the step on each side."""

    name: str
    a_ns: float
    b_ns: float
    delta_ns: float


@dataclass(frozen=True)
class ModuleChange:
    """One module of both sides, or the alike modules of a block; ns of GPU work per step.

    Attributes:
        name: its qualified name, ``transformer.h.*.attn``. label: the last part of it.
        depth: 0 for a module without a parent.
        modules: how many modules the row stands for, on each side.
        a_ns, b_ns, delta_ns: with the modules inside of it. a_own_ns, b_own_ns: without.
    """

    name: str
    label: str
    depth: int
    modules: tuple[int, int]
    a_ns: float
    b_ns: float
    delta_ns: float
    a_own_ns: float
    b_own_ns: float


@dataclass(frozen=True)
class SideInfo:
    """One side as it went into the comparison.

    Attributes:
        name: what tells the side from the other one; empty where nothing does.
        collector: as the job names it. tool: the profiler that recorded, or ``none``.
        steps: whole steps in the statistics.
        step_ns: geometric mean over trials of the statistic of each: b's over a's is the ratio.
        typical_ns: mean of the steps in the table of what changed. gpu_ns: GPU time per typical step.
        outside_share: of all GPU time of the recordings, the share that no whole step launched.
        aligned_share: of gpu_ns, the share in rows that have both sides.
        attributed_share: of all GPU time of the recordings, the share in rows that have both sides, and of
            the time outside of whole steps what is of a category that both sides have there.
        outliers, edges: 'trial: step n' of each.
        per: the amount of work per step by which times were divided, 1 without ``per``.
        memory_peak: bytes.
        times_ns: of each trial the times of its whole steps.
        denominator: what a step is: a step, the run or its recorded part, or the whole recording.
        windows: trial and phase of each profiled trial whose window lies outside of the steady level.
    """

    name: str
    labels: tuple[str, ...]
    vendor: str
    devices: tuple[str, ...]
    collector: str
    tool: str
    trials: int
    steps: int
    step_ns: float
    typical_ns: float
    gpu_ns: float
    outside_share: float
    aligned_share: float | None
    attributed_share: float | None
    outliers: tuple[str, ...]
    edges: tuple[str, ...]
    per: float
    memory_peak: int | None
    work: StepWork
    times_ns: tuple[tuple[float, ...], ...] = ()
    denominator: Denominator = STEP
    windows: tuple[tuple[str, WindowPhase], ...] = ()


@dataclass(frozen=True)
class RatePair:
    """One matrix op with its shapes on both sides: rate, and share of each GPU's own peak."""

    op: str
    shapes: str
    a: Rate | None
    b: Rate | None


@dataclass(frozen=True)
class VendorView:
    """What only a comparison of two kinds of GPU needs; pairs are (a, b).

    Attributes:
        launch_us: mean time in a launch call. latency_us: median time from a call to the start of its work.
        copies_ns: memory work per step: copies and fills, whether copy engines or kernels do them.
        rates: matrix ops, most time first.
        fusions: in words, the rows where one side needs fewer kernels than the other.
    """

    launch_us: tuple[float | None, float | None]
    latency_us: tuple[float | None, float | None]
    copies_ns: tuple[float, float]
    rates: tuple[RatePair, ...]
    fusions: tuple[str, ...]


@dataclass(frozen=True)
class Comparison(StepRatio):
    """The difference between two sides; its ratio is that of the step times.

    Attributes:
        statistic: of the step times of a trial. threshold: practical threshold as a fraction.
        energy_note: why there is no energy among the metrics, where GPUs were sampled.
        total_delta_ns: difference of the mean typical step. It equals the sum of the deltas of ``parts``, and
            the delta of the part 'gpu' equals the sum of the deltas of the rows of basis gpu.
        unexplained_ns: total_delta_ns minus the deltas of the rows.
        rows: broken down by ``by``. kernels: by kernel. categories: by category. modules: by module.
        next_steps: what can be said or done where the verdict is inconclusive, most useful first.
    """

    statistic: Statistic
    threshold: float
    sides: tuple[SideInfo, SideInfo]
    by: By = "kernel"
    per: str | None = None
    metrics: tuple[Metric, ...] = ()
    energy_note: str | None = None
    total_delta_ns: float | None = None
    unexplained_ns: float | None = None
    parts: tuple[Part, ...] = ()
    rows: tuple[Row, ...] = ()
    kernels: tuple[Row, ...] = ()
    categories: tuple[Row, ...] = ()
    modules: tuple[ModuleChange, ...] = ()
    vendors: VendorView | None = None
    next_steps: tuple[Finding, ...] = ()

    @property
    def denominator(self) -> Denominator:
        """What times per step are of; of sides that differ, what those of side a are of, uncut."""
        a, b = (side.denominator for side in self.sides)
        return a if a == b else Denominator(a.of)

    @property
    def unit(self) -> str:
        """By what times are divided, in one word: 'step', 'run', 'token'."""
        return self.per or self.denominator.of

    @property
    def rate(self) -> str:
        """What follows a time or a count: 'per step', 'of the run', 'per token'."""
        return self.denominator.per_work(self.per)

    @property
    def exit_code(self) -> int:
        """0 same or faster, 1 slower, 2 inconclusive or incomparable."""
        return {"faster": 0, "same": 0, "slower": 1}.get(self.verdict, 2)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values: what ``profrun compare --json`` prints."""
        return {**to_json(self), "exit_code": self.exit_code}
