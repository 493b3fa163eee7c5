"""What this machine can collect, and why not: ``look`` gathers, ``checks`` says what it means.

>>> machine = look(Path("runs"))                  # doctest: +SKIP
>>> cannot(machine, collectors=["timeline"])      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profrun.contract.profilers import all_names, become
from profrun.doctor.checks import check_machine, verdicts
from profrun.doctor.look import look
from profrun.doctor.model import CheckResult, Machine, Verdict
from profrun.errors import UsageError

__all__ = ["CheckResult", "Machine", "Verdict", "cannot", "check_machine", "look", "report", "verdicts"]


def report(machine: Machine) -> dict[str, Any]:
    """The whole answer as JSON-safe values: ``{vendor, gpus, checks: [...], collectors: {name: {...}}}``."""
    return {
        "vendor": machine.host.vendor,
        "gpus": machine.host.gpus,
        "checks": [_check_row(found) for found in check_machine(machine)],
        "collectors": {
            verdict.collector: {
                "local": verdict.local,
                "docker": any(verdict.images.values()),
                "images": dict(verdict.images),
                "reasons": list(verdict.reasons),
            }
            for verdict in verdicts(machine)
        },
    }


def _check_row(found: CheckResult) -> dict[str, str | None]:
    """One check; ``severity`` is null when it passed."""
    return {
        "code": found.result.code,
        "where": found.where,
        "severity": found.severity,
        "what": found.result.what,
        "why": getattr(found.result, "why", None),
        "fix": getattr(found.result, "fix", None),
    }


def cannot(machine: Machine, collectors: Sequence[str], backend: str | None = None) -> list[Verdict]:
    """Those of the asked-for collectors that cannot work here.

    Args:
        collectors: names, also timeline and counters, which follow the GPU.
        backend: local or docker; None: anywhere.

    Raises:
        UsageError: there is no such collector or backend.
    """
    if backend not in (None, "local", "docker"):
        raise UsageError(
            f"the doctor does not look at backend {backend!r}", fix="use local, docker, slurm or kubernetes"
        )
    known = {verdict.collector: verdict for verdict in verdicts(machine)}
    found = []
    for name in collectors:
        if name not in all_names():
            raise UsageError(f"no collector {name!r}", fix=f"choose among {', '.join(all_names())}")
        stands_for = become(name, machine.host.vendor)
        verdict = known[stands_for.name] if stands_for is not None else nothing_can(name)
        if not verdict.works(backend):
            found.append(verdict)
    return found


def nothing_can(collector: str) -> Verdict:
    """A vendor-neutral collector that no profiler can be on this machine's GPUs."""
    return Verdict(collector, False, {}, ("no profiler can do it on this machine's GPUs",))
