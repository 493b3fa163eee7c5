"""What an engine says of itself that decides how a container is asked for, put into ``HostFacts``."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.backends.host import HostFacts, may_raise_limits
from profrun.images.engine import docker_errors, engine_address
from profrun.images.engine_kind import EngineKind, stated_kind

if TYPE_CHECKING:
    import docker

Answer = Mapping[str, Any]


def ask(host: HostFacts, client: docker.DockerClient) -> HostFacts:
    """The same machine with what its engine says.

    Raises:
        UnavailableError: the engine stops answering.
    """
    with docker_errors("the engine does not describe itself"):
        version, info = client.version(), client.info()
    kind = stated_kind(version, info)
    controllers = _controllers(client) if kind.podman else None
    pid = _pid_of(engine_address())
    return from_answers(host, version, info, controllers, None if pid is None else may_raise_limits(pid))


def from_answers(
    host: HostFacts,
    version: Answer,
    info: Answer,
    controllers: Collection[str] | None = None,
    may_raise: bool | None = None,
) -> HostFacts:
    """The same from the engine's answers. Pure.

    Args:
        version, info: its answers to ``/version`` and ``/info``.
        controllers: the cgroup controllers that Podman may use; None where it did not say.
        may_raise: whether the engine's process has the right to raise limits; None where it was not found.
    """
    kind = stated_kind(version, info)
    raises = host.raise_limits if may_raise is None else may_raise
    return replace(
        host,
        engine=kind,
        engine_version=_numbers(version.get("Version")),
        api=_numbers(version.get("ApiVersion")) or None,
        raise_limits=raises and not kind.rootless,
        unlimited=_unlimited(kind, info, controllers),
    )


def _unlimited(kind: EngineKind, info: Answer, controllers: Collection[str] | None) -> tuple[str, ...]:
    """What the engine does not limit. Podman's ``/info`` says what the kernel can, not what it may itself."""
    if not kind.podman:
        names = {"memory": "MemoryLimit", "cpus": "CpuCfsQuota"}
        return tuple(name for name, key in names.items() if info.get(key) is False)
    if controllers is None:
        return ("memory", "cpus") if kind.rootless and str(info.get("CgroupVersion")) == "1" else ()
    return tuple(name for name, one in (("memory", "memory"), ("cpus", "cpu")) if one not in controllers)


def _controllers(client: docker.DockerClient) -> tuple[str, ...] | None:
    """The cgroup controllers of Podman's own API; None where it does not answer as expected."""
    with contextlib.suppress(Exception):
        answer = client.api.get(f"{client.api.base_url}/v4.0.0/libpod/info", timeout=30)
        if answer.ok:
            return tuple(answer.json()["host"]["cgroupControllers"] or ())
    return None


def _pid_of(address: str) -> int | None:
    """The process that listens at a socket of this machine; None where it cannot be told."""
    if not address.startswith("unix://"):
        return None
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as end:
        end.settimeout(5.0)
        end.connect(address.removeprefix("unix://"))
        size = struct.calcsize("3i")
        (pid, _, _) = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return pid if pid and Path(f"/proc/{pid}").exists() else None  # 0: in another namespace
    return None


def _numbers(text: object) -> tuple[int, ...]:
    """``5.4.0-rc1``: (5, 4, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", str(text or ""))
    return tuple(int(part) for part in found[0].split(".")) if found else ()
