"""What the wrapper tells the hook: one JSON file, named by the environment variable ``PROFRUN_HOOK``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

ENV = "PROFRUN_HOOK"

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def from_env(names: tuple[str, ...], default: int, environ: Mapping[str, str]) -> int:
    """The first of the variables that holds a non-negative number, else the default."""
    for name in names:
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    return default


@dataclass(frozen=True)
class Place:
    """Which process of the trial this is, from the launcher's environment (torchrun, MPI, Slurm)."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Place:
        """Read the launcher's variables; torchrun's win over MPI's over Slurm's."""
        env = os.environ if environ is None else environ
        return cls(from_env(_RANK, 0, env), from_env(_LOCAL_RANK, 0, env), from_env(_WORLD, 1, env))


@dataclass(frozen=True)
class HookConfig:
    """The hook's orders.

    Attributes:
        folder: the trial folder.
        hook: what to do at the window's edges (``Wrapped.hook``).
        emitter: where ranges go (``Wrapped.emitter``).
        window: which steps to record.
        modules: depth of automatic nn.Module ranges.
        steps: auto, explicit, optimizer, module or off.
        run: 0 for the first run of the command, n for the n-th further pass of a counter collection.
        tool_version: the profiler's version as numbers, or empty.
    """

    folder: str
    collector: str = "none"
    hook: str = "none"
    emitter: str | None = None
    window: Schedule = field(default_factory=Schedule)
    modules: int = 0
    steps: str = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    blocking: bool = False
    vendor: str = "none"
    run: int = 0
    tool_version: tuple[int, ...] = ()

    @property
    def notes(self) -> Path:
        """Folder for what processes say about themselves."""
        return Path(self.folder) / "hook"

    def raw(self, rank: int) -> Path:
        """Folder of a rank's files."""
        return Path(self.folder) / "raw" / f"rank{rank}"

    def to_json(self) -> dict[str, Any]:
        """JSON-safe values."""
        return asdict(self)

    @classmethod
    def load(cls, path: str) -> HookConfig:
        """Read what ``to_json`` gave.

        Raises:
            OSError, ValueError: the file is not there or not ours.
        """
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        data["window"] = Schedule(**data["window"])
        data["tool_version"] = tuple(data["tool_version"])
        return cls(**data)
