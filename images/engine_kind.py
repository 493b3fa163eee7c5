"""``EngineKind``: which of four kinds of container engine answers, by its own words or, before it was asked,
by its address. They differ in who root inside is, in what they may limit, and in how they give GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any


class EngineKind(Enum):
    """Docker or Podman, run by root or by the caller (rootless)."""

    DOCKER = "docker"
    ROOTLESS_DOCKER = "rootless docker"
    PODMAN = "podman"
    ROOTLESS_PODMAN = "rootless podman"

    @property
    def podman(self) -> bool:
        """It is Podman, by its Docker-compatible API."""
        return self in (EngineKind.PODMAN, EngineKind.ROOTLESS_PODMAN)

    @property
    def rootless(self) -> bool:
        """It runs as the caller in a user namespace: root in a container is the caller outside."""
        return self in (EngineKind.ROOTLESS_DOCKER, EngineKind.ROOTLESS_PODMAN)


def engine_kind(*, podman: bool, rootless: bool) -> EngineKind:
    """The kind with these two properties."""
    return next(kind for kind in EngineKind if (kind.podman, kind.rootless) == (podman, rootless))


def stated_kind(version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineKind:
    """The kind that an engine states.

    Args:
        version: its answer to ``/version``: Podman lists itself among the components.
        info: its answer to ``/info``: Podman has ``Rootless``, Docker a security option.
    """
    components = version.get("Components") or []
    podman = any("podman" in str(one.get("Name")).lower() for one in components)
    options = [str(option).partition(",")[0] for option in info.get("SecurityOptions") or []]
    return engine_kind(podman=podman, rootless=bool(info.get("Rootless")) or "name=rootless" in options)


def guessed_kind(address: str, uid: int) -> EngineKind:
    """The likely kind of an engine that was not asked, for a dry run without an engine.

    Args:
        address: of its socket. Those of rootless engines lie in the caller's folder of ``/run/user``.
        uid: of the caller.
    """
    return engine_kind(podman="podman" in address, rootless=uid != 0 and "/run/user/" in address)
