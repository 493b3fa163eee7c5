"""What asynchronous launches are worth: one point with and without launch blocking.

With ``CUDA_LAUNCH_BLOCKING=1`` (NVIDIA), ``HIP_LAUNCH_BLOCKING=1`` and ``AMD_SERIALIZE_KERNEL=3`` (AMD) each
launch returns when its kernel has ended. Then nothing overlaps, an op's host time holds its kernels (its true
latency), waits move from synchronising calls into the launches, and what is left of the difference is what
asynchronous launches hide. Kernels are matched by name, never by correlation id. Inside one CUDA or HIP graph
launch nothing is serialised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profrun.analysis.compare.breakdown import merged_host, typical_step, unit_counts
from profrun.analysis.compare.comparability import is_blocking, reasons, stopped
from profrun.analysis.compare.core import compare, side_value
from profrun.analysis.compare.model import Reason, Row
from profrun.analysis.compare.stats import estimate
from profrun.analysis.compare.stats import verdict as verdict_of
from profrun.analysis.compare.trial import HostOp, Trial
from profrun.analysis.json import to_json
from profrun.errors import UsageError

VARIABLES = {
    "nvidia": ("CUDA_LAUNCH_BLOCKING=1",),
    "amd": ("HIP_LAUNCH_BLOCKING=1", "AMD_SERIALIZE_KERNEL=3"),
}
"""What makes launches block, by vendor: torch on ROCm is not known to listen to CUDA_LAUNCH_BLOCKING."""
KERNELS_EQUAL = 0.02
"""Relative difference of kernel time a step up to which both runs' kernels are called equally fast."""
EXPECTED = ("blocking", "variant")


@dataclass(frozen=True)
class OpTwin:
    """One op (or range, or runtime call) a step in both runs; times ns a step.

    Attributes:
        async_ns, blocking_ns: host time with children. device_ns: GPU time of what it launched (blocking);
            of a range also what other threads launched while the main thread was in it.
        hidden_ns: blocking_ns - async_ns, what the asynchronous run did not wait for here.
        latency_ns: true latency of one call: host time under blocking / calls, which contains its kernels.
    """

    name: str
    kind: str
    calls: float
    async_ns: float
    blocking_ns: float
    hidden_ns: float
    device_ns: float
    latency_ns: float


@dataclass(frozen=True)
class SyncTwin:
    """One runtime call that waits for the GPU, a step: where the waiting moved from."""

    name: str
    async_calls: float
    blocking_calls: float
    async_ns: float
    blocking_ns: float


@dataclass(frozen=True)
class KernelDifference:
    """A kernel that one run launches more often than the other, a step."""

    name: str
    async_calls: float
    blocking_calls: float


