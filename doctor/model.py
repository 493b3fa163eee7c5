"""What the doctor looks at and what it says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from profrun.backends.host import HostFacts

State = Literal["ok", "warn", "fail"]
COLLECTORS = ("none", "torch", "nsys", "ncu", "rocprof")


@dataclass(frozen=True)
class Line:
    """One thing that was looked at.

    Attributes:
        check: short name, e.g. ``engine``.
        where: ``host``, or the reference of an image.
        state: ok; warn: something will be missing or slow; fail: something cannot be collected.
        found: what is there.
        means: what follows from it, and for which collector; None when nothing does.
        fix: what to do; None when nothing need be done.
    """

    check: str
    where: str
    state: State
    found: str
    means: str | None = None
    fix: str | None = None


@dataclass(frozen=True)
class Engine:
    """The container engine as it describes itself.

    Attributes:
        runtimes: names of its configured runtimes.
        root: folder of its images, and ``free`` bytes there; None when not on this machine.
    """

    name: str
    version: str
    api: str
    architecture: str
    runtimes: tuple[str, ...] = ()
    root: str | None = None
    free: int | None = None


@dataclass(frozen=True)
class Inside:
    """One image, as found by running it.

    Attributes:
        preflight: what the wrapper's own preflight says inside (``run.py --preflight --json``).
        contents: versions found inside (``images.inspect``).
        problem: why it could not be run or must not be used, or None.
    """

    reference: str
    digest: str = ""
    preflight: Mapping[str, Any] = field(default_factory=dict)
    contents: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class Machine:
    """Everything that the checks read.

    Attributes:
        engine_problem: why no engine answers, as one line; None when one does.
        preflight: the wrapper's preflight of this machine itself.
        torch: version of torch in the Python that runs profrun, or None.
        parser: whether the compiled parser of torch's traces is there.
        shm: bytes of /dev/shm, or None.
        disks: (what for, path, free bytes).
        gpu_names: as the driver names them, when it was asked.
        leftovers: (container id, run, trial, state) of our containers that nobody drives.
    """

    host: HostFacts
    engine: Engine | None = None
    engine_problem: str | None = None
    preflight: Mapping[str, Any] = field(default_factory=dict)
    torch: str | None = None
    parser: bool = False
    shm: int | None = None
    disks: tuple[tuple[str, str, int], ...] = ()
    gpu_names: tuple[str, ...] = ()
    images: tuple[Inside, ...] = ()
    leftovers: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Can a collector work, and where.

    Attributes:
        local: on this machine itself.
        images: reference -> can it work inside.
        reasons: why not, one line each.
    """

    collector: str
    local: bool
    images: Mapping[str, bool] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def works(self, backend: str | None) -> bool:
        """On this backend (local or docker), or on any when None."""
        inside = any(self.images.values())
        return {"local": self.local, "docker": inside}.get(backend or "", self.local or inside)
