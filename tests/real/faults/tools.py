"""What the faults need: a library that breaks writes, a clock that jumps, and an older profrun."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tests.conftest import ROOT, unpack

OLDER = "94744ce"
"""The commit of profrun 0.1.0: its plan.json and exit.json are of format 1."""


@dataclass(frozen=True)
class Tools:
    """Paths of what the faults need; None: that is not there, and faults that need it are not injected.

    Attributes:
        broken_writes, clock: the libraries of ``broken_writes.c`` and ``clock.c``.
        older: root of a checkout of profrun 0.1.
        mounts: whether this user may mount a filesystem.
        docker: the socket of an engine of our own.
        slurm: slurm.conf of a Slurm of our own.
    """

    broken_writes: Path | None = None
    clock: Path | None = None
    older: Path | None = None
    mounts: bool = False
    docker: Path | None = None
    slurm: Path | None = None


def build(name: str, folder: Path) -> Path | None:
    """Compile the library of ``<name>.c``; None where there is no C compiler.

    Raises:
        subprocess.CalledProcessError: it does not compile.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    return library


def check_out_older(folder: Path) -> Path | None:
    """profrun 0.1 from this repository's history; None where the history is not there."""
    words = ["git", "-C", str(ROOT), "archive", OLDER]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        return None
    root = folder / "older"
    root.mkdir()
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        unpack(archive, root)
    return root
