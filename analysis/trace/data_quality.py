"""The quality of a recording: what is doubtful about it, and which numbers each finding makes unreliable.

A summary opens with these findings. A number that a critical finding affects is withheld (None); one that a
warning affects is shown and marked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from profrun.analysis.trace import quality_clocks, quality_gpu_records, quality_kernels, quality_window
from profrun.analysis.trace.quality import QualityFinding
from profrun.contract.finding import gravest_first
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

CHECKS = (
    quality_window.replayed,
    quality_window.no_launch_order,
    quality_clocks.clocks,
    quality_clocks.ranks,
    quality_clocks.contradictions,
    quality_gpu_records.no_gpu_records,
    quality_gpu_records.lost_gpu_records,
    quality_gpu_records.launches_without_kernels,
    quality_gpu_records.unattributed_gpu_time,
    quality_gpu_records.gpu_time_outside_ops,
    quality_gpu_records.graphs,
    quality_window.window_edge,
    quality_window.window_end,
    quality_gpu_records.stream_overlap,
    quality_kernels.launch_columns,
    quality_kernels.unknown_kernels,
    quality_window.no_steps,
    quality_window.launch_blocking,
    quality_window.profiler_overhead,
    quality_window.reader_issues,
)
"""All checks, in the order in which findings of the same severity are listed."""


@memoised
def data_quality(trace: Trace) -> list[QualityFinding]:
    """Every finding about the quality of a recording, the gravest first."""
    return gravest_first(found for check in CHECKS for found in check(trace))


def withheld(findings: Iterable[QualityFinding]) -> frozenset[str]:
    """Names of the numbers that must not be shown."""
    return frozenset(name for one in findings if one.severity == "critical" for name in one.affects)
