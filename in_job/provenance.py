"""Where and on what a trial ran: provenance.json. Times are unix ns, clocks MHz, power W, temperatures C."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import redact, tools, vendor
from .timing import anchor

if TYPE_CHECKING:
    from collections.abc import Mapping


def before(command: Mapping[str, Any], env: Mapping[str, str], gpu: str, how: str) -> dict[str, Any]:
    """All that is known before the program starts."""
    return {
        "format": 1,
        "trial": command["trial"],
        "attempt": command["attempt"],
        "host": socket.gethostname(),
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "cpu": _cpu_name(),
        "memory_bytes": _memory(),
        "wrapper_python": sys.version.split()[0],
        "vendor": gpu,
        "vendor_by": how,
        "gpus": {"before": vendor.state(gpu), "after": []},
        "cuda": _cuda_version() if gpu == "nvidia" else None,
        "rocm": _rocm_version() if gpu == "amd" else None,
        "image": command.get("image"),
        "git": git(command.get("cwd") or "."),
        "environment": redact.environment(env, command.get("secrets", ())),
        "clocks": {"start": anchor(), "end": None},
        "python": None,
        "torch": None,
        "packages": [],
        "processes": [],
    }


def after(value: dict[str, Any], notes: list[dict[str, Any]]) -> None:
    """Add what is known at the end: the GPUs' state, and what the job's processes said of themselves."""
    value["gpus"]["after"] = vendor.state(value["vendor"])
    value["clocks"]["end"] = anchor()
    rows = []
    for note in notes:
        row = {
            key: note.get(key) for key in ("pid", "ppid", "rank", "role", "steps", "used_gpu", "executable")
        }
        row["argv"] = redact.arguments(note.get("argv", ()))
        rows.append(row)
    value["processes"] = rows
    ranked = sorted(notes, key=lambda note: (not note.get("steps"), note.get("rank", 0), note.get("pid", 0)))
    if ranked:
        value["python"] = ranked[0].get("python")
        value["torch"] = ranked[0].get("torch")
    value["packages"] = next((note["packages"] for note in ranked if note.get("packages")), [])


def git(folder: str) -> dict[str, Any]:
    """Commit of the working directory, and whether tracked files differ; nulls where git cannot tell."""
    if shutil.which("git") is None:
        return {"sha": None, "dirty": None, "why": "git is not in this image"}
    base = ["git", "-c", "safe.directory=*", "-C", folder]
    sha = vendor.output([*base, "rev-parse", "HEAD"], timeout=5.0).strip()
    if not sha:
        return {"sha": None, "dirty": None, "why": f"{folder} is not in a git repository"}
    status = vendor.output([*base, "status", "--porcelain", "--untracked-files=no"], timeout=5.0)
    return {"sha": sha, "dirty": bool(status.strip())}


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
        numbers = tools.parse(Path("/usr/local/cuda/version.json").read_text(encoding="utf-8"))
    except OSError:
        return None
    return None if numbers is None else ".".join(map(str, numbers))


def _rocm_version() -> str | None:
    numbers = tools.rocm_version("/opt/rocm/bin/rocprofv3")
    return None if numbers is None else ".".join(map(str, numbers))
