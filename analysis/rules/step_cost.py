"""What a step costs and what could be gained of it: ``UnprofiledStep``, ``StepCost``, ``Gain`` and severity.

A step takes at least the time of its GPU work. So a change on the host gains at most the time in which the
GPU is idle. What a change on the GPU gains, ``replay`` tells. Every time here is ns per step (of one rank),
or ns of the whole recording where it has no steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from profrun.analysis.step_time import side_value
from profrun.contract.denominator import RECORDING, STEP, Denominator
from profrun.contract.finding import Severity
from profrun.contract.units import time_text

Basis = Literal["unprofiled", "profiled", "recording"]
"""Which step time a gain is a part of. ``unprofiled``: that of trials without a profiler. ``profiled``: that
of the recording, with the profiler's cost in it. ``recording``: no steps are known, it is the whole
recording."""
Side = Literal["host", "gpu"]
"""Whose time is gained. Host times are longer under a profiler; GPU times are nearly the same."""

CRITICAL_SHARE = 0.30
"""Part of the step from which a gain makes a finding critical."""
WARNING_SHARE = 0.05
"""Part of the step from which a gain makes a finding a warning."""
SLOWDOWN = 3.0
"""A profiler makes the host's part of a step at most so many times longer. Measured: up to 2.4 times."""
PART_BOUND = (
    "Where the step time without a profiler is known, at most what the rest of the recorded step leaves of "
    f"it, if a profiler makes that {SLOWDOWN:g} times slower."
)
"""What a rule says of ``StepCost.part_gain``."""
NOTED = 1.2
NOTED_SHARE = 0.01
"""Work that is so many times the gain, and such a part of the step, is stated beside the gain."""
MOST_TWIN = 1.25
"""Unprofiled steps that take so many times the recorded ones ran under other conditions: a profiler saves no
time, and two quiet trials of a program differ by less."""
KEPT_BUSY = 0.9
"""Part of an unprofiled step from which GPU work counts as what sets its time."""


@dataclass(frozen=True)
class UnprofiledStep:
    """Step time of trials of the same variant that ran without a profiler.

    Attributes:
        ns: geometric mean over these trials of the median of their measured steps, as comparisons take it.
        low_ns, high_ns: least and largest median of a trial; of a single trial the middle half of its steps.
        trials, steps: how many trials, and how many steps of them were measured.
        clock: what measured them: cuda_event, hip_event or wall.
        mean_ns: geometric mean over these trials of the mean of their measured steps; 0 where not known.
            It is far from ``ns`` where a few steps take most of the time.
        denominator: whether it is the time of a step or of the run.
    """

    ns: int
    low_ns: int
    high_ns: int
    trials: int
    steps: int
    clock: str
    mean_ns: int = 0
    denominator: Denominator = STEP

    @classmethod
    def of(
        cls, trials: Sequence[Sequence[int]], clock: str, denominator: Denominator = STEP
    ) -> UnprofiledStep:
        """The step time of trials.

        Args:
            trials: the measured steps of each trial, ns; at least one trial, each with at least one step.
            clock: what measured them.
            denominator: what a step is.
        """
        medians = [median(steps) for steps in trials]
        low, high = min(medians), max(medians)
        if len(trials) == 1:
            low, high = np.quantile(trials[0], [0.25, 0.75])
        return cls(
            ns=round(side_value(trials, "median")),
            low_ns=round(low),
            high_ns=round(high),
            trials=len(trials),
            steps=sum(map(len, trials)),
            clock=clock,
            mean_ns=round(side_value(trials, "mean")),
            denominator=denominator,
        )


@dataclass(frozen=True)
class Gain:
    """The most that could be gained.

    Attributes:
        ns: per step, or of the recording; at most ``step_ns``.
        step_ns: the time that it is a part of.
        basis: which step time that is.
        side: whose time is gained.
        work_ns: how much shorter the work itself could be, ns per step; more than ``ns`` where the step does
            not wait for all of it.
        denominator: what a step is.
    """

    ns: int
    step_ns: int
    basis: Basis
    side: Side
    work_ns: int
    denominator: Denominator = STEP

    @property
    def share(self) -> float:
        """Part of the step."""
        return self.ns / self.step_ns if self.step_ns else 0.0

    @property
    def text(self) -> str:
        """'at most 3.1 ms of 39 ms per step', and whether the profiler's cost is in it."""
        of = f"at most {time_text(self.ns)} of {time_text(self.step_ns)}"
        notes = []
        if (self.side, self.basis) == ("host", "profiled"):
            notes.append("the profiler's cost included")
        if self.work_ns > NOTED * self.ns and self.work_ns > NOTED_SHARE * self.step_ns:
            notes.append(
                f"{time_text(self.work_ns)} less work, but {self.denominator.the} does not wait for all of it"
            )
        return f"{of} {self.denominator.per}" + (f" ({'; '.join(notes)})" if notes else "")


