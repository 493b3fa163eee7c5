"""Which capabilities a trial's container is given: what its profilers need and the host does not allow. Pure.

Nothing here is ever ``--privileged``. Every container starts with no capability at all and may not gain one;
a profiler that cannot do without one (``Profiler.privileges``) is given that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from profrun.backends.host import HostFacts
from profrun.backends.profilers import profilers_of
from profrun.contract.profilers import HostSetting, Privilege, Profiler, built_in
from profrun.jobs.model import Resources
from profrun.plans.model import Trial

PERFMON, SYS_ADMIN = "PERFMON", "SYS_ADMIN"
"""The capability that suffices with current engines and drivers, and the wider one that older ones want."""
IPC_LOCK = "IPC_LOCK"
"""Lets a process lock any amount of memory."""
PERFMON_API = (1, 42)
"""Docker 23: knows CAP_PERFMON, and its seccomp profile allows perf_event_open with it."""
PERFMON_DRIVER = (565,)
"""First NVIDIA driver branch that takes CAP_PERFMON for GPU counters."""
DROP_ROOT = ("SETUID", "SETGID", "SETPCAP")
"""What becoming the caller takes, when a container must start as root to hand a capability on."""

CONFINED = ("--cap-drop=ALL", "--security-opt=no-new-privileges")
"""Options of ``docker run`` that take every capability away, for ever."""

HOW_TO_ALLOW: Mapping[HostSetting, str] = {
    "nvidia_counters": "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload"
    " the driver",
    "perf_events": "sysctl kernel.perf_event_paranoid=2",
}
"""How an administrator changes a host setting so that no capability is needed."""


def needs_of(trial: Trial, vendor: str) -> tuple[Privilege, ...]:
    """What the trial's profilers need on this vendor's GPUs with its options, whatever the host allows."""
    found = profilers_of(trial, vendor)
    return tuple(need for one, options in found for need in needs_with(one, options, vendor))


def needs_with(profiler: Profiler, options: Mapping[str, object], vendor: str) -> tuple[Privilege, ...]:
    """What a profiler needs on this vendor's GPUs with these options, whatever the host allows."""
    return tuple(
        need for need in profiler.privileges if need.vendor in (None, vendor) and need.asked_by(options)
    )


def capabilities(needs: Iterable[Privilege], host: HostFacts) -> tuple[str, ...]:
    """The capabilities, without CAP_, that a container on this host must be given."""
    return tuple(sorted({_capability(need, host) for need in needs if not _allowed(need, host)}))


def _allowed(need: Privilege, host: HostFacts) -> bool:
    """Does a setting of the host make this need's capability needless?"""
    if need.always:
        return False
    if need.setting == "nvidia_counters":
        return host.nvidia_counters is True
    return host.paranoid is not None and host.paranoid <= 2


def _capability(need: Privilege, host: HostFacts) -> str:
    """The least capability that works with this engine and driver."""
    if host.api is not None and host.api < PERFMON_API:
        return SYS_ADMIN
    if need.vendor == "nvidia" and (host.nvidia_driver or (0,)) < PERFMON_DRIVER:
        return SYS_ADMIN
    return PERFMON


def become_caller(keep: Sequence[str], uid: int, gid: int, groups: Sequence[int] = ()) -> tuple[str, ...]:
    """The words before a command that starts as root: ``setpriv`` becomes the caller and keeps capabilities.

    Engines give added capabilities to root only. Kept ones become ambient, so that the command has them.
    """
    kept = "-all," + ",".join(f"+{name.lower()}" for name in keep)
    others = ("--groups", ",".join(map(str, groups))) if groups else ("--clear-groups",)
    return (
        *("setpriv", "--reuid", str(uid), "--regid", str(gid), *others),
        *(f"--inh-caps={kept}", f"--ambient-caps={kept}", f"--bounding-set={kept}", "--"),
    )


def tmpfs(resources: Resources) -> dict[str, str]:
    """The folders that are in memory: /tmp, where the root file system is read-only.

    Engines mount a tmpfs with ``noexec``. Triton and torch's inductor compile libraries into /tmp and load
    them from there, so ``exec`` is stated.
    """
    if resources.writable_root:
        return {}
    size = () if resources.tmp is None else (f"size={resources.tmp}",)
    return {"/tmp": ",".join(("rw", "exec", "nosuid", "nodev", "mode=1777", *size))}


def who_needs(setting: HostSetting | None = None) -> str:
    """The profilers, with their options, that need a capability, in words; of one host setting or of all."""
    found = []
    for profiler in built_in():
        mine = [need for need in profiler.privileges if setting in (None, need.setting)]
        options = [need.option for need in mine if need.option]
        if mine:
            found.append(f"{profiler.name} with {_listed(options, 'or')}" if options else profiler.name)
    return _listed(found, "and")


def _listed(words: Sequence[str], last: str) -> str:
    """``a, b and c``."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
