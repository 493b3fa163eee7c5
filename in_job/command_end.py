"""How a command ended, or why it could not be started: ``Outcome``, ``start_error``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..contract.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.ends import MemoryKill


@dataclass
class Outcome:
    """How a command ended.

    Attributes:
        status: as os.waitpid gave it; None when it could not be started.
        stopped_by: None, or why it was ended early: 'limit', 'rank' (another one had failed), 'profiler' (it
            had died) or the signal's name.
        strays: command lines of what the command left running.
        killed: what had to be killed.
        hung: whether it was a profiler that could not start the program and had to be killed.
        broken: what became of a profiler that died or had to be killed; None: it did its work to the end.
        memory: whether the kernel killed a process for want of memory meanwhile.
        seen: whether the user's process was seen; a profiler may end before it starts the program.
        loads_hook: whether that process is a Python that loads profrun's hook before the program.
        pid: of the user's process, else of what was started.
        began_ns: when the user's process was started, unix time, ns.
        run_s: seconds from there to its end; under a profiler within 10 ms, the resolution of /proc.
        app_s: seconds from the start of the command, the profiler's own included, to the same end.
        finalise_s: seconds from there to the end of the profiler.
        lost_output: bytes of output that could not be written to the logs.
        missing_output: bytes of output that are not kept because the logs would be too long.
        disk_full: whether the disk of the logs was full.
    """

    status: int | None = None
    error: str | None = None
    stopped_by: str | None = None
    killed: list[Finding] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    hung: bool = False
    broken: str | None = None
    memory: MemoryKill = "unknown"
    seen: bool = False
    loads_hook: bool = False
    pid: int = 0
    began_ns: int = 0
    run_s: float = 0.0
    app_s: float = 0.0
    finalise_s: float = 0.0
    lost_output: int = 0
    missing_output: int = 0
    disk_full: bool = False

    @property
    def code(self) -> int | None:
        """Exit code; None when it was killed by a signal or never started."""
        if self.status is None or not os.WIFEXITED(self.status):
            return None
        return os.WEXITSTATUS(self.status)

    @property
    def signal(self) -> int | None:
        """The signal that killed it, or None."""
        if self.status is None or not os.WIFSIGNALED(self.status):
            return None
        return os.WTERMSIG(self.status)


def start_error(argv: Sequence[str], cwd: str | None, error: OSError, path: str | None) -> str:
    """Why a command could not be started, and what to do, in one sentence."""
    name = argv[0]
    if cwd is not None and not os.path.isdir(cwd):
        return f"the working directory {cwd} is not there: mount it, or set workdir in the job"
    if isinstance(error, FileNotFoundError):
        return f"the command {name!r} was not found: it is not on the PATH of the trial ({path})"
    if isinstance(error, PermissionError):
        return f"the command {name!r} may not be executed: chmod +x it, or start it with its interpreter"
    return f"the command {name!r} could not be started: {error.strerror or error}"
