"""How long the command line takes to answer: ``python bench/cli.py [--runs 10]``.

Medians of warm runs (two runs before are not counted), whole processes as a person starts them: wall seconds,
CPU seconds (user + system), peak MB of one process, and the one-minute load average when the runs began. Wall
means something on a quiet machine only. Also: the time of an interval, and of exporting a
made trace of 100,000 slices.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from measured import cost

ROOT = Path(__file__).resolve().parent.parent
PROFRUN = str(Path(sys.executable).with_name("profrun"))
TARGETS = {"profrun --help": 0.150, "profrun submit jobs/transformer.yaml --dry-run": 0.300}
COMMANDS = (
    "profrun",
    "profrun --help",
    "profrun submit jobs/transformer.yaml --dry-run",
    "profrun job schema",
)
STATISTICS = """
import json, time
import numpy as np
from profrun.analysis.compare.stats import estimate
rng = np.random.default_rng(1)
def side(level):
    return [rng.normal(level, 0.03, 100).tolist() for _ in range(10)]
a, b = side(1.0), side(1.02)
estimate(a, b)
cpu, wall = time.process_time(), time.perf_counter()
estimate(a, b)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""
EXPORT = """
import json, pathlib, sys, time
from profrun.api.trace import Trace
trace = Trace(sys.argv[1])
cpu, wall = time.process_time(), time.perf_counter()
trace.export(pathlib.Path(sys.argv[2]), sys.argv[3])
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def process(argv: Sequence[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of one command."""
    took = cost(argv, cwd=ROOT)
    return took.wall_s, took.cpu_s, took.peak_mb


def inside(argv: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU seconds that a program measured of itself and printed."""
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    wall, cpu = json.loads(done.stdout)
    return float(wall), float(cpu)


def repeated(runs: int, once: Callable[[], tuple[float, ...]]) -> tuple[list[float], float]:
    """Medians of each figure, and the load average at the beginning."""
    load = os.getloadavg()[0]
    rows = [once() for _ in range(runs)]
    return [statistics.median(column) for column in zip(*rows, strict=True)], load


def commands(runs: int) -> None:
    """The table of whole commands."""
    print("| command | wall s | CPU s | peak MB | load | wanted (wall) |\n|---|---|---|---|---|---|")
    for line in COMMANDS:
        argv = [PROFRUN, *line.split()[1:]]
        for _ in range(2):
            process(argv)
        (wall, cpu, rss), load = repeated(runs, lambda argv=argv: process(argv))  # type: ignore[misc]
        wanted = TARGETS.get(line)
        verdict = "" if wanted is None else f"< {wanted:.3f}: {'met' if wall < wanted else '**not met**'}"
        print(f"| `{line}` | {wall:.3f} | {cpu:.3f} | {rss:.0f} | {load:.1f} | {verdict} |", flush=True)


def functions(runs: int) -> None:
    """The table of what is timed inside a process."""
    make = runpy.run_path(str(ROOT / "bench" / "analysis.py"))["make"]
    print("\n| what | wall s | CPU s | load |\n|---|---|---|---|")
    (wall, cpu), load = repeated(runs, lambda: inside([sys.executable, "-c", STATISTICS]))
    print(f"| interval, 10 x 100 steps a side | {wall:.4f} | {cpu:.4f} | {load:.1f} |")
    with tempfile.TemporaryDirectory() as folder:
        trace = make(Path(folder) / "trace", 100_000)
        for to in ("perfetto", "chrome", "speedscope", "pprof"):
            number = iter(range(runs))

            def once(to: str = to, number: object = number) -> tuple[float, ...]:
                out = Path(folder) / f"{to}-{next(number)}.gz"  # type: ignore[call-overload]
                return inside([sys.executable, "-c", EXPORT, str(trace), str(out), to])

            (wall, cpu), load = repeated(runs, once)
            print(f"| export of 100,000 slices to {to} | {wall:.2f} | {cpu:.2f} | {load:.1f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    commands(options.runs)
    functions(max(1, min(options.runs, 3)))


if __name__ == "__main__":
    main()
