"""Processes below the wrapper, read from /proc: who is the user's program, who is the profiler."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .procfs import command_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.05
_GONE_S = 10.0
"""So long the kernel may take to remove a killed process, e.g. one that waits for a disk."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh", "busybox"})


@dataclass(frozen=True)
class Process:
    """One live process. ``started`` (clock ticks since boot) tells a reused pid apart. Its parent and its
    session may change while it stays the same process."""

    pid: int
    parent: int = field(compare=False)
    session: int = field(compare=False)
    started: int

    @property
    def argv(self) -> tuple[str, ...]:
        """Its command line; empty when it is gone."""
        return command_line(self.pid)

    @property
    def program(self) -> str:
        """Path of its executable; empty when it is gone or not ours to see."""
        try:
            return os.readlink(f"/proc/{self.pid}/exe")
        except OSError:
            return ""

    @property
    def is_shell(self) -> bool:
        """Whether a signal to it would not reach what it runs."""
        return os.path.basename(self.program) in _SHELLS

    def age_s(self) -> float:
        """Seconds since it was started, within one clock tick."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK")

    def alive(self) -> bool:
        """Whether this very process runs still."""
        now = _read(self.pid)
        return now is not None and now.started == self.started


def become_subreaper() -> bool:
    """Orphans below us become our children, so that none is lost. False where the kernel cannot."""
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def ends_with_parent() -> Callable[[], None]:
    """What a child calls before it executes its program, so that the kernel sends it SIGTERM when its parent
    is gone, however that ended (prctl(2), PR_SET_PDEATHSIG). It does nothing where the kernel cannot.

    To be called in the parent, in the thread that starts the child: the kernel watches that thread.
    """
    parent = os.getpid()
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return lambda: None

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # it has ended already, and nobody will send the signal
            os.kill(os.getpid(), signal.SIGTERM)

    return ask


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/<pid>/stat from the state on; empty when it is gone."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return content[content.rfind(b")") + 2 :].split()


def _read(pid: int) -> Process | None:
    fields = _stat(pid)
    if not fields or fields[0] in (b"Z", b"X"):  # dead, only not waited for yet
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def everyone() -> list[Process]:
    """All live processes of this machine that are to be seen; none where there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    found = (_read(int(name)) for name in names if name.isdigit())
    return [process for process in found if process is not None]


def descendants(*roots: int) -> list[Process]:
    """All live processes below these, parents before children."""
    children: dict[int, list[Process]] = {}
    for process in everyone():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = list(roots)
    while queue:
        for child in children.get(queue.pop(0), ()):
            found.append(child)
            queue.append(child.pid)
    return found


def upwards(pid: int) -> list[Process]:
    """A live process and those above it, the nearest first; empty when it is gone."""
    found: list[Process] = []
    process = _read(pid)
    while process is not None and process not in found:
        found.append(process)
        process = _read(process.parent)
    return found


def chain(process: Process, root: int) -> list[Process]:
    """The live processes above one, from its parent to ``root``; none where it is not below ``root``."""
    above = upwards(process.parent)
    pids = [one.pid for one in above]
    return above[: pids.index(root) + 1] if root in pids else []


@dataclass(frozen=True)
class Work:
    """What processes have done up to now.

    Attributes:
        cpu_s: CPU time, seconds, with that of their children that have ended.
        io_bytes: bytes that they have read and written; of those that may not be read none.
        waits_for_disk: whether one of them waits for a disk or a network filesystem now.
    """

    cpu_s: float = 0.0
    io_bytes: int = 0
    waits_for_disk: bool = False


def work(processes: Iterable[Process]) -> Work:
    """What these have done; those that are gone count nothing."""
    ticks = bytes_ = 0
    waits = False
    for process in processes:
        fields = _stat(process.pid)
        if not fields:
            continue
        ticks += sum(int(field) for field in fields[11:15])
        waits = waits or fields[0] == b"D"
        bytes_ += _io_bytes(process.pid)
    return Work(ticks / os.sysconf("SC_CLK_TCK"), bytes_, waits)


def _io_bytes(pid: int) -> int:
    try:
        rows = Path(f"/proc/{pid}/io").read_text("ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return sum(int(row.split()[1]) for row in rows if row.startswith(("rchar:", "wchar:")))


def find_app(below: int, argv: Sequence[str], tool: str | None) -> Process | None:
    """The user's process: the topmost whose command line is the user's, behind a '#!' interpreter or not.

    Args:
        below: pid of the process that was started (the profiler, or the program itself).
        argv: the user's command.
        tool: path of the profiler, None when there is none.
    """
    own = _read(below)
    if tool is None:
        return own
    for process in ([own] if own is not None else []) + descendants(below):
        if is_command(process.argv, argv):
            return process
    return None


def is_command(running: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a running command line is that of ``argv``, the same or behind two words of a '#!' line."""
    if not running:
        return False
    tail = tuple(argv[1:])
    for extra in (0, 1, 2):
        shown = tuple(running[extra:])
        if not shown or shown[1:] != tail:
            continue
        if os.path.basename(shown[0]) == os.path.basename(argv[0]):
            return True
    return False


def send(processes: Iterable[Process], number: int) -> None:
    """Signal them; those that are gone meanwhile are no error."""
    for process in processes:
        if not process.alive():
            continue
        try:
            os.kill(process.pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def end_app(app: Process, *, everyone: bool) -> None:
    """SIGTERM to the user's process; to all below it too when it is a shell, or when it did not help."""
    below = descendants(app.pid) if everyone or app.is_shell else []
    send([app, *below], signal.SIGTERM)


def end(find: Callable[[], Sequence[Process]], grace: float) -> list[Process]:
    """SIGTERM to processes, then SIGKILL to those that are left; returns all that were found at first.

    Args:
        find: those that are still there. It is asked again and again: they may start others.
        grace: seconds between the two.
    """
    found = list(find())
    send(found, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and find():
        time.sleep(_LOOK_S)
    deadline = time.monotonic() + _GONE_S
    while (left := find()) and time.monotonic() < deadline:
        send(left, signal.SIGKILL)
        time.sleep(_LOOK_S)
    return found
