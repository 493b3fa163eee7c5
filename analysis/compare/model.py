"""What a comparison says, as frozen values that go to JSON.

All times are ns. "A step" means one step of one rank: sums over ranks are divided by ranks and steps, so that
rows of two sides with different numbers of recorded steps stand beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from profrun.analysis.compare.trial import Rate, Work
from profrun.analysis.json import to_json

Verdict = Literal["faster", "slower", "same", "inconclusive", "incomparable"]
Severity = Literal["stop", "care", "note"]
By = Literal["kernel", "op", "range", "module", "category", "step"]
VIEWS: tuple[By, ...] = ("kernel", "op", "range", "module", "category", "step")


@dataclass(frozen=True)
class Reason:
    """One thing that differs between the sides, or that makes a number doubtful.

    ``stop``: no number is given unless ``code`` is allowed; ``care``: read the number with it in mind;
    ``note``: worth knowing. ``allowed``: a stop that the caller asked to pass.
    """

    code: str
    severity: Severity
    message: str
    allowed: bool = False


@dataclass(frozen=True)
class Metric:
    """Ratio b / a of one number, with its interval; see ``stats.Estimate``.

    ``a``, ``b``: geometric mean over trials of the trial's statistic, in ``unit``; b / a is the ratio.
    """

    name: str
    unit: str
    a: float
    b: float
    ratio: float
    ci95: tuple[float, float] | None
    mde: float | None
    verdict: str


@dataclass(frozen=True)
class Row:
    """One line of what changed, per step and rank.

    Attributes:
        name: what it is; of a replacement the names of side a. label: the same, for people.
        status: added, removed, replaced, faster, slower, same, more or fewer (calls, each as fast as before).
        a_ns, b_ns, delta_ns: time a step; the deltas of all rows and parts add up to the total difference.
        a_calls, b_calls: a step. a_names, b_names: kernels by their full normalised names.
        ratio: b_ns / a_ns, None where one is 0. ci95: its interval where both sides have repeats.
        by: how the two sides were brought together: name, op, fusion, variant, place, category; None alone.
        changes: what a name or a launch says that changed: layout, dtype, tile, arch, epilogue, grid.
        basis: gpu or cpu time.
    """

    name: str
    category: str | None
    status: str
    a_ns: float
    b_ns: float
    delta_ns: float
    a_calls: float
    b_calls: float
    ratio: float | None = None
    ci95: tuple[float, float] | None = None
    by: str | None = None
    changes: tuple[str, ...] = ()
    a_names: tuple[str, ...] = ()
    b_names: tuple[str, ...] = ()
    replaced_by: str | None = None
    basis: str = "gpu"
    label: str = ""


@dataclass(frozen=True)
class Part:
    """One part of the mean typical step; parts add up to the step on each side."""

    name: str
    a_ns: float
    b_ns: float
    delta_ns: float


@dataclass(frozen=True)
class SideInfo:
    """One side as it went into the comparison.

    Attributes:
        steps: whole steps in the statistics. step_ns: geometric mean over trials of the trial's statistic, so
            that b's over a's is the ratio. typical_ns: mean of the steps in the table of what changed.
        outliers, edges: 'trial: step n' of each.
        gpu_ns: GPU time a typical step. aligned_share: of gpu_ns in rows that have both sides.
        attributed_share: of all GPU time of the recordings: what aligned rows hold, and outside of whole
            steps what is of a category that both sides have there. outside_share: of the same, what no whole
            step launched.
        per: what step time was divided by, 1 without ``per``.
    """

    labels: tuple[str, ...]
    vendor: str
    devices: tuple[str, ...]
    collector: str
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
    work: Work


@dataclass(frozen=True)
class RatePair:
    """One matrix op with its shapes on both sides: rate, and share of each GPU's own peak."""

    op: str
    shapes: str
    a: Rate | None
    b: Rate | None


@dataclass(frozen=True)
class VendorView:
    """What only a comparison of two kinds of GPU needs.

    Attributes:
        launch_us: mean time in a launch call, [a, b]; latency_us: median call to start, [a, b].
        rates: matrix ops, most time first. fusions: rows whose number of kernels differs, in words.
        copies_ns: memory work a step (copies and fills, AMD's copy kernels counted alike), [a, b].
    """

    launch_us: tuple[float | None, float | None]
    latency_us: tuple[float | None, float | None]
    copies_ns: tuple[float, float]
    rates: tuple[RatePair, ...]
    fusions: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What two sides say of each other. ``a`` is the base: a ratio above 1 means that b takes longer.

    Attributes:
        statistic: of a trial's step times. threshold: practical threshold as a fraction.
        trials: on each side. trials_needed: a side, for a minimum detectable effect of the threshold.
        total_delta_ns: difference of the mean typical step; equals the sum of ``parts``' deltas, and the
            'gpu' part's delta equals the sum of the rows' deltas on GPU basis.
        unexplained_ns: total_delta_ns minus the rows' deltas.
        rows: of the view ``by``; kernels: of the kernel view (the same list where by is kernel);
            categories: of the category view.
    """

    verdict: Verdict
    statistic: str
    threshold: float
    ratio: float | None
    ci95: tuple[float, float] | None
    mde: float | None
    trials: tuple[int, int]
    trials_needed: int | None
    reasons: tuple[Reason, ...]
    sides: tuple[SideInfo, SideInfo]
    by: str = "kernel"
    per: str | None = None
    metrics: tuple[Metric, ...] = ()
    total_delta_ns: float | None = None
    unexplained_ns: float | None = None
    parts: tuple[Part, ...] = ()
    rows: tuple[Row, ...] = ()
    kernels: tuple[Row, ...] = ()
    categories: tuple[Row, ...] = ()
    vendors: VendorView | None = None

    @property
    def exit_code(self) -> int:
        """0 same or faster, 1 slower, 2 inconclusive or incomparable."""
        return {"faster": 0, "same": 0, "slower": 1}.get(self.verdict, 2)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: what ``profrun compare --json`` prints."""
        found: dict[str, Any] = to_json(self)
        return found | {"exit_code": self.exit_code}
