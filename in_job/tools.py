"""Finds profilers and their versions, and the ``wrap`` module of a collector."""

from __future__ import annotations

import glob
import importlib
import os
import re
import shutil
from typing import Any

from .vendor import output

COLLECTORS = ("none", "torch", "nsys", "ncu", "rocprof")
_PLACES = {
    "nsys": ("/opt/nvidia/nsight-systems/*/bin", "/opt/nvidia/nsight-systems*/bin", "/usr/local/cuda/bin"),
    "ncu": ("/opt/nvidia/nsight-compute/*", "/usr/local/cuda/bin"),
}
_ROCM = ("/opt/rocm/bin", "/opt/rocm-*/bin")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def wrap_module(collector: str) -> Any:
    """The collector's wrap module.

    Raises:
        ImportError: this bundle has none for it.
    """
    return importlib.import_module(f"..collectors.{collector}.wrap", __package__)


def find(tool: str) -> str | None:
    """Path of a profiler: ``$PROFRUN_<TOOL>``, the PATH, then where vendors install it (newest)."""
    named = os.environ.get(f"PROFRUN_{tool.upper()}")
    if named and os.access(named, os.X_OK):
        return named
    found = shutil.which(tool)
    if found is not None:
        return found
    for place in _PLACES.get(tool, _ROCM if tool.startswith("roc") else ()):
        for folder in sorted(glob.glob(place), key=_numbers, reverse=True):
            path = os.path.join(folder, tool)
            if os.access(path, os.X_OK):
                return path
    return None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def version(path: str, tool: str) -> tuple[int, ...] | None:
    """The version a profiler states with ``--version``, as numbers; None when it states none.

    For the ROCm tools it is the version of ROCm where one is stated, because flags follow it.
    """
    text = output([path, "--version"], timeout=30.0)
    if tool.startswith("roc"):
        stated = re.search(r"rocm[_ -]?version\s*[:=]\s*(\d+\.\d+(?:\.\d+)?)", text, re.I)
        if stated is not None:
            return parse(stated.group(1))
        return rocm_version(path) or parse(text)
    return parse(text)


def parse(text: str) -> tuple[int, ...] | None:
    """The first 'a.b' or 'a.b.c' in a text."""
    found = _VERSION.search(text)
    return None if found is None else tuple(int(part) for part in found.groups() if part is not None)


def rocm_version(path: str) -> tuple[int, ...] | None:
    """ROCm's version from the ``.info/version`` file beside a tool's bin folder."""
    home = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    for root in (home, "/opt/rocm"):
        try:
            with open(os.path.join(root, ".info", "version"), encoding="ascii", errors="replace") as file:
                return parse(file.read())
        except OSError:
            continue
    return None


def resolve(collector: str, vendor: str) -> tuple[str | None, str | None]:
    """(a concrete collector or None, why not): ``timeline`` and ``counters`` follow the vendor."""
    if collector == "timeline":
        if vendor == "amd":
            return "rocprof", None
        if vendor == "nvidia" or find("nsys") is not None:
            return "nsys", None
        return None, (
            "no timeline can be recorded here: there is no GPU and no nsys; use collectors: [torch], or an "
            "image with Nsight Systems"
        )
    if collector == "counters":
        if vendor == "none":
            return None, "no counters can be read here: there is no GPU; run on one, or leave counters out"
        return ("ncu" if vendor == "nvidia" else "rocprof"), None
    if collector not in COLLECTORS:
        return (
            None,
            f"unknown collector {collector!r}: it is one of {', '.join(COLLECTORS)}, timeline, counters",
        )
    return collector, None
