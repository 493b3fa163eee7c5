"""Guesses checked on a trace of two steps: right, wrong with what was found instead, or not told."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.expect import Check, applies, check_trace, expected_text
from profrun.jobs.model import CHECKS, Expectation
from profrun.traces.trace import Trace
from tests.analysis.conftest import Open
from tests.analysis.kit import memory_trace, step

MS = 1_000_000
HALF = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"
SINGLE = "ampere_sgemm_128x64_tn"


def _step(number: int, start: int, first: int, *, gemm: str = HALF, sync: bool = False) -> list[Any]:
    """A step of 10 ms whose op mm launches a GEMM (4 ms) and whose op gelu a kernel (1 ms)."""
    slices: list[Any] = [
        ("step", f"profrun.step#{number}", start, 10 * MS, "main"),
        ("op", "aten::mm", start + 10, 1000, "main"),
        ("api", "cudaLaunchKernel", start + 20, 10, "main"),
        ("op", "aten::gelu", start + 2000, 1000, "main"),
        ("api", "cudaLaunchKernel", start + 2010, 10, "main"),
        ("kernel", gemm, start + 1 * MS, 4 * MS, "stream 7", {"launch": first + 2}),
        ("kernel", "gelu_kernel", start + 6 * MS, 1 * MS, "stream 7", {"launch": first + 4}),
    ]
    if sync:
        slices.append(("api", "cudaStreamSynchronize", start + 5000, 10, "main"))
    return slices


TWO = [*_step(1, 0, 0), *_step(2, 20 * MS, 7)]


def _ask(trace: Trace, checks: dict[str, Any], **selects: Any) -> list[Check]:
    return check_trace(trace, [Expectation(**checks, **selects)])


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
        ("step_ms", 10.5, True, "median of 2 steps 10 ms"),
        ("step_ms", 10.0, False, "median of 2 steps 10 ms"),
    ],
)
def test_a_guess(key: str, value: Any, *, passed: bool, found: str) -> None:
    (check,) = _ask(memory_trace(TWO), {key: value})
    assert (check.key, check.passed) == (key, passed)
    assert check.found.startswith(found)


def test_a_call_that_waits_is_named_with_its_cost() -> None:
    (check,) = _ask(memory_trace(_step(1, 0, 0, sync=True)), {"no_sync_in_step": True})
    assert check.passed is False
    assert check.found == "cudaStreamSynchronize 1 times per step (10 ns)"
    assert _ask(memory_trace(TWO), {"no_sync_in_step": False}) == []  # false asks for nothing


@pytest.mark.parametrize(("known", "passed"), [(96, True), (80, None), (4, None)])
def test_a_type_that_most_names_do_not_tell_is_not_held(known: int, passed: bool | None) -> None:
    rows = [
        ("step", "profrun.step#0", 0, 1000, "main"),
        ("api", "cudaLaunchKernel", 1, 1, "main"),
        ("kernel", HALF, 10, known, "stream 7", {"launch": 1}),
        ("api", "cudaLaunchKernel", 3, 1, "main"),
        ("kernel", "gemm_of_any_type", 200, 100 - known, "stream 7", {"launch": 3}),
    ]
    (check,) = _ask(memory_trace(rows), {"dtype": "fp16"})
    assert check.passed is passed
    assert f"{100 - known}.0 %" in check.found
    assert _ask(memory_trace(rows), {"dtype": "bf16"})[0].passed is False  # what is known differs


def test_the_wrong_type_is_named() -> None:
    (check,) = _ask(memory_trace(_step(1, 0, 0, gemm=SINGLE)), {"dtype": "fp16"})
    assert (check.passed, check.found) == (False, "fp32 100.0 % of matrix kernel time")


def test_present_must_hold_in_every_step() -> None:
    bare = [
        ("step", "profrun.step#0", -20 * MS, 10 * MS, "main"),
        ("op", "aten::mm", -20 * MS + 5, 10, "main"),
    ]
    rows = [*TWO, *bare]
    (check,) = _ask(memory_trace(rows), {"present": ("aten::gelu",)})
    assert (check.passed, check.found) == (False, "aten::gelu only in 2 of 3 steps")
    assert _ask(memory_trace(rows), {"present": ("aten::mm",)})[0].passed is True


def test_a_step_cut_off_by_the_window_is_not_asked() -> None:
    """The last step launched nothing: its work is not in the window, and its kernels are not counted."""
    rows = [*TWO, ("step", "profrun.step#3", 40 * MS, 10 * MS, "main")]
    (check,) = _ask(memory_trace(rows), {"kernels_per_step": (2, 2)})
    assert (check.passed, check.found) == (True, "2 in each of 2 steps")


def test_what_bounds_a_step_is_what_the_diagnosis_says() -> None:
    slices: list[Any] = [("step", "profrun.step#1", 0, 10 * MS, "main")]
    for number in range(4):  # launches 2 ms apart, kernels of 10 us: the GPU waits for the host
        at = number * 2 * MS
        slices.append(("api", "cudaLaunchKernel", at, 1000, "main"))
        slices.append(("kernel", "k", at + 2000, 10_000, "stream 7", {"launch": len(slices) - 1}))
    trace = memory_trace(slices)
    held, failed = (_ask(trace, {"bound": word})[0] for word in ("overhead", "compute"))
    assert held.passed is True
    assert failed.passed is False
    assert failed.found.startswith("overhead: ")


@pytest.mark.parametrize("key", sorted(set(CHECKS) - {"step_ms"}))
def test_an_unprofiled_trial_proves_only_its_time(key: str) -> None:
    trace = memory_trace(
        [("step", "profrun.step#1", 0, 1, "main")], meta={"collector": "none", "vendor": "none"}
    )
    values: dict[str, Any] = {
        "kernels_per_step": (0, 0),
        "max_share": {"*": 1.0},
        "bound": "compute",
        "dtype": "fp16",
        "no_sync_in_step": True,
    }
    (check,) = _ask(trace, {key: values.get(key, ("x",))})
    assert check.passed is None


@pytest.mark.parametrize(
    ("selects", "about"),
    [
        ({}, True),
        ({"variant": "a"}, True),
        ({"variant": "b"}, False),
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
    rows = _step(1, 0, 0)
    meta = {"collector": "rocprof", "vendor": "amd", "job": {"collector": "timeline"}}
    checks = check_trace(memory_trace(rows, meta=meta), [Expectation(collector=wanted, step_ms=20.0)])
    assert bool(checks) is about


def test_real_recordings(real: Open) -> None:
    """What the recordings' own numbers say: 18 kernels, five of them for attention's softmax and mean."""
    eager, compiled = real("h200/torch/mlp.json.gz"), real("h200/torch/mlp_compile.json.gz")
    guesses = {"kernels_per_step": (4, 4), "fused": ("gelu", "mul"), "dtype": "bf16"}
    assert [check.passed for check in _ask(compiled, guesses)] == [True, True, True]
    fused = _ask(compiled, {"fused": ("gelu",)})[0]
    assert "triton_poi_fused_gelu_mul" in fused.found
    wrong = _ask(eager, guesses)
    assert [check.passed for check in wrong] == [False, False, True]
    assert wrong[1].found == "gelu runs as vectorized_elementwise_kernel, 1 times per step"
    layer = real("h200/torch/transformer.json.gz")
    assert _ask(layer, {"kernels_per_step": (18, 18)})[0].passed is True
    assert _ask(layer, {"dtype": "tf32"})[0].passed is True
    train = _ask(real("h200/torch/train.json.gz"), {"no_sync_in_step": True})[0]
    assert train.passed is False
    assert "cudaStreamSynchronize 1 times per step" in train.found


def test_every_key_of_a_spec_can_be_said_and_asked() -> None:
    values: dict[str, Any] = {"kernels_per_step": (1, 2), "max_share": {"gemm": 0.5}, "step_ms": 1.0}
    for key in CHECKS:
        value = values.get(key, ("x",) if key in ("present", "absent", "fused") else "fp16")
        assert expected_text(key, value)
        assert _ask(memory_trace(TWO), {key: value})


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
    (check,) = check_trace(memory_trace(ONE_KERNEL), [Expectation(**{key: value})])
    assert check.passed is False
    assert check.found == found
