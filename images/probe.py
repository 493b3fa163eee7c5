"""What is inside an image, as a program that runs there: standard library only, Python 3.8, prints one JSON.

Shipped as text on the command line (``inspect``), so it must not import anything of ours. Its argument is the
JSON of ``main``'s arguments.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def find(name: str, places: Sequence[str]) -> str | None:
    """Path of a program as ``in_job.tools`` finds it: ``$PROFRUN_<NAME>``, the PATH, the newest folder.

    Args:
        places: folders (globs), looked through in this order.
    """
    named = os.environ.get(f"PROFRUN_{name.upper()}")
    if named and os.access(named, os.X_OK):
        return named
    # Absolute patterns, which Path.glob does not take.
    beside = [path for place in places for path in sorted(glob.glob(place), key=numbers, reverse=True)]  # noqa: PTH207
    there = [f"{folder}/{name}" for folder in beside if os.access(f"{folder}/{name}", os.X_OK)]
    return shutil.which(name) or next(iter(there), None)


def numbers(text: str) -> list[int]:
    """The numbers in a path, by which versions are ordered."""
    return [int(part) for part in re.findall(r"\d+", text)]


def tool(name: str, places: Sequence[str]) -> dict[str, str | None] | None:
    """{"path", "version", "problem"} of a program, or None when it is nowhere."""
    path = find(name, places)
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
    """Versions from torch/version.py. Importing torch would take seconds and may need a GPU."""
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


def main(tools: Mapping[str, Sequence[str]], packages: Sequence[str]) -> None:
    """Print what was found.

    Args:
        tools: executable -> the folders (globs) where it may be, beside the PATH.
        packages: Python packages whose versions are wanted.
    """
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
    found["tools"] = {name: seen for name, places in tools.items() if (seen := tool(name, places))}
    found["packages"] = {name: known for name in packages if (known := package(name))}
    print(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
