"""Traces of a step or two to ask guesses of."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare.expect import Check, judge, tell
from profrun.jobs.expectation import Expectation
from profrun.store.run_claims import CheckResult
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace

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


EAGER = (HALF, "gelu_kernel", "mul_kernel")
COMPILED = (HALF, "triton_poi_fused_gelu_mul_0")


def recorded(
    variant: str,
    dur: int,
    kernels: tuple[str, ...] = EAGER,
    *,
    number: int = 0,
    collector: str = "torch",
    work: dict[str, Any] | None = None,
) -> Trace:
    """A trial of three steps of ``dur`` ns, each a little longer, with these kernels.

    Args:
        number: of the trial. collector: of the trial, as the job names it and as the profiler is called.
        work: what is declared of the work of a step.
    """
    rows: list[Any] = []
    at = 0
    for place in range(3):
        long = dur + place * 1000 + number * 2000
        rows.append(("step", f"profrun.step#{place}", at, long, "main"))
        for offset, kernel in enumerate(kernels if collector != "none" else ()):
            rows.append(("api", "cudaLaunchKernel", at + 10 + offset * 20, 10, "main"))
            launch = {"launch": len(rows) - 1}
            rows.append(("kernel", kernel, at + 1000 + offset * 5000, 4000, "stream 7", launch))
        at += long
    trial = f"{variant}-{collector}-{number}"
    job = {"variant": variant, "collector": collector, "trial": trial, "work": work or {}}
    return memory_trace(rows, meta={"collector": collector, "replayed": collector == "ncu", "job": job})


def check_of(claim: Expectation, *traces: Trace) -> CheckResult:
    """The result of the only check of a claim, over traces of the variants eager and compiled."""
    told = [tell(trace, [claim]) for trace in traces]
    (result,) = judge([claim], told, ["eager", "compiled"])
    return result.checks[0]
