"""Trials of two sides, as traces: for the commands that compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.tracekit import make_trace

TRIALS = 4


def write_trial(out: Path, step_ns: int, kernel_ns: int, trial: int, *, blocking: bool = False) -> None:
    """Ten steps that each launch one kernel; the trial and the step move the times a little."""
    slices: list[Any] = []
    for number in range(10):
        at, first = number * 10_000_000, len(slices)
        wobble = 300 * trial + 40 * (number % 3)
        slices.append(("step", f"profrun.step#{number}", at, step_ns + wobble, "main"))
        inside = {"parent": first, "depth": 1}
        call_ns = 1000 + kernel_ns + wobble if blocking else 50
        slices.append(("api", "cudaLaunchKernel", at + 100, call_ns, "main", inside))
        slices.append(("kernel", "gemm", at + 1000, kernel_ns + wobble, "stream 7", {"launch": first + 1}))
    work = {"run": out.name, "variant": "v", "work": {"batch": 8}, "blocking": blocking}
    make_trace(out, slices, meta={"job": work}).close()


def words_of(side: str) -> list[str]:
    return [f"{side}{trial}" for trial in range(TRIALS)]
