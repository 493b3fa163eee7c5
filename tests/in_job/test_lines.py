"""Ranges round lines: which lines get one, and how they nest."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from profrun.contract.line_names import Line, line_name, parse_line
from profrun.in_job.lines import LineRanges
from profrun.in_job.own_code import OwnCode
from profrun.in_job.sink import Sink
from tests.conftest import ROOT

Work = Callable[[str], None]


class Told:
    """An emitter that keeps what ranges were open at each piece of work, as ``function:line``."""

    name = "told"
    hears_record_function = False

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = {}
        self.work: list[tuple[str, list[str]]] = []

    def push(self, name: str) -> object:
        line = parse_line(name)
        assert line is not None
        self.open.setdefault(threading.get_ident(), []).append(f"{line.function}:{line.line}")
        return True

    def pop(self, _handle: object) -> None:
        self.open[threading.get_ident()].pop()

    def launch(self, what: str) -> None:
        """Some work: it belongs to the ranges that are open on this thread."""
        self.work.append((what, list(self.open.get(threading.get_ident(), ()))))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def lines(told: Told) -> Iterator[LineRanges]:
    sink = Sink(told)
    sink.open()
    made = LineRanges(sink, OwnCode(ours=str(ROOT)))
    yield made
    made.close()


def program(folder: Path, text: str, **names: object) -> ModuleType:
    """A module of the user's, from a file of its own."""
    path = folder / "model.py"
    path.write_text(text)
    module = ModuleType("model")
    vars(module).update(names)
    exec(compile(text, str(path), "exec"), vars(module))
    return module


TWO = """\
def inner(launch):
    launch("a")

def outer(launch):
    inner(launch)
    launch("b"); launch("c")
    for _ in range(2):
        launch("d")
"""


def test_work_lies_in_the_line_that_does_it_and_in_the_lines_that_call_it(
    tmp_path: Path, told: Told, lines: LineRanges
) -> None:
    model = program(tmp_path, TWO)
    lines.open()
    model.outer(told.launch)
    lines.close()
    assert told.work == [
        ("a", ["outer:5", "inner:2"]),
        ("b", ["outer:6"]),
        ("c", ["outer:6"]),
        ("d", ["outer:8"]),
        ("d", ["outer:8"]),
    ]
    assert told.open == {threading.get_ident(): []}


ENDS = """\
def fails():
    raise ValueError("x")

def pieces(launch):
    launch("p")
    yield 1
    launch("q")
    yield 2

def outer(launch):
    try:
        fails()
    except ValueError:
        launch("a")
    for _ in pieces(launch):
        launch("b")
    recursive(launch, 2)
    launch("e")

def recursive(launch, left):
    if left:
        recursive(launch, left - 1)
    launch("r%d" % left)
"""


def test_exceptions_generators_and_recursion_leave_nothing_open(
    tmp_path: Path, told: Told, lines: LineRanges
) -> None:
    model = program(tmp_path, ENDS)
    lines.open()
    model.outer(told.launch)
    lines.close()
    assert told.work == [
        ("a", ["outer:14"]),
        ("p", ["outer:15", "pieces:5"]),
        ("b", ["outer:16"]),
        ("q", ["outer:15", "pieces:7"]),
        ("b", ["outer:16"]),
        ("r0", ["outer:17", "recursive:22", "recursive:22", "recursive:23"]),
        ("r1", ["outer:17", "recursive:22", "recursive:23"]),
        ("r2", ["outer:17", "recursive:23"]),
        ("e", ["outer:18"]),
    ]


RUNS = """\
def outer(launch, open_, close):
    open_()
    launch("a")
    close()
    launch("b")
"""


def test_a_call_that_runs_already_is_followed_until_the_window_closes(
    tmp_path: Path, told: Told, lines: LineRanges
) -> None:
    model = program(tmp_path, RUNS)
    model.outer(told.launch, lines.open, lines.close)
    assert told.work == [("a", ["outer:3"]), ("b", [])]
    assert not lines.is_open


LIBRARY = """\
def outer(work):
    inner(work)

def inner(work):
    work()
"""


def test_what_a_library_does_has_the_line_that_called_it_before_the_window_opened(
    tmp_path: Path, told: Told, lines: LineRanges
) -> None:
    """A trainer whose loop is in a library: the program's line runs from the first step to the last."""

    def trains() -> None:
        lines.open()
        told.launch("a")
        lines.close()
        told.launch("b")

    program(tmp_path, LIBRARY).outer(trains)
    assert told.work == [("a", ["outer:2", "inner:5"]), ("b", [])]
    assert told.open == {threading.get_ident(): []}


THREADS = """\
import threading

def work(launch):
    launch("t")

def outer(launch):
    thread = threading.Thread(target=work, args=(launch,))
    thread.start()
    thread.join()
"""


def test_threads_have_lines_of_their_own(tmp_path: Path, told: Told, lines: LineRanges) -> None:
    model = program(tmp_path, THREADS)
    lines.open()
    model.outer(told.launch)
    assert told.work == [("t", ["work:4"])]


def test_the_tracer_of_a_debugger_is_given_back(tmp_path: Path, told: Told, lines: LineRanges) -> None:
    before = sys.gettrace()
    lines.open()
    lines.close()
    assert sys.gettrace() is before


@pytest.mark.parametrize(
    ("file", "packages", "own"),
    [
        ("/home/me/train.py", (), True),
        ("/home/me/.venv/lib/python3.12/site-packages/transformers/trainer.py", (), False),
        ("/home/me/.venv/lib/python3.12/site-packages/transformers/trainer.py", ("transformers",), True),
        ("/usr/lib/python3/dist-packages/six.py", ("six",), True),
        (threading.__file__, (), False),
        ("<string>", (), False),
        ("/tmp/torchinductor_me/ab/cab.py", (), True),
        ("/bundle/_profrun/in_job/sink.py", (), False),
    ],
)
def test_whose_code_it_is(file: str, packages: tuple[str, ...], own: bool) -> None:
    assert OwnCode(packages, "/bundle/_profrun")(file) is own


@pytest.mark.parametrize("line", [Line("/a b/c:d.py", 3, "f"), Line("C:\\x.py", 1, "<module>")])
def test_a_name_says_its_line(line: Line) -> None:
    assert parse_line(line_name(line)) == line


@pytest.mark.parametrize("name", ["profrun.line", "profrun.line x", "step", "nn.Module: a (B)"])
def test_what_is_no_line(name: str) -> None:
    assert parse_line(name) is None
