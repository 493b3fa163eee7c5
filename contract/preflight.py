"""What ``run.py --preflight --json`` prints: which collectors can record in this image on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from .finding import Finding

FORMAT = 2


@dataclass(frozen=True)
class Readiness:
    """Whether one collector can record here.

    Attributes:
        usable: no finding is critical.
        profiler: what the collector became; None when no profiler can do it here.
        tool: path of the profiler's executable; None for a profiler without one, or when it is not there.
        version: of the executable.
        reason: why there is no profiler, one sentence; None when there is one.
        findings: the gravest first.
    """

    usable: bool
    profiler: str | None = None
    tool: str | None = None
    version: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Preflight:
    """The whole answer.

    Attributes:
        vendor: whose GPUs were found: nvidia, amd or none; ``vendor_by``: how.
        gpus: one row per GPU, in the words of the vendor's tool.
        collectors: for each collector that was asked for.
    """

    vendor: str
    vendor_by: str
    gpus: tuple[dict[str, object], ...] = ()
    collectors: dict[str, Readiness] = field(default_factory=dict)
    format: int = FORMAT
