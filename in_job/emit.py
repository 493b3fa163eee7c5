"""Where ranges go: NVTX, ROCTX or torch's record_function, behind one stack a thread.

Ranges of one thread always nest in what is emitted: closing a range closes those left open inside it. Steps
are outermost: a step's begin and end close the ranges that are open. Such a range, if it is still open when
the thread opens its next one, is opened again inside the new step, so a range over many steps (an epoch)
appears as one piece a step, and one round ``optimizer.step()`` as one piece although the step ends in it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from ..contract.finding import Finding
from .nvtx_injection import connect

if TYPE_CHECKING:
    from ..contract.recording import Emitter


STEP = "profrun.step#"
_ROCTX = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so", "libroctx64.so.4", "libroctx64.so")


class PushPop:
    """Any pair of push(name) and pop(): NVTX and ROCTX keep their own stack per thread."""

    hears_record_function = False

    def __init__(self, name: str, push: Any, pop: Any) -> None:
        self.name = name
        self._push = push
        self._pop = pop

    def push(self, name: str) -> Any:
        """Open a range."""
        self._push(name)
        return True

    def pop(self, handle: Any) -> None:
        """Close the innermost range."""
        self._pop()


def load_roctx() -> Any:
    """The ROCTX library as ctypes, or None. The one of rocprofiler-sdk first: rocprofv3 listens to it."""
    root = os.environ.get("ROCM_PATH", "/opt/rocm")
    for name in _ROCTX:
        for path in (name, os.path.join(root, "lib", name)):
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
    return None


def choose(kind: str | None, torch: Any, tool: tuple[int, ...]) -> tuple[Emitter | None, list[Finding]]:
    """The emitter that the recording tool will hear, and what is to be said about the choice.

    Args:
        kind: 'nvtx', 'roctx' or None (``Wrapped.emitter``); 'in_process' has its recorder's own emitter.
        torch: the torch module, or None when the process has none (yet).
        tool: version of the profiler, empty when unknown.
    """
    if kind == "nvtx":
        return _nvtx(torch, tool)
    if kind == "roctx":
        return _roctx(torch)
    return None, []


def _nvtx(torch: Any, tool: tuple[int, ...]) -> tuple[Emitter | None, list[Finding]]:
    """The profiler's injection, else torch's compiled-in NVTX, else Python's nvtx if this nsys reads it."""
    injection = connect()
    if injection is not None:
        return PushPop("nvtx-injection", injection.push, lambda: injection.pop()), []
    if torch is not None and torch.version.cuda is not None:
        nvtx = torch.cuda.nvtx
        return PushPop("torch.cuda.nvtx", nvtx.range_push, nvtx.range_pop), []
    try:
        import nvtx as package
    except ImportError:
        return None, [_no_ranges("NVTX", "the profiler injected none, torch has none, nvtx is absent")]
    version = _package_version("nvtx")
    warnings = []
    if version >= (0, 2, 12) and tool and tool[:2] <= (2024, 2):
        warnings.append(
            Finding(
                "ranges-lost",
                "warning",
                "ranges will be lost",
                "nsys 2024.2 and older record none from Python's nvtx 0.2.12 and newer",
                "install nvtx==0.2.11 in the image, or a newer Nsight Systems",
            )
        )
    return PushPop("nvtx", package.push_range, package.pop_range), warnings


def _roctx(torch: Any) -> tuple[Emitter | None, list[Finding]]:
    library = load_roctx()
    if library is not None:
        push, pop = library.roctxRangePushA, library.roctxRangePop
        push.argtypes = [ctypes.c_char_p]
        return PushPop("roctx", lambda name: push(name.encode("utf-8", "replace")), lambda: pop()), []
    if torch is not None and getattr(torch.version, "hip", None):
        nvtx = torch.cuda.nvtx  # hipified to ROCTX in ROCm builds
        return PushPop("torch.cuda.nvtx", nvtx.range_push, nvtx.range_pop), []
    return None, [_no_ranges("ROCTX", "no library", "install rocprofiler-sdk in the image")]


