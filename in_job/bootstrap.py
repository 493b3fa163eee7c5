"""Loaded by sitecustomize in every Python process of a trial: waits for torch, costs nothing until then.

Whatever goes wrong in here is written to the trial's ``hook/`` folder and never reaches the user's program.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from . import api
from .config import ENV

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_session: Any = None
_failed = False


class TorchFinder:
    """A meta path finder that lets the real import of ``torch`` happen, then wakes the hook."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The real spec of torch with our loader round its own; None for every other module."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Runs torch's own loader, gives it its place back, then calls the hook."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self.inner.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.inner
        if module.__spec__ is not None:
            module.__spec__.loader = self.inner
        self.inner.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchFinder)]
        wake(module)


def wake(torch: ModuleType | None = None) -> Any:
    """Start the session of this process, once; tell it about torch when that is there."""
    global _session, _failed
    if _failed:
        return None
    try:
        if _session is None:
            from .session import Session

            _session = Session.start(os.environ[ENV])
        if torch is not None and hasattr(torch, "nn") and hasattr(torch, "__version__"):
            _session.attach(torch)
    except Exception as error:
        _failed = True
        report(error)
    return _session


def report(error: BaseException) -> None:
    """Keep an error of the hook where the wrapper finds it. Never raises."""
    import traceback

    try:
        folder = os.path.dirname(os.environ[ENV])
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        with open(os.path.join(folder, f"error.{os.getpid()}.txt"), "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, KeyError):
        pass


def _import() -> None:
    wake(sys.modules.get("torch"))


def _first_step() -> None:
    """The first explicit step of a process whose hook is not awake yet."""
    api._on_step = None
    session = wake(sys.modules.get("torch"))
    if session is not None and api._on_step is not None:
        api._on_step()


def install() -> None:
    """Called by sitecustomize. Does nothing outside a trial."""
    path = os.environ.get(ENV)
    if not path:
        return
    mark = os.path.join(os.path.dirname(path), "loaded")
    if not os.path.exists(mark):
        try:
            with open(mark, "w", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {time.time_ns()}\n")
        except OSError:
            pass
    api._on_import = _import
    api._on_step = _first_step
    sys.meta_path.insert(0, TorchFinder())
