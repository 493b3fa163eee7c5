"""Who uses a machine's GPUs now, as values; of AMD's the kernel says it, of NVIDIA's ``nvml.gpu_uses``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LITTLE_BYTES = 1 << 30
"""Memory that a GPU without a compute process may have in use and still count as free. Drivers keep some for
themselves (below 1 GiB), and so does a desktop."""


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU.

    Attributes:
        uid: whose it is; None where this machine's /proc does not show it (of another container).
        memory: bytes of the GPU that it has, None where the driver does not say.
    """

    pid: int
    uid: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class GpuUse:
    """One GPU and what is on it.

    Attributes:
        index: number of the GPU, as nvidia-smi or ROCm counts.
        uuid: as the driver writes it; empty where it is not known.
        memory_used: bytes, None where the driver does not say.
        processes: those that compute on it.
    """

    index: int
    uuid: str = ""
    memory_used: int | None = None
    processes: tuple[GpuProcess, ...] = ()

    @property
    def free(self) -> bool:
        """No process computes on it, and little of its memory is used. What is not known counts as free."""
        return not self.processes and (self.memory_used or 0) <= LITTLE_BYTES

    def only_of(self, uid: int) -> bool:
        """Whether everything on it that is known is this user's."""
        return bool(self.processes) and all(process.uid == uid for process in self.processes)

    def text(self) -> str:
        """``GPU 0 (pid 812 of ada, 40.0 GiB)``."""
        used = "" if self.memory_used is None else f"{self.memory_used / (1 << 30):.1f} GiB in use"
        told = [_process_text(process) for process in self.processes] or [used]
        return f"GPU {self.index} ({'; '.join(told)})" if told[0] else f"GPU {self.index}"


def owner(pid: int, root: Path = Path("/")) -> int | None:
    """The user of a process; None where there is no such process to be seen."""
    try:
        return os.stat(str(root / "proc" / str(pid))).st_uid
    except OSError:
        return None


def amd_uses(nodes: list[str], root: Path = Path("/")) -> list[GpuUse]:
    """Use of AMD's GPUs, by the kernel's own files; no tool is needed.

    Args:
        nodes: their render nodes (/dev/dri/renderD128) in ROCm's order.
        root: where this machine's files are.
    """
    by_minor = {_property(path, "drm_render_minor"): path for path in _topology(root)}
    found = []
    for index, node in enumerate(nodes):
        device = root / "sys/class/drm" / Path(node).name / "device"
        place = by_minor.get(Path(node).name[len("renderD") :])
        unique = _text(device / "unique_id")
        found.append(
            GpuUse(
                index=index,
                uuid=f"GPU-{unique}" if unique else "",
                memory_used=_number(device / "mem_info_vram_used"),
                processes=() if place is None else _kfd_processes(_text(place / "gpu_id"), root),
            )
        )
    return found


def _kfd_processes(gpu_id: str, root: Path) -> tuple[GpuProcess, ...]:
    """Processes with memory of a GPU; KFD lists every process that opened it, for each of its GPUs."""
    found = []
    for path in sorted((root / "sys/class/kfd/kfd/proc").glob(f"[0-9]*/vram_{gpu_id}")):
        memory = _number(path)
        if memory:
            pid = int(path.parent.name)
            found.append(GpuProcess(pid, owner(pid, root), memory))
    return tuple(found)


def _topology(root: Path) -> list[Path]:
    return sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("[0-9]*"))


def _property(place: Path, name: str) -> str:
    lines = [line.split() for line in _text(place / "properties").splitlines()]
    return next((words[1] for words in lines if len(words) == 2 and words[0] == name), "")


def _process_text(process: GpuProcess) -> str:
    user = "" if process.uid is None else f" of {_user(process.uid)}"
    memory = "" if process.memory is None else f", {process.memory / (1 << 30):.1f} GiB"
    return f"pid {process.pid}{user}{memory}"


def _user(uid: int) -> str:
    try:
        import pwd  # Windows has none, and there nothing but what was recorded is read

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return f"user {uid}"


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
