"""Where profilers write while they record: the trial's folder, or a disk of the node (``Command.scratch``).

A shared folder is slow under hundreds of ranks that write at once. On a disk of the node each wrapper has a
folder of its own, with one folder per rank. What is in them is moved to ``raw/rank<k>`` when the program and
its profiler have ended, however they ended. Only a wrapper that is killed itself leaves its files there.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.finding import Finding
from ..contract.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..contract.paths import TrialPaths

NOT_COPIED = "not-copied"
"""Code of the finding about a file that could not be moved to the trial's folder."""

_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")


class Scratch:
    """The folder in which the ranks of one wrapper are recorded.

    Args:
        paths: of the trial.
        wanted: the folder on the node's disk, which may begin with a variable like ``$SLURM_TMPDIR``; None:
            recordings are written where they stay.
        environ: has the variables.

    Attributes:
        root: the wrapper's own folder there; None where there is none.
    """

    def __init__(self, paths: TrialPaths, wanted: str | None, environ: Mapping[str, str]) -> None:
        self.paths = paths
        self.root: Path | None = None
        self._wanted = wanted
        self._environ = environ

    def rank(self, number: int) -> Path:
        """Where the profiler writes the files of a rank."""
        return self.paths.rank(number) if self.root is None else self.root / f"rank{number}"

    def open(self, own: int) -> Finding | None:
        """Make the folder, with one for this wrapper's own rank; says why it is not used."""
        if self._wanted is None or self.root is not None:
            return None
        what = f"the profiler writes into the trial's folder, not into {self._wanted}"
        fix = "set cluster.scratch to a folder on the nodes' own disks"
        place = _VARIABLE.sub(lambda found: self._environ.get(found[1].strip("{}"), found[0]), self._wanted)
        if "$" in place:
            return Finding("scratch-not-used", "warning", what, f"{place} is not set on this node", fix)
        try:
            root = Path(tempfile.mkdtemp(prefix=f"profrun-{self.paths.folder.name}-", dir=place))
            (root / f"rank{own}").mkdir()
        except OSError as error:
            return Finding("scratch-not-used", "warning", what, str(error), fix)
        self.root = root
        return None

    def deliver(self) -> list[Finding]:
        """Move everything to the trial's folder; what cannot be moved stays, and is named."""
        root, self.root = self.root, None
        if root is None:
            return []
        found = []
        for folder in sorted(root.glob("rank*")):
            for source in sorted(path for path in folder.rglob("*") if path.is_file()):
                target = self.paths.raw / folder.name / source.relative_to(folder)
                try:
                    _move(source, target)
                except OSError as error:
                    found.append(_not_moved(source, target, error))
        if not found:
            shutil.rmtree(root, ignore_errors=True)
        return found


def _move(source: Path, target: Path) -> None:
    """Copy a file, which appears whole or not at all, then delete it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        shutil.copyfile(str(source), str(partial))
        shutil.copystat(str(source), str(partial))
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    source.unlink()


def _not_moved(source: Path, target: Path, error: OSError) -> Finding:
    size = bytes_text(source.stat().st_size)
    what = f"{source.name} ({size}) could not be copied to the trial's folder: {error.strerror or error}"
    why = f"it is still at {socket.gethostname()}:{source}"
    return Finding(NOT_COPIED, "critical", what, why, f"make room, and copy it to {target}")
