"""How a profiler that runs inside the program is driven: the ``in_process.py`` of its folder.

A profiler whose ``wrap`` returns ``Wrapped(hook="in_process")`` has, in ``in_process.py``::

    def recorder(context: RecordingContext) -> Recorder

The hook makes one recorder in each process that imports torch, right after that import and before it changes
anything in torch. It starts and stops the recorder at the edges of the recorded steps, once per cycle of the
schedule. Like everything that is shipped into a job, the module uses the standard library only, relative
imports, and runs on Python 3.9; what the image has besides (torch, triton) is imported inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Literal, Protocol

from .finding import Finding
from .schedule import StepSchedule


@dataclass(frozen=True)
class Rank:
    """Which process of a trial this is, as the launcher (torchrun, MPI, Slurm) counts them."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1


@dataclass(frozen=True)
class RecordingContext:
    """What a recorder is given.

    Attributes:
        torch: the imported torch module.
        schedule: which steps are recorded. It is not known before the window opens where the schedule waits
            for the steady state: ask for each step.
        options: the profiler's options; ``codec.from_json`` makes its dataclass of them.
        rank: gives the rank of this process. It is known only once ``torch.distributed`` is initialised:
            ask when something is written, not before.
        folder: makes and gives the folder for the files of this process's rank; ask as late.
        warn: takes a finding for ``exit.json``; the same one counts once.
    """

    torch: Any
    schedule: StepSchedule
    options: Mapping[str, object]
    rank: Callable[[], Rank]
    folder: Callable[[], Path]
    warn: Callable[[Finding], None]


class Emitter(Protocol):
    """Opens and closes named ranges of the calling thread in what a profiler records."""

    @property
    def name(self) -> str:
        """What ``steps.json`` says under ``emitter``."""

    @property
    def hears_record_function(self) -> bool:
        """Whether ranges of ``torch.profiler.record_function`` are recorded without it."""

    def push(self, name: str) -> object:
        """Open a range; returns what ``pop`` needs, never None."""

    def pop(self, handle: Any) -> None:
        """Close a range. Ranges of one thread are closed in the reverse order of their opening."""


class Recorder(Protocol):
    """Records some steps of this process, cycle after cycle."""

    @property
    def starts_at(self) -> Literal["warmup", "active"]:
        """The part of a cycle before whose first step it is started."""

    @property
    def names_steps(self) -> bool:
        """Whether it records a range per step by itself; else the hook emits ``profrun.step#<n>``."""

    @property
    def is_torch_profiler(self) -> bool:
        """Whether it is ``torch.profiler``. Torch runs one at a time: the program's own is switched off."""

    @property
    def memory_factor(self) -> float:
        """How many times the memory of what is recorded is needed when it is stopped and written."""

    @property
    def emitter(self) -> Emitter | None:
        """Where ranges go when ``Wrapped.emitter`` is 'in_process'; None when it has no ranges."""

    def start(self, step: int, *, whole: bool = False) -> None:
        """Begin a cycle; the step of this number begins next.

        Args:
            step: counts from 0.
            whole: everything until ``stop`` is recorded, whatever the schedule says; there are no steps. A
                recorder that names steps puts the range ``RUN_RANGE`` round it.

        Raises:
            CannotRecordError: this process cannot be recorded.
        """

    def step(self) -> None:
        """A step has ended and the next one of the same cycle begins."""

    def stop(self) -> None:
        """The cycle, or the program, has ended: stop recording and write what there is."""

    def discard(self) -> None:
        """Stop recording and write nothing: the steps turned out to be found in the wrong way."""


class CannotRecordError(Exception):
    """A recorder cannot record this process; ``finding`` says why.

    Args:
        later: it may be able to at a later step: it is asked again then.
    """

    def __init__(self, finding: Finding, *, later: bool = False) -> None:
        super().__init__(str(finding))
        self.finding = finding
        self.later = later
