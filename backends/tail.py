"""Text files read line by line, also while they grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from profrun.contract.paths import TrialPaths


class Tail:
    """Lines of a file that is still written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""

    def lines(self, *, last: bool) -> Iterator[str]:
        """Whole lines since the last call; with ``last`` also an unfinished one."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            data = b""
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").rstrip("\r")
        if last and self._rest:
            yield self._rest.decode(errors="replace")
            self._rest = b""


def follow(
    trial: TrialPaths, *, follow: bool, ended: Callable[[], bool], pause_s: float = 0.2
) -> Iterator[str]:
    """Lines of a trial's stdout.log and stderr.log (every rank's); with ``follow`` until ``ended``."""
    tails: dict[Path, Tail] = {}
    while True:
        over = not follow or ended()
        for name in ("stdout", "stderr"):
            for path in sorted(trial.folder.glob(f"{name}*.log")):
                tails.setdefault(path, Tail(path))
        for tail in tails.values():
            yield from tail.lines(last=over)
        if over:
            return
        time.sleep(pause_s)


def last_line(path: Path, limit: int = 200) -> str | None:
    """The last line of a text file, cut to ``limit`` characters; None when there is none to be read."""
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return None
    return lines[-1][:limit] if lines else None