def _no_ranges(what: str, why: str, fix: str = "") -> Finding:
    return Finding("no-ranges", "warning", f"there is no {what} to emit ranges with", why, fix)


def _package_version(name: str) -> tuple[int, ...]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(int(part) for part in version(name).split(".") if part.isdigit())
    except PackageNotFoundError:
        return ()


class _Stack(threading.local):
    """Open ranges of one thread, outermost first: [name, handle or None (open, but not emitted)]."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []


class Sink:
    """Ranges of user code, modules and steps, on their way to one emitter.

    Attributes:
        emitting: whether somebody records now; ranges are tracked in any case, so that one opened before
            the window appears in it.
        emitted: ranges handed to the emitter so far.
    """

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.emitting = False
        self.emitted = 0
        self._stack = _Stack()

    def push(self, name: str) -> None:
        """Open a range on this thread. Inside code that torch.compile traces this is nothing."""
        if _compiling():
            return
        entries = self._stack.entries
        handle = None
        if self.emitting:
            if entries and entries[-1][1] is None:
                self._reopen(entries)
            handle = self._emit(name)
        entries.append([name, handle])

    def pop(self, name: str) -> None:
        """Close the innermost open range of that name and all that were left open inside it."""
        if _compiling():
            return
        entries = self._stack.entries
        place = len(entries) - 1
        while place >= 0 and entries[place][0] != name:
            place -= 1
        if place < 0:  # opened before the hook was awake
            return
        while len(entries) > place:
            handle = entries.pop()[1]
            if handle is not None:
                self.emitter.pop(handle)

    def open(self) -> None:
        """Somebody records from now on; ranges already open are emitted when the thread opens its next."""
        self.emitting = True

    def close(self) -> None:
        """Nobody records any more: close what this thread has open in the recording."""
        self._suspend(self._stack.entries, 0)
        self.emitting = False

    def begin_step(self, number: int) -> None:
        """Open the range of a step, outermost on this thread."""
        entries = self._stack.entries
        self._suspend(entries, 0)
        name = f"{STEP}{number}"
        entries.insert(0, [name, self._emit(name) if self.emitting else None])

    def end_step(self) -> None:
        """Close the open step's range; what is open inside it ends with it."""
        entries = self._stack.entries
        self._suspend(entries, 0)
        entries[:] = [entry for entry in entries if not entry[0].startswith(STEP)]

    def cut(self) -> None:
        """The recording's own step marks change here: ranges that are open end with the step."""
        self._suspend(self._stack.entries, 0)

    def depth(self) -> int:
        """Open ranges of this thread."""
        return len(self._stack.entries)

    def _suspend(self, entries: list[list[Any]], start: int) -> None:
        for entry in reversed(entries[start:]):
            if entry[1] is not None:
                self.emitter.pop(entry[1])
            entry[1] = None

    def _reopen(self, entries: list[list[Any]]) -> None:
        first = len(entries)
        while first and entries[first - 1][1] is None:
            first -= 1
        for entry in entries[first:]:
            entry[1] = self._emit(entry[0])

    def _emit(self, name: str) -> Any:
        handle = self.emitter.push(name)
        self.emitted += 1  # afterwards: a signal in between must not promise more than was emitted
        return handle


def _never() -> bool:
    return False


_compiling = _never


def watch_compile(torch: Any) -> None:
    """Ask torch whether code is being traced rather than run, from now on."""
    global _compiling
    compiler = getattr(torch, "compiler", None)
    if compiler is not None and hasattr(compiler, "is_compiling"):
        _compiling = compiler.is_compiling
    elif "torch._dynamo" in sys.modules:  # torch 2.0
        _compiling = sys.modules["torch._dynamo"].is_compiling
