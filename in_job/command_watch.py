"""One command that runs under a ``Supervisor``: waits for its end, for signals and for limits. ``Watch``."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from . import proctree
from .tool_life import ToolLife
from .tool_start import loads_hook

if TYPE_CHECKING:
    from typing import Callable, Protocol

    from .command_end import Outcome
    from .recording_watch import RecordingWatch
    from .tool_start import ToolStart

    class Owner(Protocol):
        """What the supervisor gives: ``grace`` in seconds, who asked it to end, and what runs below it."""

        grace: float
        stopped_by: str | None

        @property
        def tail(self) -> str:
            """The end of what the command has printed."""

        def below(self) -> list[proctree.Process]:
            """All processes of the command."""


STOPS = {signal.SIGURG, signal.SIGTERM, signal.SIGINT}
BLOCKED = STOPS | {signal.SIGCHLD}
AGAIN_S = 5.0  # after this the whole tree of an app that did not end is asked too
LAST_S = 10.0  # for a profiler to write after the second signal


class Watch:
    """One running command: waits for its end, for signals and for the time limit."""

    def __init__(
        self,
        owner: Owner,
        pid: int,
        began: float,
        argv: tuple[str, ...],
        tool: str | None,
        limit: float | None,
        finalise: float,
        on_app_end: Callable[[], None] | None,
        recording: RecordingWatch | None,
        recorded: Callable[[], bool],
    ) -> None:
        self.owner = owner
        self.recording = recording
        self.tool_start: ToolStart | None = None
        self.overdue: Callable[[], bool] | None = None
        self.pid = pid
        self.argv = argv
        self.tool = tool
        self.finalise = finalise
        self.on_app_end = on_app_end
        self.start = began
        self.limit = None if limit is None else self.start + limit
        self.kill_at: float | None = None
        self.again_at: float | None = None
        self.app: proctree.Process | None = None
        self.loads_hook = False
        self.app_began: float | None = None  # known where a profiler started it
        self.app_end: float | None = None
        self.requests = 0
        self.swept = False
        self.life = None if tool is None else ToolLife(tool, pid, owner.grace, recorded)

    def loop(self, outcome: Outcome) -> int:
        """Until the command is gone; returns its wait status."""
        while True:
            status = self._reap().get(self.pid)
            if status is not None:
                break
            self._look()
            self._look_at_start(outcome)
            self._look_at_tool(outcome)
            self._clock(outcome)
            info = signal.sigtimedwait(BLOCKED, self._nap())
            if info is not None and info.si_signo in STOPS:
                self._request(signal.Signals(info.si_signo).name, outcome)
        if status != 0:
            self._part_lost(outcome)
        self._wait_for_stop()
        end = time.monotonic()
        app_end = self.app_end or end
        outcome.seen = self.app is not None
        outcome.loads_hook = self.loads_hook
        outcome.pid = self.pid if self.app is None else self.app.pid
        outcome.app_s = app_end - self.start
        outcome.finalise_s = end - app_end
        began = max(self.start, self.app_began or 0.0)
        outcome.began_ns = time.time_ns() - round((time.monotonic() - began) * 1e9)
        outcome.run_s = app_end - began
        return status

    def _reap(self) -> dict[int, int]:
        ended = reap()
        if self.recording is not None:
            self.recording.reaped(ended, running=self.app_end is None and self.pid not in ended)
        return ended

    def _wait_for_stop(self) -> None:
        """The command may be over while the profiler still makes the report of a recording that was cut."""
        deadline = time.monotonic() + max(self.finalise, self.owner.grace)
        while self.recording is not None and self.recording.busy and time.monotonic() < deadline:
            time.sleep(0.05)
            self._reap()

    def _program(self) -> list[proctree.Process]:
        """The user's process and all below it; none as long as it is not found."""
        return [] if self.app is None else [self.app, *proctree.descendants(self.app.pid)]

    def _nap(self) -> float:
        if self.tool is not None and time.monotonic() - self.start < 5.0:
            return 0.02  # a short program must not end unseen
        return 0.1 if self.tool is not None or self.kill_at is not None else 0.5

    def _look(self) -> None:
        """Find the user's process, and notice when it has ended while the profiler writes."""
        if self.app is None:
            self.app = proctree.find_app(self.pid, self.argv, self.tool)
            if self.app is not None and self.tool is not None:
                self.loads_hook = loads_hook(self.app.program, self.app.argv)
                self.app_began = time.monotonic() - self.app.age_s()
                if self.life is not None:
                    self.life.seen(self.app)
        elif self.app_end is None and self.tool is not None and not self.app.alive():
            self.app_end = time.monotonic()
            if self.kill_at is None:
                self.kill_at = self.app_end + max(self.finalise, self.owner.grace)
            if self.on_app_end is not None:
                self.on_app_end()
        if self.recording is not None and self.app_end is None:
            self.recording.look(self._program)

    def _look_at_start(self, outcome: Outcome) -> None:
        """End a profiler that has failed to start the program and waits: the time limit may be hours."""
        if self.tool_start is None or self.app is not None or outcome.stopped_by or outcome.hung:
            return
        if self.tool_start.hangs(lambda: self.owner.tail, time.monotonic()):
            outcome.hung = True
            proctree.send(self.owner.below(), signal.SIGKILL)

    def _look_at_tool(self, outcome: Outcome) -> None:
        """End what a profiler leaves waiting that has lost a part of itself, or does nothing any more."""
        if self.life is None:
            return
        if self.app is not None and self.app_end is None:
            if self._part_lost(outcome) and not self.requests:
                self._request("profiler", outcome)
            return
        if self.app is None and self.tool_start is not None and self.tool_start.failed:
            return  # it will be started again, which a kill by this function would prevent
        below, now = self.owner.below(), time.monotonic()
        if self.app is None and not self.life.alone(_started_by(self.pid, below)):
            return
        if not self.life.hangs(below, now):
            return
        left = self.life.not_its_own(below)
        if left and not self.swept:
            self.swept = True
            outcome.strays += [" ".join(process.argv)[:120] for process in left]
            proctree.send(left, signal.SIGTERM)
            return
        when = "and no program was seen" if self.app is None else "after the program had ended"
        self._kill(outcome, f"it did nothing for {self.life.patience:g} s {when}")

    def _part_lost(self, outcome: Outcome) -> bool:
        """Whether a part of the profiler is gone while the program runs."""
        if self.life is None or self.app is None or outcome.broken:
            return False
        name = self.life.lost(self.app)
        if name is None:
            return False
        outcome.broken = f"its process {name} was gone while the program ran, which was ended then"
        return True

    def _clock(self, outcome: Outcome) -> None:
        now = time.monotonic()
        if self.limit is not None and now >= self.limit and self.app_end is None:
            self.limit = None
            self._request("limit", outcome)
        if self.overdue is not None and self.app_end is None and not self.requests and self.overdue():
            self._request("rank", outcome)
        if self.again_at is not None and now >= self.again_at:
            self.again_at = None
            if self.app_end is None:
                self._end_app(everyone=True)
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = now + 1.0
            self._kill(outcome, "it had not ended in time")

    def _request(self, why: str, outcome: Outcome) -> None:
        """End the app; from the second TERM or INT on be less patient. SIGURG only ever asks."""
        now = time.monotonic()
        if outcome.stopped_by is None:
            outcome.stopped_by = self.owner.stopped_by = why
        elif why in ("SIGURG", "limit"):
            return
        self.requests += 1
        if self.requests == 1:
            self._end_app(everyone=False)
            self.again_at = now + AGAIN_S
            self.kill_at = now + self.owner.grace
        elif self.requests == 2:
            self._kill_app(outcome)
            self.kill_at = min(self.kill_at or now + LAST_S, now + LAST_S)
        else:
            self._kill(outcome, "it was asked to end three times")

    def _end_app(self, *, everyone: bool) -> None:
        app = self.app or proctree.find_app(self.pid, self.argv, self.tool)
        if app is None:  # not recognised: everything but the profiler itself
            proctree.send(self._not_tool(), signal.SIGTERM)
        else:
            proctree.end_app(app, everyone=everyone)

    def _not_tool(self) -> list[proctree.Process]:
        home = os.path.dirname(os.path.realpath(self.tool or "/"))
        return [
            process
            for process in proctree.descendants(self.pid)
            if not process.program.startswith(home + os.sep)
        ]

    def _kill_app(self, outcome: Outcome) -> None:
        """The app at once; the profiler is asked to end and may still write."""
        app = self.app or proctree.find_app(self.pid, self.argv, self.tool)
        doomed = self._not_tool() if app is None else [app, *proctree.descendants(app.pid)]
        if any(process.alive() for process in doomed):
            _killed(outcome, "the program", "it was asked to end twice")
        proctree.send(doomed, signal.SIGKILL)
        if self.tool is not None and (app is None or app.pid != self.pid):
            try:
                os.kill(self.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass

    def _kill(self, outcome: Outcome, why: str) -> None:
        over = self.app_end is not None or (self.life is not None and self.app is None)
        _killed(outcome, "the profiler" if over else "the program", why)
        if self.life is not None and over and outcome.broken is None and outcome.stopped_by is None:
            outcome.broken = f"it was killed: {why}"
        proctree.send(self.owner.below(), signal.SIGKILL)


def _started_by(pid: int, processes: list[proctree.Process]) -> list[proctree.Process]:
    """Those that a profiler has started, of which one may be a program that was not recognised.

    The others have lost the process that started them: a program that ended between two looks has left them.
    The list has parents before their children.
    """
    pids, found = {pid}, []
    for process in processes:
        if process.pid == pid or process.parent in pids:
            pids.add(process.pid)
            found.append(process)
    return found


def _killed(outcome: Outcome, who: str, why: str) -> None:
    finding = Finding("killed", "warning", f"{who} was killed", why)
    if finding not in outcome.killed:
        outcome.killed.append(finding)


def reap() -> dict[int, int]:
    """Collect every child that has ended, ours and adopted orphans: pid -> wait status."""
    done: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return done
        if pid == 0:
            return done
        done[pid] = status
