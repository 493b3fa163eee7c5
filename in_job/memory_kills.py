"""How often the kernel has killed a process for want of memory: ``count``, and ``since``, what that tells.

The kernel counts its kills per control group, and for the whole machine. It counts before it kills. So a
program that was killed without a count was killed by somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..contract.ends import MemoryKill


@dataclass(frozen=True)
class Kills:
    """Kills up to now; None where the kernel does not say.

    Attributes:
        group: in the control group of this process and those below it.
        machine: on this machine.
    """

    group: int | None = None
    machine: int | None = None


def count(root: Path = Path("/")) -> Kills:
    """Ask the kernel.

    Args:
        root: where this machine's files are.
    """
    rows = [row.split(":", 2) for row in _text(root / "proc/self/cgroup").splitlines() if row.count(":") >= 2]
    group = None
    for _number, controllers, path in rows:
        if controllers == "":
            group = _of_file(root / "sys/fs/cgroup", path, "memory.events")
        elif "memory" in controllers.split(","):
            group = _of_file(root / "sys/fs/cgroup/memory", path, "memory.oom_control")
        if group is not None:
            break
    return Kills(group, _number_of(_text(root / "proc/vmstat")))


def since(before: Kills, root: Path = Path("/")) -> MemoryKill:
    """Whether a process was killed for want of memory since ``before``, and how near that is.

    Args:
        before: what ``count`` gave then.
        root: as of ``count``.
    """
    now = count(root)
    if now.group is not None and before.group is not None and now.group > before.group:
        return "group"
    if now.machine is None or before.machine is None:
        return "unknown"
    return "machine" if now.machine > before.machine else "none"


def _of_file(mounted: Path, path: str, name: str) -> int | None:
    """Of this control group; a container may see its own as the topmost one."""
    for place in (mounted / path.lstrip("/") / name, mounted / name):
        found = _number_of(_text(place))
        if found is not None:
            return found
    return None


def _number_of(text: str) -> int | None:
    words = (row.split() for row in text.splitlines())
    return next((int(row[1]) for row in words if len(row) == 2 and row[0] == "oom_kill"), None)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
