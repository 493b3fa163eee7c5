"""Proton inside the program: the ``Recorder`` that the hook drives, and ranges as Proton's scopes.

Per recorded cycle one ``<host>_<pid>.<unix ns>`` with Proton's own suffix is written. Shipped into the job:
standard library only, Python 3.9; triton is imported when the first cycle begins.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Any, Literal

from ...contract.codec import from_json
from ...contract.finding import Finding
from ...contract.recording import CannotRecordError
from .profiler import Options
from .wrap import SUFFIXES

if TYPE_CHECKING:
    from pathlib import Path

    from ...contract.recording import RecordingContext

_KERNEL_TIME = b'"time (ns)"'
"""Stands in every tree that has a kernel."""


def recorder(context: RecordingContext) -> ProtonRecorder:
    """The recorder of this process."""
    return ProtonRecorder(context)


class Scopes:
    """Ranges as ``proton.scope``: names in the call path of every kernel launched inside them."""

    name = "proton"
    hears_record_function = False

    def __init__(self) -> None:
        self._make: Any = None

    def push(self, name: str) -> object:
        """Enter a scope."""
        if self._make is None:
            from triton.profiler import scope

            self._make = scope
        handle: object = self._make(name)
        handle.__enter__()  # type: ignore[attr-defined]
        return handle

    def pop(self, handle: Any) -> None:
        """Leave it."""
        handle.__exit__(None, None, None)


class ProtonRecorder:
    """Drives one session of Proton per cycle over its active steps."""

    starts_at: Literal["active"] = "active"
    is_torch_profiler = False
    memory_factor = 1.0

    def __init__(self, context: RecordingContext) -> None:
        self.context = context
        self._options = from_json(Options, context.options)
        self.emitter = None if self._options.context == "python" else Scopes()
        # A tree sums over steps: a scope per step would make it grow, and Proton puts the kernels of other
        # threads (autograd's) under a step that is over (docs/collectors-proton.md).
        self.names_steps = self._options.data == "tree"
        self._session: _Session | None = None

    def start(self, step: int, *, whole: bool = False) -> None:
        """Begin to record, with the GPU idle."""
        self._wait()
        self._session = self._start()

    def step(self) -> None:
        """Nothing: Proton records until it is stopped."""

    def stop(self) -> None:
        """End the recording; Proton writes its file."""
        session = self._close()
        if session is not None and session.is_empty():
            session.remove()
            self.context.warn(
                Finding(
                    "no-kernels",
                    "warning",
                    "Proton recorded no kernel",
                    "what was recorded did not use the GPU, or another process did",
                )
            )

    def discard(self) -> None:
        """End the recording and keep no file."""
        session = self._close()
        if session is not None:
            session.remove()

    def _close(self) -> _Session | None:
        session, self._session = self._session, None
        if session is not None:
            self._wait()
            session.finalize()
        return session

    def _wait(self) -> None:
        """Until the GPU is idle, so that a kernel belongs to the step that launched it."""
        if self.context.torch.cuda.is_initialized():
            self.context.torch.cuda.synchronize()

    def _start(self) -> _Session:
        """Start a session.

        Raises:
            CannotRecordError: Proton is not there, or cannot start.
        """
        try:
            import triton.profiler as proton
        except ImportError as error:
            why = f"triton.profiler cannot be imported: {error}"
            raise _cannot(why, "install triton in the image") from None
        name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}"
        base = self.context.folder() / name
        options = self._options
        data = options.data or "trace"
        try:
            number = proton.start(
                str(base),
                data=data,
                context=options.context or "shadow",
                hook=None if options.hook == "none" else "triton",
                # Named because Proton would ask Triton's driver, and that initialises CUDA.
                backend="cupti" if self.context.torch.version.cuda else None,
            )
        except (RuntimeError, ValueError) as error:
            raise _cannot(str(error), _FIX) from None
        if number is None:
            raise _cannot("TRITON_PROTON_DISABLE is set", "unset it")
        return _Session(proton, number, base.with_name(name + SUFFIXES[data]))


_FIX = (
    "let no other profiler run in the program: the GPU's tracing interface serves one, and a torch.profiler "
    "keeps it to the end of the process; on AMD use ROCR_VISIBLE_DEVICES instead of HIP_VISIBLE_DEVICES"
)


class _Session:
    """One session of Proton and the file that it writes when it is finalized."""

    def __init__(self, proton: Any, number: int, path: Path) -> None:
        self._proton = proton
        self._number = number
        self.path = path

    def finalize(self) -> None:
        """End it; Proton writes the file."""
        self._proton.finalize(self._number)

    def is_empty(self) -> bool:
        """Whether it has no kernel. A trace without any is an empty file, a tree is a root."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return True
        return not content or (self.path.suffix == SUFFIXES["tree"] and _KERNEL_TIME not in content)

    def remove(self) -> None:
        """Remove its file."""
        with contextlib.suppress(FileNotFoundError):  # Proton wrote none
            self.path.unlink()


def _cannot(why: str, fix: str) -> CannotRecordError:
    return CannotRecordError(Finding("proton-cannot-start", "critical", "Proton cannot record", why, fix))
