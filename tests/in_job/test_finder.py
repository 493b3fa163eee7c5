"""Which moments end steps: programs written as letters, and the steps that must be found in them.

F: a root forward that builds a graph; f: one that does not; g: another module's; O: the first optimizer's
step; P: a second optimizer's; E: profrun.step(); M: an optimizer is made.
"""

from __future__ import annotations

import pytest

from profrun.in_job.finder import StepFinder


class Thing:
    """Stands for a module or an optimizer."""


class Run:
    """Feeds a program to a finder and writes down at which letter each step ended."""

    def __init__(self, mode: str = "auto", recording_from: int = 10**6) -> None:
        self.ends: list[int] = []
        self.place = 0
        self.recording_from = recording_from
        self.model, self.other, self.first, self.second = Thing(), Thing(), Thing(), Thing()
        self.finder = StepFinder(mode, lambda: None, self._ended, self._restart)

    def _ended(self) -> None:
        self.ends.append(self.place)

    def _restart(self) -> bool:
        if len(self.ends) >= self.recording_from:
            return False
        self.ends.clear()
        return True

    def feed(self, program: str) -> Run:
        finder = self.finder
        for letter in program.replace(" ", ""):
            {
                "F": lambda: finder.root(self.model, grad=True),
                "f": lambda: finder.root(self.model, grad=False),
                "g": lambda: finder.root(self.other, grad=False),
                "O": lambda: finder.optimizer(self.first),
                "P": lambda: finder.optimizer(self.second),
                "E": finder.explicit,
                "M": finder.optimizer_made,
            }[letter]()
            self.place += 1
        if self.finder.close_last():
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
def test_auto(program: str, how: str, ends: list[int]) -> None:
    run = Run().feed(program)
    assert (run.finder.how, run.ends, run.finder.count) == (how, ends, len(ends))


@pytest.mark.parametrize(
    ("mode", "program", "how", "ends"),
    [
        ("module", "M FOE FOE", "module", [4, 7]),
        ("optimizer", "M FOE FOE", "optimizer", [2, 5]),
        ("explicit", "M FFO FFO E", "explicit", [7]),
        ("off", "M FOE FOE", "none", []),
    ],
)
def test_a_stated_mode_is_the_only_one(mode: str, program: str, how: str, ends: list[int]) -> None:
    run = Run(mode).feed(program)
    assert (run.finder.how, run.ends) == (how, ends)


def test_once_something_is_recorded_the_lower_sign_stays_and_is_told() -> None:
    run = Run(recording_from=2).feed("fff FO FO")
    assert run.finder.how == "module"
    assert run.finder.kept_lower == "optimizer"
    assert run.ends == [1, 2, 3, 5, 7]


def test_modules_that_are_gone_are_not_confused_with_new_ones() -> None:
    """Replicas and temporary modules reuse addresses."""
    run = Run()
    for _ in range(5):
        run.finder.root(Thing(), grad=False)
    assert run.ends == []
