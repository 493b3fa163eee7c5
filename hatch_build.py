"""Compiles the parser of trace events when a C compiler is there; without one profrun works, only slower."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "collectors/torch/events.c"
TARGET = "collectors/torch/_events.so"


class CompiledParser(BuildHookInterface[Any]):
    """Adds ``profrun/collectors/torch/_events.so`` to wheels, and to the checkout for editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that holds the library is for this platform only."""
        if self.target_name != "wheel":
            return
        if version == "editable":
            self._compile(Path(self.root) / TARGET)
            return
        self._folder = tempfile.mkdtemp(prefix="profrun-build-")
        library = Path(self._folder) / "_events.so"
        if self._compile(library):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data.update(pure_python=False, tag=f"py3-none-{platform}")
            build_data["force_include"][str(library)] = f"profrun/{TARGET}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled for a wheel."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)

    def _compile(self, target: Path) -> bool:
        words = os.environ.get("CC", "").split()
        if words and shutil.which(words[0]) is None:
            self.app.display_warning(
                f"CC names a compiler that is not there ({words[0]}); looking for another"
            )
            words = []
        words = words or [name for name in ("cc", "gcc", "clang") if shutil.which(name)][:1]
        if not words:
            self.app.display_warning("no C compiler: traces of torch.profiler will be read without events.c")
            target.unlink(missing_ok=True)  # one of another version would be worse than none
            return False
        command = [
            *words,
            "-O3",
            "-shared",
            "-fPIC",
            "-o",
            str(target),
            str(Path(self.root) / SOURCE),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            problem = done.stderr.strip()[-500:] if done.returncode else None
        except OSError as error:  # it cannot be started: a script without its first line, another machine's
            problem = str(error)
        if problem is not None:
            self.app.display_warning(f"events.c was not compiled: {problem}")
            target.unlink(missing_ok=True)
        return problem is None
