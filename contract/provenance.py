"""``provenance.json``: on what a trial ran. Clocks are MHz, power W, temperatures C, times unix ns."""

from __future__ import annotations

from dataclasses import dataclass, field

from .command import ImageUsed
from .finding import Finding
from .git_state import GitState
from .steps import Anchor

FORMAT = 2


@dataclass(frozen=True)
class GpuStates:
    """The GPUs before and after a trial, one row per GPU, in the words of the vendor's tool."""

    before: tuple[dict[str, object], ...] = ()
    after: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True)
class TorchVersion:
    """PyTorch, and the CUDA or HIP that it was built for."""

    version: str
    cuda: str | None = None
    hip: str | None = None


@dataclass(frozen=True)
class ToolUsed:
    """The profiler's executable of a trial."""

    name: str | None = None
    path: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class ClockAnchors:
    """The host's clocks when the trial began and when it ended."""

    start: Anchor | None = None
    end: Anchor | None = None


@dataclass(frozen=True)
class Process:
    """What one Python process of the job was."""

    pid: int | None = None
    ppid: int | None = None
    rank: int | None = None
    role: str | None = None
    steps: int | None = None
    used_gpu: bool | None = None
    executable: str | None = None
    argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Machine, software and environment of a trial; None where nothing could tell."""

    trial: str
    attempt: int = 1
    host: str | None = None
    os: str | None = None
    kernel: str | None = None
    machine: str | None = None
    cpus: int | None = None
    cpu: str | None = None
    memory_bytes: int | None = None
    wrapper_python: str | None = None
    vendor: str = "none"
    vendor_by: str | None = None
    gpus: GpuStates = field(default_factory=GpuStates)
    cuda: str | None = None
    rocm: str | None = None
    image: ImageUsed = field(default_factory=ImageUsed)
    git: GitState = field(default_factory=GitState)
    environment: dict[str, str] = field(default_factory=dict)
    clocks: ClockAnchors = field(default_factory=ClockAnchors)
    python: str | None = None
    torch: TorchVersion | None = None
    packages: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()
    preflight: tuple[Finding, ...] = ()
    tool: ToolUsed | None = None
    format: int = FORMAT
