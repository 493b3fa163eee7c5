"""What is known of the process that left a file of Proton: the hook's ``steps.json`` beside it says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from profrun.collectors.beside import beside
from profrun.contract.codec import to_json

_AMD_NAME = re.compile(r"\.kd$|^Cijk_|^__amd_|^ck::|^_ZN2ck")


@dataclass(frozen=True)
class Device:
    """A GPU, as far as the files and the hook know it; the names are those of the table ``devices``."""

    vendor: str
    name: str = "unknown"
    arch: str | None = None
    sm_count: int | None = None
    warp_size: int | None = None
    max_threads_per_sm: int | None = None
    regs_per_sm: int | None = None
    smem_per_sm: int | None = None
    memory_bytes: int | None = None
    uuid: str | None = None
    host_ordinal: int | None = None


@dataclass(frozen=True)
class Facts:
    """Who recorded a file.

    Attributes:
        rank: in the job; the order of the files where nothing says it.
        rank_guessed: whether that order is all that gives it, and there are several files.
        pid, host: None where no ``steps.json`` lies beside the file.
        device: ordinal and facts of the rank's GPU, None likewise.
    """

    rank: int
    rank_guessed: bool = False
    pid: int | None = None
    host: str | None = None
    device: tuple[int, Device] | None = None


def facts(path: Path, number: int, files: int) -> Facts:
    """The facts of one file, which is the ``number``-th of the ``files`` of its recording."""
    known = beside(path)
    if known.steps is None:  # not recorded by profrun, or cut short
        guess = known.folder_rank is None and files > 1
        return Facts(number if known.folder_rank is None else known.folder_rank, guess)
    steps = known.steps
    device = None
    if steps.device is not None:
        values = to_json(steps.device)
        device = int(values.pop("ordinal")), Device(**values)
    return Facts(steps.rank, False, steps.pid, steps.host, device)


def vendor_by_names(names: list[str]) -> str:
    """Whose GPU ran kernels of these names, where no file says it. Names of ROCm's libraries are AMD's."""
    return "amd" if any(_AMD_NAME.search(name) for name in names) else "nvidia"
