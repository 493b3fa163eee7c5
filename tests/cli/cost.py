"""What one command costs, in CPU time, beside the smallest program that uses the same libraries.

CPU seconds depend on the machine and on what else it does. The quotient of two programs that run in turn
hardly does. In eight rounds, four of them beside four busy processes on two cores, it was 0.39 to 0.44 for
``--help``, and 0.92 to 1.07 for the words that a shell asks for. For ``submit --dry-run`` it was 1.65 to 1.83
in 15 rounds of version 0.2: 76 of 187 ms of imports are the 118 modules of profrun, most of it dataclasses.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

from tests.conftest import ROOT

JOB = str(ROOT / "jobs/transformer.yaml")
SMALLEST = """
from pathlib import Path
import msgspec, typer, yaml
def command(job: Path, dry_run: bool = False) -> None:
    print(yaml.safe_load(job.read_text()))
typer.run(command)
"""
"""A program with one command, which reads a job file."""


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the user and system time of the processes that ``call`` starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times_the_smallest(call: Callable[[], object], limit: float) -> float:
    """Return the CPU time of ``call`` as a multiple of the CPU time of the smallest program.

    Both run in turn until the quotient of their least times is below ``limit``, at most 20 times: another
    process on the machine can only add to a time.
    """
    smallest: list[float] = []
    found: list[float] = []
    while len(found) < 20 and not (found and min(found) / min(smallest) < limit):
        smallest.append(cpu_seconds(lambda: quiet("-c", SMALLEST, JOB, "--dry-run")))
        found.append(cpu_seconds(call))
    return min(found) / min(smallest)


def quiet(*args: str) -> None:
    """Run a Python program, which must succeed."""
    subprocess.run([sys.executable, *args], capture_output=True, check=True)
