"""Guesses that were written down before the trace was opened (``expect`` of a job), checked on a trace.

A check is held, failed, or unknown: a trace that cannot tell (no GPU, no API calls, numbers in doubt) is no
proof of a guess, nor against it. What was found instead is said with its numbers.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from profrun.analysis.critical_path import is_blocking
from profrun.analysis.integrity import withheld
from profrun.analysis.json import to_json
from profrun.analysis.names import MATRIX_CATEGORIES
from profrun.analysis.rules import Context
from profrun.analysis.rules.bound import compute_bound, memory_bound, overhead_bound

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

State = Literal["held", "failed", "unknown"]
_BOUNDS = {"overhead": overhead_bound, "compute": compute_bound, "memory": memory_bound}
_RELIES = {
    "kernels_per_step": ("steps.kernels",),
    "step_ms": ("steps.dur_ns",),
    "max_share": ("kernels",),
    "bound": ("devices.utilization",),
}
"""Numbers a check rests on, by the names that doubts use."""


@dataclass(frozen=True)
class Outcome:
    """One check.

    Attributes:
        check: its key in the spec.
        expected: its value there.
        state: held, failed or unknown.
        found: what the trace says, one sentence.
    """

    check: str
    expected: Any
    state: State
    found: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        found: dict[str, Any] = to_json(self)
        return found


def expect(trace: Trace, checks: Mapping[str, Any]) -> list[Outcome]:
    """Check guesses on a trace, in the order given.

    Args:
        trace: any trace.
        checks: ``Expectation.checks`` of a job: key -> value as validated there.
    """
    context = Context(trace)
    hidden = withheld(context.doubts)
    found = []
    for check, value in checks.items():
        if check == "no_sync_in_step" and not value:
            continue  # false asks for nothing
        doubted = [name for name in _RELIES.get(check, ()) if name in hidden or name.split(".")[0] in hidden]
        state: State
        if doubted:
            state, text = "unknown", f"{doubted[0]} cannot be trusted in this trace; see `profrun summary`"
        else:
            state, text = _CHECKS[check](context, value)
        found.append(Outcome(check, value, state, text))
    return found


Answer = tuple[State, str]
_SILENT = "neither kernels nor API calls nor ops were recorded"


def _kernels_per_step(context: Context, span: tuple[int, int]) -> Answer:
    low, high = span
    if not context.steps:
        return "unknown", "the trace has no steps"
    if context.trace.meta["vendor"] == "none":
        return "unknown", "no GPU was recorded"
    counts = [step.kernels for step in context.steps]
    text = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
    good = all(low <= count <= high for count in counts)
    return "held" if good else "failed", f"{text} kernels a step in {len(counts)} steps"


def _names_of_steps(context: Context) -> list[Counter[str]]:
    """Names of GPU work (by its launch), API calls and ops of each step; of everything without steps."""
    source, index = context.frame, context.index
    gpu, host = source.gpu, source.of("api", "op")
    if not len(index.slices):
        return [Counter(source.text(int(one)) for ids in (gpu, host) for one in ids)]
    found: list[Counter[str]] = [Counter() for _ in index.slices]
    for ids, steps in ((gpu, index.of_gpu[gpu]), (host, context.step_of(host))):
        for one, step in zip(ids, steps, strict=True):
            if step >= 0:
                found[int(step)][source.text(int(one))] += 1
    return found


def _matching(names: Mapping[str, int], glob: str) -> dict[str, int]:
    return {name: count for name, count in names.items() if fnmatchcase(name, glob)}


def _present(context: Context, globs: Sequence[str]) -> Answer:
    steps = _names_of_steps(context)
    if not any(steps):
        return "unknown", _SILENT
    for glob in globs:
        without = sum(not _matching(names, glob) for names in steps)
        if without:
            where = f"in {without} of {len(steps)} steps" if len(context.steps) else "in the trace"
            return "failed", f"nothing called {glob} {where}"
    return "held", f"all {len(globs)} in every step" if len(context.steps) else f"all {len(globs)} occur"


def _absent(context: Context, globs: Sequence[str]) -> Answer:
    whole = sum(_names_of_steps(context), Counter())
    if not whole:
        return "unknown", _SILENT
    for glob in globs:
        there = _matching(whole, glob)
        if there:
            name, count = max(there.items(), key=lambda item: (item[1], item[0]))
            return "failed", f"{name} occurs {count} times in {max(1, len(context.steps))} steps"
    return "held", "none of them occurs"


def _fused(context: Context, globs: Sequence[str]) -> Answer:
    source = context.frame
    kernels = source.of("kernel")
    kernels = kernels[source.launch[kernels] >= 0]
    if not len(kernels):
        return "unknown", "no kernel with a known launch was recorded"
    owners = source.nearest("op")[source.launch[kernels]]
    names = Counter(source.text(int(one)) for one in owners if one >= 0)
    for glob in globs:
        own = _matching(names, glob)
        if own:
            name, count = max(own.items(), key=lambda item: (item[1], item[0]))
            return "failed", f"{name} launched {count} kernels of its own"
    return "held", "none of them launched a kernel of its own"


def _dtype(context: Context, dtype: str) -> Answer:
    rows = [row for row in context.kernels if row.category in MATRIX_CATEGORIES]
    if not rows:
        return "unknown", "no matrix kernel was recorded"
    known = [row for row in rows if row.dtype is not None]
    if not known:
        return "unknown", f"the names of {len(rows)} matrix kernels do not tell their type"
    others = [row for row in known if row.dtype != dtype]
    if others:
        worst = max(others, key=lambda row: row.total_ns)
        share = worst.total_ns / sum(row.total_ns for row in rows)
        return "failed", f"{worst.short} works in {worst.dtype} ({share:.0%} of the matrix kernels' time)"
    return "held", f"all {len(known)} matrix kernels whose names tell"


def _max_share(context: Context, limits: Mapping[str, float]) -> Answer:
    total = context.kernel_ns
    if not total:
        return "unknown", "no kernel was recorded"
    shares = {}
    for key in limits:
        rows = [row for row in context.kernels if row.category == key or fnmatchcase(row.name, key)]
        shares[key] = sum(row.total_ns for row in rows) / total
    for key, limit in limits.items():
        if shares[key] > limit:
            return "failed", f"{key} has {shares[key]:.1%} of the kernel time, over {limit:.1%}"
    return "held", ", ".join(f"{key} has {share:.1%} of the kernel time" for key, share in shares.items())


def _no_sync(context: Context, wanted: bool) -> Answer:
    if not len(context.frame.of("api")):
        return "unknown", "no API call was recorded"
    ids = context.in_steps(context.named("api", is_blocking))
    if len(ids):
        name, count = Counter(context.frame.text(int(one)) for one in ids).most_common(1)[0]
        return "failed", f"{len(ids)} calls wait for the GPU, {count} of them {name}"
    return "held", "no call inside a step waits for the GPU"


def _step_ms(context: Context, limit: float) -> Answer:
    if not context.steps:
        return "unknown", "the trace has no steps"
    median = statistics.median(step.dur_ns for step in context.steps) / 1e6
    return "held" if median < limit else "failed", f"the median step takes {median:.4g} ms"


def _bound(context: Context, wanted: str) -> Answer:
    if not context.devices:
        return "unknown", "no GPU was recorded"
    fired = {name: hit.message for name, find in _BOUNDS.items() for hit in find(context)}
    if wanted in fired:
        return "held", fired[wanted]
    other = next(iter(fired.items()), None)
    return "failed", f"it is {other[0]}-bound: {other[1]}" if other else "none of the three limits it clearly"


_CHECKS: dict[str, Callable[[Context, Any], Answer]] = {
    "kernels_per_step": _kernels_per_step,
    "present": _present,
    "absent": _absent,
    "fused": _fused,
    "dtype": _dtype,
    "max_share": _max_share,
    "no_sync_in_step": _no_sync,
    "step_ms": _step_ms,
    "bound": _bound,
}
"""Every key that a job may expect (a test holds this equal to the spec's)."""