@dataclass(frozen=True)
class Blocking:
    """A point with and without launch blocking. Ratio: blocking over asynchronous step time.

    Attributes:
        timed_by: the collector whose trials gave the ratio: 'none' where there are such trials.
        took_effect: did the launches block: None when no trace tells.
        step_ns: [async, blocking], geometric mean over the trials that gave the ratio of their median steps.
        hidden_ns: mean typical step, blocking - asynchronous, of the profiled trials: what is hidden a step.
        overlap_ns: GPU work that ran while the host went on, a step of the asynchronous run;
            blocking_overlap_ns: the same of the blocking run, about 0 when it took effect.
        kernel_multiset_equal: the same kernels as often a step; None when no trace has kernels.
        kernel_ns: GPU time a step, [async, blocking]; kernel_ratio of it; kernels_same_speed: within 2 %.
        slower_kernels: rows of kernels whose time differs (clock effects).
        concurrent_ns: GPU time that ran beside other GPU work (streams), a step, [async, blocking].
        launch_ns: mean time in one launch call, [async, blocking].
        graph_share: of GPU time launched by graphs, where blocking does not reach.
        sentence: what it means for this job.
    """

    verdict: str
    ratio: float | None
    ci95: tuple[float, float] | None
    mde: float | None
    trials: tuple[int, int]
    trials_needed: int | None
    timed_by: str | None
    variables: tuple[str, ...]
    took_effect: bool | None
    step_ns: tuple[float, float] | None
    hidden_ns: float | None
    overlap_ns: float | None
    blocking_overlap_ns: float | None
    kernel_multiset_equal: bool | None
    kernel_differences: tuple[KernelDifference, ...]
    kernel_ns: tuple[float, float] | None
    kernel_ratio: float | None
    kernels_same_speed: bool | None
    slower_kernels: tuple[Row, ...]
    concurrent_ns: tuple[float, float] | None
    launch_ns: tuple[float | None, float | None]
    graph_share: float
    per_op: tuple[OpTwin, ...]
    sync_points: tuple[SyncTwin, ...]
    reasons: tuple[Reason, ...]
    sentence: str
    variant: str | None = None

    @property
    def exit_code(self) -> int:
        """0 with an interval, 2 without one or when the twins cannot be compared."""
        return 0 if self.ci95 is not None else 2

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: what ``profrun blocking --json`` prints."""
        found: dict[str, Any] = to_json(self)
        return found | {"exit_code": self.exit_code}


def blocking_twins(
    asynchronous: Sequence[Trial],
    blocking: Sequence[Trial],
    *,
    threshold: float = 0.01,
    variant: str | None = None,
) -> Blocking:
    """Compare the trials of one point without and with launch blocking.

    Args:
        asynchronous, blocking: trials of one variant, of one or more collectors. Step time comes from the
            unprofiled trials ('none') where both sides have some; everything else from the profiled ones.

    Raises:
        UsageError: a side is empty, or no collector has trials on both sides.
    """
    groups = _by_collector(asynchronous, blocking)
    timed = "none" if "none" in groups else next(iter(groups))
    profiled = next((name for name in groups if name != "none"), None)
    a, b = groups[timed]
    found = _reasons(groups, profiled)
    if stopped(found):
        return _refused(a, b, found, variant)
    result = estimate([t.times for t in a], [t.times for t in b], threshold=threshold)
    needed = result.trials_needed if min(result.trials) < (result.trials_needed or 0) else None
    medians = (
        side_value([trial.times for trial in a], "median"),
        side_value([trial.times for trial in b], "median"),
    )
    details = _details(*groups[profiled], threshold) if profiled else _NOTHING
    effect = details["took_effect"]
    return Blocking(
        verdict=verdict_of(result, threshold), ratio=result.ratio, ci95=result.ci95, mde=result.mde,
        trials=result.trials, trials_needed=needed, timed_by=timed,
        variables=VARIABLES.get(b[0].conditions.vendor, ()), step_ns=medians, reasons=tuple(found),
        variant=variant,
        sentence=_sentence(result.ratio, result.ci95, details, effect, b[0].conditions.vendor), **details,
    )  # fmt: skip


def _by_collector(a: Sequence[Trial], b: Sequence[Trial]) -> dict[str, tuple[list[Trial], list[Trial]]]:
    """Trials by collector, where both sides have some; those with most GPU detail first."""
    if not a or not b:
        raise UsageError(
            "launch-blocking twins need trials without and with blocking",
            fix="submit the job with `launch_blocking: both`",
        )
    found: dict[str, tuple[list[Trial], list[Trial]]] = {}
    for number, side in enumerate((a, b)):
        for trial in side:
            found.setdefault(trial.conditions.collector, ([], []))[number].append(trial)
    both = {name: sides for name, sides in found.items() if sides[0] and sides[1]}
    if not both:
        raise UsageError(
            "no collector has trials both without and with launch blocking",
            why=f"the sides hold {', '.join(sorted(found))}",
            fix="give both sides trials of the same collector",
        )
    order = {"torch": 0, "nsys": 1, "rocprof": 2}
    return dict(sorted(both.items(), key=lambda item: (order.get(item[0], 3), item[0])))


def _reasons(groups: dict[str, tuple[list[Trial], list[Trial]]], profiled: str | None) -> list[Reason]:
    """Reasons against, but for launch blocking itself; of the timed and the profiled trials."""
    found: list[Reason] = []
    for name, (a, b) in groups.items():
        if name in ("none", profiled):
            for one in reasons(a, b, allow=("blocking",)):
                if one.code not in EXPECTED and one not in found:
                    found.append(one)
    return found


_NOTHING: dict[str, Any] = {
    "took_effect": None, "hidden_ns": None, "overlap_ns": None, "blocking_overlap_ns": None,
    "kernel_multiset_equal": None, "kernel_differences": (), "kernel_ns": None, "kernel_ratio": None,
    "kernels_same_speed": None, "slower_kernels": (), "concurrent_ns": None, "launch_ns": (None, None),
    "graph_share": 0.0, "per_op": (), "sync_points": (),
}  # fmt: skip


def _details(a: Sequence[Trial], b: Sequence[Trial], threshold: float) -> dict[str, Any]:
    """Everything that needs traces of both runs."""
    differences = _kernel_differences(a, b)
    kernels = _kernel_counts(a), _kernel_counts(b)
    inner = compare(a, b, threshold=threshold, allow=("blocking",))
    gpu = _mean(a, "gpu_ns"), _mean(b, "gpu_ns")
    ratio = gpu[1] / gpu[0] if gpu[0] and gpu[1] else None
    whole = sum(unit.gpu_ns for trial in (*a, *b) for unit in trial.typical)
    seen = [trial.conditions.blocking_seen for trial in b if trial.conditions.blocking_seen is not None]
    return {
        "took_effect": min(seen) > 0.9 if seen else None,
        "hidden_ns": typical_step(b) - typical_step(a),
        "overlap_ns": _mean(a, "overlap_ns"),
        "blocking_overlap_ns": _mean(b, "overlap_ns"),
        "kernel_multiset_equal": not differences if any(kernels) else None,
        "kernel_differences": differences,
        "kernel_ns": gpu if any(gpu) else None,
        "kernel_ratio": ratio,
        "kernels_same_speed": abs(ratio - 1) <= KERNELS_EQUAL if ratio else None,
        "slower_kernels": tuple(row for row in inner.kernels if row.status in ("faster", "slower")),
        "concurrent_ns": (_concurrent(a), _concurrent(b)),
        "launch_ns": (_launch(a), _launch(b)),
        "graph_share": sum(trial.graph_ns for trial in (*a, *b)) / whole if whole else 0.0,
        "per_op": _per_op(a, b),
        "sync_points": _syncs(a, b),
    }


def _mean(trials: Sequence[Trial], column: str) -> float:
    values = [getattr(unit, column) for trial in trials for unit in trial.typical]
    return float(sum(values) / len(values)) if values else 0.0


def _concurrent(trials: Sequence[Trial]) -> float:
    return _mean(trials, "gpu_ns") - _mean(trials, "busy_ns")


def _launch(trials: Sequence[Trial]) -> float | None:
    calls = sum(trial.launch_calls for trial in trials)
    return sum(trial.launch_ns for trial in trials) / calls if calls else None


def _kernel_counts(trials: Sequence[Trial]) -> Counter[str]:
    """Kernel launches by name over all typical units."""
    found: Counter[str] = Counter()
    for trial in trials:
        for atom in trial.atoms:
            if atom.role in ("compute", "comm") or not atom.name.startswith("Mem"):
                found[atom.name] += atom.calls
    return found


def _kernel_differences(a: Sequence[Trial], b: Sequence[Trial]) -> tuple[KernelDifference, ...]:
    counts, units = (_kernel_counts(a), _kernel_counts(b)), unit_counts((a, b))
    rows = []
    for name in sorted({*counts[0], *counts[1]}):
        left, right = counts[0][name] * units[1], counts[1][name] * units[0]
        if left != right:
            rows.append(KernelDifference(name, counts[0][name] / units[0], counts[1][name] / units[1]))
    return tuple(rows)


def _per_op(a: Sequence[Trial], b: Sequence[Trial]) -> tuple[OpTwin, ...]:
    """Ops, ranges and launching calls of both runs, those that hide most first."""
    units = unit_counts((a, b))
    tables = [{(row.kind, row.name): row for row in merged_host(side)} for side in (a, b)]
    ranges = _range_device(b)
    rows = []
    for key in {*tables[0], *tables[1]}:
        left, right = tables[0].get(key), tables[1].get(key)
        shown = right or left
        if shown is None or key[0] not in ("op", "range", "api") or shown.waits:
            continue
        before = left.cpu_ns / units[0] if left else 0.0
        after = right.cpu_ns / units[1] if right else 0.0
        if not shown.device_ns and not shown.launches and key[0] != "range":
            continue  # launches nothing: blocking has nothing to do with it
        device = ranges.get(shown.name, 0) if shown.kind == "range" else right.device_ns if right else 0
        rows.append(
            OpTwin(
                name=shown.name, kind=shown.kind, calls=shown.calls / units[1 if right else 0],
                async_ns=before, blocking_ns=after, hidden_ns=after - before,
                device_ns=device / units[1],
                latency_ns=right.cpu_ns / right.calls if right and right.calls else 0.0,
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: (-row.hidden_ns, row.kind, row.name)))


def _range_device(trials: Sequence[Trial]) -> dict[str, int]:
    """GPU time by range, with what other threads launched while the main thread was in it (backward)."""
    found: dict[str, int] = {}
    for trial in trials:
        for atom in trial.atoms:
            for name in set(atom.path):
                found[name] = found.get(name, 0) + atom.ns
    return found


def _syncs(a: Sequence[Trial], b: Sequence[Trial]) -> tuple[SyncTwin, ...]:
    units = unit_counts((a, b))
    tables = [{row.name: row for row in merged_host(side) if row.waits} for side in (a, b)]

    def each(row: HostOp | None, column: str, count: int) -> float:
        return float(getattr(row, column)) / count if row else 0.0

    found = [
        SyncTwin(
            name,
            each(tables[0].get(name), "calls", units[0]), each(tables[1].get(name), "calls", units[1]),
            each(tables[0].get(name), "cpu_ns", units[0]), each(tables[1].get(name), "cpu_ns", units[1]),
        )
        for name in {*tables[0], *tables[1]}
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda row: (-row.async_ns, row.name)))


def _refused(
    a: Sequence[Trial], b: Sequence[Trial], found: Sequence[Reason], variant: str | None
) -> Blocking:
    why = next(one.message for one in found if one.severity == "stop" and not one.allowed)
    return Blocking(
        verdict="incomparable", ratio=None, ci95=None, mde=None, trials=(len(a), len(b)), trials_needed=None,
        timed_by=None, variables=VARIABLES.get(b[0].conditions.vendor, ()), step_ns=None,
        reasons=tuple(found), sentence=f"The twins cannot be compared: {why}.", variant=variant, **_NOTHING,
    )  # fmt: skip


def _sentence(
    ratio: float,
    ci95: tuple[float, float] | None,
    details: dict[str, Any],
    effect: bool | None,
    vendor: str,
) -> str:
    """What the numbers mean for this job, in plain words."""
    sure = f"95 % interval {ci95[0]:.3f} to {ci95[1]:.3f}" if ci95 else "too few trials for an interval"
    if vendor == "none":
        return (
            f"There is no GPU here, so launch blocking changes nothing: the ratio of {ratio:.3f} ({sure}) "
            "is how much such runs differ anyway."
        )
    text = f"A step takes {ratio:.3f} times as long when launches block ({sure})"
    if effect is False:
        return (
            f"{text}, but launches did not block: kernels ran on after their launch calls had returned, so "
            "the variable did not reach the program or this runtime ignores it; the numbers say nothing."
        )
    if details["kernel_multiset_equal"] is False:
        return (
            f"{text}, but the two runs did not launch the same kernels: the ratio is not of blocking alone."
        )
    if not details["kernel_ns"]:
        return f"{text}."
    overlap, hidden = details["overlap_ns"] or 0.0, details["hidden_ns"] or 0.0
    kernel = details["kernel_ns"][0]
    text += f"; {_ms(overlap)} of {_ms(kernel)} GPU work a step ran while the host went on"
    if hidden > 0 and kernel:
        if hidden <= 1.25 * overlap:
            text += f", and {_ms(hidden)} a step is what asynchronous launches save: their overlap"
        else:
            text += (
                f"; blocking costs {_ms(hidden)} a step, more than that overlap: the rest is the cost of "
                "waiting after each launch"
            )
    if details["kernels_same_speed"] is False:
        text += f"; kernels themselves ran {details['kernel_ratio']:.3f} times as long (clocks)"
    if details["graph_share"] > 0.5:
        text += "; most GPU work is inside graphs, which blocking does not serialise"
    return text + "."


def _ms(value: float) -> str:
    return f"{value / 1e6:.2f} ms" if abs(value) >= 1e6 else f"{value / 1e3:.1f} us"


__all__ = ["Blocking", "OpTwin", "SyncTwin", "blocking_twins", "is_blocking"]
