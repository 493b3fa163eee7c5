"""What the traces of launch-blocking twins show: overlap, kernels, ops and waits.

``with_details`` is given a result and both sides of profiled trials, and returns the result with all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profrun.analysis.compare.blocking_model import Blocking, OpTwin, SyncTwin
from profrun.analysis.compare.compared_trial import HostOp
from profrun.analysis.compare.kernel_agreement import same_kernels
from profrun.analysis.compare.kernel_rows import kernel_rows
from profrun.analysis.compare.sides import Side

SAME_SPEED = 0.02
"""Relative difference of GPU time per step up to which the kernels of both runs are equally fast."""


def with_details(found: Blocking, a: Side, b: Side, threshold: float) -> Blocking:
    """The result with everything that needs traces of both runs.

    Args:
        a, b: profiled trials of one collector without and with launch blocking.
        threshold: for the rows of kernels, as in ``rows.Limits``.
    """
    kernels = same_kernels(a.trials, b.trials)
    gpu = _gpu(a), _gpu(b)
    ratio = gpu[1] / gpu[0] if gpu[0] and gpu[1] else None
    rows = kernel_rows((a, b), threshold)
    return replace(
        found,
        took_effect=_took_effect(b),
        hidden_ns=b.typical_step_ns - a.typical_step_ns,
        overlap_ns=a.mean(lambda sample: sample.overlap_ns),
        blocking_overlap_ns=b.mean(lambda sample: sample.overlap_ns),
        kernel_multiset_equal=kernels.equal,
        kernel_differences=kernels.differences,
        kernel_ns=gpu if any(gpu) else None,
        kernel_ratio=ratio,
        kernels_same_speed=abs(ratio - 1) <= SAME_SPEED if ratio else None,
        slower_kernels=tuple(row for row in rows if row.status in ("faster", "slower")),
        concurrent_ns=(_concurrent(a), _concurrent(b)),
        launch_ns=(_launch(a), _launch(b)),
        graph_share=_graph_share(a, b),
        per_op=_per_op(a, b),
        sync_points=_sync_points(a, b),
    )


def _took_effect(blocking: Side) -> bool | None:
    seen = [trial.conditions.blocking_seen for trial in blocking.trials]
    known = [one for one in seen if one is not None]
    return all(known) if known else None


def _gpu(side: Side) -> float:
    return side.mean(lambda sample: sample.gpu_ns)


def _concurrent(side: Side) -> float:
    return _gpu(side) - side.mean(lambda sample: sample.busy_ns)


def _launch(side: Side) -> float | None:
    calls = sum(trial.launch_calls for trial in side.trials)
    return sum(trial.launch_ns for trial in side.trials) / calls if calls else None


def _graph_share(a: Side, b: Side) -> float:
    whole = sum(sample.gpu_ns for side in (a, b) for sample in side.typical)
    return sum(trial.graph_ns for side in (a, b) for trial in side.trials) / whole if whole else 0.0


def _per_op(a: Side, b: Side) -> tuple[OpTwin, ...]:
    """Ops, ranges and launching calls of both runs, those that hide most first."""
    ranges = _gpu_by_range(b)
    tables = [{(row.kind, row.name): row for row in side.host_ops} for side in (a, b)]
    rows = []
    for key in {*tables[0], *tables[1]}:
        left, right = tables[0].get(key), tables[1].get(key)
        shown = right or left
        if shown is not None and _launches_work(shown):
            rows.append(_op_twin(shown, left, right, (a.samples, b.samples), ranges))
    return tuple(sorted(rows, key=lambda row: (-row.hidden_ns, row.kind, row.name)))


def _launches_work(row: HostOp) -> bool:
    """False for steps, for waits, and for what launches nothing: launch blocking does not change them."""
    if row.waits or row.kind not in ("op", "range", "api"):
        return False
    return row.kind == "range" or bool(row.device_ns or row.launches)


def _op_twin(
    shown: HostOp,
    left: HostOp | None,
    right: HostOp | None,
    samples: tuple[int, int],
    ranges: Mapping[str, int],
) -> OpTwin:
    before = left.cpu_ns / samples[0] if left else 0.0
    after = right.cpu_ns / samples[1] if right else 0.0
    device = ranges.get(shown.name, 0) if shown.kind == "range" else right.device_ns if right else 0
    return OpTwin(
        name=shown.name,
        kind=shown.kind,
        calls=shown.calls / samples[1 if right else 0],
        async_ns=before,
        blocking_ns=after,
        hidden_ns=after - before,
        device_ns=device / samples[1],
        latency_ns=right.cpu_ns / right.calls if right and right.calls else 0.0,
    )


def _gpu_by_range(side: Side) -> dict[str, int]:
    """GPU ns by range, with what other threads launched while the main thread was in it (backward)."""
    found: dict[str, int] = {}
    for trial in side.trials:
        for group in trial.kernel_groups:
            for name in set(group.path):
                found[name] = found.get(name, 0) + group.ns
    return found


def _sync_points(a: Side, b: Side) -> tuple[SyncTwin, ...]:
    """Calls that wait for the GPU, those with most time in the asynchronous run first."""
    tables = [
        {
            row.name: (row.calls / side.samples, row.cpu_ns / side.samples)
            for row in side.host_ops
            if row.waits
        }
        for side in (a, b)
    ]
    found = []
    for name in {*tables[0], *tables[1]}:
        (a_calls, a_ns), (b_calls, b_ns) = (table.get(name, (0.0, 0.0)) for table in tables)
        found.append(SyncTwin(name, a_calls, b_calls, a_ns, b_ns))
    return tuple(sorted(found, key=lambda row: (-row.async_ns, row.name)))
