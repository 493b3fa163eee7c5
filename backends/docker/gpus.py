"""How a container is given GPUs, least first: CDI, the vendor's runtime, plain devices. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from profrun.backends.host import HostFacts
from profrun.errors import UnavailableError
from profrun.jobs.model import Resources

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


def count(resources: Resources, facts: HostFacts) -> int:
    """How many GPUs a trial gets: as many as asked for; ``auto`` is one where there is one.

    Raises:
        UnavailableError: more are asked for than there are.
    """
    if resources.gpus == "auto":
        return min(1, facts.gpus)
    if resources.gpus > facts.gpus:
        there = f"this machine has {facts.gpus}" if facts.gpus else "no GPU was found here"
        raise UnavailableError(
            f"the job asks for {resources.gpus} GPU{'s' if resources.gpus > 1 else ''}, and {there}",
            fix="set resources.gpus to auto, or run it where the GPUs are; `profrun doctor` says more",
        )
    return resources.gpus


def gpus(number: int, facts: HostFacts) -> Gpus:
    """The flags for the first ``number`` GPUs of this machine."""
    if number == 0:
        # NGC images set this to `all`: with NVIDIA's runtime as default a CPU trial would get every GPU.
        return Gpus(env={"NVIDIA_VISIBLE_DEVICES": "void"})
    cdi = facts.api is None or facts.api >= CDI_API
    if facts.vendor == "nvidia":
        return _nvidia(number, cdi and facts.nvidia_cdi)
    return _amd(number, facts, cdi and facts.amd_cdi)


def _nvidia(number: int, cdi: bool) -> Gpus:
    ordinals = [str(ordinal) for ordinal in range(number)]
    if cdi:
        return Gpus(device_requests=(_cdi("nvidia.com/gpu", ordinals),))
    return Gpus(device_requests=({"device_ids": ordinals, "capabilities": [["gpu", "compute", "utility"]]},))


def _amd(number: int, facts: HostFacts, cdi: bool) -> Gpus:
    """Inside, ROCm numbers what it can open from 0, so no *_VISIBLE_DEVICES is set beside the devices."""
    void = {"NVIDIA_VISIBLE_DEVICES": "void"}
    ordinals = [str(ordinal) for ordinal in range(number)]
    chosen = facts.amd_gpus[:number]
    groups = tuple(sorted({node.gid for node in chosen} | {facts.kfd_gid or 0}))
    if cdi:
        return Gpus(device_requests=(_cdi("amd.com/gpu", ordinals),), groups=groups, env=void)
    if facts.amd_runtime:
        return Gpus(runtime="amd", groups=groups, env={**void, "AMD_VISIBLE_DEVICES": ",".join(ordinals)})
    return Gpus(devices=("/dev/kfd", *(node.path for node in chosen)), groups=groups, env=void)


def _cdi(kind: str, ordinals: list[str]) -> dict[str, Any]:
    return {"driver": "cdi", "device_ids": [f"{kind}={ordinal}" for ordinal in ordinals]}
