"""Which moments end steps: programs written as letters, and the steps that must be found in them.

F: a root forward that builds a graph for backward; f: one that does not; g: another module's; O: the first
optimizer's step; P: a second optimizer's; E: profrun.step(); M: an optimizer is made; c, d: calls of two
compiled functions, C: of the first with a graph for backward; j: of a jitted one; r, s: replays of two CUDA
graphs; R: of the first, building a graph for backward; ( ): a capture begins and ends; l, L: a batch of the
first loader, L: in training; k: of a second loader; z: the first has no more batches; n: the next epoch, a
new iterator of the first.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.in_job.finder import LEVELS, StepFinder


class Thing:
    """Stands for a module, an optimizer, or what runs in their place."""


class Run:
    """Feeds a program to a finder and writes down at which letter each step ended."""

    def __init__(self, mode: str = "auto", recording_from: int = 10**6) -> None:
        self.ends: list[int] = []
        self.place = 0
        self.recording_from = recording_from
        self.model, self.other, self.first, self.second = Thing(), Thing(), Thing(), Thing()
        self.compiled, self.helper, self.jitted = Thing(), Thing(), Thing()
        self.graph, self.part = Thing(), Thing()
        self.batches, self.others = Thing(), Thing()
        self.finder = StepFinder(mode, lambda: None, self._ended, self._restart)

    def _ended(self) -> None:
        self.ends.append(self.place)

    def _restart(self) -> bool:
        if len(self.ends) >= self.recording_from:
            return False
        self.ends.clear()
        return True

    def _next_epoch(self) -> None:
        self.batches = Thing()

    def feed(self, program: str, *, end: bool = True) -> Run:
        finder = self.finder
        for letter in program.replace(" ", ""):
            {
                "F": lambda: finder.called("module", self.model, grad=True),
                "f": lambda: finder.called("module", self.model),
                "g": lambda: finder.called("module", self.other),
                "c": lambda: finder.called("compiled", self.compiled),
                "C": lambda: finder.called("compiled", self.compiled, grad=True),
                "d": lambda: finder.called("compiled", self.helper),
                "j": lambda: finder.called("jit", self.jitted),
                "r": lambda: finder.called("graph", self.graph),
                "R": lambda: finder.called("graph", self.graph, grad=True),
                "s": lambda: finder.called("graph", self.part),
                "(": lambda: finder.capture(on=True),
                ")": lambda: finder.capture(on=False),
                "l": lambda: finder.batch(self.batches),
                "L": lambda: finder.batch(self.batches, grad=True),
                "k": lambda: finder.batch(self.others),
                "z": lambda: finder.exhausted(self.batches),
                "n": self._next_epoch,
                "O": lambda: finder.optimizer(self.first),
                "P": lambda: finder.optimizer(self.second),
                "E": finder.explicit,
                "M": finder.optimizer_made,
            }[letter]()
            self.place += 1
        if end and self.finder.close_last():
            self.ends.append(self.place)
        return self


@pytest.mark.parametrize(
    ("program", "how", "ends"),
    [
        ("fff", "module", [1, 2, 3]),
        ("fg fg fg", "module", [2, 4, 6]),  # encoder and decoder: one step a pair
        ("g fff", "module", [2, 3, 4]),  # a module called once, in advance, does not matter
        ("FFF", "module", [1, 2, 3]),  # forward in training mode, but nobody trains
        ("M FO FO FO", "optimizer", [2, 4, 6]),
        ("M FFFFO FFFFO", "optimizer", [5, 10]),  # gradient accumulation
        ("M FO FO ff FO", "optimizer", [2, 4, 8]),  # evaluation in between is part of the step
        ("M ff FO FO", "optimizer", [4, 6]),  # a sanity check before training is forgotten
        ("M FOP FOP FOP", "optimizer", [2, 5, 8]),  # two optimizers, one step
        ("M FO FO PPPPPPPP PP", "optimizer", [2, 4, 12, 13, 14]),  # the leader is gone: the other leads
        ("M FOE FOE FOE", "explicit", [2, 6, 9]),  # seen twice, ended once
        ("fE fE fE", "explicit", [1, 3, 5]),
        ("E E E", "explicit", [0, 1, 2]),
        ("ffffE ffffE", "explicit", [4, 9]),  # tokens of one request
        ("M FOFOFOE FOFOFOE", "explicit", [7, 14]),
        ("M " + "F" * 70, "module", [*range(65, 72)]),  # an optimizer that never steps
        ("", "none", []),
    ],
)
def test_modules_optimizers_and_explicit_steps(program: str, how: str, ends: list[int]) -> None:
    run = Run().feed(program)
    assert (run.finder.how, run.ends, run.finder.count) == (how, ends, len(ends))


@pytest.mark.parametrize(
    ("program", "how", "ends"),
    [
        ("ccc", "compiled", [1, 2, 3]),
        ("jjj", "jit", [1, 2, 3]),
        ("rrr", "graph", [1, 2, 3]),
        ("cd cd cd", "compiled", [2, 4, 6]),  # two functions: one step a pair
        ("rs rs rs", "graph", [2, 4, 6]),  # a graph per layer
        ("c rrr c rrr", "graph", [2, 3, 5, 6, 7, 8]),  # compiled prefill, a token is a step
        ("j rc rc rc", "graph", [3, 5, 7]),
        ("lll z", "loader", [1, 2, 4]),
        ("lll z n ll z", "loader", [1, 2, 5, 6, 8]),  # epochs: what lies between belongs to the last batch
        ("lll", "loader", [1, 2]),  # left in the middle: nobody saw the last one end
        ("lk lk lk z", "loader", [2, 4, 7]),  # two loaders side by side
        ("l kkk l kkk z", "loader", [4, 9]),  # an evaluation inside
        ("lc lc lc z", "compiled", [3, 5, 7]),  # for batch in loader: the work on it says where steps end
        ("l rrrr l rrrr", "graph", [2, 3, 4, 6, 7, 8, 9, 10]),  # tokens of the prompts of a loader
        ("llllll cc z", "compiled", [7, 9]),  # the data set was copied first
        ("lf lf lf z", "module", [3, 5, 7]),
        ("l lf lf lf", "module", [4, 6, 7]),  # a loader that fetches ahead
        ("f" + "c" * 10, "compiled", [10, 11]),  # a module called once, in advance
        ("cf cf cf", "module", [3, 5, 6]),
        ("fcc fcc fcc", "module", [3, 6, 9]),
        ("M LF LF O LF LF O", "optimizer", [5, 10]),  # accumulation over batches
        ("M CC O CC O", "optimizer", [3, 6]),
        ("fff (f) rrrr", "graph", [7, 8, 9, 10]),  # a graph's warm-up is no step
        ("M FOFOFO (FO) RRR", "graph", [12, 13, 14]),  # the optimizer is in the graph
        ("M FOFO (F) RORO", "optimizer", [2, 4, 9, 11]),  # ... and is not
        ("f" * 20 + "(f) rrrr", "module", [*range(1, 20), 27]),  # too long for a warm-up
        ("E (f) rr E rr E", "explicit", [0, 6, 9]),
    ],
)
def test_what_runs_in_the_place_of_modules(program: str, how: str, ends: list[int]) -> None:
    run = Run().feed(program)
    assert (run.finder.how, run.ends, run.finder.count) == (how, ends, len(ends))


@pytest.mark.parametrize(
    ("mode", "program", "how", "ends"),
    [
        ("module", "M FOE FOE", "module", [4, 7]),
        ("optimizer", "M FOE FOE", "optimizer", [2, 5]),
        ("explicit", "M FFO FFO E", "explicit", [7]),
        ("off", "M FOE FOE", "none", []),
        ("loader", "M LCOE LCOE z", "loader", [5, 10]),
        ("compiled", "LFC LFC O", "compiled", [5, 7]),
        ("jit", "c j f c j f", "jit", [4, 6]),
        ("graph", "fff (f) rr f r", "graph", [7, 9, 10]),
    ],
)
def test_a_stated_mode_is_the_only_one(mode: str, program: str, how: str, ends: list[int]) -> None:
    run = Run(mode).feed(program)
    assert (run.finder.how, run.ends) == (how, ends)


@pytest.mark.parametrize(
    ("program", "how", "higher", "ends"),
    [
        ("fff FO FO", "module", "optimizer", [1, 2, 3, 5, 7]),
        ("lll fl fl fl", "loader", "module", [1, 2, 4, 6, 8]),
        ("ccc fc fc fc", "compiled", "module", [1, 2, 4, 6, 8, 9]),
        ("lll cl cl cl", "loader", "compiled", [1, 2, 4, 6, 8]),
    ],
)
def test_once_something_is_recorded_the_lower_sign_stays_and_is_told(
    program: str, how: str, higher: str, ends: list[int]
) -> None:
    run = Run(recording_from=2).feed(program)
    assert (run.finder.how, run.finder.kept_lower) == (how, higher)
    assert run.ends == ends


def test_a_warm_up_that_was_recorded_is_told_and_the_replays_count() -> None:
    run = Run(recording_from=2).feed("fff (f) rrrr")
    assert (run.finder.how, run.finder.late_capture) == ("graph", "module")
    assert run.ends == [1, 2, 7, 8, 9, 10]


def test_modules_that_are_gone_are_not_confused_with_new_ones() -> None:
    """Replicas and temporary modules reuse addresses."""
    run = Run()
    for _ in range(5):
        run.finder.called("module", Thing())
    assert run.ends == []


@given(body=st.lists(st.sampled_from("fgcdjrslkE"), min_size=1, unique=True))
def test_a_loop_over_things_that_come_once_each_has_one_step_per_iteration(body: list[str]) -> None:
    """Whatever they are and in whichever order: first steps apart, which authority finds."""
    run = Run().feed("".join(body) * 30)
    late = [end for end in run.ends if 15 * len(body) <= end < 29 * len(body)]
    assert len(late) >= 13
    assert {after - before for before, after in pairwise(late)} == {len(body)}


@given(
    early=st.text("fcjrl", min_size=3, max_size=12),
    body=st.lists(st.sampled_from("fgcdjrslk"), min_size=1, unique=True),
)
def test_steps_that_are_recorded_go_on_as_long_as_their_sign_does(early: str, body: list[str]) -> None:
    """Whatever higher sign comes beside it."""
    run = Run(recording_from=1).feed(early)
    alive = {"module": "f", "compiled": "cdjrs", "jit": "cdjrs", "graph": "cdjrs", "loader": "lk", "none": ""}
    if not run.ends or not set(alive[run.finder.how]) & set(body):
        return
    begun = len(early)
    run.feed("".join(body) * 30)
    late = [end for end in run.ends if begun + 15 * len(body) <= end < begun + 29 * len(body)]
    assert {after - before for before, after in pairwise(late)} == {len(body)}


@given(
    program=st.text("FfgOPEM", min_size=4, max_size=60),
    more=st.lists(st.tuples(st.integers(0, 60), st.sampled_from("cdCjrRslLkzn")), max_size=60),
)
def test_what_runs_beside_modules_never_changes_their_steps(
    program: str, more: list[tuple[int, str]]
) -> None:
    """While nothing is recorded: then a lower sign is kept."""
    alone = Run()
    alone.feed(program, end=False)
    added = sorted((min(place, len(program)), letter) for place, letter in more)
    mixed, places = "", []
    for place in range(len(program) + 1):
        mixed += "".join(letter for at, letter in added if at == place)
        places.append(len(mixed))
        mixed += program[place : place + 1]
    both = Run()
    both.feed(mixed, end=False)
    if alone.ends:
        assert (both.finder.how, both.ends) == (alone.finder.how, [places[end] for end in alone.ends])


@given(program=st.text("FfgOPEMcdCjrRs()lLkzn", max_size=200), recorded=st.integers(0, 12))
def test_steps_end_one_after_another_and_are_counted(program: str, recorded: int) -> None:
    run = Run(recording_from=recorded).feed(program)
    assert run.ends == sorted(set(run.ends))
    assert run.finder.count == len(run.ends)
    assert not run.ends or LEVELS[run.finder.how]
