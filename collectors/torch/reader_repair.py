"""Walk damaged kineto events one by one: keep what is whole, repair what can be, count the rest.

Only pieces that a JSON parser refused come here (and the last few hundred bytes of each file).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Note = Callable[..., None]

_BETWEEN = re.compile(r"[\s,]*")
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_NEXT_EVENT = re.compile(r'\}[\s,]*\{\s*"(?:ph|name|cat|ts|pid|tid|id|dur|args|s)"\s*:')
_EVENT_LIMIT = 16 << 20


@dataclass
class Walked:
    """Clean events joined by commas, the position behind them, whether the array's end was met."""

    events: bytes
    at: int
    ended: bool


def _constant(_name: str) -> None:
    """NaN and Infinity are no numbers: missing."""


_DECODER = json.JSONDecoder(strict=False, parse_float=str, parse_constant=_constant)


def walk(data: bytes, final: bool, note: Note, patience: int = 1 << 20) -> Walked:
    """Walk ``data``, which begins at or between events.

    Args:
        data: text of events.
        final: nothing follows ``data``.
        note: counts what is repaired or lost.
        patience: an event that cannot be read this near the end of text that is not final may only be cut
            off: it is left to be read with what follows.
    """
    text = data.decode("latin-1")  # one byte a character: positions are the same
    out: list[bytes] = []
    at = 0
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        if at >= len(text):
            return Walked(b",\n".join(out), at, False)
        if text[at] == "]":
            return Walked(b",\n".join(out), at + 1, True)
        event, end = _event(text, at, note)
        if end is None:
            if not final and len(text) - at < patience:
                return Walked(b",\n".join(out), at, False)
            resumed = _NEXT_EVENT.search(text, at + 1)
            if resumed is None:  # the caller says that the text was cut here
                return Walked(b",\n".join(out), at, False)
            note("unreadable_event", _show(text, at))
            at = resumed.start() + 1
            continue
        if isinstance(event, dict):
            out.append(_clean(event, note))
        else:
            note("not_an_event", _show(text, at))
        at = end


def _event(text: str, at: int, note: Note) -> tuple[Any, int | None]:
    """The JSON value at ``at`` and its end; end None when it cannot be read even after repairs."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        pass
    follower = _NEXT_EVENT.search(text, at + 1)
    stop = follower.start() + 1 if follower else min(len(text), at + _EVENT_LIMIT)
    raw = text[at:stop]
    fixed = _BAD_ESCAPE.sub(r"\\\\", raw)
    if fixed == raw:
        return None, None
    try:
        event, end = _DECODER.raw_decode(fixed)
    except (ValueError, RecursionError):
        return None, None
    rest = len(fixed) - end  # text behind the event has no escapes to repair in the usual case
    note("repaired_escape", _show(text, at))
    return event, (stop - rest if follower is None else stop)


def _clean(event: dict[str, Any], note: Note) -> bytes:
    if not isinstance(event.get("args", {}), dict):
        note("odd_args", str(event.pop("args"))[:120])
    raw = json.dumps(event, ensure_ascii=False).encode("latin-1", "replace")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        note(
            "invalid_utf8",
            str(event.get("name"))[:120].encode("latin-1", "replace").decode("utf-8", "replace"),
        )
        raw = raw.decode("utf-8", "replace").encode("utf-8")
    return raw


def _show(text: str, at: int) -> str:
    return text[at : at + 120].encode("latin-1").decode("utf-8", "replace")
