"""One case in a process of its own: with limits on memory and time, and a judgement of how it ended.

The process is a fork of this one, in which profrun is loaded already, so that a case costs milliseconds more
than the work itself. Nothing in this process may start a thread before that: DuckDB is loaded but not used.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["read", "refused", "crashed", "too slow", "too big"]
OUTCOMES: tuple[Outcome, ...] = ("read", "refused", "crashed", "too slow", "too big")

ADDRESS_SPACE = 4 << 30
"""Bytes of address space that a case may use."""
MOST_MEMORY = 1 << 30
"""Bytes of memory that a case may have used at its peak."""
CPU_SECONDS = 60
PATIENCE_S = 600
"""Wall time, on a loaded machine, after which a case hangs."""
LONGEST_LINE = 2000
"""Characters of a line of stderr: a message names a value, it does not repeat a file."""

ANSWERED = {0, 1, 2}
REFUSED = {64, 65, 69}
ESCAPED = 99
"""An exception left ``cli.run``."""


@dataclass(frozen=True)
class Ended:
    """How a case ended.

    Attributes:
        outcome: the judgement.
        code: the last exit code, or minus the signal.
        said: stderr, or the reason of the judgement before it.
        seconds: CPU time.
        peak: bytes of memory.
    """

    outcome: Outcome
    code: int
    said: str
    seconds: float
    peak: int


def load() -> None:
    """Import what the cases will need, so that no child does it again."""
    import adbc_driver_manager
    import adbc_driver_sqlite
    import duckdb
    import numpy as np

    from profrun.cli import app

    del adbc_driver_manager, adbc_driver_sqlite, duckdb, np
    for names in app.COMMANDS.values():
        for name in names:
            app.module_of(name)
    from profrun.analysis.rules import diagnose
    from profrun.analysis.trace import summary
    from profrun.collectors import normalize
    from profrun.reports import page, terminal
    from profrun.runner import pipeline, report
    from profrun.store import state

    del diagnose, summary, page, terminal, pipeline, report, state
    list(normalize.readers())


def carry_out(lines: tuple[tuple[str, ...], ...], folder: Path) -> Ended:
    """Carry out command lines one after another in ``folder``, until one does not answer."""
    out, err = folder / "stdout", folder / "stderr"
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = ESCAPED
        try:
            code = _in_child(lines, folder, out, err)
        except BaseException:
            with contextlib.suppress(Exception):
                err.open("a").write(traceback.format_exc())
        finally:
            os._exit(code)
    status, usage = _wait(pid, began + PATIENCE_S)
    said = err.read_text(errors="replace") if err.exists() else ""
    return _judge(
        os.waitstatus_to_exitcode(status), said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    )


def _wait(pid: int, until: float) -> tuple[int, resource.struct_rusage]:
    """Wait for a child, and end it when its time is over."""
    pause = 0.001
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return status, usage
        if time.monotonic() > until:
            os.kill(pid, signal.SIGXCPU)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _in_child(lines: tuple[tuple[str, ...], ...], folder: Path, out: Path, err: Path) -> int:
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A test process of long life has gigabytes of address space: no thread of the child could start.
    held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ADDRESS_SPACE, held + ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    os.chdir(folder)
    for fd, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), encoding="utf-8", errors="strict")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), encoding="utf-8", errors="backslashreplace")
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        os.environ[name] = str(folder)
    from profrun import cli

    code = 0
    for words in lines:
        code = cli.run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        if code not in ANSWERED:
            break
    return code


def _judge(code: int, said: str, seconds: float, peak: int) -> Ended:
    longest = max(map(len, said.splitlines()), default=0)
    outcome: Outcome = "read" if code in ANSWERED else "refused" if code in REFUSED else "crashed"
    if code == -signal.SIGXCPU:
        outcome = "too slow"
    elif "MemoryError" in said or "Cannot allocate memory" in said or peak > MOST_MEMORY:
        outcome = "too big"
    elif outcome == "refused" and longest > LONGEST_LINE:
        outcome, said = "crashed", f"a line of {longest} characters: {said}"
    elif outcome == "refused" and not said.strip():
        outcome, said = "crashed", "nothing was said"
    elif "Traceback (most recent call last)" in said:
        outcome = "crashed"
    return Ended(outcome, code, said, seconds, peak)
