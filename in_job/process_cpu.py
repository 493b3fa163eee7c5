"""CPU time of a tree of processes, cheap enough to be read ten times a second."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .procfs import command_line, read_again

if TYPE_CHECKING:
    from collections.abc import Sequence

_PASSES = 3


class _Member:
    """A process of the tree: its open file, and the ticks that it had at the last reading."""

    __slots__ = ("children", "stat", "ticks")

    def __init__(self, stat: int, children: int | None) -> None:
        self.stat = stat
        self.children = children
        self.ticks = 0


class TreeCpu:
    """CPU time of the trial's processes.

    It is the time of all processes in the tree, with that of the children that they have waited for. So the
    time of a process is not lost when it ends: it moves to its parent. New processes are found among the
    children of the main thread of each known process at each reading, and by ``scan`` (children of other
    threads). A process that ``scan`` finds counts from then.

    Args:
        roots: pids of the wrappers.
        same: last arguments of command lines that are wrappers of this trial, too.
        root: where /proc is.
    """

    def __init__(self, roots: Sequence[int], same: tuple[str, ...] = (), root: str = "") -> None:
        self._proc = f"{root}/proc"
        self._same = same
        self._own = os.getpid()
        self._members: dict[int, _Member] = {}
        self._others: set[int] = set()  # pids that are known to be no wrapper
        self._late = 0  # ticks of processes from before they were found
        self._last = 0
        for pid in roots:
            self._add(pid, late=True)

    def ticks(self) -> int | None:
        """Clock ticks that the tree has used, None when it is gone."""
        for _ in range(_PASSES):
            if not self._read_all():
                break  # nobody ended meanwhile: no time is between a process and its parent
        if not self._members:
            return None
        total = sum(member.ticks for member in self._members.values()) - self._late
        if total < self._last:  # of a process that ended without being waited for the time is gone
            self._late -= self._last - total
        self._last = max(self._last, total)
        return self._last

    def _read_all(self) -> bool:
        """Read every process, and take new children in; whether a process has ended since the last time."""
        ended = False
        queue = list(self._members)
        for pid in queue:  # grows by the children that are found
            member = self._members[pid]
            read = read_again(member.stat)
            if not read:
                self._drop(pid)
                ended = True
                continue
            member.ticks = _ticks(read)
            queue += [child for child in self._children(member) if self._add(child, late=False)]
        return ended

    def _children(self, member: _Member) -> list[int]:
        return [] if member.children is None else [int(pid) for pid in read_again(member.children).split()]

    def _add(self, pid: int, *, late: bool) -> bool:
        """Take a process in. ``late``: what it has used so far does not count."""
        if pid in self._members or pid == self._own:
            return False
        folder = f"{self._proc}/{pid}"
        try:
            stat = os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            children: int | None = os.open(f"{folder}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # it is gone, or the kernel has no such file
            children = None
        self._members[pid] = member = _Member(stat, children)
        member.ticks = _ticks(read_again(stat))
        if late:
            self._late += member.ticks
        return True

    def _drop(self, pid: int) -> None:
        member = self._members.pop(pid)
        os.close(member.stat)
        if member.children is not None:
            os.close(member.children)

    def scan(self) -> None:
        """Look at all processes of the host for those below a known one."""
        parents: dict[int, int] = {}
        for name in os.listdir(self._proc):
            if name.isdigit() and int(name) not in self._members:
                parents[int(name)] = _parent(f"{self._proc}/{name}/stat")
        for pid in parents:
            if self._same and pid not in self._others and not self._is_wrapper(pid):
                self._others.add(pid)
        self._others &= parents.keys()
        found = True
        while found:
            found = False
            for pid, parent in list(parents.items()):
                if parent in self._members:
                    del parents[pid]
                    found |= self._add(pid, late=True)

    def _is_wrapper(self, pid: int) -> bool:
        """Take a further wrapper of the trial in; whether it is one."""
        words = command_line(pid, self._proc)
        return words[-len(self._same) :] == self._same and self._add(pid, late=True)


def _ticks(stat: bytes) -> int:
    """utime, stime, cutime and cstime of a stat file together (proc(5)); 0 of an empty one."""
    fields = stat[stat.rfind(b")") + 2 :].split(None, 15)
    return sum(map(int, fields[11:15])) if len(fields) > 15 else 0


def _parent(path: str) -> int:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        stat = read_again(number)
    finally:
        os.close(number)
    fields = stat[stat.rfind(b")") + 2 :].split(None, 2)
    return int(fields[1]) if len(fields) > 1 else -1
