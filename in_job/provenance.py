"""On what a trial ran: makes the ``Provenance`` of provenance.json, before and after the program."""

from __future__ import annotations

import os
import platform
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.git_state import GitState, chosen
from ..contract.machine import ROCM, dotted, rocm_version, version_in
from ..contract.provenance import ClockAnchors, GpuStates, Provenance
from . import vendor
from .repository import Repositories
from .timing import anchor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..contract.command import Command
    from ..contract.redact import Redactor
    from .process_note import ProcessNote


def before(
    command: Command,
    env: Mapping[str, str],
    gpus: str,
    how: str,
    redactor: Redactor,
    *,
    lead: bool = True,
) -> Provenance:
    """All that is known before the program starts.

    Args:
        env: of the program; secrets in it are replaced.
        gpus: the vendor of the GPUs; ``how``: how it was found.
        redactor: hides the trial's secrets.
        lead: this rank writes provenance.json; the others do not ask git, which reads the whole repository.
    """
    return Provenance(
        trial=command.trial,
        attempt=command.attempt,
        host=socket.gethostname(),
        os=_os_name(),
        kernel=platform.release(),
        machine=platform.machine(),
        cpus=os.cpu_count(),
        cpu=_cpu_name(),
        memory_bytes=_memory(),
        wrapper_python=sys.version.split()[0],
        vendor=gpus,
        vendor_by=how,
        gpus=GpuStates(before=tuple(vendor.state(gpus))),
        cuda=_cuda_version() if gpus == "nvidia" else None,
        rocm=dotted(rocm_version(ROCM)) if gpus == "amd" else None,
        image=command.image,
        git=_git(command) if lead else GitState(),
        environment=redactor.environment(env, command.secrets),
        clocks=ClockAnchors(start=anchor()),
    )


def after(value: Provenance, notes: Sequence[ProcessNote], redactor: Redactor) -> Provenance:
    """The same with what is known at the end: the GPUs' state, and what the job's processes said."""
    ranked = sorted(
        notes, key=lambda note: (not note.process.steps, note.process.rank or 0, note.process.pid or 0)
    )
    return replace(
        value,
        gpus=replace(value.gpus, after=tuple(vendor.state(value.vendor))),
        clocks=replace(value.clocks, end=anchor()),
        processes=tuple(replace(note.process, argv=redactor.arguments(note.process.argv)) for note in notes),
        python=ranked[0].python if ranked else None,
        torch=ranked[0].torch if ranked else None,
        packages=next((note.packages for note in ranked if note.packages), ()),
    )


def _git(command: Command) -> GitState:
    return chosen(Repositories("job").of(command.argv, command.cwd or "."), command.git)


def _os_name() -> str | None:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    named = (line.partition("=")[2].strip('"') for line in lines if line.startswith("PRETTY_NAME="))
    return next(named, None)


def _cpu_name() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(("model name", "Model")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _cuda_version() -> str | None:
    named = os.environ.get("CUDA_VERSION")
    if named:
        return named
    try:
        return dotted(version_in(Path("/usr/local/cuda/version.json").read_text(encoding="utf-8")))
    except OSError:
        return None
