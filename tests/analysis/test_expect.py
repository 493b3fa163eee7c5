"""Guesses checked on a trace of two steps: what is held, what fails, what the trace cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.expect import _CHECKS, expect
from profrun.jobs.schema import CHECKS
from profrun.traces.trace import Trace
from tests.tracekit import make_trace

MS = 1_000_000
HALF = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"
SINGLE = "ampere_sgemm_128x64_tn"


def _step(number: int, start: int, first: int, *, gemm: str = HALF, sync: bool = False) -> list[Any]:
    """A step of 10 ms whose op mm launches a GEMM (4 ms) and whose op gelu a kernel (1 ms)."""
    inside = {"parent": first, "depth": 1}
    slices: list[Any] = [
        ("step", f"profrun.step#{number}", start, 10 * MS, "main"),
        ("op", "aten::mm", start + 10, 1000, "main", inside),
        ("api", "cudaLaunchKernel", start + 20, 10, "main", {"parent": first + 1, "depth": 2}),
        ("op", "aten::gelu", start + 2000, 1000, "main", inside),
        ("api", "cudaLaunchKernel", start + 2010, 10, "main", {"parent": first + 3, "depth": 2}),
        ("kernel", gemm, start + 1 * MS, 4 * MS, "stream 7", {"launch": first + 2}),
        ("kernel", "gelu_kernel", start + 6 * MS, 1 * MS, "stream 7", {"launch": first + 4}),
    ]
    if sync:
        slices.append(("api", "cudaStreamSynchronize", start + 5000, 10, "main", inside))
    return slices


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two equal steps."""
    return make_trace(tmp_path / "t", [*_step(1, 0, 0), *_step(2, 20 * MS, 7)])


@pytest.mark.parametrize(
    ("check", "value", "state", "found"),
    [
        ("kernels_per_step", (2, 2), "held", "2 kernels a step in 2 steps"),
        ("kernels_per_step", (3, 9), "failed", "2 kernels a step in 2 steps"),
        ("present", ("aten::mm", "*gemm*", "cudaLaunch*"), "held", "all 3 in every step"),
        ("present", ("aten::mm", "*softmax*"), "failed", "nothing called *softmax* in 2 of 2 steps"),
        ("absent", ("*Memcpy*", "aten::addmm"), "held", "none of them occurs"),
        ("absent", ("aten::gelu",), "failed", "aten::gelu occurs 2 times in 2 steps"),
        ("fused", ("aten::add",), "held", "none of them launched a kernel of its own"),
        ("fused", ("aten::gelu",), "failed", "aten::gelu launched 2 kernels of its own"),
        ("dtype", "fp16", "held", "all 1 matrix kernels whose names tell"),
        (
            "max_share",
            {"gemm": 0.9, "gelu*": 0.2},
            "held",
            "gemm has 80.0% of the kernel time, gelu* has 20.0%",
        ),
        ("max_share", {"gemm": 0.5}, "failed", "gemm has 80.0% of the kernel time, over 50.0%"),
        ("no_sync_in_step", True, "held", "no call inside a step waits for the GPU"),
        ("step_ms", 10.5, "held", "the median step takes 10 ms"),
        ("step_ms", 10.0, "failed", "the median step takes 10 ms"),
    ],
)
def test_a_guess(trace: Trace, check: str, value: Any, state: str, found: str) -> None:
    (outcome,) = expect(trace, {check: value})
    assert (outcome.check, outcome.expected, outcome.state) == (check, value, state)
    assert outcome.found.startswith(found)


def test_the_wrong_type_is_named_with_its_share(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", _step(1, 0, 0, gemm=SINGLE))
    (outcome,) = expect(trace, {"dtype": "fp16"})
    assert outcome.state == "failed"
    assert "works in fp32 (100% of the matrix kernels' time)" in outcome.found


def test_a_call_that_waits_is_named(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", _step(1, 0, 0, sync=True))
    (outcome,) = expect(trace, {"no_sync_in_step": True})
    assert (outcome.state, outcome.found) == (
        "failed",
        "1 calls wait for the GPU, 1 of them cudaStreamSynchronize",
    )
    assert expect(trace, {"no_sync_in_step": False}) == []


def test_present_must_hold_in_every_step(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", [*_step(1, 0, 0), ("step", "profrun.step#2", 20 * MS, MS, "main")])
    (outcome,) = expect(trace, {"present": ("aten::mm",)})
    assert outcome.found == "nothing called aten::mm in 1 of 2 steps"


def test_what_bounds_a_step_is_what_the_diagnosis_says(tmp_path: Path) -> None:
    slices: list[Any] = [("step", "profrun.step#1", 0, 10 * MS, "main")]
    for number in range(4):  # launches 2 ms apart, kernels of 10 us: the GPU waits for the host
        call = len(slices)
        at = number * 2 * MS
        slices.append(("api", "cudaLaunchKernel", at, 1000, "main", {"parent": 0, "depth": 1}))
        slices.append(("kernel", "k", at + 2000, 10_000, "stream 7", {"launch": call}))
    trace = make_trace(tmp_path / "t", slices)
    held, failed = (expect(trace, {"bound": word})[0] for word in ("overhead", "compute"))
    assert held.state == "held"
    assert (failed.state, failed.found) == ("failed", f"it is overhead-bound: {held.found}")


@pytest.mark.parametrize("check", sorted(set(_CHECKS) - {"step_ms"}))
def test_a_trace_of_steps_alone_proves_nothing(tmp_path: Path, check: str) -> None:
    meta = {"collector": "none", "vendor": "none"}
    values: dict[str, Any] = {"kernels_per_step": (0, 0), "max_share": {"*": 1.0}, "bound": "compute"}
    trace = make_trace(tmp_path / "u", [("step", "profrun.step#1", 0, 1, "main")], meta=meta)
    value = values.get(check, "fp16" if check == "dtype" else True if check == "no_sync_in_step" else ("x",))
    (outcome,) = expect(trace, {check: value})
    assert outcome.state == "unknown"


def test_every_key_of_a_spec_is_checked() -> None:
    assert set(_CHECKS) == set(CHECKS)
