"""Traces of a step or two to ask guesses of."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare.expect import Check, tell
from profrun.jobs.expectation import Expectation
from profrun.traces.trace import Trace

MS = 1_000_000
HALF = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"


def gpu_step(number: int, start: int, first: int, *, gemm: str = HALF, sync: bool = False) -> list[Any]:
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


TWO = [*gpu_step(1, 0, 0), *gpu_step(2, 20 * MS, 7)]


def ask(trace: Trace, checks: dict[str, Any], **selects: Any) -> list[Check]:
    """The answers of a trace to one guess with these checks."""
    return list(tell(trace, [Expectation(**checks, **selects)]).checks)
