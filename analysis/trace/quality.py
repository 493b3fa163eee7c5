"""One finding about the quality of a recording: ``QualityFinding``, and names for groups of numbers.

The checks that give findings are in ``quality_gpu_records``, ``quality_kernels`` and ``quality_window``;
``data_quality`` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from profrun.contract.finding import Finding, Severity

STEP_WORK = ("steps.kernels", "steps.kernel_ns", "steps.gpu_busy_ns")
"""Numbers of the GPU work of steps."""
OP_WORK = ("ops.self_device_ns", "ops.device_ns", "ranges.gpu_ns", "modules.gpu_ns")
"""Numbers of the GPU work of ops and ranges."""


@dataclass(frozen=True)
class QualityFinding(Finding):
    """One reason to doubt numbers of a recording.

    ``severity`` decides what happens to the numbers that it affects: 'critical' numbers are withheld,
    'warning' numbers are shown and marked, 'info' changes nothing.

    Attributes:
        affects: names of the numbers or tables, as in the summary's JSON.
        count: how many slices, calls or rows.
        share: part of ``share_of``, None where there is no share.
        share_of: what the share is of, in words; None where there is no share.
    """

    affects: tuple[str, ...] = ()
    count: int = 0
    share: float | None = None
    share_of: str | None = None


def above(share: float, limit: float) -> Severity:
    """'warning' for a share above the limit, 'info' for others."""
    return "warning" if share > limit else "info"
