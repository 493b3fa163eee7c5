"""Under which conditions a trace was recorded, from its meta data, its slices and its provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.compare.trial import Conditions
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.data_quality import data_quality
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.runtime_calls import is_graph_launch, is_launch
from profrun.analysis.trace.steps import StepIndex

if TYPE_CHECKING:
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
_SPOILS = ("steps", "steps.kernel_ns", "kernels")


def conditions(
    trace: Trace,
    source: Frame,
    index: StepIndex,
    label: str | None,
    provenance: Mapping[str, Any] | None,
    unit_of: Ints,
) -> Conditions:
    """Everything that decides whether two trials may be compared."""
    meta = trace.meta
    job: Mapping[str, Any] = meta.get("job") or {}
    extra: Mapping[str, Any] = meta.get("extra") or {}
    declared = dict(job.get("work") or extra.get("work") or {})
    inputs = declared.pop("shapes", None)
    used = np.unique(source.device_of(source.gpu)) if len(source.gpu) else None
    rows = [row for row in source.devices if used is None or row["device"] in used]
    blocking = job.get("blocking", meta.get("launch_blocking"))
    gpu = source.gpu
    outside = gpu[unit_of[gpu] < 0]
    throttled, clock = _clocks(provenance)
    return Conditions(
        label=label or str(job.get("trial") or trace.path.name),
        fingerprint=_fingerprint(source, meta),
        source=str(meta.get("source")), collector=str(meta.get("collector")),
        vendor=str(meta.get("vendor")), measure=_measure(source, index, meta),
        profiled=str(meta.get("collector")) != "none",
        blocking=None if blocking is None else bool(blocking),
        blocking_seen=blocking_share(source), replayed=bool(meta.get("replayed")),
        ranks=max(1, len(np.unique(index.process))),
        devices=tuple(sorted({str(row["name"]) for row in rows})),
        arch=tuple(sorted({str(row["arch"]) for row in rows if row["arch"]})),
        tool_version=meta.get("tool_version"), job=job.get("run"), variant=job.get("variant"),
        values=declared, inputs=inputs, throttled=throttled, sm_mhz=clock, software=_software(provenance),
        doubts=_doubts(trace), outside_ns=int(source.dur[outside].sum()),
        total_gpu_ns=int(source.dur[gpu].sum()),
    )  # fmt: skip


def _measure(source: Frame, index: StepIndex, meta: Mapping[str, Any]) -> str:
    if meta.get("collector") == "none":
        clock = str((meta.get("extra") or {}).get("steps_clock"))
        return "event" if clock.endswith("_event") else "wall"
    if not len(index.slices):
        return "recording"
    return "span" if len(source.gpu) else "host"


def _fingerprint(source: Frame, meta: Mapping[str, Any]) -> str:
    """Same digest, same recording: the source files' digests, else the slices themselves."""
    digest = hashlib.sha256()
    files = [item.get("sha256") for item in meta.get("files") or ()]
    if files and all(files):
        digest.update(json.dumps(files).encode())
    for column in (source.ts, source.end, source.kind):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:32]


def _doubts(trace: Trace) -> tuple[tuple[str, str], ...]:
    """Critical findings about steps or kernels: their numbers must not be compared."""
    return tuple(
        (finding.code, str(finding))
        for finding in data_quality(trace)
        if finding.severity == "critical" and set(finding.affects) & set(_SPOILS)
    )


def blocking_share(source: Frame) -> float | None:
    """Share of kernel launches whose kernel had ended when the call returned; None with under 3 launches.

    Under launch blocking it is 1; without, nearly 0 unless a kernel is shorter than its launch call.
    Graph launches are left out: blocking does not reach into a graph.
    """
    kernels = source.of("kernel")
    kernels = kernels[source.launch[kernels] >= 0]
    if not len(kernels):
        return None
    calls = source.launch[kernels]
    wanted = source.name_ids(lambda text: is_launch(text) and not is_graph_launch(text))
    mask = np.isin(source.name[calls], wanted)
    if int(mask.sum()) < 3:
        return None
    return float((source.end[kernels[mask]] <= source.end[calls[mask]]).mean())


def _clocks(provenance: Mapping[str, Any] | None) -> tuple[tuple[str, ...], float | None]:
    """(slowing throttle reasons before or after, lowest SM clock after the trial in MHz)."""
    gpus = (provenance or {}).get("gpus") or {}
    if not isinstance(gpus, Mapping):
        return (), None
    found: set[str] = set()
    clocks: list[float] = []
    for when in ("before", "after"):
        for row in gpus.get(when) or ():
            found |= set(row.get("throttled_by") or ()) & SLOWING
            value = row.get("clocks_sm")
            if when == "after" and isinstance(value, (int, float)):
                clocks.append(float(value))
    return tuple(sorted(found)), min(clocks, default=None)


def _software(provenance: Mapping[str, Any] | None) -> dict[str, str]:
    """Versions that change numbers: torch, CUDA / ROCm, driver, image, git commit."""
    if not provenance:
        return {}
    torch: Mapping[str, Any] = provenance.get("torch") or {}
    gpus: Any = (provenance.get("gpus") or {}).get("after") or []
    image: Mapping[str, Any] = provenance.get("image") or {}
    found = {
        "torch": torch.get("version"),
        "cuda": torch.get("cuda"),
        "hip": torch.get("hip"),
        "driver": gpus[0].get("driver_version") if gpus else None,
        "image": image.get("digest") or image.get("reference"),
        "git": (provenance.get("git") or {}).get("sha"),
        "host": provenance.get("host"),
    }
    return {key: str(value) for key, value in found.items() if value}
