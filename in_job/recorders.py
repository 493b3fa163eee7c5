"""Makes the recorder that ``Wrapped.hook`` asks for: the profiler's own, or a switch for one outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Literal

from ..contract.finding import Finding
from ..contract.profilers import profiler
from ..contract.recording import CannotRecordError, RecordingContext
from . import process_rank
from .emitters import load_roctx
from .gpu_idle import driver, wait_until_idle
from .recorded_ranks import OnlyRecorded

if TYPE_CHECKING:
    from pathlib import Path

    from ..contract.recording import Recorder
    from ..contract.schedule import StepSchedule
    from .config import HookConfig
    from .torch_types import Torch

Edges = tuple[Callable[[], object], Callable[[], object]]
"""What starts and what stops a profiler."""


def make(
    config: HookConfig, schedule: StepSchedule, torch: Torch, warn: Callable[[Finding], None]
) -> Recorder | None:
    """The recorder of this process; None where there is none, or none yet because torch is not imported.

    Raises:
        ImportError: the profiler's ``in_process.py`` is not there or cannot be imported.
    """
    if config.hook == "roctx":
        return Switch(torch, _roctx)
    if config.hook == "cuda":
        return Switch(torch, _cuda)
    if config.hook != "in_process" or torch is None:
        return None

    def folder() -> Path:
        path = config.recording(process_rank.current(torch).rank)
        path.mkdir(parents=True, exist_ok=True)
        return path

    module = profiler(config.profiler).part("in_process")
    if module is None:
        raise ImportError(f"the profiler {config.profiler} has no in_process.py")
    context = RecordingContext(
        torch=torch,
        schedule=schedule,
        options=config.options,
        rank=lambda: process_rank.current(torch),
        folder=folder,
        warn=warn,
    )
    made: Recorder = module.recorder(context)
    wanted = config.recorded
    if wanted is None:
        return made
    return OnlyRecorded(made, lambda: process_rank.current(torch).rank in wanted)


class Switch:
    """Switches a profiler round the program on and off, with the GPU idle at both edges.

    Args:
        torch: the torch module or None.
        find: gives the functions that start and stop it; asked when recording first begins, because
            asking earlier would initialise CUDA before the program does.
    """

    starts_at: Literal["active"] = "active"
    names_steps = False
    is_torch_profiler = False
    memory_factor = 1.0
    emitter = None

    def __init__(self, torch: Torch, find: Callable[[Torch], Edges]) -> None:
        self.torch = torch
        self._find = find
        self._stop: Callable[[], object] | None = None

    def start(self, step: int, *, whole: bool = False) -> None:
        """Begin to record."""
        start, self._stop = self._find(self.torch)
        wait_until_idle(self.torch)
        start()

    def step(self) -> None:
        """Nothing: it records until it is stopped."""

    def stop(self) -> None:
        """Record what was enqueued, then stop."""
        if self._stop is not None:
            wait_until_idle(self.torch)
            self._stop()

    def discard(self) -> None:
        """The same: what was recorded is the profiler's."""
        self.stop()


def _cuda(torch: Torch) -> Edges:
    """cudaProfilerStart and cudaProfilerStop of torch, else those of the driver, for JAX, CuPy and the like.

    The driver's need a CUDA context in the process; torch's make one.
    """
    if torch is not None and torch.cuda.is_initialized():
        return _cudart(torch)
    if wait_until_idle(None):
        cuda = driver()
        return lambda: _check(cuda.cuProfilerStart()), cuda.cuProfilerStop
    if torch is not None and torch.cuda.is_available():
        return _cudart(torch)
    raise _cannot("this process has not used a CUDA GPU", later=True)


def _cudart(torch: Torch) -> Edges:
    cudart = torch.cuda.cudart()
    return cudart.cudaProfilerStart, cudart.cudaProfilerStop


def _check(result: int) -> None:
    if result:
        raise _cannot(f"the CUDA driver's cuProfilerStart failed with CUresult {result}")


def _roctx(_torch: Torch) -> Edges:
    """roctxProfilerResume and roctxProfilerPause, of all threads."""
    library = load_roctx()
    if library is None:
        raise _cannot("no ROCTX library in the image (rocprofiler-sdk has one)")
    try:
        resume, pause = library.roctxProfilerResume, library.roctxProfilerPause
    except AttributeError:
        raise _cannot("this ROCTX is too old for roctxProfilerResume") from None
    return lambda: resume(0), lambda: pause(0)


def _cannot(why: str, *, later: bool = False) -> CannotRecordError:
    finding = Finding("window-not-opened", "critical", "the window cannot be opened", why)
    return CannotRecordError(finding, later=later)
