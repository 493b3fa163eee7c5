"""Finds the step at which a window opens that waits for the steady state (``schedule: {wait: steady}``).

The steps so far are looked at now and then (``steady``), between two steps; between two looks a step costs
nothing more than with a number.

All ranks must open the window at the same step: where only one recorded a collective, nobody could say who
waited for whom. So rank 0 decides alone, and writes the number of the step into a file of the trial's folder,
which all ranks share. The others look there every 0.2 s. The step lies 1 s ahead, and at least four steps:
the host of a rank may be ahead of another's by what its GPU has queued, which is far less. The file is there
from the start and is written in place: on NFS a file that was once missing, or that is replaced by another
one, may be seen late, while one that is opened again is up to date. Further passes of a counter collection
take the step of the first pass.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.schedule import STEADY, WINDOW_OPENED
from ..contract.units import percent_text, time_text
from .process_rank import current

if TYPE_CHECKING:
    from pathlib import Path

    from ..contract.command import Command
    from ..contract.paths import TrialPaths
    from .hook_process import HookProcess
    from .steady import Look
    from .timing import StepTimer

AHEAD_NS = 1_000_000_000
"""How far ahead rank 0 puts the window, so that the other ranks learn of it in time."""

AHEAD_STEPS = 4
"""The least number of steps for the same."""

POLL_NS = 200_000_000
"""Time between two looks of another rank at what rank 0 has written."""

LONGEST_NS = 600_000_000_000
"""Time after which the window opens even where only a few very long steps were made."""

SAMPLE = 63
"""The most steps of a block that are looked at: a look stays below a millisecond, however long the run."""


def place_file(paths: TrialPaths) -> Path:
    """The file in which rank 0 tells the others at which step the window opens; empty until it knows."""
    return paths.hook / "window"


def prepare(command: Command, paths: TrialPaths, rank: int) -> None:
    """Before the program starts: make the file, and let rank 0 forget what an earlier run has left in it."""
    if command.schedule.wait == STEADY:
        with place_file(paths).open("a" if rank else "w", encoding="utf-8"):
            pass


class WindowPlacer:
    """Places the schedule of one process, once.

    Args:
        process: this process; its schedule is placed.
        timer: has the times of the steps so far.

    Attributes:
        look_at: the number of the step before which ``look`` is to be called; ``sys.maxsize``: never.
        finding: what is to be said of the place; None: nothing.
    """

    def __init__(self, process: HookProcess, timer: StepTimer) -> None:
        self.process = process
        self.timer = timer
        self.look_at = sys.maxsize
        self.finding: Finding | None = None
        self._began_ns = self._polled_ns = time.perf_counter_ns()
        self._polled = 0
        self._last: Look | None = None

    def start(self) -> None:
        """The first step begins."""
        schedule = self.process.schedule
        if schedule.begin is not None:
            return
        self._began_ns = self._polled_ns = time.perf_counter_ns()
        if self.process.config.run:
            told = self._told()
            if told is not None:
                schedule.place(told)
                return
        elif not current(self.process.torch).rank:
            self._tell("")
        self.look_at = self._polled = schedule.skip_first + 1

    def look(self, following: int) -> None:
        """Between two steps: decide, if it is time to.

        Args:
            following: the number of the step that begins next.
        """
        if following < self.look_at:
            return
        rank = current(self.process.torch)
        if rank.rank and rank.world_size > 1:
            self._follow(following)
        else:
            self._lead(following, alone=rank.world_size <= 1)

    def explain(self, steps: int) -> Finding | None:
        """The program ends: where its window was, or why it had none; None: there is nothing to say.

        Args:
            steps: how many the program has made.
        """
        process, schedule = self.process, self.process.schedule
        if schedule.begin is not None or not steps:
            return self.finding
        spent = time_text(time.perf_counter_ns() - self._began_ns)
        made = f"the program made {steps} step{'s' * (steps != 1)} in {spent}"
        what = f"the window that waits for the steady state did not open: {made}"
        rank = current(process.torch)
        if rank.rank and rank.world_size > 1:
            why = f"rank {rank.rank} was not told by rank 0 at which step to open it"
        else:
            from .steady import LEAST_NS, LEAST_STEPS

            least = f"the earliest is after {LEAST_STEPS} steps and {time_text(LEAST_NS)} of them"
            why = least if self._last is None or not self._last.spent_ns >= LEAST_NS else self._differ()
        room = max(0, steps - schedule.skip_first - schedule.warmup - schedule.active)
        fix = f"run more steps, or give a number: --set schedule.wait={room * 3 // 4}"
        windowed = process.config.windowed
        return Finding("steady-not-reached", "critical" if windowed else "info", what, why, fix)

    def _lead(self, following: int, *, alone: bool) -> None:
        """Look at the steps so far; tell the other ranks where they are steady."""
        from . import steady

        timer, first = self.timer, self.process.schedule.skip_first
        timer.read()
        steps = timer.known - first
        if steps < steady.LEAST_STEPS:
            self.look_at = following + 1
            self._give_up(following, alone=alone)
            return
        blocks = [timer.durations(first + begin, first + end, SAMPLE) for begin, end in steady.blocks(steps)]
        self._last = look = steady.Look(steps, [steady.median(block) for block in blocks])
        if look.steady or look.over:
            ahead = 0 if alone else max(AHEAD_STEPS, int(AHEAD_NS / max(look.step_ns, 1)) + 1)
            self._open(following + ahead)
        else:
            self.look_at = following + look.next() - steps
            self._give_up(following, alone=alone)

    def _give_up(self, following: int, *, alone: bool) -> None:
        """A few steps take minutes each: open the window."""
        if time.perf_counter_ns() - self._began_ns >= LONGEST_NS:
            self._open(following + (0 if alone else AHEAD_STEPS))

    def _open(self, step: int) -> None:
        self._tell(f"{step}\n")
        schedule = self.process.schedule
        schedule.place(step)
        self.look_at = sys.maxsize
        spent = time_text(time.perf_counter_ns() - self._began_ns)
        at = f"the window opens at step {step + schedule.warmup}"
        look = self._last
        if look is not None and look.steady:
            what = f"{at}, after {spent}, when step times were steady ({time_text(look.step_ns)} per step"
            self.finding = Finding(WINDOW_OPENED, "info", f"{what}; {self._differ()})")
        else:
            what = f"no steady state was seen in {spent}, and {at} all the same"
            why = self._differ() if look is not None else "there were too few steps"
            fix = "give a number: --set schedule.wait=<steps>"
            self.finding = Finding("steady-not-seen", "warning", what, why, fix)

    def _differ(self) -> str:
        assert self._last is not None
        return f"the last two blocks of steps differ by {percent_text(abs(self._last.change))}"

    def _follow(self, following: int) -> None:
        """Look whether rank 0 has placed the window."""
        told, now = self._told(), time.perf_counter_ns()
        if told is None:
            passed = max(1, following - self._polled)
            wanted = int(passed * POLL_NS / max(1, now - self._polled_ns))
            self.look_at = following + max(1, min(wanted, 2 * passed))
            self._polled, self._polled_ns = following, now
            return
        self.look_at = sys.maxsize
        self.process.schedule.place(max(told, following))
        if told < following:
            what = f"the window opens at step {following} of this rank and at step {told} of rank 0"
            why = "this rank learnt of it late: is the trial's folder on a slow network filesystem?"
            fix = "give a number: --set schedule.wait=<steps>"
            self.finding = Finding("window-late", "warning", what, why, fix)

    def _told(self) -> int | None:
        """The step that rank 0 has written; None: none so far."""
        try:
            text = place_file(self.process.config.paths).read_text(encoding="utf-8")
        except OSError:
            return None
        return int(text) if text.endswith("\n") and text.strip().isdigit() else None

    def _tell(self, text: str) -> None:
        """Write it for the other ranks and for further passes. A process that is alone needs no file."""
        with contextlib.suppress(OSError):
            place_file(self.process.config.paths).write_text(text, encoding="utf-8")
