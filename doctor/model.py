"""What the doctor reads (``Machine``) and what it says (``CheckResult``, ``Verdict``), as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profrun.backends.docker.survey import Survey
from profrun.backends.gpu_choice import GpuSurvey
from profrun.backends.host import HostFacts
from profrun.contract.finding import Finding, Passed, Severity
from profrun.contract.preflight import Preflight

HOST = "host"
"""Where something was checked that is no image."""


@dataclass(frozen=True)
class CheckResult:
    """One thing that was checked.

    Attributes:
        where: ``host``, or the reference of an image.
        result: what was found; of a finding ``why`` is what follows from it, and for which collector.
    """

    where: str
    result: Passed | Finding

    @property
    def severity(self) -> Severity | None:
        """Severity of the finding; None when the check passed."""
        return self.result.severity if isinstance(self.result, Finding) else None


@dataclass(frozen=True)
class Machine:
    """Everything that the checks read.

    Attributes:
        found: this machine and what its container engine said.
        preflight: the wrapper's preflight of this machine itself.
        packages: Python package that a profiler requires -> its version in the Python that runs profrun.
        reading: what profilers say of reading their files on this machine.
        shm: bytes of /dev/shm, or None.
        disks: (what for, path, free bytes).
        gpu_names: as the driver names them, when it was asked.
        gpus: who uses them.
    """

    found: Survey
    preflight: Preflight
    packages: Mapping[str, str] = field(default_factory=dict)
    reading: tuple[Passed | Finding, ...] = ()
    shm: int | None = None
    disks: tuple[tuple[str, str, int], ...] = ()
    gpu_names: tuple[str, ...] = ()
    gpus: GpuSurvey = field(default_factory=GpuSurvey)

    @property
    def host(self) -> HostFacts:
        """This machine's files."""
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
