"""``steps.json``: what the hook measured in one rank, the duration of every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .schedule import WindowPart

FORMAT = 1

StepClock = Literal["cuda_event", "hip_event", "wall"]
"""What a step's duration was measured with: two events on the GPU, or the host's clock."""

GpuVendor = Literal["nvidia", "amd"]
"""Who made a GPU."""

StepSign = Literal["none", "explicit", "optimizer", "module", "compiled", "jit", "graph", "loader", "run"]
"""How the steps of a process were found.

``explicit``: calls of ``profrun.step()``; ``optimizer``: steps of an optimizer; ``module``: forwards of a
root module; ``compiled``: calls of a function of torch.compile; ``jit``: calls of a function of jax.jit;
``graph``: replays of a CUDA graph; ``loader``: batches of a DataLoader; ``run``: no step was seen, and the
one step, number 0, is the run, from the end of the import of the first GPU framework (else the start of the
program) to the program's end with the GPU idle, without the time in which a profiler starts; ``none``:
nothing was seen yet.
"""

RUN_RANGE = "profrun.run"
"""Name of the range over what is recorded of a run without steps: the one step, number 0, of its trace."""


@dataclass(frozen=True)
class Anchor:
    """One moment on the three clocks of a host, ns."""

    realtime_ns: int
    monotonic_ns: int
    boottime_ns: int


@dataclass(frozen=True)
class StepTime:
    """One step.

    Attributes:
        step: its number, from 0.
        ts_ns: its begin on the host, unix time, ns.
        dur_ns: its duration by ``clock``, ns; None when it could not be measured.
        host_ns: its duration on the host, ns.
        clock: only where it differs from the document's.
    """

    step: int
    ts_ns: int
    dur_ns: int | None
    host_ns: int | None = None
    window: WindowPart = "outside"
    clock: StepClock | None = None


@dataclass(frozen=True)
class StepsDevice:
    """The GPU of a rank, named as in the trace's ``devices`` table; sizes in bytes.

    Attributes:
        ordinal: number in the process.
        host_ordinal: number on the host, where the environment selects GPUs by their numbers; else None.
    """

    vendor: GpuVendor
    ordinal: int
    name: str
    arch: str | None = None
    sm_count: int | None = None
    warp_size: int | None = None
    max_threads_per_sm: int | None = None
    regs_per_sm: int | None = None
    smem_per_sm: int | None = None
    memory_bytes: int | None = None
    uuid: str | None = None
    host_ordinal: int | None = None


@dataclass(frozen=True)
class StepsFile:
    """The steps of one process.

    Attributes:
        how: how steps were found.
        clock: what most durations were measured with.
        collector: as the job names it; ``profiler``: what it became.
        work: what is known of the work of a step (the variant's values, the shapes of the inputs).
        emitter: where ranges went (nvtx, roctx, torch), or None.
        profiler_start_ns: of a run: how long the profiler took to start, ns, between the begin and the end of
            the run; no part of its duration. None for steps, and in files of profrun 0.1.
    """

    rank: int
    pid: int
    how: StepSign
    clock: StepClock
    anchor: Anchor
    local_rank: int = 0
    world_size: int = 1
    host: str | None = None
    collector: str = "none"
    profiler: str | None = None
    blocking: bool = False
    device: StepsDevice | None = None
    work: dict[str, object] = field(default_factory=dict)
    steps: tuple[StepTime, ...] = ()
    ranges_emitted: int = 0
    emitter: str | None = None
    out_of_memory: bool = False
    profiler_start_ns: int | None = None
    format: int = FORMAT
