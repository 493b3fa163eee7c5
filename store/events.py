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
from typing import Any, get_args

from profrun.contract import json_text
from profrun.contract.codec import INT64
from profrun.contract.safe_files import OddFileError, open_file, read_file
from profrun.contract.states import TrialState
from profrun.errors import InputError
from profrun.store.files import explained, odd_file, write_all

NAMES = (
    "created",
    "planned",
    "queued",
    "started",
    "state",
    "leftovers",
    "finished",
    "skipped",
    "normalised",
    "resumed",
    "cancelled",
    "error",
    "done",
    "accepted",
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
            fd = open_file(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
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
    """Every readable event; none when the file is not there.

    Raises:
        InputError: the log cannot be read, is larger than profrun makes one, or something else is in its
            place.
    """
    events = Events()
    try:
        data = read_file(path, json_text.MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return events
    except OddFileError as error:
        raise odd_file(path, error.what) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror) from error
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = json_text.parse(line)
        except json_text.JsonError:
            events.unreadable += 1
            continue
        if _whole(record):
            events.items.append(record)
        else:
            events.unreadable += 1
    return events


_STATES: tuple[str, ...] = get_args(TrialState)
_TEXTS = ("reason", "code", "message", "by", "trial")
_GIVEN_TEXTS = ("job", "backend", "cwd", "run", "profrun", "path", "host", "seal")
"""Keys of events whose values are texts; those of the first list may be null."""


def _whole(record: object) -> bool:
    """Whether this is an event, with values that can be used as what they should be."""
    if not isinstance(record, dict) or not isinstance(record.get("event"), str) or "ts" not in record:
        return False
    texts = all(record.get(key) is None or isinstance(record[key], str) for key in _TEXTS)
    given = all(isinstance(record[key], str) for key in _GIVEN_TEXTS if record.get(key) is not None)
    numbers = all(_is_int(record[key]) for key in ("ts", "attempt") if key in record)
    code = record.get("exit_code")
    ends = record["event"] in ("state", "finished") and "state" in record
    state = not ends or record["state"] in _STATES
    handle = record.get("handle")
    return texts and given and numbers and (code is None or _is_int(code)) and state and _is_handle(handle)


def _is_int(value: object) -> bool:
    return type(value) is int and 0 <= value + INT64 < 2 * INT64


def _is_handle(value: object) -> bool:
    return value is None or (isinstance(value, dict) and isinstance(value.get("data") or {}, dict))
