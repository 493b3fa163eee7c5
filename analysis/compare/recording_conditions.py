"""Under which conditions a trace was recorded.

``recording_conditions`` is given a trace and the provenance of its trial and returns ``RecordingConditions``.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import RecordingConditions
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.run_steps import run_steps
from profrun.analysis.trace.runtime_calls import launch_waits
from profrun.analysis.trace.steadiness import window_phase
from profrun.analysis.trace.steps import StepIndex, denominator
from profrun.analysis.trace.used_gpus import used_devices, used_gpus
from profrun.contract.git_state import GitState
from profrun.contract.provenance import GpuStates, Process, Provenance

if TYPE_CHECKING:
    from profrun.traces.meta import TraceMeta
    from profrun.traces.trace import Trace

SLOWING = frozenset(
    {
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
    }
)
"""Throttle reasons that slow a GPU down; the others (idle, a set application clock) do not."""
_NEEDED = frozenset({"steps", "steps.kernel_ns", "kernels"})
"""Numbers without which nothing can be compared, by the names that quality findings use."""


def recording_conditions(
    trace: Trace,
    source: Frame,
    index: StepIndex,
    sample_of: Ints,
    *,
    label: str | None,
    provenance: Provenance | None,
) -> RecordingConditions:
    """Everything that decides whether two trials may be compared.

    Args:
        sample_of: the sample that launched each slice, by slice id, -1 for none; shape (slices + 1,).
        label: the name to show; the trial's or the folder's when None.
        provenance: of the trial, where it is known.
    """
    meta = trace.meta
    job, extra = meta.get("job") or {}, meta.get("extra") or {}
    declared = dict(job.get("work") or extra.get("work") or {})
    inputs = declared.pop("shapes", None)
    tool = str(meta.get("collector"))
    devices = used_devices(trace)
    waits = launch_waits(source)
    blocking = job.get("blocking", meta.get("launch_blocking"))
    outside = source.gpu[sample_of[source.gpu] < 0]
    throttled, clock = _clocks(used_gpus(trace, provenance).states)
    return RecordingConditions(
        label=label or str(job.get("trial") or trace.path.name),
        fingerprint=_fingerprint(source, meta),
        source=str(meta.get("source")),
        collector=str(job.get("collector") or tool),
        tool=tool,
        vendor=str(meta.get("vendor")),
        measure=_measure(source, index, meta),
        profiled=tool != "none",
        blocking=None if blocking is None else bool(blocking),
        blocking_seen=waits.blocked if waits is not None else None,
        replayed=bool(meta.get("replayed")),
        ranks=max(1, len(np.unique(index.process))),
        devices=tuple(sorted({str(row["name"]) for row in devices})),
        arch=tuple(sorted({str(row["arch"]) for row in devices if row["arch"]})),
        tool_version=meta.get("tool_version"),
        job=job.get("run"),
        variant=job.get("variant"),
        values=declared,
        inputs=inputs,
        program=program_of(provenance) if provenance else (),
        began_ns=_began_ns(trace),
        steps_made=_steps_made(provenance) if provenance else None,
        nodes=tuple(job.get("nodes") or ()),
        throttled=throttled,
        sm_mhz=clock,
        software=_software(provenance) if provenance else {},
        git=provenance.git if provenance else GitState(),
        denominator=denominator(trace),
        window=window_phase(trace),
        doubts=_doubts(trace),
        outside_ns=int(source.durs(outside).sum()),
        total_gpu_ns=int(source.durs(source.gpu).sum()),
    )


def _began_ns(trace: Trace) -> int | None:
    """Unix time of the first step of the run, recorded or not; None where nothing tells."""
    epoch = trace.meta.get("epoch_ns")
    steps = run_steps(trace)
    return None if epoch is None or steps is None else int(epoch) + int(steps.starts[0])


def _measure(source: Frame, index: StepIndex, meta: TraceMeta) -> str:
    if meta.get("collector") == "none":
        clock = str((meta.get("extra") or {}).get("steps_clock"))
        return "event" if clock.endswith("_event") else "wall"
    if not len(index.slices):
        return "recording"
    return "span" if len(source.gpu) else "host"


def _fingerprint(source: Frame, meta: TraceMeta) -> str:
    """A digest of the digests of the source files, else of the slices: equal means the same recording."""
    digest = hashlib.sha256()
    files = [item.get("sha256") for item in meta.get("files") or ()]
    if files and all(files):
        digest.update(json.dumps(files).encode())
    for column in (source.ts, source.end, source.kind):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:32]


def _doubts(trace: Trace) -> tuple[tuple[str, str], ...]:
    """(code, text) of the critical findings about the numbers of steps or kernels."""
    return tuple(
        (finding.code, str(finding))
        for finding in data_quality(trace)
        if finding.severity == "critical" and _NEEDED & set(finding.affects)
    )


def _clocks(gpus: GpuStates) -> tuple[tuple[str, ...], float | None]:
    """(slowing throttle reasons before or after, lowest SM clock after the trial in MHz)."""
    found: set[str] = set()
    for row in (*gpus.before, *gpus.after):
        reasons = row.get("throttled_by")
        if isinstance(reasons, (list, tuple)):
            found |= SLOWING.intersection(reasons)
    clocks = [row.get("clocks_sm") for row in gpus.after]
    numbers = [float(clock) for clock in clocks if isinstance(clock, (int, float))]
    return tuple(sorted(found)), min(numbers, default=None)


def program_of(provenance: Provenance) -> tuple[str, ...]:
    """Script (or module) and arguments of the process that made the steps; empty where nothing tells.

    The interpreter, its options and the script's folder are left out: they do not say what work is done.
    """
    process = _workload(provenance)
    argv = process.argv if process else ()
    for place, word in enumerate(argv):
        if word == "-m" and place + 1 < len(argv):
            return argv[place + 1 :]
        if word.endswith(".py"):
            return (word.rpartition("/")[2], *argv[place + 1 :])
    return (argv[0].rpartition("/")[2], *argv[1:]) if argv else ()


def _steps_made(provenance: Provenance) -> int | None:
    process = _workload(provenance)
    return process.steps or None if process else None


def _workload(provenance: Provenance) -> Process | None:
    """The process that made the steps, of several the one of the lowest rank."""
    found = [one for one in provenance.processes if one.steps and one.argv]
    return min(found, key=lambda one: one.rank or 0, default=None)


def _software(provenance: Provenance) -> dict[str, str]:
    """Versions that change numbers: torch, CUDA / ROCm, driver, image, git commit; and the host."""
    torch, gpus = provenance.torch, provenance.gpus.after
    found = {
        "torch": torch.version if torch else None,
        "cuda": torch.cuda if torch else None,
        "hip": torch.hip if torch else None,
        "driver": gpus[0].get("driver_version") if gpus else None,
        "image": provenance.image.digest or provenance.image.reference,
        "git": provenance.git.sha,
        "host": provenance.host,
    }
    return {key: str(value) for key, value in found.items() if value}
