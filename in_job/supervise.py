"""Runs one command to its end: output teed, signals as docs/architecture.md says, nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from ..contract.command import OUTPUT_BYTES
from ..contract.finding import Finding
from . import proctree
from .command_end import Outcome, start_error
from .tee import Tee

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .recording_watch import RecordingWatch
    from .tool_start import ToolStart

STOPS = {signal.SIGURG, signal.SIGTERM, signal.SIGINT}
BLOCKED = STOPS | {signal.SIGCHLD}
AGAIN_S = 5.0  # after this the whole tree of an app that did not end is asked too
LAST_S = 10.0  # for a profiler to write after the second signal
STRAY_S = 2.0  # for processes left behind to end by themselves


class Supervisor:
    """Runs commands one after another and hears the signals that end them.

    Args:
        folder: the trial folder, for the logs.
        suffix: before '.log' in their names, for ranks beyond the first.
        grace: seconds between the request to end and the kill.
        echo: copy what the commands print to this process's own streams.
        output_bytes: about how much of each of stdout and stderr is kept.
        overdue: whether another rank has failed and the program is not to wait for it any longer.

    Attributes:
        aside: pid of the sampler, which is no part of the program: it may end after it and is not killed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        suffix: str = "",
        grace: float = 60.0,
        echo: bool = True,
        output_bytes: int = OUTPUT_BYTES,
        overdue: Callable[[], bool] | None = None,
    ) -> None:
        self.folder = folder
        self.suffix = suffix
        self.grace = grace
        self.echo = echo
        self.output_bytes = output_bytes
        self.overdue = overdue
        self.stopped_by: str | None = None
        self.aside: int | None = None
        self._tees: list[Tee] = []
        self._old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
        proctree.become_subreaper()

    def close(self) -> None:
        """Give signals their old way back."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._old_mask)

    def pending(self) -> str | None:
        """A signal to end that has come while nothing ran; it is taken."""
        while True:
            info = signal.sigtimedwait(BLOCKED, 0)
            if info is None:
                return self.stopped_by
            if info.si_signo in STOPS:
                self.stopped_by = self.stopped_by or signal.Signals(info.si_signo).name

    def hear(self, seconds: float) -> str | None:
        """Wait while nothing runs; returns the name of a signal to end as soon as one comes, else None."""
        info = signal.sigtimedwait(STOPS, seconds)
        return None if info is None else signal.Signals(info.si_signo).name

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        app: Sequence[str] | None = None,
        tool: str | None = None,
        limit: float | None = None,
        finalise: float = 30.0,
        on_app_end: Callable[[], None] | None = None,
        recording: RecordingWatch | None = None,
        tool_start: ToolStart | None = None,
    ) -> Outcome:
        """Run a command to its end.

        Args:
            argv: what to start.
            app: the user's command inside it, when a profiler wraps it.
            tool: path of that profiler.
            limit: seconds after which the user's process is ended.
            finalise: seconds that the profiler may write after the user's process has ended.
            on_app_end: called when the user's process has ended and the profiler has not.
            recording: ends the profiler's recording when a limit is reached.
            tool_start: notices a profiler that cannot start the program and does not end either.
        """
        outcome = Outcome(stopped_by=self.pending())
        if outcome.stopped_by:
            outcome.error = "it was asked to end before the command was started"
            return outcome
        began = time.monotonic()
        try:
            child = self._start(argv, env, cwd)
        except OSError as error:
            outcome.error = start_error(argv, cwd, error, env.get("PATH"))
            return outcome
        watch = _Watch(
            self, child.pid, began, tuple(app or argv), tool, limit, finalise, on_app_end, recording
        )
        watch.tool_start = tool_start
        watch.overdue = self.overdue if app is not None else None
        outcome.status = watch.loop(outcome)
        child.returncode = 0  # reaped here, not by subprocess
        self._sweep(outcome)
        self._end_tees(outcome)
        return outcome

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        mask = self._old_mask

        def unblock() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        child = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=unblock,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        self._tees = [
            Tee(
                os.dup(pipe.fileno()),
                self.folder / f"{name}{self.suffix}.log",
                stream if self.echo else None,
                self.output_bytes,
            )
            for name, pipe, stream in (("stdout", child.stdout, 1), ("stderr", child.stderr, 2))
        ]
        child.stdout.close()
        child.stderr.close()
        return child

    def _sweep(self, outcome: Outcome) -> None:
        """End what the command left running; helpers and DataLoader workers mostly go by themselves."""
        deadline = time.monotonic() + STRAY_S
        left = self._left()
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = self._left()
        if not left:
            return
        outcome.strays = [" ".join(process.argv)[:120] or str(process.pid) for process in left]
        proctree.send(left, signal.SIGTERM)
        deadline = time.monotonic() + STRAY_S
        while self._left() and time.monotonic() < deadline:
            time.sleep(0.05)
        proctree.send(self._left(), signal.SIGKILL)
        self._left()

    def _left(self) -> list[proctree.Process]:
        _reap()
        return self.below()

    def below(self) -> list[proctree.Process]:
        """All processes below this one but the sampler, which ends after the program."""
        return [process for process in proctree.descendants(os.getpid()) if process.pid != self.aside]

    def _end_tees(self, outcome: Outcome) -> None:
        for tee in self._tees:
            tee.join(timeout=STRAY_S)
        outcome.lost_output = sum(tee.lost for tee in self._tees)
        outcome.missing_output = sum(tee.missing for tee in self._tees)
        outcome.disk_full = any(tee.full for tee in self._tees)

    @property
    def tail(self) -> str:
        """The end of what the last command has printed up to now: of stdout, then of stderr."""
        return b"\n".join(bytes(tee.tail) for tee in self._tees).decode("utf-8", "replace")


class _Watch:
    """One running command: waits for its end, for signals and for the time limit."""

    def __init__(
        self,
        owner: Supervisor,
        pid: int,
        began: float,
        argv: tuple[str, ...],
        tool: str | None,
        limit: float | None,
        finalise: float,
        on_app_end: Callable[[], None] | None,
        recording: RecordingWatch | None,
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
        self.app_began: float | None = None  # known where a profiler started it
        self.app_end: float | None = None
        self.requests = 0

    def loop(self, outcome: Outcome) -> int:
        """Until the command is gone; returns its wait status."""
        while True:
            status = self._reap().get(self.pid)
            if status is not None:
                break
            self._look()
            self._look_at_start(outcome)
            self._clock(outcome)
            info = signal.sigtimedwait(BLOCKED, self._nap())
            if info is not None and info.si_signo in STOPS:
                self._request(signal.Signals(info.si_signo).name, outcome)
        self._wait_for_stop()
        end = time.monotonic()
        app_end = self.app_end or end
        outcome.seen = self.app is not None
        outcome.pid = self.pid if self.app is None else self.app.pid
        outcome.app_s = app_end - self.start
        outcome.finalise_s = end - app_end
        began = max(self.start, self.app_began or 0.0)
        outcome.began_ns = time.time_ns() - round((time.monotonic() - began) * 1e9)
        outcome.run_s = app_end - began
        return status

    def _reap(self) -> dict[int, int]:
        ended = _reap()
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
                self.app_began = time.monotonic() - self.app.age_s()
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
        _killed(outcome, "the profiler" if self.app_end is not None else "the program", why)
        proctree.send(self.owner.below(), signal.SIGKILL)


def _killed(outcome: Outcome, who: str, why: str) -> None:
    finding = Finding("killed", "warning", f"{who} was killed", why)
    if finding not in outcome.killed:
        outcome.killed.append(finding)


def _reap() -> dict[int, int]:
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


def flush_streams() -> None:
    """What we printed ourselves comes before what the command prints."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
