"""Finds a profiler's executable and its version: ``find_tool`` gives a ``Tool``."""

from __future__ import annotations

import glob
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.machine import version_in
from .vendor import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.profilers import Profiler


@dataclass(frozen=True)
class Tool:
    """The executable of a profiler as found here.

    Attributes:
        name: None for a profiler without one.
        path: None when it is not here; then ``problem`` says where it was looked for.
        version: as numbers; None when it states none.
    """

    name: str | None = None
    path: str | None = None
    version: tuple[int, ...] | None = None
    problem: Finding | None = None


def find_tool(profiler: Profiler, given: str | None = None, *, where: str = "in this image") -> Tool:
    """Look for a profiler's executable, or take the path that the job gives, and ask for its version.

    Args:
        given: path by the job's options.
        where: 'in this image' or 'on this machine', for messages.
    """
    if not profiler.tools:
        return Tool()
    if given is not None and not os.access(given, os.X_OK):
        return Tool(profiler.tools[0], problem=_not_there(profiler, given, where))
    for name in profiler.tools:
        path = given or find(name, profiler.places)
        if path is not None:
            return Tool(name, path, _version(profiler, path))
    return Tool(profiler.tools[0], problem=_nowhere(profiler, where))


def find(tool: str, places: Sequence[str]) -> str | None:
    """Path of an executable: ``$PROFRUN_<TOOL>``, the PATH, then the newest of the folders (globs)."""
    named = os.environ.get(f"PROFRUN_{tool.upper()}")
    if named and os.access(named, os.X_OK):
        return named
    found = shutil.which(tool)
    if found is not None:
        return found
    for place in places:
        for folder in sorted(glob.glob(place), key=_numbers, reverse=True):
            path = os.path.join(folder, tool)
            if os.access(path, os.X_OK):
                return path
    return None


def _version(profiler: Profiler, path: str) -> tuple[int, ...] | None:
    stated = output([path, "--version"], timeout=30.0)
    own = getattr(profiler.part("preflight"), "version", None)
    found: tuple[int, ...] | None = version_in(stated) if own is None else own(path, stated)
    return found


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _nowhere(profiler: Profiler, where: str) -> Finding:
    name = profiler.tools[0]
    return Finding(
        "tool-missing",
        "critical",
        f"{name} is not {where}",
        f"it is neither on the PATH nor where its vendor installs it ({profiler.name})",
        f"use an image that has it (profrun images list), install it, or set PROFRUN_{name.upper()}",
    )


def _not_there(profiler: Profiler, path: str, where: str) -> Finding:
    return Finding(
        "tool-missing",
        "critical",
        f"there is no {profiler.tools[0]} at {path} {where}",
        f"the job's {profiler.name}.path says so, and no executable file is there",
        "mend the path, or leave it out to have it looked for",
    )
