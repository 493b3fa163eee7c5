"""What speaks for and against the same work where no shapes prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import KernelGroup, StepWork
from profrun.analysis.compare.work_signs import differing_arguments, matrix_launches, modules_of, work_signs
from tests.analysis.compare.trials import OTHER, trial


def _with_modules(*names: str, calls: int = 5) -> ComparedTrial:
    groups = tuple(
        KernelGroup("k", "gemm", "compute", (), "", name, False, calls, 100) for name in names or (None,)
    )
    return replace(trial(name="k"), kernel_groups=groups)


@pytest.mark.parametrize(
    ("a", "b", "speak_for", "against"),
    [
        ({}, {}, [], []),
        (
            {"program": ("t.py", "--x"), "steps_made": 30},
            {"program": ("t.py", "--x"), "steps_made": 30},
            ["both ran t.py with the same arguments", "both made 30 steps"],
            [],
        ),
        (
            {"program": ("t.py", "--eager")},
            {"program": ("t.py", "--compile")},
            ["both ran t.py, with other arguments (a: --eager; b: --compile)"],
            [],
        ),
        ({"program": ("t.py",)}, {"program": ("u.py",)}, [], ["the programs are t.py and u.py"]),
        ({"program": ("t.py",)}, {}, [], []),
        ({"job": "r"}, {"job": "r"}, ["both are trials of one job"], []),
    ],
)
def test_what_the_programs_tell(
    a: dict[str, Any], b: dict[str, Any], speak_for: list[str], against: list[str]
) -> None:
    found = work_signs(trial(**a), trial(OTHER, **b))
    assert (list(found.speak_for), list(found.speak_against)) == (speak_for, against)


UP, UP_TWICE, UP_NOTHING = (StepWork(uploaded_bytes=size) for size in (2**20, 2**21, None))
EXCHANGE = StepWork(collective_bytes=2**10)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (UP, UP, "1 MiB per step are copied to the GPU on both sides"),
        (UP, UP_TWICE, "1 MiB and 2 MiB per step are copied to the GPU"),
        (UP, UP_NOTHING, None),  # the data of b may stay on the GPU
        (EXCHANGE, EXCHANGE, "1 KiB per step are exchanged between ranks on both sides"),
    ],
)
def test_what_copies_and_collectives_tell(a: StepWork, b: StepWork, told: str | None) -> None:
    found = work_signs(trial(work=a), trial(OTHER, work=b))
    assert [*found.speak_for, *found.speak_against] == ([told] if told else [])


def test_what_modules_tell() -> None:
    eager, compiled = _with_modules("h.0", "root"), _with_modules("_orig_mod.h.0")
    assert modules_of(eager) == modules_of(compiled) == {"h.0"}
    assert "their 1 modules have the same names" in work_signs(eager, compiled).speak_for
    part = work_signs(eager, _with_modules("h.0", "h.1"))
    assert (part.speak_for, part.speak_against) == ((), ())
    other = work_signs(eager, _with_modules("conv"))
    assert other.speak_against == ("no module of one is a module of the other (h.0 and conv, say)",)


def test_what_numbers_of_matrix_kernels_tell() -> None:
    few, many, more, twice = (_with_modules(calls=calls) for calls in (5, 30, 40, 60))
    assert matrix_launches(many) == 6
    assert work_signs(many, many).speak_for == ("both launch 6 matrix kernels per step",)
    assert work_signs(few, few).speak_for == ()  # one kernel may be as many by chance
    assert work_signs(many, more) == work_signs(few, few)  # fused or split
    assert work_signs(many, twice).speak_against == ("6 and 12 matrix kernels are launched per step",)


def test_arguments_that_differ() -> None:
    assert differing_arguments(("t.py", "a"), ("t.py", "b", "c")) == "a: a; b: b c"
    assert differing_arguments(("t.py", "a", "b"), ("t.py", "b", "a")) == "in another order"
