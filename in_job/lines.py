"""Ranges round the lines of the user's code that run while the window is open: ``LineRanges``.

The range of a line begins with the line and ends when the next line of the same call begins, or the call
ends. What a line calls lies inside it. So the innermost range round the launch of a kernel is the line of the
user's code that launched it, exactly: no clock is compared.

From Python 3.12 on ``sys.monitoring`` tells the lines of all threads, also of those that run autograd
(https://peps.python.org/pep-0669/). Before that ``sys.settrace`` does it, for the thread that opens the
window and for those that Python starts after it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Callable

from ..contract.line_names import Line, line_name

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .own_code import OwnCode
    from .sink import Sink


class _Calls(threading.local):
    """The calls of one thread that run now, outermost first: [code, name of the open range or None]."""

    def __init__(self) -> None:
        self.running: list[list[Any]] = []


class LineRanges:
    """Puts ranges round lines.

    Args:
        sink: takes the ranges.
        own: tells whose code a file is.
    """

    def __init__(self, sink: Sink, own: OwnCode) -> None:
        self._sink = sink
        self._own = own
        self._calls = _Calls()
        self._names: dict[tuple[CodeType, int], str] = {}
        self._watch: _Monitoring | _Tracing | None = None

    @property
    def is_open(self) -> bool:
        """Whether lines get ranges now."""
        return self._watch is not None

    def open(self) -> None:
        """Lines get ranges from now on, also those of calls that run already."""
        if self._watch is None:
            self._watch = _Monitoring(self) if hasattr(sys, "monitoring") else _Tracing(self)
            self._watch.start()
            self._begin_running(sys._getframe(1))

    def _begin_running(self, frame: FrameType | None) -> None:
        """The lines that this thread is in: a library that they call may launch kernels before the next."""
        running = []
        while frame is not None:
            if self.is_own(frame.f_code):
                running.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        for code, number in reversed(running):
            self.begin_call(code)
            self.begin_line(code, number)

    def close(self) -> None:
        """No line gets a range any more; those of this thread end."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        running = self._calls.running
        while running:
            self._end(running.pop())

    def files(self) -> list[str]:
        """The user's files that lines ran of, without those that torch.compile has made; sorted."""
        files = {code.co_filename for code, _ in self._names}
        return sorted(file for file in files if not self._own.is_generated(file))

    def is_own(self, code: CodeType) -> bool:
        """Whether the lines of this code get ranges."""
        return self._own(code.co_filename)

    def begin_call(self, code: CodeType) -> None:
        """A call of the user's code begins, or goes on after a yield."""
        self._calls.running.append([code, None])

    def begin_line(self, code: CodeType, number: int) -> None:
        """A line begins."""
        running = self._calls.running
        if not running or running[-1][0] is not code:
            running.append([code, None])  # the call ran already when the window opened
        call = running[-1]
        self._end(call)
        name = self._names.get((code, number))
        if name is None:
            function = code.co_name.replace(" ", "_") or "?"
            name = self._names[code, number] = line_name(Line(code.co_filename, number, function))
        call[1] = name
        self._sink.push(name)

    def end_call(self, code: CodeType) -> None:
        """A call of the user's code ends, or yields."""
        running = self._calls.running
        if running and running[-1][0] is code:
            self._end(running.pop())

    def _end(self, call: list[Any]) -> None:
        if call[1] is not None:
            self._sink.pop(call[1])
            call[1] = None


class _Tracing:
    """Tells the lines through ``sys.settrace``."""

    def __init__(self, lines: LineRanges) -> None:
        self._lines = lines
        self._before: Any = None

    def start(self) -> None:
        """From now on."""
        self._before = sys.gettrace()
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._lines.is_own(frame.f_code):
                frame.f_trace = self._local
            frame = frame.f_back
        threading.settrace(self._begin)
        sys.settrace(self._begin)

    def stop(self) -> None:
        """Not any more."""
        sys.settrace(self._before)
        threading.settrace(self._before)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_trace == self._local:
                frame.f_trace = None
            frame = frame.f_back

    def _begin(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        if event != "call" or not self._lines.is_own(frame.f_code):
            return None
        self._lines.begin_call(frame.f_code)
        return self._local

    def _local(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        if event == "line":
            self._lines.begin_line(frame.f_code, frame.f_lineno)
        elif event == "return":  # after an exception and for a yield, too
            self._lines.end_call(frame.f_code)
        return self._local


class _Monitoring:
    """Tells the lines through ``sys.monitoring``: other code than the user's is left alone after one look."""

    def __init__(self, lines: LineRanges) -> None:
        self._lines = lines
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._tool = -1
        self._local = 0
        self._codes: list[CodeType] = []

    def start(self) -> None:
        """From now on.

        Raises:
            RuntimeError: other tools have all numbers.
        """
        found = self._monitoring
        free = [number for number in (4, 3, 2, 1, 0) if found.get_tool(number) is None]
        if not free:
            raise RuntimeError("no tool number of sys.monitoring is free")
        self._tool = free[0]
        found.use_tool_id(self._tool, "profrun")
        events = found.events
        told = {
            events.PY_START: self._start,
            events.PY_RESUME: self._start,
            events.PY_THROW: self._throw,
            events.LINE: self._line,
            events.PY_RETURN: self._end,
            events.PY_YIELD: self._end,
            events.PY_UNWIND: self._unwind,
        }
        for event, call in told.items():
            found.register_callback(self._tool, event, call)
        self._local = events.LINE | events.PY_RETURN | events.PY_YIELD
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            self._follow(frame.f_code)
            frame = frame.f_back
        found.set_events(self._tool, events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND)

    def stop(self) -> None:
        """Not any more."""
        found = self._monitoring
        found.set_events(self._tool, 0)
        for code in self._codes:
            found.set_local_events(self._tool, code, 0)
        found.free_tool_id(self._tool)

    def _follow(self, code: CodeType) -> bool:
        if not self._lines.is_own(code):
            return False
        if not self._monitoring.get_local_events(self._tool, code):
            self._codes.append(code)
            self._monitoring.set_local_events(self._tool, code, self._local)
        return True

    def _start(self, code: CodeType, _offset: int) -> Any:
        if not self._follow(code):
            return self._monitoring.DISABLE
        self._lines.begin_call(code)
        return None

    def _throw(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if self._follow(code):
            self._lines.begin_call(code)

    def _line(self, code: CodeType, number: int) -> None:
        self._lines.begin_line(code, number)

    def _end(self, code: CodeType, _offset: int, _value: object) -> None:
        self._lines.end_call(code)

    def _unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        self._lines.end_call(code)
