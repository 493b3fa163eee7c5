"""What an engine's answers change of the machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.docker.engine_facts import _pid_of, from_answers
from profrun.backends.host import HostFacts
from profrun.images.engine_kind import EngineKind

DOCKER = {"Version": "20.10.24+dfsg1", "ApiVersion": "1.41"}
PODMAN = {"Version": "4.3.1", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}
LIMITS = {"MemoryLimit": True, "CpuCfsQuota": True, "CgroupVersion": "1"}  # as Podman 4.3 says, rootless too


def test_kind_version_and_api() -> None:
    found = from_answers(HostFacts(engine=EngineKind.ROOTLESS_PODMAN), DOCKER, LIMITS)
    assert (found.engine, found.engine_version, found.api) == (EngineKind.DOCKER, (20, 10, 24), (1, 41))
    assert from_answers(HostFacts(), {}, {}).api is None


@pytest.mark.parametrize(
    ("version", "info", "controllers", "unlimited"),
    [
        (DOCKER, LIMITS, None, ()),
        (DOCKER, {"MemoryLimit": False, "CpuCfsQuota": False}, None, ("memory", "cpus")),
        (PODMAN, LIMITS, ("cpuset", "cpu", "memory"), ()),
        (PODMAN, LIMITS | {"Rootless": True}, (), ("memory", "cpus")),
        (PODMAN, LIMITS | {"Rootless": True, "CgroupVersion": "2"}, ("memory", "pids"), ("cpus",)),
        (PODMAN, LIMITS | {"Rootless": True}, None, ("memory", "cpus")),
        (PODMAN, LIMITS | {"Rootless": True, "CgroupVersion": "2"}, None, ()),
    ],
)
def test_what_it_does_not_limit(
    version: dict[str, Any], info: dict[str, Any], controllers: Any, unlimited: tuple[str, ...]
) -> None:
    assert from_answers(HostFacts(), version, info, controllers).unlimited == unlimited


@pytest.mark.parametrize(
    ("known", "may", "rootless", "raises"),
    [
        (True, None, False, True),
        (True, False, False, False),
        (False, True, False, True),
        (False, None, False, False),
        (True, True, True, False),
    ],
)
def test_who_may_raise_limits(known: bool, may: bool | None, rootless: bool, raises: bool) -> None:
    info = LIMITS | {"Rootless": rootless}
    assert from_answers(HostFacts(raise_limits=known), PODMAN, info, (), may).raise_limits is raises


def test_the_process_behind_a_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert _pid_of(f"unix://{tmp_path}/s") == os.getpid()
    assert _pid_of(f"unix://{tmp_path}/none") is None
    assert _pid_of("tcp://127.0.0.1:1") is None
