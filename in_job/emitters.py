"""Where ranges can go: NVTX or ROCTX, through the library that the recording tool hears. ``choose`` picks."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import TYPE_CHECKING, Any, Callable

from ..contract.finding import Finding
from ..contract.machine import dotted
from ..contract.profilers import profiler
from .nvtx_injection import connect

if TYPE_CHECKING:
    from ..contract.recording import Emitter
    from .config import HookConfig
    from .torch_types import Torch

_ROCTX = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so", "libroctx64.so.4", "libroctx64.so")


class PushPop:
    """Any pair of push(name) and pop(): NVTX and ROCTX keep their own stack per thread."""

    hears_record_function = False

    def __init__(self, name: str, push: Callable[[str], object], pop: Callable[[], object]) -> None:
        self.name = name
        self._push = push
        self._pop = pop

    def push(self, name: str) -> object:
        """Open a range."""
        self._push(name)
        return True

    def pop(self, handle: object) -> None:
        """Close the innermost range."""
        self._pop()


def load_roctx() -> Any:
    """The ROCTX library (a ctypes.CDLL) or None; rocprofiler-sdk's first: its profiler hears no other."""
    root = os.environ.get("ROCM_PATH", "/opt/rocm")
    for name in _ROCTX:
        for path in (name, os.path.join(root, "lib", name)):
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
    return None


def choose(config: HookConfig, torch: Torch) -> tuple[Emitter | None, list[Finding]]:
    """The emitter that the recording tool will hear, and what is to be said about the choice.

    Args:
        config: ``emitter`` is 'nvtx', 'roctx' or None; for 'in_process' the recorder has the emitter.
        torch: the torch module, or None when the process has none (yet).
    """
    if config.emitter == "nvtx":
        return _nvtx(config, torch)
    if config.emitter == "roctx":
        return _roctx(torch)
    return None, []


def _nvtx(config: HookConfig, torch: Torch) -> tuple[Emitter | None, list[Finding]]:
    """The profiler's injection, else torch's compiled-in NVTX, else Python's nvtx package."""
    injection = connect()
    if injection is not None:
        return PushPop("nvtx-injection", injection.push, injection.pop), []
    if torch is not None and torch.version.cuda is not None:
        nvtx = torch.cuda.nvtx
        return PushPop("torch.cuda.nvtx", nvtx.range_push, nvtx.range_pop), []
    try:
        import nvtx as package
    except ImportError:
        return None, [_no_ranges("NVTX", "the profiler injected none, torch has none, nvtx is absent")]
    return PushPop("nvtx", package.push_range, package.pop_range), _lost(config)


def _lost(config: HookConfig) -> list[Finding]:
    """A warning when this version of the profiler records no ranges of the installed nvtx package."""
    used = profiler(config.profiler)
    recordable = getattr(used.part("wrap"), "nvtx_recordable", None)
    version = _package_version("nvtx")
    if recordable is None or not config.tool_version or recordable(version, config.tool_version) is not False:
        return []
    why = f"{used.title} {dotted(config.tool_version)} records none from Python's nvtx {dotted(version)}"
    fix = "install nvtx==0.2.11 in the image, or a newer version of the profiler"
    return [Finding("ranges-lost", "warning", "ranges will be lost", why, fix)]


def _roctx(torch: Torch) -> tuple[Emitter | None, list[Finding]]:
    library = load_roctx()
    if library is not None:
        push, pop = library.roctxRangePushA, library.roctxRangePop
        push.argtypes = [ctypes.c_char_p]
        return PushPop("roctx", lambda name: push(name.encode("utf-8", "replace")), pop), []
    if torch is not None and getattr(torch.version, "hip", None):
        nvtx = torch.cuda.nvtx  # hipified to ROCTX in ROCm builds
        return PushPop("torch.cuda.nvtx", nvtx.range_push, nvtx.range_pop), []
    return None, [_no_ranges("ROCTX", "no library has it", "install rocprofiler-sdk in the image")]


def _no_ranges(what: str, why: str, fix: str = "") -> Finding:
    return Finding("no-ranges", "warning", f"there is no {what} to emit ranges with", why, fix)


def _package_version(name: str) -> tuple[int, ...]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(int(part) for part in version(name).split(".") if part.isdigit())
    except PackageNotFoundError:
        return ()
