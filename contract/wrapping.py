"""How a profiler wraps a command: what it is given (``WrapRequest``) and what it returns (``Wrapped``).

The ``wrap.py`` of a profiler has::

    def wrap(request: WrapRequest) -> Wrapped    # pure: no file, no process, no environment is touched
    def reason(log, *, windowed, reported) -> str | None    # optional: why nothing was recorded
    def not_started(log) -> str | None    # optional: why the tool failed before it started the program

A profiler whose tool may leave files that can still be made into reports has an ``unfinished.py`` with::

    def imports(folder: Path, tool: str) -> tuple[Import, ...]    # what to run for the files in a folder
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .command import Command
from .schedule import Schedule

ATTEMPTS = 3
"""How often the start of a tool, an ``Import``, or ``Limits.stop`` is tried before it counts as failed."""


@dataclass(frozen=True)
class WrapRequest:
    """What a collector is asked to wrap.

    Attributes:
        argv: the user's command.
        schedule: which steps to record.
        options: the profiler's options; ``codec.from_json`` makes its dataclass of them.
        out: folder for this rank's files as the job sees it; exists and is empty.
        tool: path of the profiler, or its bare name when unknown (dry run away from the job).
        version: its version as numbers, e.g. (2024, 2, 3); None when unknown.
        vendor: nvidia, amd or none.
        ranks: processes of the trial in total.
        ranges: module depth of automatic ranges (0: none).
        whole: the run is recorded as a whole, from its begin to its end or until a limit of the schedule
            (``max_seconds``, ``max_size``) is reached, because it has no steps (``Ranges.whole``).
    """

    argv: tuple[str, ...]
    schedule: Schedule
    options: Mapping[str, object]
    out: str
    tool: str
    version: tuple[int, ...] | None = None
    vendor: str = "none"
    ranks: int = 1
    ranges: int = 0
    whole: bool = False

    @classmethod
    def of(
        cls,
        command: Command,
        options: Mapping[str, object],
        *,
        out: str,
        tool: str,
        version: tuple[int, ...] | None,
        vendor: str,
    ) -> WrapRequest:
        """The request for a trial's command: the only way that one is made, in the job and in a dry run."""
        return cls(
            argv=command.argv,
            schedule=command.schedule,
            options=options,
            out=out,
            tool=tool,
            version=version,
            vendor=vendor,
            ranks=command.ranks,
            ranges=command.ranges.modules or 0,
            whole=command.ranges.whole,
        )


@dataclass(frozen=True)
class Limits:
    """When the recording by a profiler round the program is ended, while the program goes on.

    Attributes:
        stop: the command that ends the recording; it runs in the environment of the wrapped command.
        seconds: how long is recorded from the program's first use of a GPU on, or from its start where there
            is no GPU; None: as long as the program runs.
        size: bytes that the files of the recording may have.
    """

    stop: tuple[str, ...]
    seconds: float | None
    size: int


@dataclass(frozen=True)
class Wrapped:
    """What to run instead.

    Attributes:
        argv: the whole command.
        env: variables to set, over the trial's own.
        hook: what the hook inside must do at the window's edges: 'cuda' (cudaProfilerStart/Stop), 'roctx'
            (roctxProfilerResume/Pause), 'in_process' (drive the ``Recorder`` of the profiler's own
            ``in_process.py``), 'none' (time steps only).
        emitter: where the hook sends ranges: 'nvtx', 'roctx', 'in_process' (the ``Emitter`` of the
            profiler's recorder) or None.
        finalise_s: how long the tool may need to write after the app ended, seconds.
        export: commands to run afterwards in the job, e.g. nsys export; '{file}' stands for each report.
        expected: globs, relative to ``out``, of what must be there afterwards.
        named_last: globs, relative to ``out``, of files that get these names only when the tool ends by
            itself: where one is there it did so, also before the program.
        passes: further argvs to run one after another (rocprofv3 --pmc groups), else empty.
        limits: when the wrapper ends the recording from outside; None where the tool itself does, or nothing.
        notes: what was degraded or chosen, in words.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    hook: str = "none"
    emitter: str | None = None
    finalise_s: float = 30.0
    export: tuple[tuple[str, ...], ...] = ()
    expected: tuple[str, ...] = ()
    named_last: tuple[str, ...] = ()
    passes: tuple[tuple[str, ...], ...] = ()
    limits: Limits | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Import:
    """A command that makes a report of a file which the tool left unfinished.

    Attributes:
        argv: the command.
        unfinished: the file.
        made: where the command writes the report; a failed attempt may leave a part of it there.
        report: where the whole report shall be.
        libraries: folders that the loader must look through before others (LD_LIBRARY_PATH).
    """

    argv: tuple[str, ...]
    unfinished: Path
    made: Path
    report: Path
    libraries: tuple[str, ...] = ()

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """These variables with the importer's own libraries first."""
        own = environ.get("LD_LIBRARY_PATH", "")
        return {**environ, "LD_LIBRARY_PATH": ":".join((*self.libraries, *([own] if own else [])))}

    def settle(self, code: int | None) -> bool:
        """After an attempt: move a whole report to its place, or delete the part of one.

        Args:
            code: exit code of the command; None when a signal ended it.

        Returns:
            Whether the report is there.
        """
        if code == 0 and self.made.is_file():
            self.made.replace(self.report)
            return True
        self.made.unlink(missing_ok=True)
        return False
