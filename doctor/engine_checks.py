"""The checks of the container engine: which kind it is, what it may limit, and how it gives GPUs. Pure.

Everything in which Podman and rootless engines differ from Docker, and that no request can mend, is one
finding here; docs/containers.md has the table of all differences.
"""

from __future__ import annotations

from collections.abc import Iterator

from profrun.backends.docker.gpus import gives_cdi, gives_gpus, podman_gpus
from profrun.backends.privileges import HOW_TO_ALLOW, PERFMON_API, who_needs
from profrun.contract.finding import Finding, Passed
from profrun.doctor.model import Machine
from profrun.errors import ProfrunError
from profrun.images.engine_kind import EngineKind

Result = Passed | Finding


def check_engine(machine: Machine) -> Iterator[Result]:
    """All results about the engine, in the order in which a person would look."""
    if machine.found.engine is None:
        yield cannot_ask("engine", machine.found.problem, "--backend docker cannot run; local can")
        return
    yield from _kind(machine)
    yield from _limits(machine)
    yield from _privileges(machine)
    yield from _access(machine)


def cannot_ask(code: str, problem: ProfrunError | None, why: str) -> Finding:
    """What could not be asked."""
    if problem is None:
        return Finding(code, "critical", "not looked at", why)
    what = f"{problem.what}: {problem.why}" if problem.why else problem.what
    return Finding(code, "critical", what, why, problem.fix or "")


def _kind(machine: Machine) -> Iterator[Result]:
    engine, kind = machine.found.engine, machine.host.engine
    assert engine is not None
    named = f"{engine.name} {engine.version}, API {engine.api}, {engine.architecture}"
    yield Passed("engine", named + (" (rootless)" if kind.rootless else ""))
    if _number(engine.api) < PERFMON_API:
        lacks = "its seccomp profile wants more than" if kind.podman else "it does not know"
        yield Finding(
            "engine-age",
            "warning",
            f"the engine's API is {engine.api}",
            f"{lacks} CAP_PERFMON: trials that need it get the wider SYS_ADMIN",
            "Docker 23 or later",
        )


def _limits(machine: Machine) -> Iterator[Result]:
    host = machine.host
    if not host.raise_limits:
        yield Finding(
            "engine-limits",
            "warning",
            "the engine may not raise resource limits",
            "containers keep its limit of locked memory: NCCL over InfiniBand may not register buffers",
            _RAISE[host.engine],
        )
    if host.unlimited:
        yield Finding(
            "engine-cgroups",
            "warning",
            f"the engine may not limit {' and '.join(host.unlimited)} of a container",
            "trials run without " + " and ".join(f"resources.{name}" for name in host.unlimited),
            "boot with cgroup v2 alone, and set Delegate=cpu memory in user@.service"
            if host.engine.rootless
            else "give the engine the cgroup controllers cpu and memory",
        )


_RAISE = {
    EngineKind.DOCKER: "raise LimitMEMLOCK of docker.service",
    EngineKind.PODMAN: "raise LimitMEMLOCK of podman.service",
    EngineKind.ROOTLESS_DOCKER: "raise the user's memlock in /etc/security/limits.conf, and start it again",
    EngineKind.ROOTLESS_PODMAN: "raise memlock in limits.conf, and default_ulimits in containers.conf",
}
"""How the limit of locked memory is raised."""


def _privileges(machine: Machine) -> Iterator[Result]:
    """A capability of a rootless container counts in its user namespace only."""
    host = machine.host
    if not host.engine.rootless:
        return
    if host.vendor == "nvidia" and not host.nvidia_counters:
        yield Finding(
            "engine-counters",
            "warning",
            "no capability of a rootless container lets it read GPU counters",
            f"{who_needs('nvidia_counters')} fail in containers",
            HOW_TO_ALLOW["nvidia_counters"],
        )
    if host.paranoid is not None and host.paranoid > 2:
        yield Finding(
            "engine-perf-events",
            "warning",
            f"perf_event_paranoid is {host.paranoid}: no capability of a rootless container gets round it",
            "nsys with sample or cpuctxsw records no CPU samples in containers",
            HOW_TO_ALLOW["perf_events"],
        )


def _access(machine: Machine) -> Iterator[Result]:
    """How containers get the GPUs."""
    host, engine = machine.host, machine.found.engine
    if engine is None or host.vendor == "none":
        return
    cdi = host.nvidia_cdi if host.vendor == "nvidia" else host.amd_cdi
    if cdi and gives_cdi(host):
        yield Passed("gpu-access", f"a CDI specification for {host.vendor}")
    elif not gives_gpus(host):
        said = podman_gpus(host)
        yield Finding("gpu-access", "critical", "Podman gives containers no GPU", said["why"], said["fix"])
    elif host.vendor == "nvidia" and "nvidia" in engine.runtimes:
        yield from _toolkit(host.engine)
    elif host.vendor == "nvidia":
        yield Finding(
            "gpu-access",
            "critical",
            "neither a CDI specification nor NVIDIA's container runtime",
            "no container gets a GPU: every collector in containers records the CPU only",
            "install nvidia-container-toolkit, then `nvidia-ctk runtime configure --runtime=docker`",
        )
    elif host.engine.rootless:
        yield Finding(
            "gpu-access",
            "warning",
            "/dev/kfd and render nodes without their groups: a rootless container does not have the caller's",
            "a container opens them only where everybody may",
            'let everybody open them: MODE="0666" in a rule of udev',
        )
    elif host.amd_runtime and not host.engine.podman:
        yield Passed("gpu-access", "AMD's container runtime")
    else:
        yield Passed("gpu-access", "/dev/kfd and render nodes, by number of their group")


def _toolkit(kind: EngineKind) -> Iterator[Result]:
    """NVIDIA's toolkit, which sets cgroups of devices unless it is told that it may not."""
    if not kind.rootless:
        yield Passed("gpu-access", "the NVIDIA container runtime")
        return
    yield Finding(
        "gpu-access",
        "warning",
        "the NVIDIA container runtime under a rootless engine",
        "it fails where it may not set cgroups of devices",
        "`nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place`, or a CDI specification",
    )


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
