"""What the sampler costs the steps: the sampler of this trial is stopped and let go by turns.

Blocks of ``--seconds`` take turns, with the sampler running and with it stopped (SIGSTOP). The differences of
the logarithms of the mean step time of neighbouring blocks give the cost and its interval (Student's t). The
slowest 1 % of the steps of each block are left out. Needs 32 pairs of blocks or more.
``--small`` makes the steps bound by the host's launches, else they are bound by the GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import signal
import statistics
import time
from pathlib import Path

import torch

T_975 = {30: 2.042, 40: 2.021, 60: 2.000}
"""Quantiles of Student's t by degrees of freedom (the next lower ones)."""


def sampler() -> int | None:
    """The process id of the sampler: a child of this process's parent."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
            argv = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == os.getppid() and b"sampler.py" in argv:
            return int(path.parent.name)
    return None


def main() -> None:
    """Time the blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--pairs", type=int, default=60)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows, width = (16, 64) if args.small or device == "cpu" else (1024, 4096)
    matrix = torch.randn(width, width, device=device, dtype=torch.bfloat16)
    x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
    pid = sampler()

    def step() -> float:
        begin = time.perf_counter()
        for _ in range(100):
            x @ matrix
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    end = time.perf_counter() + 3
    while time.perf_counter() < end:
        step()
    found: list[float] = []
    for on in itertools.islice(itertools.cycle((True, False)), 2 * args.pairs):
        if pid is not None:
            os.kill(pid, signal.SIGCONT if on else signal.SIGSTOP)
        end = time.perf_counter() + args.seconds
        times = []
        while time.perf_counter() < end:
            times.append(step())
        times.sort()
        found.append(statistics.mean(times[: max(1, len(times) * 99 // 100)]))
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
    # half of the pairs with each order, so that drift cancels
    costs = [
        math.log(found[2 * k] / found[2 * k + 1]) / 2 - math.log(found[2 * k + 1] / found[2 * k + 2]) / 2
        for k in range(args.pairs - 1)
    ]
    # Neighbouring costs share a block, so the variance of their mean is 4/3 of that of independent ones.
    spread = statistics.stdev(costs) * math.sqrt(4 / 3)
    half = T_975[max(key for key in T_975 if key <= max(30, args.pairs - 2))] * spread
    told = {
        "small": args.small,
        "sampler": pid,
        "step_ms": 1e3 * statistics.mean(found),
        "pairs": len(costs),
        "cost_percent": 100 * statistics.mean(costs),
        "half_width_percent": 100 * half / math.sqrt(len(costs)),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
