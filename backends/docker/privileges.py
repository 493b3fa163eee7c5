"""Which collector needs which privilege, as data. Nothing here is ever ``--privileged``.

Every container starts with no capability at all and may not gain one. A row of ``NEEDS`` gives back the one
that a collector cannot do without, and only when the host's own setting does not already allow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from profrun.backends.host import HostFacts

PERFMON_API = (1, 42)
"""Docker 23: knows CAP_PERFMON, and its seccomp profile allows perf_event_open with it."""
PERFMON_DRIVER = (565,)
"""First NVIDIA driver branch that takes CAP_PERFMON for GPU counters."""
DROP_ROOT = ("SETUID", "SETGID", "SETPCAP")
"""What becoming the caller takes, when a container must start as root to hand a capability on."""

Setting = Literal["nvidia_counters", "paranoid_2"]


@dataclass(frozen=True)
class Need:
    """One row of the table.

    Attributes:
        what: the thing that needs it, in words.
        collector: nsys, ncu, rocprof.
        option: key of the collector's block that asks for it; None: always.
        vendor: whose GPUs it is about; None: any.
        capability: which one capability suffices, the least first.
        unless: the host setting that makes it needless.
        setting: that setting, as a person would set it.
        why: what refuses otherwise.
    """

    what: str
    collector: str
    option: str | None
    vendor: str | None
    capability: tuple[str, ...]
    unless: Setting | None
    setting: str
    why: str


_COUNTERS = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload the driver"
_PARANOID = "sysctl kernel.perf_event_paranoid=2"

NEEDS: tuple[Need, ...] = (
    Need(
        "CPU samples",
        "nsys",
        "sample",
        None,
        ("PERFMON", "SYS_ADMIN"),
        None,
        _PARANOID,
        "the engine's seccomp profile refuses perf_event_open without a capability",
    ),
    Need(
        "thread scheduling",
        "nsys",
        "cpuctxsw",
        None,
        ("PERFMON", "SYS_ADMIN"),
        None,
        _PARANOID,
        "the engine's seccomp profile refuses perf_event_open without a capability",
    ),
    Need(
        "GPU metrics",
        "nsys",
        "gpu_metrics",
        "nvidia",
        ("PERFMON", "SYS_ADMIN"),
        "nvidia_counters",
        _COUNTERS,
        "the driver lets only administrators read GPU counters",
    ),
    Need(
        "GPU counters",
        "ncu",
        None,
        "nvidia",
        ("PERFMON", "SYS_ADMIN"),
        "nvidia_counters",
        _COUNTERS,
        "the driver lets only administrators read GPU counters (ERR_NVGPUCTRPERM)",
    ),
    Need(
        "GPU counters",
        "rocprof",
        "pmc",
        "amd",
        ("PERFMON", "SYS_ADMIN"),
        "paranoid_2",
        _PARANOID,
        "the kernel limits counters silently above perf_event_paranoid 2",
    ),
)
"""none, torch, and the API, kernel and range tracing of nsys and rocprof have no row: they need nothing."""


@dataclass(frozen=True)
class Privileges:
    """What one trial's container is given.

    Attributes:
        capabilities: added, without CAP_.
        needs: the rows that asked for them.
    """

    capabilities: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()


def needs_of(collector: str, options: Mapping[str, Any], vendor: str) -> tuple[Need, ...]:
    """The rows that a collector with these options meets on this vendor's GPUs, whatever the host allows."""
    return tuple(
        need
        for need in NEEDS
        if need.collector == collector
        and need.vendor in (None, vendor)
        and (need.option is None or options.get(need.option) not in (None, False, "none", "", (), []))
    )


def allowed_by_host(need: Need, facts: HostFacts) -> bool:
    """Does a setting of the host make this need's capability needless?"""
    if need.unless == "nvidia_counters":
        return facts.nvidia_counters is True
    if need.unless == "paranoid_2":
        return facts.paranoid is not None and facts.paranoid <= 2
    return False


def capability_for(need: Need, facts: HostFacts) -> str:
    """The least capability that works with this engine and driver."""
    least, fallback = need.capability[0], need.capability[-1]
    if facts.api is not None and facts.api < PERFMON_API:
        return fallback
    if need.vendor == "nvidia" and (facts.nvidia_driver or (0,)) < PERFMON_DRIVER:
        return fallback
    return least


def privileges(collector: str, options: Mapping[str, Any], facts: HostFacts) -> Privileges:
    """What a trial's container must be given, and nothing more.

    Args:
        collector: a concrete one; ``timeline`` and ``counters`` are resolved by the caller.
        options: its block.
    """
    open_ = tuple(
        need for need in needs_of(collector, options, facts.vendor) if not allowed_by_host(need, facts)
    )
    return Privileges(tuple(sorted({capability_for(need, facts) for need in open_})), open_)
