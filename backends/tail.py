"""Text files read line by line, also while they grow."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from profrun.contract.paths import found_in
from profrun.contract.safe_files import OddFileError, open_file
from profrun.contract.states import TERMINAL, Status
from profrun.errors import UnavailableError
from profrun.store.events import Handle
from profrun.store.files import odd_file
from profrun.store.runs import Run

_BLOCK = 1 << 20
"""Bytes that are read at once. A line that is longer comes in pieces."""


class Tail:
    """Lines of a file that is still written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""

    def lines(self, *, last: bool) -> Iterator[str]:
        """Whole lines since the last call; with ``last`` also an unfinished one.

        Raises:
            InputError: there is something else in place of the file.
        """
        while data := self._block():
            self._offset += len(data)
            *whole, self._rest = (self._rest + data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace").rstrip("\r")
            if len(self._rest) > _BLOCK:
                yield self._rest.decode(errors="replace")
                self._rest = b""
        if last and self._rest:
            yield self._rest.decode(errors="replace")
            self._rest = b""

    def _block(self) -> bytes:
        try:
            with os.fdopen(open_file(self.path, os.O_RDONLY), "rb") as file:
                file.seek(self._offset)
                return file.read(_BLOCK)
        except FileNotFoundError:
            return b""
        except OddFileError as error:
            raise odd_file(self.path, error.what) from error


class Answers(Protocol):
    """What is needed of a backend here."""

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """As ``Backend.status``."""


def has_ended(backend: Answers, handle: Handle, run: Run, trial_id: str) -> bool:
    """Whether a trial has ended; False also while the engine cannot be asked."""
    with contextlib.suppress(UnavailableError):
        return backend.status({trial_id: handle}, run)[trial_id].state in TERMINAL
    return False


def trial_lines(
    backend: Answers, handle: Handle, run: Run, trial_id: str, *, follow: bool, pause_s: float = 0.2
) -> Iterator[str]:
    """Lines of a trial's stdout.log, then of its stderr.log, of every rank.

    Args:
        follow: also the lines that come until the trial has ended.
    """
    tails: dict[Path, Tail] = {}
    folder = run.trial(trial_id).folder
    while True:
        over = not follow or has_ended(backend, handle, run, trial_id)
        for name in ("stdout", "stderr"):
            for path in found_in(folder, f"{name}*.log"):
                tails.setdefault(path, Tail(path))
        for tail in tails.values():
            yield from tail.lines(last=over)
        if over:
            return
        time.sleep(pause_s)
