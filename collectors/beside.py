"""What profrun left beside a profiler's file: a trial's folder ``rank<k>``, and the hook's ``steps.json``."""

from __future__ import annotations

import re
from collections.abc import Collection, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.contract import json_text
from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.steps import StepsFile

_RANK_FOLDER = re.compile(r"rank(\d{1,8})")


def rank_of(path: Path) -> int | None:
    """Rank by the nearest folder that is named ``rank<k>``, as profrun lays out a trial; None without one."""
    ranks = (rank_of_folder(part) for part in reversed(path.parts[:-1]))
    return next((rank for rank in ranks if rank is not None), None)


def rank_of_folder(name: str) -> int | None:
    """The rank in a folder's name ``rank<k>``; None for other names."""
    found = _RANK_FOLDER.fullmatch(name)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Beside:
    """What is known of the process that left a file.

    Attributes:
        folder_rank: rank by the folder's name, None when no folder names one.
        steps: the hook's file, None when there is none or it is cut short.
    """

    folder_rank: int | None = None
    steps: StepsFile | None = None

    @property
    def host(self) -> str | None:
        """Name of the host that it was recorded on; None when nothing says it."""
        return self.steps.host if self.steps else None

    def rank(self, pids: Collection[int | None]) -> int | None:
        """Rank of a file whose processes are ``pids``; None when nothing beside it says it."""
        if self.steps is not None and self.steps.pid in pids:
            return self.steps.rank
        return self.folder_rank

    def describe(self, devices: Sequence[MutableMapping[str, Any]], pids: Collection[int | None]) -> None:
        """Fill what is missing in these processes' rows of devices, where the hook saw the same GPU."""
        if self.steps is None or self.steps.device is None or self.steps.pid not in pids:
            return
        known = to_json(self.steps.device)
        for row in devices:
            if row["ordinal"] == known["ordinal"] and row["name"] in ("unknown", known["name"]):
                row["name"] = known["name"]
                row.update({name: value for name, value in known.items() if row.get(name) is None})


def beside(path: Path) -> Beside:
    """What profrun left beside a file."""
    try:
        data = json_text.read(path.parent / "steps.json", follow=True)
        steps = from_json(StepsFile, data)
    except (OSError, ValueError, DocumentError):  # not recorded by profrun, or cut short
        steps = None
    return Beside(rank_of(path.resolve()), steps)
