"""Ranges of user code, modules and steps on their way to one emitter: ``Sink``, one stack per thread.

Ranges of one thread always nest in what is emitted: closing a range closes those left open inside it. Steps
are outermost: a step's begin and end close the ranges that are open. Such a range, if it is still open when
the thread opens its next one, is opened again inside the new step. So a range over many steps (an epoch)
appears as one piece per step, and one round ``optimizer.step()`` as one piece although the step ends in it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import dynamo

if TYPE_CHECKING:
    from ..contract.recording import Emitter


class _Stack(threading.local):
    """Open ranges of one thread, outermost first: [name, handle or None (open, but not emitted)]."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []


class Sink:
    """Ranges of user code, modules and steps, on their way to one emitter.

    Attributes:
        emitting: whether somebody records now; ranges are tracked in any case, so that one opened before
            the window appears in it.
        emitted: ranges handed to the emitter so far.
    """

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.emitting = False
        self.emitted = 0
        self._stack = _Stack()
        self._step = ""  # name of the open step

    def push(self, name: str) -> None:
        """Open a range on this thread. Inside code that torch.compile traces this is nothing."""
        if dynamo.compiling():
            return
        entries = self._stack.entries
        handle = None
        if self.emitting:
            if entries and entries[-1][1] is None:
                self._reopen(entries)
            handle = self._emit(name)
        entries.append([name, handle])

    def pop(self, name: str) -> None:
        """Close the innermost open range of that name and all that were left open inside it."""
        if dynamo.compiling():
            return
        entries = self._stack.entries
        place = len(entries) - 1
        while place >= 0 and entries[place][0] != name:
            place -= 1
        if place < 0:  # opened before the hook was awake
            return
        while len(entries) > place:
            handle = entries.pop()[1]
            if handle is not None:
                self.emitter.pop(handle)

    def open(self) -> None:
        """Somebody records from now on; ranges already open are emitted when the thread opens its next."""
        self.emitting = True

    def close(self) -> None:
        """Nobody records any more: close what this thread has open in the recording."""
        self._suspend(self._stack.entries, 0)
        self.emitting = False

    def begin_step(self, name: str) -> None:
        """Open the range of a step, outermost on this thread."""
        entries = self._stack.entries
        self._suspend(entries, 0)
        self._step = name
        entries.insert(0, [name, self._emit(name) if self.emitting else None])

    def end_step(self) -> None:
        """Close the open step's range; what is open inside it ends with it."""
        entries = self._stack.entries
        self._suspend(entries, 0)
        entries[:] = [entry for entry in entries if entry[0] != self._step]

    def cut(self) -> None:
        """The recording's own step marks change here: ranges that are open end with the step."""
        self._suspend(self._stack.entries, 0)

    def resume(self) -> None:
        """Open again what ended with a step and is still open, without waiting for the next range."""
        if self.emitting:
            self._reopen(self._stack.entries)

    def depth(self) -> int:
        """Open ranges of this thread."""
        return len(self._stack.entries)

    def _suspend(self, entries: list[list[Any]], start: int) -> None:
        for entry in reversed(entries[start:]):
            if entry[1] is not None:
                self.emitter.pop(entry[1])
            entry[1] = None

    def _reopen(self, entries: list[list[Any]]) -> None:
        first = len(entries)
        while first and entries[first - 1][1] is None:
            first -= 1
        for entry in entries[first:]:
            entry[1] = self._emit(entry[0])

    def _emit(self, name: str) -> Any:
        handle = self.emitter.push(name)
        self.emitted += 1  # afterwards: a signal in between must not promise more than was emitted
        return handle
