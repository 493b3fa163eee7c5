"""What stands against Nsight Systems on a machine, and which options are left out there. Shipped into jobs.

kernel.perf_event_paranoid: https://docs.kernel.org/admin-guide/sysctl/kernel.html#perf-event-paranoid
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contract.codec import from_json
from ...contract.finding import Finding
from ...contract.machine import CAP_PERFMON, CAP_SYS_ADMIN
from .profiler import Options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contract.machine import Machine

DROPS = {
    "gpu-counters-denied": ("gpu_metrics",),
    "cpu-sampling-denied": ("sample", "cpuctxsw", "python_backtrace"),
}


def check(options: Mapping[str, object], machine: Machine) -> list[Finding]:
    """GPU metrics need permission for counters; CPU samples, and so Python stacks, the kernel's."""
    asked = from_json(Options, options)
    denied = machine.nvidia_counters() if asked.gpu_metrics is not None else None
    return [*([denied] if denied is not None else []), *_sampling(asked, machine)]


def _sampling(asked: Options, machine: Machine) -> list[Finding]:
    given = {"sample": asked.sample, "cpuctxsw": asked.cpuctxsw, "python_backtrace": asked.python_backtrace}
    wanted = [name for name, value in given.items() if value not in (None, "none")]
    try:
        level = int(machine.text("proc/sys/kernel/perf_event_paranoid") or "")
    except ValueError:
        return []
    if not wanted or level <= 2 or machine.has(CAP_PERFMON, CAP_SYS_ADMIN):
        return []
    return [
        Finding(
            "cpu-sampling-denied",
            "warning",
            f"CPU sampling ({', '.join(wanted)}) is not possible",
            f"kernel.perf_event_paranoid is {level}, and neither CAP_PERFMON nor CAP_SYS_ADMIN is there",
            "sysctl kernel.perf_event_paranoid=2 on the host, or add CAP_PERFMON; GPU data is not affected",
        )
    ]
