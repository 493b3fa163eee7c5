"""Trials made up for tests, and what stops their comparison."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from profrun.analysis.compare import ComparedTrial, Comparison, RecordingConditions, compare
from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup, StepSample, StepWork

CONDITIONS = RecordingConditions(
    label="t",
    fingerprint="f",
    source="kineto",
    collector="torch",
    tool="torch",
    vendor="nvidia",
    measure="span",
    profiled=True,
    blocking=False,
    blocking_seen=False,
    replayed=False,
    ranks=1,
    devices=("NVIDIA H200",),
)


def trial(
    times: tuple[int, ...] = (100, 101, 99, 100, 102),
    *,
    name: str = "k",
    work: StepWork | None = None,
    **changes: Any,
) -> ComparedTrial:
    """A trial of one kernel per step that takes half of the step."""
    count = len(times)
    return ComparedTrial(
        conditions=replace(CONDITIONS, **{"fingerprint": repr((times, name, changes))} | changes),
        samples=tuple(
            StepSample(n, 0, time, time, time // 2, time // 2, 1, 1) for n, time in enumerate(times)
        ),
        kernel_groups=(
            KernelGroup(name, "gemm", "compute", ("aten::mm",), "o", None, False, count, sum(times) // 2),
        ),
        facts={name: KernelFacts(name, name, "gemm", shapes=(("8x1x1 blocks of 128x1x1", count),))},
        series={name: tuple(time // 2 for time in times)},
        host_ops=(),
        work=work or StepWork(matrix_flops=1e9),
    )


OTHER = (98, 100, 101, 99, 100)


def stops(found: Comparison) -> list[str]:
    """Codes of the reasons that prevent the comparison."""
    return [one.code for one in found.reasons if one.stops]


@lru_cache
def _base() -> Comparison:
    return compare([trial(), trial((99, 101, 100))], [trial(OTHER), trial((101, 99, 98))])


def changed_comparison(**changes: Any) -> Comparison:
    """The comparison of two small sides, with fields replaced."""
    return replace(_base(), **changes)
