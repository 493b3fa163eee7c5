"""Notices a profiler that has lost a part of itself, or that waits without end: ``ToolLife``.

A profiler may be several processes: `nsys profile` starts a launcher, that starts the program, and an agent
collects. If one of them is killed, the others go on waiting for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import proctree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Callable

LOOK_S = 0.5
"""Seconds between two looks at what the profiler does."""
LEAST_S = 5.0
"""A profiler that does nothing for less than this is never taken for one that hangs."""
_SHARE = 0.05
"""Of a core: a profiler that uses less waits. An agent of nsys 2024.2.3 that waits in vain uses 0.013."""
_BYTES = 65536
"""Bytes that a profiler which waits may read and write all the same."""


class ToolLife:
    """Whether the profiler round a program is whole, and does something.

    Args:
        tool: path of the profiler.
        root: pid of the process that was started.
        patience: seconds without work after which a profiler hangs; at least ``LEAST_S`` count.
        recorded: whether it has written its recording: then it may end before the program, as nsys does
            when its ``duration`` is over.

    Attributes:
        patience: the seconds that count.
    """

    def __init__(
        self, tool: str, root: int, patience: float, recorded: Callable[[], bool] = lambda: False
    ) -> None:
        self._name = os.path.basename(tool)
        self._root = root
        self._recorded = recorded
        self.patience = max(patience, LEAST_S)
        self._chain: list[tuple[proctree.Process, str]] = []
        self._homes = {os.path.dirname(os.path.realpath(tool))}
        self._processes: frozenset[proctree.Process] = frozenset()
        self._since: float | None = None  # when it was last seen to do something
        self._next_look = 0.0
        self._work = proctree.Work()

    def seen(self, app: proctree.Process) -> None:
        """The program was found: from now on the profiler is what stands between it and the wrapper."""
        if app.pid == self._root:  # the profiler has become the program
            return
        above = proctree.chain(app, self._root)
        self._chain = [(process, os.path.basename(process.program)) for process in above]
        self._homes |= {
            os.path.dirname(process.program) for process, name in self._chain if name.startswith(self._name)
        }

    def lost(self, app: proctree.Process) -> str | None:
        """The name of a part that is gone though the program still runs; None: all are there."""
        for process, name in self._chain:
            if not process.alive():
                if self._recorded():
                    self._chain = []
                    return None
                return name if app.alive() else None  # asked last: in a usual end the program goes first
        return None

    def hangs(self, processes: Sequence[proctree.Process], now: float) -> bool:
        """Whether these have done nothing for so long that nothing more is to come.

        Args:
            processes: the profiler's and what else runs below the wrapper.
            now: seconds of a monotonic clock.
        """
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_S
        work = proctree.work(processes)
        busy = (
            self._since is None
            or frozenset(processes) != self._processes
            or work.waits_for_disk
            or work.cpu_s - self._work.cpu_s > _SHARE * max(now - self._since, LOOK_S)
            or work.io_bytes - self._work.io_bytes > _BYTES
        )
        if busy:
            self._processes, self._since, self._work = frozenset(processes), now, work
        assert self._since is not None
        return now - self._since >= self.patience

    def not_its_own(self, processes: Iterable[proctree.Process]) -> list[proctree.Process]:
        """Those that the program has left: the profiler may wait for them."""
        parts = {process.pid for process, _name in self._chain} | {self._root}
        return [
            process
            for process in processes
            if process.pid not in parts
            and process.parent not in parts
            and os.path.dirname(process.program) not in self._homes
        ]

    def alone(self, processes: Iterable[proctree.Process]) -> bool:
        """Whether all of these are surely the profiler's, by their names."""
        return all(
            any(os.path.basename(word).startswith(self._name) for word in process.argv[:3])
            for process in processes
        )
