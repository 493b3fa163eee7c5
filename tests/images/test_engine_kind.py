"""The kind of an engine, by answers that real ones gave and by addresses."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.images.engine_kind import EngineKind, guessed_kind, stated_kind

PODMAN = {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]}
DOCKER = {"Version": "20.10.24+dfsg1", "Components": [{"Name": "Engine"}, {"Name": "containerd"}]}


@pytest.mark.parametrize(
    ("version", "info", "kind"),
    [
        (DOCKER, {"SecurityOptions": ["name=seccomp,profile=default"]}, EngineKind.DOCKER),
        (
            DOCKER,
            {"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]},
            EngineKind.ROOTLESS_DOCKER,
        ),
        (PODMAN, {"SecurityOptions": ["name=seccomp"], "Rootless": False}, EngineKind.PODMAN),
        (PODMAN, {"SecurityOptions": ["name=seccomp"], "Rootless": True}, EngineKind.ROOTLESS_PODMAN),
        ({}, {}, EngineKind.DOCKER),
    ],
)
def test_what_an_engine_states(version: dict[str, Any], info: dict[str, Any], kind: EngineKind) -> None:
    assert stated_kind(version, info) is kind


@pytest.mark.parametrize(
    ("address", "uid", "kind"),
    [
        ("", 1000, EngineKind.DOCKER),
        ("unix:///run/podman/podman.sock", 0, EngineKind.PODMAN),
        ("unix:///run/user/1000/docker.sock", 1000, EngineKind.ROOTLESS_DOCKER),
        ("unix:///run/user/1000/podman/podman.sock", 1000, EngineKind.ROOTLESS_PODMAN),
    ],
)
def test_what_an_address_says(address: str, uid: int, kind: EngineKind) -> None:
    assert guessed_kind(address, uid) is kind