def usable(twin: UnprofiledStep | None, recorded_ns: float) -> UnprofiledStep | None:
    """The step time without a profiler, where it can be that of these steps: a profiler saves no time."""
    return twin if twin is not None and twin.ns <= MOST_TWIN * recorded_ns else None


def severity_of(gain: Gain) -> Severity:
    """How grave it is to leave this gain, by its share of the step alone.

    Host time of a profiled step makes nothing critical, because part of it may be the profiler's. Host time
    of a recording without steps is for information only, because set-up is part of it.
    """
    if gain.share < WARNING_SHARE or (gain.side, gain.basis) == ("host", "recording"):
        return "info"
    if gain.share < CRITICAL_SHARE or (gain.side, gain.basis) == ("host", "profiled"):
        return "warning"
    return "critical"


@dataclass(frozen=True)
class StepCost:
    """Time of a step and what it is made of, ns per step of one rank.

    Attributes:
        recorded_ns: mean time of the judged steps in the recording, or of the recording.
        work_ns: time in which GPUs work. Waiting for other ranks inside of collectives is left out as far as
            the trace shows it.
        busy_ns: the same with that waiting.
        denominator: what a "step" is here: a step, the run, or the recording.
        unprofiled: step time without a profiler, where it is known.
    """

    recorded_ns: float
    work_ns: float
    busy_ns: float
    denominator: Denominator
    unprofiled: UnprofiledStep | None = None

    @property
    def basis(self) -> Basis:
        """Which step time shares are of."""
        if self.denominator == RECORDING:
            return "recording"
        return "profiled" if self.unprofiled is None else "unprofiled"

    @property
    def step_ns(self) -> float:
        """The step time that shares are of."""
        known = self.unprofiled if self.denominator != RECORDING else None
        return self.recorded_ns if known is None else known.ns

    @property
    def busy_share(self) -> float:
        """Part of the step in which GPUs work."""
        return min(1.0, self.work_ns / self.step_ns) if self.step_ns else 0.0

    @property
    def rank_wait_ns(self) -> float:
        """Time in which a GPU only waits for other ranks, as recorded: a mean over the GPUs."""
        return max(0.0, self.busy_ns - self.work_ns)

    @property
    def idle_ns(self) -> float:
        """Time of the step in which GPUs do not work: more cannot be gained on the host."""
        return max(0.0, self.step_ns - self.work_ns)

    @property
    def host_sets_pace(self) -> bool:
        """Does the host, not the GPU, set the time of a step that no profiler slows down?

        Where only the recorded step is known, the answer is yes only if it holds for a host that is
        ``SLOWDOWN`` times faster.
        """
        limit = KEPT_BUSY if self.basis == "unprofiled" else 1 / SLOWDOWN
        return self.busy_share < limit

    def left_by(self, others_ns: float) -> float:
        """What other host work leaves of the step, ns: no host time can gain more.

        Args:
            others_ns: that work, per step, as recorded. Without the profiler it takes at least this time
                through ``SLOWDOWN``.
        """
        faster = SLOWDOWN if self.basis == "unprofiled" else 1.0
        return max(0.0, self.step_ns - others_ns / faster)

    def part_gain(self, ns: float) -> Gain:
        """Gain of host time that is a part of the recorded step (``PART_BOUND``).

        Args:
            ns: host time that could go, per step; nothing else runs beside it.
        """
        return self.host_gain(min(ns, self.left_by(self.recorded_ns - ns)))

    def host_gain(self, ns: float, *, beside_ns: float = 0.0) -> Gain:
        """Gain of host time.

        Args:
            ns: host time that could go, per step.
            beside_ns: GPU time that would go with it.
        """
        return self._gain(min(ns, self.idle_ns + beside_ns), "host", ns)

    def gpu_gain(self, ns: float, work_ns: float) -> Gain:
        """Gain of GPU time.

        Args:
            ns: by how much the step gets shorter. The gain is less where the step would become shorter than
                the work that remains.
            work_ns: by how much the work itself gets shorter.
        """
        left = max(0.0, self.work_ns - work_ns)
        # A step without a profiler may be shorter than its work in the recording: the work is faster then.
        faster = min(1.0, self.step_ns / self.work_ns) if self.work_ns else 1.0
        return self._gain(min(ns, self.step_ns - faster * left), "gpu", work_ns)

    def _gain(self, ns: float, side: Side, work_ns: float) -> Gain:
        step = round(self.step_ns)
        gain = min(max(0, round(ns)), step)
        return Gain(gain, step, self.basis, side, max(gain, round(work_ns)), self.denominator)
