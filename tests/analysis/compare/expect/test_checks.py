"""Guesses checked on a trace of two steps: right, wrong with what was found instead, or not told."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.expect import applies, expected_text, judge, tell
from profrun.jobs.expectation import (
    CHECKS,
    Achieved,
    DramBytes,
    Expectation,
    Ratio,
    SameKernels,
)
from tests.analysis.compare.expect.steps import TWO, ask, gpu_step
from tests.analysis.conftest import Open
from tests.analysis.kit import memory_trace, step


@pytest.mark.parametrize(
    ("key", "value", "passed", "found"),
    [
        ("kernels_per_step", (2, 2), True, "2 in each of 2 steps"),
        ("kernels_per_step", (3, 9), False, "2 per step, most often 1 x "),
        ("present", ("aten::mm", "*gemm*", "cudaLaunch*"), True, "in each of 2 steps"),
        ("present", ("aten::gelo",), False, "no aten::gelo; the nearest names are aten::gelu"),
        ("absent", ("*Memcpy*", "aten::addmm"), True, "in none of 2 steps"),
        ("absent", ("aten::gelu",), False, "aten::gelu in 2 of 2 steps"),
        ("fused", ("add",), True, "no kernel is of these ops alone"),
        ("fused", ("gelu",), False, "gelu runs as gelu_kernel, 1 times per step"),
        ("dtype", "fp16", True, "fp16 100.0 % of matrix kernel time"),
        ("dtype", "bf16", False, "fp16 100.0 % of matrix kernel time"),
        ("max_share", {"gemm": 0.9, "gelu*": 0.2}, True, "gemm 80.0 %, gelu* 20.0 % of the GPU time"),
        ("max_share", {"gemm": 0.5}, False, "gemm 80.0 % of the GPU time"),
        ("no_sync_in_step", True, True, "no call that waits"),
        ("counts", {"gemm": (1, 1), "*gelu*": (1, 2)}, True, "gemm 1, *gelu* 1 per step"),
        ("counts", {"gemm": (3, 3)}, False, "gemm 1 per step"),
        ("counts", {"cudaLaunch*": (2, 2), "aten::mm": (1, 1)}, True, "cudaLaunch* 2, aten::mm 1 per step"),
        ("counts", {"triton_*": (0, 0), "memcpy": (0, 0)}, True, "triton_* 0, memcpy 0 per step"),
        ("step_ms", 10.5, True, "median of 2 steps 10 ms"),
        ("step_ms", 10.0, False, "median of 2 steps 10 ms"),
    ],
)
def test_a_guess(key: str, value: Any, *, passed: bool, found: str) -> None:
    (check,) = ask(memory_trace(TWO), {key: value})
    assert (check.key, check.answer.passed) == (key, passed)
    assert check.answer.found.startswith(found)


@pytest.mark.parametrize("key", sorted(set(CHECKS) - {"step_ms"}))
def test_an_unprofiled_trial_proves_only_its_time(key: str) -> None:
    trace = memory_trace(
        [("step", "profrun.step#1", 0, 1, "main")], meta={"collector": "none", "vendor": "none"}
    )
    claim = Expectation(**{key: VALUES[key]})
    (result,) = judge([claim], [tell(trace, [claim])], [None])
    assert (result.state, bool(result.checks[0].why)) == ("not checked", True)


@pytest.mark.parametrize(
    ("selects", "about"),
    [
        ({}, True),
        ({"variant": ("a",)}, True),
        ({"variant": ("b",)}, False),
        ({"vendor": "amd"}, False),
        ({"collector": "nsys"}, True),
        ({"collector": "timeline"}, True),
        ({"collector": "counters"}, False),
        ({"collector": "torch"}, False),
    ],
)
def test_whom_a_guess_is_about(selects: dict[str, Any], *, about: bool) -> None:
    guess = Expectation(**selects)
    assert applies(guess, variant="a", vendor="nvidia", collector="nsys", tool="nsys") is about


@pytest.mark.parametrize(
    ("wanted", "about"), [(None, True), ("timeline", True), ("counters", False), ("rocprof", False)]
)
def test_a_guess_selects_trials_by_the_collector_as_the_job_names_it(
    wanted: str | None, *, about: bool
) -> None:
    """On AMD timeline and counters become one tool; a guess about one is not checked on the other."""
    guess = Expectation(collector=wanted)
    assert applies(guess, variant="a", vendor="amd", collector="timeline", tool="rocprof") is about
    rows = gpu_step(1, 0, 0)
    meta = {"collector": "rocprof", "vendor": "amd", "job": {"collector": "timeline"}}
    checks = tell(memory_trace(rows, meta=meta), [Expectation(collector=wanted, step_ms=20.0)]).checks
    assert bool(checks) is about


def test_real_recordings(real: Open) -> None:
    """What the recordings' own numbers say: 18 kernels, five of them for attention's softmax and mean."""
    eager, compiled = real("h200/torch/mlp.json.gz"), real("h200/torch/mlp_compile.json.gz")
    guesses = {"kernels_per_step": (4, 4), "fused": ("gelu", "mul"), "dtype": "bf16"}
    assert [check.answer.passed for check in ask(compiled, guesses)] == [True, True, True]
    fused = ask(compiled, {"fused": ("gelu",)})[0]
    assert "triton_poi_fused_gelu_mul" in fused.answer.found
    wrong = ask(eager, guesses)
    assert [check.answer.passed for check in wrong] == [False, False, True]
    assert wrong[1].answer.found == "gelu runs as vectorized_elementwise_kernel, 1 times per step"
    layer = real("h200/torch/transformer.json.gz")
    assert ask(layer, {"kernels_per_step": (18, 18)})[0].answer.passed is True
    assert ask(layer, {"dtype": "tf32"})[0].answer.passed is True
    train = ask(real("h200/torch/train.json.gz"), {"no_sync_in_step": True})[0]
    assert train.answer.passed is False
    assert "cudaStreamSynchronize 1 times per step" in train.answer.found


VALUES: dict[str, Any] = {
    "kernels_per_step": (1, 2),
    "counts": {"gemm": (1, 1)},
    "present": ("x",),
    "absent": ("x",),
    "after": {"*gemm*": "aten::mm"},
    "fused": ("x",),
    "same_kernels": SameKernels(as_="b", only=("gemm",)),
    "dtype": "fp16",
    "max_share": {"gemm": 0.5},
    "no_sync_in_step": True,
    "step_ms": 1.0,
    "bound": "compute",
    "ratio": Ratio(to="b", below=1.0),
    "bytes": DramBytes(below=1e6),
    "achieved": Achieved(utilization=(0.0, 1.0)),
    "finds": ("tiny-kernels",),
    "finds_not": ("tiny-kernels",),
}


def test_every_key_of_a_spec_can_be_said_and_judged() -> None:
    assert list(VALUES) == list(CHECKS)
    told = tell(memory_trace(TWO), claims := [Expectation(**{key: value}) for key, value in VALUES.items()])
    results = judge(claims, [told], [None])
    assert [one.checks[0].key for one in results] == list(CHECKS)
    for one in results:
        assert one.claim == expected_text(one.checks[0].key, VALUES[one.checks[0].key])
        assert one.checks[0].found or one.checks[0].why


ONE_KERNEL: list[tuple[Any, ...]] = [
    step(0, 0, 1000),
    ("api", "cudaMemsetAsync", 10, 5, "main"),
    ("api", "cudaMemsetAsync", 20, 5, "main"),
    ("api", "cudaLaunchKernel", 30, 5, "main"),
    ("memset", "Memset (Device)", 50, 5, "stream 7", {"launch": 1}),
    ("memset", "Memset (Device)", 60, 5, "stream 7", {"launch": 2}),
    ("kernel", "my_kernel", 70, 50, "stream 7", {"launch": 3}),
]


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("kernels_per_step", (9, 9), "1 per step, most often 1 x my_kernel"),
        ("present", ("triton_*",), "no triton_*, and no name like it"),
        ("present", ("my_kernal",), "no my_kernal; the nearest names are my_kernel"),
    ],
)
def test_a_failed_guess_names_what_was_found(key: str, value: Any, found: str) -> None:
    (check,) = tell(memory_trace(ONE_KERNEL), [Expectation(**{key: value})]).checks
    assert check.answer.passed is False
    assert check.answer.found == found
