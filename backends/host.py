"""``HostFacts``: what of this machine decides how a container must be asked for, read from files."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from profrun.images.engine_kind import EngineKind, guessed_kind

_CAP_SYS_RESOURCE = 24
Vendor = Literal["nvidia", "amd", "none"]


@dataclass(frozen=True)
class RenderNode:
    """An AMD GPU's device file.

    Attributes:
        path: e.g. /dev/dri/renderD128.
        gid: numeric group that may open it. Names of groups differ between host and image, numbers do not.
    """

    path: str
    gid: int


@dataclass(frozen=True)
class HostFacts:
    """This machine, its user, and where its engine is.

    Attributes:
        uid, gid, user: of the caller; with sudo, of the user behind it.
        nvidia_gpus: how many NVIDIA GPUs the kernel driver has.
        nvidia_driver: its version as numbers, or None.
        nvidia_cdi, amd_cdi: a CDI specification of that vendor is installed.
        nvidia_counters: True when every user may read GPU counters, False when only an administrator, None
            when the driver does not say.
        amd_gpus: render nodes in the order in which ROCm numbers GPUs.
        kfd_gid: numeric group of /dev/kfd, None where there is none.
        amd_runtime: the engine's configuration has AMD's container runtime.
        paranoid: kernel.perf_event_paranoid, or None.
        engine: which kind of engine it is; guessed by its address as long as it was not asked.
        engine_version: of the engine as numbers, None when no engine was asked.
        unlimited: what the engine does not limit, of ``memory`` and ``cpus``, by the names of ``resources``.
        selinux: SELinux is enforcing.
        raise_limits: the engine may raise resource limits; it may not when rootless, or without SYS_RESOURCE.
        remote: address of an engine on another machine, or None.
        api: version of the engine's API, None when no engine was asked.
    """

    uid: int = 1000
    gid: int = 1000
    user: str = "user"
    nvidia_gpus: int = 0
    nvidia_driver: tuple[int, ...] | None = None
    nvidia_cdi: bool = False
    nvidia_counters: bool | None = None
    amd_gpus: tuple[RenderNode, ...] = ()
    kfd_gid: int | None = None
    amd_cdi: bool = False
    amd_runtime: bool = False
    paranoid: int | None = None
    engine: EngineKind = EngineKind.DOCKER
    engine_version: tuple[int, ...] | None = None
    unlimited: tuple[str, ...] = ()
    selinux: bool = False
    raise_limits: bool = True
    remote: str | None = None
    api: tuple[int, ...] | None = None

    @property
    def vendor(self) -> Vendor:
        """Vendor of the GPUs that were found; NVIDIA where there are both."""
        if self.nvidia_gpus:
            return "nvidia"
        return "amd" if self.amd_gpus and self.kfd_gid is not None else "none"

    @property
    def gpus(self) -> int:
        """How many GPUs of that vendor there are."""
        return {"nvidia": self.nvidia_gpus, "amd": len(self.amd_gpus), "none": 0}[self.vendor]


def probe_host(
    root: Path = Path("/"), environ: Mapping[str, str] | None = None, *, endpoint: str | None = None
) -> HostFacts:
    """Look at this machine.

    Args:
        root: where its files are; tests give a made-up tree.
        environ: the caller's environment.
        endpoint: address of the engine, None for the default one.
    """
    environ = os.environ if environ is None else environ
    uid, gid, user = _caller(environ)
    where = environ.get("DOCKER_HOST") or endpoint or ""
    kfd = root / "dev/kfd"
    kind = guessed_kind(where, uid)
    return HostFacts(
        uid=uid,
        gid=gid,
        user=user,
        nvidia_gpus=len(list((root / "proc/driver/nvidia/gpus").glob("*"))),
        nvidia_driver=_driver(root),
        nvidia_cdi=_has_cdi(root, "nvidia.com/gpu"),
        nvidia_counters=_counters(root),
        amd_gpus=_render_nodes(root),
        kfd_gid=kfd.stat().st_gid if kfd.exists() else None,
        amd_cdi=_has_cdi(root, "amd.com/gpu"),
        amd_runtime='"amd"' in _text(root / "etc/docker/daemon.json"),
        paranoid=_number(root / "proc/sys/kernel/perf_event_paranoid"),
        engine=kind,
        selinux=_text(root / "sys/fs/selinux/enforce").strip() == "1",
        raise_limits=not kind.rootless and _may_raise(root),
        remote=where if where.startswith(("tcp://", "ssh://", "http://", "https://")) else None,
    )


def _caller(environ: Mapping[str, str]) -> tuple[int, int, str]:
    """User id, group id and name of whom files shall belong to: under sudo the user who called it."""
    if sys.platform == "win32":
        return 0, 0, "USER"
    import pwd

    uid, gid = os.getuid(), os.getgid()
    if uid == 0 and environ.get("SUDO_UID", "").isdigit() and environ.get("SUDO_GID", "").isdigit():
        uid, gid = int(environ["SUDO_UID"]), int(environ["SUDO_GID"])
    try:
        return uid, gid, pwd.getpwuid(uid).pw_name
    except KeyError:  # a number without an entry, as in containers
        return uid, gid, f"user{uid}"


def _may_raise(root: Path) -> bool:
    """Whether Docker's own process has CAP_SYS_RESOURCE; True when it is not found."""
    pid = _number(root / "var/run/docker.pid")
    may = None if pid is None else may_raise_limits(pid, root)
    return True if may is None else may


def may_raise_limits(pid: int, root: Path = Path("/")) -> bool | None:
    """Whether a process has CAP_SYS_RESOURCE; None when there is none of this number."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", _text(root / f"proc/{pid}/status"), re.MULTILINE)
    return bool(int(found.group(1), 16) >> _CAP_SYS_RESOURCE & 1) if found else None


def _driver(root: Path) -> tuple[int, ...] | None:
    """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Mon ..."""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", _text(root / "proc/driver/nvidia/version"))
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def _counters(root: Path) -> bool | None:
    """RmProfilingAdminOnly of the loaded driver: 0 lets everyone read counters (ERR_NVGPUCTRPERM)."""
    found = re.search(
        r"^RmProfilingAdminOnly:\s*(\d)", _text(root / "proc/driver/nvidia/params"), re.MULTILINE
    )
    return found.group(1) == "0" if found else None


def _render_nodes(root: Path) -> tuple[RenderNode, ...]:
    """Render nodes in KFD's order, which is ROCm's; CPU nodes have no render minor."""
    found = []
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    for node in sorted(nodes.glob("[0-9]*"), key=lambda path: int(path.name)):
        minor = re.search(r"^drm_render_minor\s+(\d+)", _text(node / "properties"), re.MULTILINE)
        device = root / f"dev/dri/renderD{minor.group(1)}" if minor and int(minor.group(1)) else None
        if device is not None and device.exists():
            found.append(RenderNode("/" + str(device.relative_to(root)), device.stat().st_gid))
    return tuple(found)


def _has_cdi(root: Path, kind: str) -> bool:
    """Whether there is a CDI specification of this kind in the folders that engines read."""
    files = [path for folder in ("etc/cdi", "var/run/cdi") for path in (root / folder).glob("*.*")]
    pattern = rf"[\"']?kind[\"']?\s*:\s*[\"']?{re.escape(kind)}\b"
    return any(re.search(pattern, _text(path)) for path in files if path.suffix in (".yaml", ".json"))


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")
    return ""
