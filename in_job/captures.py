"""CUDA graphs in a mapping: what each capture launched, and which graph each replay replays.

The kernels of a replay have one launch in common and no line of their own. So the capture is recorded, too,
with ranges round its lines, wherever in the program it happens: mostly before the window. Ranges with the
number of the graph lie round the capture and round each replay.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Protocol, runtime_checkable

from ..contract.graph_names import CAPTURE, CAPTURED, REPLAY
from .graph_class import graph_class

if TYPE_CHECKING:
    from .lines import LineRanges
    from .sink import Sink
    from .torch_types import Torch

_NUMBER = "_profrun_graph"  # attribute of a graph that was captured


@runtime_checkable
class MappingRecorder(Protocol):
    """Maps kernels to lines: it also records what is launched while a graph is captured."""

    def follow(self, files: Callable[[], list[str]]) -> None:
        """Learn how to ask for the files whose lines have ranges."""

    def begin_capture(self) -> bool:
        """Record from now on; False where a recording runs already, or none can begin."""

    def end_capture(self, number: int) -> None:
        """Stop, and write the capture of the graph of this number."""


class Captures:
    """Watches the CUDA graphs of this process.

    Args:
        failed: is told of an exception of the hook's own: the program goes on without it.
    """

    def __init__(
        self, sink: Sink, lines: LineRanges, recorder: MappingRecorder, failed: Callable[[Exception], None]
    ) -> None:
        self._sink, self._lines, self._recorder, self._failed = sink, lines, recorder, failed
        self._count = 0
        self._recording = False

    def watch(self, torch: Torch) -> None:
        """Put ranges round captures and replays from now on."""
        owner = graph_class(torch)
        if owner is None:
            return
        replay, begin, end = owner.replay, owner.capture_begin, owner.capture_end

        @functools.wraps(replay)
        def named_replay(graph: Any) -> Any:
            name = f"{REPLAY}{getattr(graph, _NUMBER, None)}"
            self._sink.push(name)
            try:
                return replay(graph)
            finally:
                self._sink.pop(name)

        @functools.wraps(begin)
        def recorded_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._begin(graph)
            return begin(graph, *args, **kwargs)

        @functools.wraps(end)
        def recorded_end(graph: Any) -> Any:
            try:
                return end(graph)
            finally:
                self._end(graph)

        owner.replay, owner.capture_begin, owner.capture_end = named_replay, recorded_begin, recorded_end

    def _mark(self, name: str) -> None:
        self._sink.push(name)
        self._sink.pop(name)

    def _begin(self, graph: Any) -> None:
        try:
            number = self._count
            self._count += 1
            setattr(graph, _NUMBER, number)
            if not self._sink.emitting and self._recorder.begin_capture():
                self._recording = True
                self._sink.open()
                self._lines.open()
            self._mark(f"{CAPTURE}{number}")
        except Exception as error:
            self._failed(error)

    def _end(self, graph: Any) -> None:
        try:
            number = getattr(graph, _NUMBER, None)
            if number is None:
                return
            self._mark(f"{CAPTURED}{number}")
            if self._recording:
                self._recording = False
                self._lines.close()
                self._sink.close()
                self._recorder.end_capture(number)
        except Exception as error:
            self._failed(error)
