"""Do two runs launch the same kernels? Counted per typical step, by normalised name, without copies."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.kernel_agreement import KernelDifference, same_kernels
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import trial


def _trial(steps: int, *groups: tuple[str, str, int]) -> ComparedTrial:
    """A trial of so many steps; each group is (name, role, launches over all steps)."""
    found = tuple(
        KernelGroup(name, "gemm", role, (), "", None, False, calls, 10 * calls)
        for name, role, calls in groups
    )
    return replace(trial(tuple(100 + number for number in range(steps))), kernel_groups=found)


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
