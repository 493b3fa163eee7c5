"""What a Python process of the job says about itself: ``ProcessNote``, a file per process in ``hook/``.

The hook writes it when the process ends; the wrapper reads all of them for provenance.json and exit.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from ..contract.codec import DocumentError, from_json
from ..contract.finding import Finding
from ..contract.provenance import Process, TorchVersion
from ..contract.steps import StepsFile
from .files import read_json

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ProcessNote:
    """One process.

    Attributes:
        python: its version.
        torch: None when it did not import torch.
        packages: ``name==version`` of what is installed; empty but for the process that made the steps.
        warnings: what its hook found worth saying.
        run: its run as one step, where it imported a GPU framework, no step was seen, and it is no helper of
            another process.
        cpu_ns: CPU time that it used.
    """

    process: Process
    python: str
    torch: TorchVersion | None = None
    packages: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()
    run: StepsFile | None = None
    cpu_ns: int = 0


def read_notes(folder: Path, covers: Callable[[int], bool]) -> list[ProcessNote]:
    """The notes of the processes of some ranks, sorted by file name; unreadable ones are left out.

    Args:
        folder: the trial's ``hook`` folder.
        covers: whether a rank is one of them.
    """
    found = []
    for path in sorted(folder.glob("process.*.json")):
        try:
            note = from_json(ProcessNote, read_json(path))
        except DocumentError:
            continue
        if covers(note.process.rank or 0):
            found.append(note)
    return found
