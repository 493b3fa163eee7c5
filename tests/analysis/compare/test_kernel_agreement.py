"""Do two runs launch the same kernels? Counted per typical step, by normalised name, without copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, read_trial
from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.kernel_agreement import KernelDifference, kernels_of_both, same_kernels
from profrun.contract.denominator import RECORDING, RUN, Denominator
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import trial
from tests.analysis.conftest import Open


def _trial(steps: int, *groups: tuple[str, str, int]) -> ComparedTrial:
    """A trial of so many steps; each group is (name, role, launches over all steps)."""
    found = tuple(
        KernelGroup(name, "gemm", role, (), "", None, False, calls, 10 * calls)
        for name, role, calls in groups
    )
    made = trial(tuple(100 + number for number in range(steps)), label=repr(groups))
    return replace(made, kernel_groups=found)


def test_one_step_more_is_no_difference() -> None:
    found = same_kernels([_trial(4, ("k", "compute", 8))], [_trial(5, ("k", "compute", 10))])
    assert found.equal is True
    assert (found.steps, found.kernels_per_step, found.differences) == ((4, 5), (2, 2), ())


def test_repeats_count_together() -> None:
    one = _trial(4, ("k", "compute", 8))
    assert same_kernels([one, one], [one]).equal is True
    more = _trial(4, ("k", "compute", 9))
    found = same_kernels([one, more], [one])
    assert found.equal is False
    assert found.differences == (KernelDifference("k", 17 / 8, 2),)


def test_a_kernel_of_one_run_only_is_named() -> None:
    found = same_kernels([_trial(2, ("k", "compute", 2))], [_trial(2, ("k", "compute", 2), ("x", "comm", 4))])
    assert found.differences == (KernelDifference("x", 0, 2),)
    assert found.kernels_per_step == (1, 3)


def test_how_a_runtime_copies_is_no_difference() -> None:
    """AMD's runtime copies with a kernel or with a copy engine; nothing of it is the program's choice."""
    found = same_kernels(
        [_trial(2, ("k", "compute", 2), ("__amd_rocclr_copyBuffer", "memcpy", 2))],
        [_trial(2, ("k", "compute", 2), ("Memcpy DtoD", "memcpy", 1))],
    )
    assert found.equal is True


def test_without_kernels_nothing_is_known() -> None:
    found = same_kernels([_trial(2)], [_trial(2, ("Memset", "memset", 2))])
    assert (found.equal, found.differences) == (None, ())


def test_real_twins_launch_the_same_kernels_and_other_programs_do_not(recorded: Recorded) -> None:
    plain = [recorded("h200/torch/train")]
    found = same_kernels(plain, [recorded("h200/torch/train_blocking")])
    assert (found.equal, found.kernels_per_step) == (True, (313, 313))
    assert same_kernels(plain, [recorded("h200/torch/mlp")]).equal is False


# Two profilers of one program.


def test_each_kernel_has_its_launches_and_time_on_both_sides() -> None:
    """Side a launches k twice per step and x once, b k twice and y four times; a launch takes 10 ns."""
    found = kernels_of_both(
        [_trial(2, ("k", "compute", 4), ("x", "compute", 2))],
        [_trial(3, ("k", "compute", 6), ("y", "comm", 12), ("Memset", "memset", 3))],
    )
    assert [
        (one.name, one.seen_by, one.equal, one.a_calls, one.b_calls, one.a_ns, one.b_ns, one.delta_ns)
        for one in found.kernels
    ] == [
        ("y", "b", False, 0, 4, 0, 40, 40),
        ("x", "a", False, 1, 0, 10, 0, -10),
        ("k", "both", True, 2, 2, 20, 20, 0),
    ]
    a, b = found.sides
    assert (a.kernels, a.kernel_ns, a.copies) == (3, 30, 0)
    assert (b.kernels, b.kernel_ns, b.copies, b.copy_ns) == (6, 60, 1, 10)
    assert (found.answer, found.exit_code) == ("different", 1)


def test_the_tools_spell_a_kernel_differently() -> None:
    """One drops the space after a comma and the qualifier of a pointer."""
    found = kernels_of_both(
        [_trial(1, ("k<float, T1 const&>(int)", "compute", 1))],
        [_trial(1, ("k<float,T1&>", "compute", 1))],
    )
    assert (found.answer, len(found.kernels)) == ("same", 1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"measure": "recording", "denominator": RECORDING}, "no_steps"),
        ({"denominator": RUN}, "no_steps"),
        ({"doubts": (("kernels_dropped", "kernels are missing"),)}, "kernels_dropped"),
        ({"fingerprint": "same"}, "same_recording"),
    ],
)
def test_a_doubt_makes_the_answer_unknown(changes: dict[str, Any], code: str) -> None:
    a, b = trial(fingerprint="same"), trial((98, 100), **changes)
    found = kernels_of_both([a], [b])
    assert (found.answer, found.exit_code) == ("unknown", 2)
    assert [one.code for one in found.doubts] == [code]


def test_a_run_whose_recording_was_cut_cannot_tell_its_kernels() -> None:
    a, b = trial(denominator=RUN), trial((98, 100), denominator=Denominator("run", 10**10))
    (doubt,) = kernels_of_both([a], [b]).doubts
    assert (doubt.code, doubt.what) == ("cut", "side b was recorded for the first 10 s of the run only")
    assert kernels_of_both([a], [replace(a, conditions=replace(a.conditions, fingerprint="b"))]).doubts == ()


def test_steps_that_differ_among_themselves_are_a_doubt_only_where_the_sides_differ() -> None:
    uneven = replace(_trial(2, ("k", "compute", 3)), work=replace(trial().work, steady=False))
    assert kernels_of_both([uneven], [_trial(4, ("k", "compute", 6))]).answer == "same"
    found = kernels_of_both([uneven], [_trial(2, ("k", "compute", 4))])
    assert (found.answer, [one.code for one in found.doubts]) == ("unknown", ["unsteady"])


def test_labels_that_several_kernels_share_get_what_tells_them_apart(recorded: Recorded) -> None:
    found = kernels_of_both([recorded("h200/torch/train")], [recorded("h200/torch/train_blocking")])
    labels = [one.label for one in found.kernels]
    assert len(set(labels)) > 0.9 * len(labels)
    assert any(label.startswith("vectorized_elementwise_kernel of ") for label in labels)


@pytest.mark.parametrize(("name", "launches"), [("mlp", 5), ("train", 313), ("transformer", 18)])
def test_two_profilers_of_one_program_saw_the_same_kernels(real: Open, name: str, launches: int) -> None:
    """Recorded on an H200 by torch's profiler and by a tool that wraps the command, in other processes."""
    a = read_trial(real(f"h200/torch/{name}.json.gz"), label="one")
    b = read_trial(real(f"h200/nsys/{name}.sqlite"), label="other")
    found = kernels_of_both([a], [b])
    assert (found.answer, found.doubts) == ("same", ())
    assert [side.kernels for side in found.sides] == [launches, launches]
    assert found.sides[1].kernel_ns == pytest.approx(found.sides[0].kernel_ns, rel=0.02)


def test_a_program_that_lost_a_kernel_is_not_the_same(real: Open) -> None:
    a = read_trial(real("h200/torch/train.json.gz"), label="one")
    lost = a.kernel_groups[5]
    without = replace(a, kernel_groups=tuple(group for group in a.kernel_groups if group is not lost))
    b = replace(without, conditions=replace(a.conditions, fingerprint="other"))
    found = kernels_of_both([a], [b])
    assert found.answer == "different"
    differ = [one for one in found.kernels if not one.equal]
    assert [one.name for one in differ] == [lost.name]
