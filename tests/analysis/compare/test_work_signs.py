"""What speaks for and against the same work where no shapes prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup, StepWork
from profrun.analysis.compare.work_signs import (
    differing_arguments,
    matrix_launches,
    modules_of,
    thread_counts,
    work_signs,
)
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


def _sized(blocks: int, category: str = "norm", name: str = "layer_norm", calls: int = 5) -> ComparedTrial:
    """A trial whose kernel is launched with so many blocks of 32 threads."""
    one = trial(name=name)
    (group,) = one.kernel_groups
    facts = KernelFacts(name, name, category, shapes=((f"{blocks}x1x1 blocks of 32x1x1", calls),))
    group = replace(group, category=category, calls=calls)
    return replace(one, kernel_groups=(group,), facts={name: facts})


def test_the_same_kernel_with_other_sizes_is_evidence_of_different_work() -> None:
    """A layer norm has a block per row: 32 times as many rows are 32 times as much work."""
    found = work_signs(_sized(2048), _sized(65536))
    assert found.other_sizes
    told = "layer_norm is launched as often on both sides, but with 65 536 and 2 097 152 threads per step"
    assert found.speak_against == (told,)
    alike = work_signs(_sized(2048), _sized(2050))
    assert not alike.other_sizes
    assert alike.speak_for == ("1 kernel that both launch as often have about as many threads on both sides",)


@pytest.mark.parametrize(
    "other",
    [
        _sized(65536, "gemm"),  # a matrix kernel chooses its grid
        _sized(65536, "optimizer"),
        _sized(65536, "collective"),
        _sized(65536, name="triton_red_fused_sum"),  # tuned anew in each run
        _sized(65536, calls=10),  # launched more often: perhaps a part of what was fused before
    ],
)
def test_kernels_whose_grid_does_not_tell_the_work(other: ComparedTrial) -> None:
    (group,) = other.kernel_groups
    base = _sized(2048, group.category, group.name)
    assert not work_signs(base, other).other_sizes


def _with_additions(*blocks: int) -> ComparedTrial:
    """A trial that launches so many kinds of elementwise kernels, with these numbers of blocks."""
    found = [_sized(size, "elementwise", f"add{number}") for number, size in enumerate(blocks)]
    return replace(
        found[0],
        kernel_groups=tuple(group for one in found for group in one.kernel_groups),
        facts={name: fact for one in found for name, fact in one.facts.items()},
    )


def test_kernels_of_any_op_are_evidence_only_together() -> None:
    """What a compiler leaves of the additions of a program may be one of a smaller tensor."""
    one = work_signs(_with_additions(2048), _with_additions(64))
    assert (one.other_sizes, len(one.speak_against)) == (False, 1)
    assert work_signs(_with_additions(2048, 512, 64), _with_additions(64, 16, 2)).other_sizes
    assert not work_signs(_with_additions(2048, 512, 64), _with_additions(2048, 512, 2)).other_sizes


def test_launches_whose_shape_is_not_known_tell_nothing() -> None:
    one = _sized(2048)
    facts = {"layer_norm": replace(one.facts["layer_norm"], shapes=(("2048x1x1 blocks of 32x1x1", 4),))}
    assert thread_counts(replace(one, facts=facts)) == {}
    assert thread_counts(one)["layer_norm"].threads == 65536


def test_arguments_that_differ() -> None:
    assert differing_arguments(("t.py", "a"), ("t.py", "b", "c")) == "a: a; b: b c"
    assert differing_arguments(("t.py", "a", "b"), ("t.py", "b", "a")) == "in another order"
