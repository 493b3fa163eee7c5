"""CUDA graphs in a mapping: what is recorded of a capture, and how replays are named."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from profrun.in_job.captures import Captures, MappingRecorder
from profrun.in_job.lines import LineRanges
from profrun.in_job.own_code import OwnCode
from profrun.in_job.sink import Sink
from tests.conftest import ROOT


class Told:
    """An emitter that keeps what began and ended, and a graph that says when it captures and replays."""

    name = "told"
    hears_record_function = False

    def __init__(self) -> None:
        self.said: list[str] = []

    def push(self, name: str) -> object:
        self.said.append(f"> {name}" if not name.startswith("profrun.line") else "> line")
        return name

    def pop(self, handle: object) -> None:
        self.said.append(f"< {handle}" if not str(handle).startswith("profrun.line") else "< line")


class Recorder:
    """Keeps the numbers of the graphs that were recorded.

    Args:
        busy: a recording runs already.
    """

    def __init__(self, told: Told, *, busy: bool = False) -> None:
        self.told, self.busy = told, busy

    def follow(self, files: Callable[[], list[str]]) -> None:
        raise AssertionError("only Ranges calls this")

    def begin_capture(self) -> bool:
        self.told.said.append("record")
        return not self.busy

    def end_capture(self, number: int) -> None:
        self.told.said.append(f"recorded {number}")


def graph_class(told: Told) -> type:
    """A stand-in for torch.cuda.CUDAGraph."""

    class CUDAGraph:
        def capture_begin(self, pool: object = None) -> None:
            told.said.append("capture")

        def capture_end(self) -> None:
            told.said.append("captured")

        def replay(self) -> str:
            told.said.append("replay")
            return "done"

    return CUDAGraph


def watched(told: Told, recorder: Any) -> tuple[Any, Sink, list[Exception]]:
    """The class of graphs with its methods watched, the sink, and the hook's own errors."""
    sink = Sink(told)
    failed: list[Exception] = []
    cls = graph_class(told)
    lines = LineRanges(sink, OwnCode(ours=str(ROOT)))
    captures = Captures(sink, lines, recorder, failed.append)
    captures.watch(SimpleNamespace(cuda=SimpleNamespace(CUDAGraph=cls)))
    return cls, sink, failed


def test_a_capture_before_the_window_is_recorded_with_its_number() -> None:
    told = Told()
    cls, sink, failed = watched(told, Recorder(told))
    first, second = cls(), cls()
    for graph in (first, second):
        graph.capture_begin(pool=None)
        graph.capture_end()
    told.said = [one for one in told.said if "line" not in one]
    assert told.said[:8] == [
        *("record", "> profrun.capture 0", "< profrun.capture 0", "capture", "captured"),
        *("> profrun.captured 0", "< profrun.captured 0", "recorded 0"),
    ]
    assert not sink.emitting
    sink.open()
    told.said.clear()
    assert second.replay() == "done"
    assert told.said == ["> profrun.graph 1", "replay", "< profrun.graph 1"]
    assert failed == []


@pytest.mark.parametrize("open_", [True, False], ids=["inside the window", "while another recording runs"])
def test_a_capture_that_is_recorded_already_gets_a_range_and_no_recording(open_: bool) -> None:
    told = Told()
    cls, sink, _ = watched(told, Recorder(told, busy=True))
    if open_:
        sink.open()
    graph = cls()
    graph.capture_begin()
    graph.capture_end()
    begin = ["> profrun.capture 0", "< profrun.capture 0"]
    expected = [*begin, "capture", "captured", "> profrun.captured 0", "< profrun.captured 0"]
    assert told.said == (expected if open_ else ["record", "capture", "captured"])
    assert sink.emitting == open_


def test_an_error_of_the_hook_does_not_reach_the_program() -> None:
    told = Told()

    class Broken(Recorder):
        def begin_capture(self) -> bool:
            raise RuntimeError("no profiler")

    cls, _, failed = watched(told, Broken(told))
    graph = cls()
    graph.capture_begin()
    graph.capture_end()
    assert told.said == ["capture", "captured"]
    assert [str(error) for error in failed] == ["no profiler"]


def test_a_torch_without_graphs_is_left_alone() -> None:
    told = Told()
    sink = Sink(told)
    lines, failed = LineRanges(sink, OwnCode()), list[Exception]()
    captures = Captures(sink, lines, Recorder(told), failed.append)
    captures.watch(SimpleNamespace(cuda=SimpleNamespace()))
    assert failed == []
    assert isinstance(Recorder(told), MappingRecorder)
