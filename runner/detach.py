"""A run that goes on by itself: a process of its own drives it."""

from __future__ import annotations

import os
import sys
import time

from profrun.errors import FailedError, InputError, ProfrunError, UnavailableError, UsageError
from profrun.store.events import read_events
from profrun.store.files import appending, explained, last_line
from profrun.store.lock import driving, is_held
from profrun.store.runs import Run


def spawn_driver(run: Run, *, repeat_failed: bool = False) -> int:
    """Start a process of its own that drives the run after this one ended; returns its pid once it does.

    Its output goes to ``driver.log`` in the run's folder.

    Raises:
        UsageError: another process drives the run.
        ProfrunError: it ended before it drove the run; with its last line, and of the kind it ended with.
    """
    if sys.platform == "win32":
        raise AssertionError("a run is made and reopened on Linux only")
    with driving(run.lock, run.name):
        ends = _ends(run)

    # The current folder must not be importable there: it holds the user's modules, not ours.
    code = "import sys; sys.path[:] = [p for p in sys.path if p]; from profrun.cli import main; main()"
    with explained(run.driver_log), appending(run.driver_log) as log:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", code, "resume", *(["--failed"] if repeat_failed else []), str(run.path)],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
            ],
            setsid=True,
        )
    # Until it holds the lock nobody drives the run, and `profrun status` would say so.
    while not is_held(run.lock):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended and _ends(run) == ends:
            raise _ended_early(run, os.waitstatus_to_exitcode(status))
        if ended:
            break
        time.sleep(0.02)
    return pid


def _ends(run: Run) -> int:
    """How often a driver has brought this run to its end."""
    return sum(event["event"] == "done" for event in read_events(run.events).items)


def _ended_early(run: Run, code: int) -> ProfrunError:
    kinds: dict[int, type[ProfrunError]] = {64: UsageError, 65: InputError, 69: UnavailableError}
    return kinds.get(code, FailedError)(
        f"the process that drives {run.name} ended with {code}",
        why=last_line(run.driver_log),
        fix=f"try `profrun resume {run.name}`",
    )
