"""What is known of the process that left a file of Proton: the hook's ``steps.json`` beside it says it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.steps import StepsFile

_RANK_FOLDER = re.compile(r"^rank(\d+)$")
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


@dataclass(frozen=True)
class Facts:
    """Who recorded a file.

    Attributes:
        rank: in the job; the order of the files where nothing says it.
        pid, host: None where no ``steps.json`` lies beside the file.
        device: ordinal and facts of the rank's GPU, None likewise.
    """

    rank: int
    pid: int | None = None
    host: str | None = None
    device: tuple[int, Device] | None = None


def facts(path: Path, number: int) -> Facts:
    """The facts of one file, which is the ``number``-th of its recording."""
    named = _RANK_FOLDER.match(path.resolve().parent.name)
    rank = int(named.group(1)) if named else number
    try:
        data = json.loads((path.parent / "steps.json").read_text(encoding="utf-8"))
        steps = from_json(StepsFile, data)
    except (OSError, ValueError, DocumentError):
        return Facts(rank)  # not recorded by profrun, or cut short
    device = None
    if steps.device is not None:
        known = to_json(steps.device)
        device = int(known.pop("ordinal")), Device(**known)
    return Facts(steps.rank, steps.pid, steps.host, device)


def vendor_by_names(names: list[str]) -> str:
    """Whose GPU ran kernels of these names, where no file says it. Names of ROCm's libraries are AMD's."""
    return "amd" if any(_AMD_NAME.search(name) for name in names) else "nvidia"
