"""``events.jsonl``: what happened in a run, append-only, one JSON object per line.

A line is written with one ``write`` to a file opened for appending, then synced, so that a killed process
leaves whole lines and at most one torn one at the end. Reading skips what is not a whole line and counts it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profrun.store.files import explained, write_all

NAMES = (
    "created",
    "planned",
    "queued",
    "started",
    "state",
    "leftovers",
    "finished",
    "normalised",
    "resumed",
    "cancelled",
    "error",
    "done",
)
"""Events a reader may meet; unknown ones are kept and ignored."""

NEVER_STARTED = "never-started"
"""``code`` of the end of a trial that the engine refused to start."""

Event = dict[str, Any]


@dataclass(frozen=True)
class Handle:
    """What a backend needs to find its work again from another process; ``data`` are JSON-safe values."""

    backend: str
    data: Mapping[str, Any]


@dataclass
class Events:
    """Events of a run in order, and how many lines were not readable (torn by a kill or a full disk)."""

    items: list[Event] = field(default_factory=list)
    unreadable: int = 0


class EventLog:
    """Appends to one run's log. Only the holder of the run's lock may.

    Args:
        path: ``events.jsonl``.
        clock: unix time in ns.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self.path = path
        self._clock = clock

    def append(self, event: str, trial: str | None = None, *, durable: bool = True, **data: Any) -> Event:
        """Write one event and return it as written.

        Args:
            durable: see it on the disk now. The first of many may leave that to the last.

        Raises:
            UnavailableError: the disk is full or the folder is not writable.
        """
        record: Event = {"ts": self._clock(), "event": event, "trial": trial, **data}
        line = (json.dumps(record, separators=(",", ":")) + "\n").encode()
        with explained(self.path):
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                # A torn last line must not swallow this one.
                write_all(fd, (b"\n" if _torn(fd) else b"") + line, durable=durable)
            finally:
                os.close(fd)
        return record


def _torn(fd: int) -> bool:
    """Whether the file ends in the middle of a line."""
    size = os.fstat(fd).st_size
    return size > 0 and os.lseek(fd, -1, os.SEEK_END) >= 0 and os.read(fd, 1) != b"\n"


def read_events(path: Path) -> Events:
    """Every readable event; none when the file is not there."""
    events = Events()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return events
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            events.unreadable += 1
            continue
        whole = isinstance(record, dict) and isinstance(record.get("event"), str)
        if whole and isinstance(record.get("ts"), int):
            events.items.append(record)
        else:
            events.unreadable += 1
    return events
