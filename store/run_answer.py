"""What a run tells first, per variant: what a step costs, where it goes, and what would help most.

The same values are in ``comparison.json``, at the end of ``submit``, in ``status``, in the report and in
``--json``. Times are ns per step of one rank; ``denominator`` says where they are of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profrun.contract.denominator import STEP, Denominator
from profrun.contract.finding import Severity
from profrun.contract.window_phase import WindowPhase

UNEVEN = 1.5
"""Steps whose mean is so many times their median are uneven: a loader with workers, for example, delivers
several batches at once and then none for a while."""
LONGER = 1.005
"""GPU work of so many times the step time is longer than a step. Less is the spread between trials."""


@dataclass(frozen=True)
class StepAnswer:
    """The step time of a variant.

    Attributes:
        ns: geometric mean over trials of the median of their measured steps, as in comparisons.
        low_ns, high_ns: least and largest median of a trial; of a single trial the middle half of its steps.
        trials, steps: how many trials, and how many steps of them were measured.
        clock: what measured them: cuda_event, hip_event or wall.
        profiled_by: collector under which they ran; None without a profiler.
        denominator: whether ``ns`` is the time of a step or of the run, of which each trial has one.
        mean_ns: the same as ``ns`` with means instead of medians; 0 where it is not known.
    """

    ns: int
    low_ns: int
    high_ns: int
    trials: int
    steps: int
    clock: str
    profiled_by: str | None = None
    mean_ns: int = 0
    denominator: Denominator = STEP

    @property
    def uneven(self) -> bool:
        """Whether a few steps take much of the time, so that the median says little."""
        return self.mean_ns > UNEVEN * self.ns


@dataclass(frozen=True)
class PartAnswer:
    """A part of the work: its name, and its share of the GPU's or the host's time in the steps, 0 to 1."""

    name: str
    share: float


@dataclass(frozen=True)
class FindingAnswer:
    """A finding in short; ``profrun diagnose`` shows all of it.

    Attributes:
        code: the rule's id.
        title: the rule's title.
        severity: warning or critical.
        gain_ns: the most that could be gained per step, ns.
        gain_share: gain_ns as a part of the step.
        remedy: what to change, in a few words.
        extent: what or how much of it there is, in a few words that follow the title; may be empty.
    """

    code: str
    title: str
    severity: Severity
    gain_ns: int
    gain_share: float
    remedy: str
    extent: str = ""

    @property
    def text(self) -> str:
        """The title and the extent: 'Matrix work in full fp32, 75.5 % of the kernel time'."""
        return f"{self.title}, {self.extent}" if self.extent else self.title


@dataclass(frozen=True)
class UseAnswer:
    """What a step computes of what its GPUs could (``analysis.rules.step_use``), of all recorded ranks.

    Attributes:
        flops, model_flops: per step: all matrix FLOPs that ran, and those that the model needs.
        dtype: in which most of them ran. peak_tflops: dense peak of all GPUs for it, by their datasheets.
        mfu, hfu: model_flops and flops as a part of what the GPUs could compute in ``VariantAnswer.step_ns``.
        mfu_at_clock, clock_mhz: the same part at the mean clock of the recorded steps; None without samples.
        at_least: some ops are not in it, because their shapes do not tell their work.
    """

    flops: float
    model_flops: float
    dtype: str | None
    peak_tflops: float
    mfu: float
    hfu: float
    mfu_at_clock: float | None = None
    clock_mhz: float | None = None
    at_least: bool = False


@dataclass(frozen=True)
class VariantAnswer:
    """What a run tells first of one variant.

    Attributes:
        variant: its name.
        step: its step time, without a profiler where that was measured; None without steps.
        trial: id of the trial whose recording tells the rest; None where nothing was recorded.
        gpus: names of the GPUs that worked.
        gpu_ns: time per step in which GPUs work; None without a GPU.
        gpu_share: gpu_ns as a part of ``step_ns``, at most 1.
        rank_wait_ns: time per step in which a GPU only waits for other ranks inside of collectives, as
            recorded, a mean over the GPUs; not part of ``gpu_ns``; 0 where there is none.
        step_ns: the step time that shares and gains are of: ``step.ns`` where that can be the time of the
            recorded steps, else the recording's own.
        basis: which time that is: unprofiled, profiled, or recording (no steps: the whole recording).
        side: whose time ``parts`` divide.
        parts: what the work is made of, most time first, a few.
        findings: warnings and critical findings that no other explains, the largest gain first.
        doubts: titles of critical findings about the recording itself.
        denominator: what the recording's times are of: a step, the run or its first part, or the recording.
        window: in which of several phases of the run the recorded steps lie.
        use: MFU and HFU of the step; None where the recording does not tell them.
        lines: lines of the program whose GPU work takes most time, with their share of all GPU work of the
            steps; empty where no mapping tells the lines.
        energy_j: energy of the GPUs per steady step, J: geometric mean over the trials that ``step`` is of,
            as in comparisons. None where it is not known of each of them.
    """

    variant: str
    step: StepAnswer | None = None
    trial: str | None = None
    gpus: tuple[str, ...] = ()
    gpu_ns: int | None = None
    gpu_share: float | None = None
    rank_wait_ns: int = 0
    step_ns: int | None = None
    basis: Literal["unprofiled", "profiled", "recording"] | None = None
    side: Literal["gpu", "host"] | None = None
    parts: tuple[PartAnswer, ...] = ()
    findings: tuple[FindingAnswer, ...] = ()
    doubts: tuple[str, ...] = ()
    denominator: Denominator = STEP
    window: WindowPhase | None = None
    use: UseAnswer | None = None
    lines: tuple[PartAnswer, ...] = ()
    energy_j: float | None = None

    @property
    def works_longer(self) -> bool:
        """Whether the GPU works longer in a recorded step than a step takes without a profiler.

        ``gpu_ns`` is a mean over the recorded steps and ``step.ns`` a median. So a few long steps are a
        reason, and so are kernels that take longer while they are recorded.
        """
        known = self.basis == "unprofiled" and self.gpu_ns is not None and self.step_ns is not None
        return known and (self.gpu_ns or 0) > LONGER * (self.step_ns or 0)
