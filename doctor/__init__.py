"""What this machine can collect, and why not: ``look`` gathers, ``checks`` says what it means.

>>> machine = look(Path("runs"))            # doctest: +SKIP
>>> report(machine, collectors=["nsys"])    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from profrun.doctor.checks import lines, verdicts
from profrun.doctor.look import look
from profrun.doctor.model import COLLECTORS, Line, Machine, Verdict
from profrun.errors import UsageError

__all__ = ["Line", "Machine", "Verdict", "cannot", "lines", "look", "report", "verdicts"]

_WORDS = {
    "nvidia": {"timeline": "nsys", "counters": "ncu"},
    "amd": {"timeline": "rocprof", "counters": "rocprof"},
}


def report(machine: Machine) -> dict[str, Any]:
    """The whole answer as JSON-safe values: ``{lines: [...], collectors: {name: {...}}, vendor, gpus}``."""
    return {
        "vendor": machine.host.vendor,
        "gpus": machine.host.gpus,
        "lines": [asdict(line) for line in lines(machine)],
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
    words = _WORDS.get(machine.host.vendor, {"timeline": "nsys", "counters": "ncu"})
    found = []
    for name in collectors:
        verdict = known.get(words.get(name, name))
        if verdict is None:
            raise UsageError(
                f"no collector {name!r}",
                fix=f"choose among {', '.join((*COLLECTORS, 'timeline', 'counters'))}",
            )
        if not verdict.works(backend):
            found.append(verdict)
    return found
