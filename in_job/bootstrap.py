"""Loaded by sitecustomize in every Python process of a trial: waits for torch, and starts the hook then.

It imports next to nothing until then, because every Python process of the job pays for it. Whatever goes
wrong is written to the trial's ``hook/`` folder and never reaches the user's program.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import TYPE_CHECKING

from .api import hook
from .hook_errors import ENV, report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from .session import Session
    from .torch_types import Torch


class Starter:
    """Starts the hook of this process once: when torch is imported, profrun is, or ``step`` is called."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._failed = False

    def start(self, torch: Torch = None) -> None:
        """Start the session, once; tell it about torch when that is there."""
        if self._failed:
            return
        try:
            if self.session is None:
                from .session import Session

                self.session = Session.start(os.environ[ENV])
            if torch is not None and hasattr(torch, "nn") and hasattr(torch, "__version__"):
                self.session.attach(torch)
        except Exception as error:
            self._failed = True
            report(error)

    def on_import(self) -> None:
        """User code imports profrun."""
        self.start(sys.modules.get("torch"))

    def on_step(self) -> None:
        """The first explicit step of a process whose hook has not started yet."""
        hook.on_step = None
        self.start(sys.modules.get("torch"))
        if hook.on_step is not None:  # the session's own
            hook.on_step()


class TorchFinder:
    """A meta path finder that lets the real import of ``torch`` happen, then starts the hook."""

    def __init__(self, starter: Starter) -> None:
        self.starter = starter

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
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader, self.starter)  # type: ignore[assignment]
        return spec


class _Loader:
    """Runs torch's own loader, gives it its place back, then starts the hook."""

    def __init__(self, inner: Loader, starter: Starter) -> None:
        self.inner = inner
        self.starter = starter

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.inner
        if module.__spec__ is not None:
            module.__spec__.loader = self.inner
        self.inner.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchFinder)]
        self.starter.start(module)


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
    starter = Starter()
    hook.on_import = starter.on_import
    hook.on_step = starter.on_step
    sys.meta_path.insert(0, TorchFinder(starter))
