"""What the wrapper tells the hook: ``HookConfig``, a JSON file that the variable ``PROFRUN_HOOK`` names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from ..contract.codec import from_json
from ..contract.command import Ranges
from ..contract.paths import TrialPaths
from ..contract.results import Results
from ..contract.schedule import Schedule


@dataclass(frozen=True)
class HookConfig:
    """The hook's orders.

    Attributes:
        folder: the trial folder.
        collector: the collector as the job names it; ``profiler``: what it became.
        hook: what to do at the window's edges (``Wrapped.hook``).
        emitter: where ranges go (``Wrapped.emitter``).
        exclusive: the profiler takes the GPU's tracing interface (``Profiler.exclusive``).
        unwind: leave through ``SystemExit`` on SIGTERM: the profiler round the program loses what it has
            buffered of a program that is killed.
        options: the profiler's options.
        values: of the variant: what is known of the work per step.
        run: 0 for the first run of the command, n for the n-th further pass of a counter collection.
        scratch: where profilers inside the program write, in one folder per rank; None: the trial's folder.
        recorded: the ranks that a profiler inside the program records; None: all.
        changes: what the hook changes in the program, as jobs write it (``contract.changes``); None: the code
            that makes changes is not loaded.
        results: which values that the program computes are kept; None: none.
        tool_version: the profiler's version as numbers, or empty.
        wrapper: rank of the wrapper that started the command. Two containers may have the same host name
            and the same pids, so it is part of the names of files.
    """

    folder: str
    collector: str = "none"
    profiler: str = "none"
    hook: str = "none"
    emitter: str | None = None
    exclusive: bool = False
    unwind: bool = False
    schedule: Schedule = field(default_factory=Schedule)
    ranges: Ranges = field(default_factory=Ranges)
    options: dict[str, object] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    blocking: bool = False
    run: int = 0
    recorded: tuple[int, ...] | None = None
    scratch: str | None = None
    tool_version: tuple[int, ...] = ()
    changes: tuple[str, ...] | None = None
    results: Results | None = None
    wrapper: int = 0

    @property
    def windowed(self) -> bool:
        """Whether recording starts and stops at edges of steps; else nothing or everything is recorded."""
        return self.hook != "none" and not self.ranges.whole

    @property
    def paths(self) -> TrialPaths:
        """Names in the trial folder."""
        return TrialPaths(Path(self.folder))

    def recording(self, rank: int) -> Path:
        """Where a profiler inside the program writes the files of a rank."""
        return self.paths.rank(rank) if self.scratch is None else Path(self.scratch) / f"rank{rank}"

    @classmethod
    def load(cls, path: str) -> HookConfig:
        """Read what ``codec.to_json`` gave.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no JSON document of this kind.
        """
        return from_json(cls, json.loads(Path(path).read_text(encoding="utf-8")))
