"""Loaded by sitecustomize in every Python process of a trial: starts the hook when a GPU framework is.

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
from .hook_errors import ENV, loaded_mark, report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from .session import Session

WATCHED = ("torch", "torch._dynamo.eval_frame", "jax", "cupy")
"""The modules whose import starts the hook, or tells it that there is more to watch."""


class Starter:
    """Starts the hook of this process once: on the import of a watched module or profrun, or on ``step``."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._failed = False

    def start(self, name: str = "", module: ModuleType | None = None) -> None:
        """Start the session, once, and tell it of a module of ``WATCHED`` that has just been imported."""
        if self._failed:
            return
        try:
            if self.session is None:
                from .session import Session

                self.session = Session.start(os.environ[ENV])
            if module is not None:
                self.session.imported(name, module)
        except Exception as error:
            self._failed = True
            report(error)

    def on_import(self) -> None:
        """User code imports profrun."""
        self.start("torch", sys.modules.get("torch"))

    def on_step(self) -> None:
        """The first explicit step of a process whose hook has not started yet."""
        hook.on_step = None
        self.on_import()
        if hook.on_step is not None:  # the session's own
            hook.on_step()


class ImportWatch:
    """A meta path finder that lets the real import of each watched module happen, then starts the hook."""

    def __init__(self, starter: Starter) -> None:
        self.starter = starter
        self.waiting = set(WATCHED)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The real spec with our loader round its own; None for every module that is not waited for."""
        if name not in self.waiting:
            return None
        self.waiting.discard(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.waiting.add(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
        return spec

    def imported(self, name: str, module: ModuleType) -> None:
        """A watched module has been imported: nobody waits for it any more."""
        self.waiting.discard(name)
        self.starter.start(name, module)


class _Loader:
    """Runs the module's own loader, gives it its place back, then starts the hook."""

    def __init__(self, inner: Loader, watch: ImportWatch) -> None:
        self.inner = inner
        self.watch = watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.inner
        if module.__spec__ is not None:
            module.__spec__.loader = self.inner
        self.inner.exec_module(module)
        self.watch.imported(module.__name__, module)


def install() -> None:
    """Called by sitecustomize. Does nothing outside a trial."""
    path = os.environ.get(ENV)
    if not path:
        return
    mark = loaded_mark(path)
    if not os.path.exists(mark):
        try:
            with open(mark, "w", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {time.time_ns()}\n")
        except OSError:
            pass
    starter = Starter()
    hook.on_import = starter.on_import
    hook.on_step = starter.on_step
    sys.meta_path.insert(0, ImportWatch(starter))
