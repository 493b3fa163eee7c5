"""What the doctor says of each kind of engine: what is lost there, and what to do about it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from profrun.backends.docker.survey import Engine, Survey
from profrun.backends.host import HostFacts, RenderNode
from profrun.contract.finding import Finding
from profrun.contract.preflight import Preflight
from profrun.doctor.engine_checks import check_engine
from profrun.doctor.model import Machine
from profrun.images.engine_kind import EngineKind

DOCKER = Engine("Docker", "28.2", "1.50", "amd64", ("nvidia", "runc"))
PODMAN = Engine("Podman", "4.3.1", "1.41", "amd64", ("crun", "runc"))
NVIDIA: dict[str, Any] = {"nvidia_gpus": 2, "nvidia_driver": (570, 86), "nvidia_counters": True}
AMD: dict[str, Any] = {"amd_gpus": (RenderNode("/dev/dri/renderD128", 109),), "kfd_gid": 109}
ROOTLESS: dict[str, Any] = {"engine": EngineKind.ROOTLESS_DOCKER, "raise_limits": False}
ROOTLESS_PODMAN: dict[str, Any] = {"engine": EngineKind.ROOTLESS_PODMAN, "raise_limits": False}


def results(said: Engine | None, /, **facts: Any) -> dict[str, Any]:
    """Code -> result, on a machine with these facts."""
    host = HostFacts(**{"uid": 1000, "paranoid": 2, **facts})
    machine = Machine(Survey(host, said), Preflight("none", "made up"))
    return {one.code: one for one in check_engine(machine)}


def lost(said: Engine, /, **facts: Any) -> dict[str, Finding]:
    """The findings among them; each says in one line what follows and what to do."""
    found = {code: one for code, one in results(said, **facts).items() if isinstance(one, Finding)}
    for one in found.values():
        assert one.why
        assert one.fix
        assert "\n" not in one.what + one.why + one.fix
    return found


def test_a_docker_of_root_loses_nothing() -> None:
    assert lost(DOCKER) == {}
    assert lost(DOCKER, **NVIDIA) == {}
    assert results(DOCKER)["engine"].what == "Docker 28.2, API 1.50, amd64"


def test_the_kind_is_named() -> None:
    assert results(DOCKER, **ROOTLESS)["engine"].what.endswith("(rootless)")
    assert results(PODMAN, engine=EngineKind.PODMAN)["engine"].what == "Podman 4.3.1, API 1.41, amd64"


def test_a_rootless_docker() -> None:
    found = lost(DOCKER, **ROOTLESS, unlimited=("memory", "cpus"))
    assert set(found) == {"engine-limits", "engine-cgroups"}
    assert found["engine-cgroups"].why == "trials run without resources.memory and resources.cpus"
    assert "limits.conf" in found["engine-limits"].fix


def test_capabilities_of_a_rootless_container_count_inside_only() -> None:
    facts = {**NVIDIA, "nvidia_counters": False, "nvidia_cdi": True}
    assert {"engine-counters"} == set(lost(DOCKER, **ROOTLESS, **facts)) - {"engine-limits"}
    assert (
        lost(DOCKER, **ROOTLESS, paranoid=3)["engine-perf-events"].fix
        == "sysctl kernel.perf_event_paranoid=2"
    )


@pytest.mark.parametrize(
    ("version", "cdi", "why"),
    [
        ((4, 9, 3), True, "this is 4.9.3"),
        ((5, 4, 0), False, "there is no CDI specification"),
        ((5, 4, 0), True, None),
    ],
)
def test_podman_gives_nvidias_gpus_by_cdi_only(version: tuple[int, ...], cdi: bool, why: str | None) -> None:
    """The runtime of NVIDIA's toolkit, which Podman lists too, is ignored by its API."""
    listed = dataclasses.replace(PODMAN, runtimes=("nvidia", "runc"))
    facts = {"engine": EngineKind.PODMAN, "engine_version": version, "nvidia_cdi": cdi, **NVIDIA}
    found = lost(listed, **facts).get("gpu-access")
    assert (found is None) == (why is None)
    if found is not None and why is not None:
        assert (found.severity, why in found.why) == ("critical", True)


def test_podman_wants_more_than_perfmon() -> None:
    assert "its seccomp profile" in lost(PODMAN, engine=EngineKind.PODMAN)["engine-age"].why
    old = dataclasses.replace(DOCKER, api="1.41")
    assert "does not know CAP_PERFMON" in lost(old)["engine-age"].why


def test_gpus_of_rootless_engines() -> None:
    assert "no-cgroups" in lost(DOCKER, **ROOTLESS, **NVIDIA)["gpu-access"].fix
    for said, facts in ((DOCKER, ROOTLESS), (PODMAN, ROOTLESS_PODMAN)):
        assert "0666" in lost(said, **facts, **AMD)["gpu-access"].fix
    assert "gpu-access" not in lost(DOCKER, **ROOTLESS, **NVIDIA, nvidia_cdi=True)


def test_no_engine() -> None:
    (found,) = results(None).values()
    assert (found.code, found.severity) == ("engine", "critical")
