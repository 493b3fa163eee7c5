"""What the doctor looks at and what it says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from profrun.backends.docker.survey import Survey
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
class Machine:
    """Everything that the checks read.

    Attributes:
        found: what its container engine said.
        preflight: the wrapper's preflight of this machine itself.
        torch: version of torch in the Python that runs profrun, or None.
        parser: whether the compiled parser of torch's traces is there.
        shm: bytes of /dev/shm, or None.
        disks: (what for, path, free bytes).
        gpu_names: as the driver names them, when it was asked.
    """

    found: Survey
    preflight: Mapping[str, Any] = field(default_factory=dict)
    torch: str | None = None
    parser: bool = False
    shm: int | None = None
    disks: tuple[tuple[str, str, int], ...] = ()
    gpu_names: tuple[str, ...] = ()

    @property
    def host(self) -> HostFacts:
        """What its files say."""
        return self.found.host


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
