"""What one command costs, beside the smallest program that is made of the same libraries.

CPU seconds differ by a factor of three between machines and by a half between hours of one machine; the
quotient of two programs that run in turn does not. Measured while two other test processes ran:
0.41 to 0.43 for ``--help``, 1.38 to 1.49 for ``submit --dry-run``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SMALLEST = """
from pathlib import Path
import msgspec, typer, yaml
def command(job: Path, dry_run: bool = False) -> None:
    print(yaml.safe_load(job.read_text()))
typer.run(command)
"""
"""One command that reads one YAML file."""


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the user and system time of the processes that ``call`` starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times_the_smallest(call: Callable[[], object], job: Path, limit: float) -> float:
    """Return the CPU time of ``call``, as a multiple of the smallest program's on ``job``.

    Both run in turn until the quotient of their least times is below ``limit``, and 20 times at most, because
    a busy machine only ever adds.
    """
    smallest: list[float] = []
    found: list[float] = []
    while len(found) < 20 and not (found and min(found) / min(smallest) < limit):
        smallest.append(cpu_seconds(lambda: quiet("-c", SMALLEST, str(job), "--dry-run")))
        found.append(cpu_seconds(call))
    return min(found) / min(smallest)


def quiet(*args: str) -> None:
    """Run a Python program, which must succeed."""
    subprocess.run([sys.executable, *args], capture_output=True, check=True)
