"""Runs one command to its end: output teed, signals as docs/architecture.md says, nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from ..contract.command import OUTPUT_BYTES
from . import memory_kills, proctree
from .command_end import Outcome, start_error
from .command_watch import BLOCKED, STOPS, Watch, reap
from .tee import Tee

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .guard import Guard
    from .recording_watch import RecordingWatch
    from .tool_start import ToolStart

STRAY_S = 2.0  # for processes left behind to end by themselves
TOLD_TOGETHER_S = 1.0
"""Seconds. A batch system sends SIGTERM to all processes of a job, one after another, and the wrapper may be
the last one. A signal that reaches it so soon after the program ended by SIGTERM is the cause of that end."""


class Supervisor:
    """Runs commands one after another and hears the signals that end them.

    Args:
        folder: the trial folder, for the logs.
        suffix: before '.log' in their names, for ranks beyond the first.
        grace: seconds between the request to end and the kill.
        echo: copy what the commands print to this process's own streams.
        output_bytes: about how much of each of stdout and stderr is kept.
        overdue: whether another rank has failed and the program is not to wait for it any longer.
        guard: is told of each command, and ends it if this process is killed.

    Attributes:
        aside: pids of children that are no part of the program: they may end after it and are not killed.
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
        guard: Guard | None = None,
    ) -> None:
        self.folder = folder
        self.suffix = suffix
        self.grace = grace
        self.echo = echo
        self.output_bytes = output_bytes
        self.overdue = overdue
        self.stopped_by: str | None = None
        self.guard = guard
        self.aside: set[int] = set() if guard is None else {guard.pid}
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
        recorded: Callable[[], bool] = lambda: False,
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
            recorded: whether the profiler has written its recording.
        """
        outcome = Outcome(stopped_by=self.pending())
        if outcome.stopped_by:
            outcome.error = "it was asked to end before the command was started"
            return outcome
        began, kills = time.monotonic(), memory_kills.count()
        try:
            child = self._start(argv, env, cwd)
        except OSError as error:
            outcome.error = start_error(argv, cwd, error, env.get("PATH"))
            return outcome
        watch = Watch(
            self, child.pid, began, tuple(app or argv), tool, limit, finalise, on_app_end, recording, recorded
        )
        watch.tool_start = tool_start
        watch.overdue = self.overdue if app is not None else None
        outcome.status = watch.loop(outcome)
        child.returncode = 0  # reaped here, not by subprocess
        if outcome.stopped_by is None and _terminated(outcome.status):
            outcome.stopped_by = self.hear(TOLD_TOGETHER_S)
        outcome.memory = memory_kills.since(kills)
        self._sweep(outcome)
        self._end_tees(outcome)
        return outcome

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        mask = self._old_mask
        end_with_us = proctree.ends_with_parent()

        def before_it_starts() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            end_with_us()

        child = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=before_it_starts,
        )
        if self.guard is not None:
            self.guard.watch(child.pid)
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
        outcome.strays += [" ".join(process.argv)[:120] or str(process.pid) for process in left]
        proctree.end(self._left, STRAY_S)

    def _left(self) -> list[proctree.Process]:
        reap()
        return self.below()

    def below(self) -> list[proctree.Process]:
        """All processes below this one but those that are ``aside``."""
        return [process for process in proctree.descendants(os.getpid()) if process.pid not in self.aside]

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


def _terminated(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM


def flush_streams() -> None:
    """What we printed ourselves comes before what the command prints."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
