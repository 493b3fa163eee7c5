"""What a trial does while it runs, from the files that its wrapper and its hook write: ``TrialProgress``."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from profrun.contract.units import elapsed_text, time_text
from profrun.errors import InputError
from profrun.in_job.rank_answers import rank_list
from profrun.store.documents import Steps, read_command, read_exit, read_steps
from profrun.store.files import read_json

if TYPE_CHECKING:
    from profrun.contract.paths import TrialPaths
    from profrun.contract.schedule import Schedule, StepSchedule
    from profrun.plans.model import Trial

_PHASES = {
    "preflight": "checking the machine",
    "finalise": "the profiler writes its files",
    "export": "exporting",
}
"""Phase of the wrapper -> what a line says; in the phase "app" the program runs."""
_FIRST_REPORT_S = 30.0
"""Seconds until the first line about steps; each wait for the next is twice as long as the one before."""
_LAST_REPORT_S = 600.0
"""The longest wait, in seconds."""
_CHANGE_S = 2.0
"""Seconds between two looks for a change: a hundred trials of a queue may lie on a network filesystem."""
_READ_SHARE = 20
"""Steps are read again after this many times as long as reading them took."""


def trial_label(trial: Trial, *, variant: bool = True) -> str:
    """Variant, collector, launch blocking and repeat of a trial, as every line shows them.

    Args:
        trial: the trial.
        variant: name its variant, too.
    """
    words = [trial.variant] if variant else []
    words += [trial.collector, *(["blocking"] if trial.blocking else []), f"r{trial.repeat}"]
    return " ".join(words)


class TrialProgress:
    """One trial on its way.

    Args:
        paths: the trial's files.
        collector: as the job names it.
        schedule: which steps are recorded, where ``command.json`` of the trial does not say it.

    Attributes:
        queued: it waits for its turn.
    """

    def __init__(self, paths: TrialPaths, collector: str, schedule: Schedule) -> None:
        self.paths = paths
        self.queued = False
        self._does, self._did = (
            ("measuring", "measured") if collector == "none" else ("recording", "recorded")
        )
        self._schedule = _of_trial(paths, schedule)
        self._began = time.monotonic()
        self._steps = Steps()
        self._read_next = 0.0
        self._told_recording = False
        self._told_phase: str | None = None
        self._look_at = 0.0
        self._report_after = _FIRST_REPORT_S
        self._report_at = self._began + _FIRST_REPORT_S

    def begin(self, *, queued: bool) -> None:
        """It was queued or started."""
        if self.queued and not queued:
            self._began = time.monotonic()
        self.queued = queued

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def steps(self) -> Steps:
        """The steps so far; the hook writes them every two seconds or less often."""
        now = time.monotonic()
        if now >= self._read_next:
            with contextlib.suppress(InputError):  # half a file of an older wrapper; the next one is whole
                self._steps = read_steps(self.paths)
            done = time.monotonic()
            self._read_next = done + _READ_SHARE * (done - now)
        return self._steps

    def share(self, expected: int | None) -> float:
        """How much of it is done, from 0 to 1; 0 while nothing tells how many steps it will make."""
        return min(self.steps().count / expected, 1.0) if expected else 0.0

    def doing(self, expected: int | None) -> str:
        """What it does now."""
        phase = self._phase()
        elapsed = elapsed_text(self.seconds)
        if self.queued:
            return f"waiting {elapsed}"
        if phase is not None:
            return f"{phase}, {elapsed}"
        steps = self.steps()
        if not steps.count or not steps.denominator.several:
            return f"running, {elapsed}"
        return self._of(steps.count, expected)

    def last_step(self) -> str:
        """Time of the last step, while the program runs; else nothing."""
        durations = self.steps().all_ns
        return time_text(durations[-1]) if durations and self._phase() is None else ""

    def change(self, expected: int | None) -> str | None:
        """What has changed since the last call, for a log: a phase, the recording, now and then the steps."""
        if self.queued or time.monotonic() < self._look_at:
            return None
        self._look_at = time.monotonic() + _CHANGE_S
        phase, steps = self._phase(), self.steps()
        if phase != self._told_phase:
            self._told_phase = phase
            return phase
        if phase is not None or not steps.count or not steps.denominator.several:
            return None
        if not self._told_recording and self._schedule.begin is None and steps.measured:
            self._told_recording = True
            return f"{self._did} in the steady phase"
        if not self._told_recording and self._schedule.part(steps.count) == "active":
            self._told_recording = True
            return f"{self._does}, step {steps.count + 1}"
        if time.monotonic() < self._report_at:
            return None
        self._report_after = min(2 * self._report_after, _LAST_REPORT_S)
        self._report_at = time.monotonic() + self._report_after
        done = f", {len(steps.measured)} {self._did}" if steps.measured else ""
        return f"{self._of(steps.count, expected)}, {self.last_step()}{done}"

    def _of(self, count: int, expected: int | None) -> str:
        return f"step {count}/{expected}" if expected and expected >= count else f"step {count}"

    def _phase(self) -> str | None:
        """What is done beside running the program; None while it runs."""
        if self.paths.cancel.exists():
            return "saving profiles"
        ended = read_exit(self.paths)
        if ended is not None:
            return f"waiting for {rank_list(ended.silent)}" if ended.silent else "making the trace"
        try:
            told = read_json(self.paths.phase) or {}
        except InputError:  # an older wrapper was just writing the file
            told = {}
        if told.get("phase") == "ranks":
            return f"waiting for {told.get('waiting')}"
        return _PHASES.get(str(told.get("phase")))


def _of_trial(paths: TrialPaths, schedule: Schedule) -> StepSchedule:
    """The schedule that the trial was given, else the job's."""
    with contextlib.suppress(InputError):
        told = read_command(paths)
        if told is not None:
            return told.schedule.steps()
    return schedule.steps()
