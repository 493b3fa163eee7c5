"""Time to find the addresses of kernels: ``python bench/addresses.py [kernels ...]``.

A mapping of three steps and a trial of many steps of the same program are made (``analysis.make``). Measured,
each in a process of its own, after imports and after the frame of the trace is read: the addresses of the
mapping, those that the trial gets from it, and the table by line.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MADE = runpy.run_path(str(Path(__file__).with_name("analysis.py")))


def measure(mapping: Path, trial: Path) -> dict[str, float]:
    """Seconds of each part, and how many kernels have an address."""
    from profrun.analysis.compare.address_join import joined
    from profrun.analysis.trace.addresses import addresses
    from profrun.analysis.trace.frame import frame
    from profrun.analysis.trace.line_table import place_table
    from profrun.traces.trace import Trace

    with Trace(mapping) as one, Trace(trial) as other:
        sources = frame(one), frame(other)
        began = time.perf_counter()
        addresses(one)
        mapped = time.perf_counter()
        found = joined(other, one)
        done = time.perf_counter()
        assert found is not None
        place_table(sources[1], found, "line")
        end = time.perf_counter()
    return {
        "kernels": len(found.gpu),
        "with": int((found.of >= 0).sum()),
        "mapping_s": mapped - began,
        "joined_s": done - mapped,
        "table_s": end - done,
    }


def main(sizes: list[int]) -> None:
    """Make the traces and print a row for each size."""
    print("| kernels | with an address | of the mapping, s | joined, s | table, s |\n|---|---|---|---|---|")
    make, ops, step_slices = _MADE["make"], _MADE["OPS"], _MADE["STEP_SLICES"]
    with tempfile.TemporaryDirectory() as folder:
        mapping = make(Path(folder) / "mapping", 3 * step_slices, lines=True)
        for size in sizes:
            trial = make(Path(folder) / str(size), -(-size // ops) * step_slices)
            words = [sys.executable, __file__, "--measure", str(mapping), str(trial)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            times = " | ".join(f"{row[name]:.2f}" for name in ("mapping_s", "joined_s", "table_s"))
            print(f"| {row['kernels']} | {row['with']} | {times} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]), Path(sys.argv[3]))))
    else:
        main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000])
