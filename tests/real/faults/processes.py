"""The processes of a disturbed run, found in /proc by their environment or their command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.real.faults.jobs import MARK

_STEPD = "slurmstepd"


@dataclass(frozen=True)
class Seen:
    """One live process.

    Attributes:
        started: clock ticks since boot; tells a reused pid apart.
        argv: its command line.
        name: as the kernel calls it.
    """

    pid: int
    parent: int
    started: int
    argv: tuple[str, ...]
    name: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.pid} {' '.join(self.argv)[:160] or self.name}"


def alive(folder: Path) -> list[Seen]:
    """Every live process of a scenario but this one: its environment or its command line names the folder."""
    mark, path = f"{MARK}={folder}\0".encode(), f"{folder}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        name = entry.name
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            environ = Path(f"/proc/{name}/environ").read_bytes() + b"\0"
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark in environ or path in command:
            one = look(int(name))
            if one is not None:
                found.append(one)
    return found


def look(pid: int) -> Seen | None:
    """A process by its number; None when it is gone, or is only not waited for yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    if fields[0] in "ZX":
        return None
    argv = tuple(os.fsdecode(word) for word in command.rstrip(b"\0").split(b"\0"))
    return Seen(pid, int(fields[1]), int(fields[19]), argv, name)


def parents(process: Seen) -> list[Seen]:
    """The process's parent, that one's parent, and so on."""
    found = []
    above = look(process.parent)
    while above is not None and above.pid > 1:
        found.append(above)
        above = look(above.parent)
    return found


def _is_wrapper(one: Seen) -> bool:
    return len(one.argv) > 2 and one.argv[1].endswith("bundle/run.py") and "/trials/" in one.argv[-1]


def _is_program(one: Seen) -> bool:
    return any(word in ("work.py", "launch.py") for word in one.argv[:3]) or "torchrun" in one.argv[:2]


def _is_tool(one: Seen) -> bool:
    return any(word.endswith("/nsys") for word in one.argv[:2]) and "profile" in one.argv[:3]


_ROLES: dict[str, Callable[[Seen], bool]] = {
    "wrapper": _is_wrapper,
    "sampler": lambda one: any(word.endswith("bundle/sampler.py") for word in one.argv),
    "program": _is_program,
    "rank": lambda one: "work.py" in one.argv[:3],
    "tool": _is_tool,
    "launcher": lambda one: one.name.startswith("nsys-launcher"),
    "agent": lambda one: "--start-agent" in one.argv,
    "batch": lambda one: any("slurm_script" in word for word in one.argv[:3]),
    "srun": lambda one: one.name == "srun",
}
"""Victim -> whether a process is one. The driver, containers and engines are known by their handles."""


def playing(role: str, processes: list[Seen]) -> list[Seen]:
    """The processes that have a role, oldest first. Of the program, the first process alone."""
    if role == _STEPD:
        # Slurm itself notices the death of a batch step's daemon only when the node registers again.
        above = {up.pid: up for one in processes for up in parents(one) if up.name == _STEPD}
        above = {pid: up for pid, up in above.items() if "batch" not in " ".join(up.argv)}
        return sorted(above.values(), key=lambda one: one.pid)
    found = sorted((one for one in processes if _ROLES[role](one)), key=lambda one: (one.started, one.pid))
    if role == "program":
        pids = {one.pid for one in found}
        found = [one for one in found if one.parent not in pids]
    return found
