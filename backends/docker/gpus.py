"""How a container is given GPUs, least first: CDI, the vendor's runtime, plain devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from profrun.backends.host import HostFacts

CDI_API = (1, 44)
"""Docker 25, the first version with CDI device requests."""


@dataclass(frozen=True)
class Gpus:
    """The part of a request that hands over GPUs.

    Attributes:
        device_requests: as the engine's API has them.
        devices: device files, by the same path inside.
        groups: numeric groups of those files.
        runtime: the engine's runtime, or None for its default.
        env: variables that select devices; only ever those of one vendor.
    """

    device_requests: tuple[dict[str, Any], ...] = ()
    devices: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    runtime: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def first_ids(facts: HostFacts) -> tuple[str, ...]:
    """The first GPU, where there is one: what a probe gets."""
    return ("0",) if facts.gpus else ()


def gpus(ids: Sequence[str], facts: HostFacts) -> Gpus:
    """The flags for these GPUs of this machine: indices, or NVIDIA's names of parts of a GPU."""
    if not ids:
        # NGC images set this to `all`: with NVIDIA's runtime as default a CPU trial would get every GPU.
        return Gpus(env={"NVIDIA_VISIBLE_DEVICES": "void"})
    cdi = facts.api is None or facts.api >= CDI_API
    if facts.vendor == "nvidia":
        return _nvidia(ids, cdi and facts.nvidia_cdi)
    return _amd(ids, facts, cdi and facts.amd_cdi)


def _nvidia(ids: Sequence[str], cdi: bool) -> Gpus:
    if cdi:
        return Gpus(device_requests=(_cdi("nvidia.com/gpu", ids),))
    return Gpus(device_requests=({"device_ids": list(ids), "capabilities": [["gpu", "compute", "utility"]]},))


def _amd(ids: Sequence[str], facts: HostFacts, cdi: bool) -> Gpus:
    """Inside, ROCm numbers what it can open from 0, so no *_VISIBLE_DEVICES is set beside the devices."""
    void = {"NVIDIA_VISIBLE_DEVICES": "void"}
    chosen = [facts.amd_gpus[int(one)] for one in ids]
    groups = tuple(sorted({node.gid for node in chosen} | {facts.kfd_gid or 0}))
    if cdi:
        return Gpus(device_requests=(_cdi("amd.com/gpu", ids),), groups=groups, env=void)
    if facts.amd_runtime:
        return Gpus(runtime="amd", groups=groups, env={**void, "AMD_VISIBLE_DEVICES": ",".join(ids)})
    return Gpus(devices=("/dev/kfd", *(node.path for node in chosen)), groups=groups, env=void)


def _cdi(kind: str, ids: Sequence[str]) -> dict[str, Any]:
    return {"driver": "cdi", "device_ids": [f"{kind}={one}" for one in ids]}
