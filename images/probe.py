"""What is inside an image, as a program that runs there: standard library only, Python 3.8, prints one JSON.

Shipped as text on the command line (``inspect``), so it must not import anything of ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

TOOLS = ("nsys", "ncu", "rocprofv3")
PLACES = ("opt/rocm/bin", "usr/local/cuda/bin", "opt/nvidia/nsight-systems-cli/*/bin")


def tool(name: str) -> dict[str, str | None] | None:
    """{"path", "version", "problem"} of a program, or None when it is nowhere."""
    beside = [str(path) for place in PLACES for path in sorted(Path("/").glob(f"{place}/{name}"))]
    path = shutil.which(name) or (beside[0] if beside else None)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"path": path, "version": None, "problem": str(error)}
    text = done.stdout.decode(errors="replace")
    number = re.search(r"\d+\.\d+(?:\.\d+)*", text)
    problem = None if number else (text.strip().splitlines() or ["no output"])[-1][:200]
    return {"path": path, "version": number.group(0) if number else None, "problem": problem}


def torch() -> dict[str, str | None] | None:
    """Versions from torch/version.py, read without importing torch: that takes seconds and wants a GPU."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    values: dict[str, Any] = {}
    path = Path(next(iter(spec.submodule_search_locations)), "version.py")
    try:
        exec(compile(path.read_text(), str(path), "exec"), values)
    except Exception as error:
        return {"version": None, "cuda": None, "hip": None, "problem": str(error)}
    return {"version": str(values.get("__version__")), "cuda": values.get("cuda"), "hip": values.get("hip")}


def package(name: str) -> str | None:
    """Version of an installed Python package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def first_line(pattern: str) -> str | None:
    """First line of the first file that matches, relative to the root."""
    for path in sorted(Path("/").glob(pattern)):
        lines = path.read_text(errors="replace").split("\n")
        return lines[0].strip() or None
    return None


def os_name() -> str | None:
    """PRETTY_NAME of /etc/os-release."""
    path = Path("/etc/os-release")
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', path.read_text() if path.exists() else "", re.MULTILINE)
    return found.group(1) if found else None


def main() -> None:
    """Print what was found."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "machine": platform.machine(),
        "os": os_name(),
        "cuda": os.environ.get("CUDA_VERSION") or None,
        "rocm": first_line("opt/rocm*/.info/version"),
        "torch": torch(),
        "nvtx": package("nvtx"),
        "setpriv": shutil.which("setpriv"),
        "uid": os.getuid(),
    }
    for name in TOOLS:
        found[name] = tool(name)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
