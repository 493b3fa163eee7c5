"""How a container is given GPUs, least first: CDI, the vendor's runtime, plain devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from profrun.backends.host import HostFacts
from profrun.errors import UnavailableError

CDI_API = (1, 44)
"""Docker 25, the first version with CDI device requests."""
CDI_PODMAN = (5, 4)
"""The first Podman whose Docker-compatible API gives CDI devices. It gives NVIDIA's GPUs in no other way: it
ignores ``--gpus`` and ``--runtime``, and the container starts without any GPU."""


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
    """The flags for these GPUs of this machine: indices, or NVIDIA's names of parts of a GPU.

    Raises:
        UnavailableError: this Podman cannot give them.
    """
    if not ids:
        # NGC images set this to `all`: with NVIDIA's runtime as default a CPU trial would get every GPU.
        return Gpus(env={"NVIDIA_VISIBLE_DEVICES": "void"})
    cdi = gives_cdi(facts)
    if facts.vendor == "nvidia":
        if not gives_gpus(facts):
            raise UnavailableError("Podman cannot give a container NVIDIA's GPUs here", **podman_gpus(facts))
        return _nvidia(ids, cdi and facts.nvidia_cdi)
    return _amd(ids, facts, cdi and facts.amd_cdi)


def gives_cdi(facts: HostFacts) -> bool:
    """Whether the engine takes CDI devices by its API; yes where it was not asked."""
    if facts.engine.podman:
        return not facts.engine_version or facts.engine_version >= CDI_PODMAN
    return facts.api is None or facts.api >= CDI_API


def gives_gpus(facts: HostFacts) -> bool:
    """Whether the engine can give a container this machine's GPUs, as far as its kind decides it."""
    needs_cdi = facts.engine.podman and facts.vendor == "nvidia"
    return not needs_cdi or (gives_cdi(facts) and facts.nvidia_cdi)


def podman_gpus(facts: HostFacts) -> dict[str, str]:
    """Why Podman gives no NVIDIA GPU here, and what to do, as ``UnavailableError`` takes them."""
    if not gives_cdi(facts):
        version = ".".join(map(str, facts.engine_version or ()))
        return {
            "why": f"its Docker-compatible API ignores requests for GPUs, and takes CDI devices from 5.4 on; "
            f"this is {version}",
            "fix": "use Podman 5.4 or later with a CDI specification, or Docker",
        }
    return {
        "why": "its Docker-compatible API gives GPUs by CDI only, and there is no CDI specification",
        "fix": "run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
    }


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
    if facts.amd_runtime and not facts.engine.podman:  # whose API ignores the name of a runtime
        return Gpus(runtime="amd", groups=groups, env={**void, "AMD_VISIBLE_DEVICES": ",".join(ids)})
    return Gpus(devices=("/dev/kfd", *(node.path for node in chosen)), groups=groups, env=void)


def _cdi(kind: str, ids: Sequence[str]) -> dict[str, Any]:
    return {"driver": "cdi", "device_ids": [f"{kind}={one}" for one in ids]}
