"""Guesses about time: the length of a step, waiting for the GPU, and what bounds the step."""

from __future__ import annotations

from statistics import median

from profrun.analysis.compare.expect.evidence import Evidence
from profrun.analysis.compare.expect.model import Answer
from profrun.analysis.rules.diagnose import diagnose
from profrun.contract.units import time_text

_BOUNDS = {
    "overhead-bound": "overhead",
    "host-code": "overhead",
    "compute-bound": "compute",
    "memory-bound": "memory",
}
"""Rule of the diagnosis -> word of the guess; overhead is any host time for which the GPU waits."""


def no_sync_in_step(evidence: Evidence, wanted: bool) -> Answer:
    """Does no step wait for the GPU? Asked only where ``wanted`` is true."""
    if not any(row.kind == "api" for row in evidence.trial.host_ops):
        return None, "no runtime calls in this trace"
    waits = [row for row in evidence.trial.host_ops if row.waits and row.calls]
    if not waits:
        return True, "no call that waits"
    samples = evidence.samples
    return False, ", ".join(
        f"{row.name} {row.calls / samples:g} times per step ({time_text(row.cpu_ns / samples)})"
        for row in waits[:3]
    )


def step_ms(evidence: Evidence, limit: float) -> Answer:
    """Is the median step below the limit, in ms?"""
    times = evidence.trial.times
    if not times:
        return None, "no whole step in this trace"
    value = median(times) / 1e6
    return value < limit, f"median of {len(times)} steps {value:.4g} ms"


def bound(evidence: Evidence, wanted: str) -> Answer:
    """Does the diagnosis find that overhead, compute or memory bounds the step?"""
    found = {finding.code: finding for finding in diagnose(evidence.trace)}
    told = {word: found[rule] for rule, word in reversed(_BOUNDS.items()) if rule in found}
    if not told:
        return False, "nothing bounds it clearly: neither overhead, compute nor memory"
    shown = told.get(wanted) or next(iter(told.values()))
    return wanted in told, f"{' and '.join(told)}: {shown.what}"
