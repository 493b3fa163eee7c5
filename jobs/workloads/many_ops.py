"""A chain of small point-wise ops, eager or compiled: from how many ops on does torch.compile pay?

Plain PyTorch, forward only. The tensor is small, so the host sets the time: eager code costs it time per op,
compiled code costs it time per call. Without a GPU the tensor shrinks, and the output says so.
``--compile`` needs a C++ compiler on a CPU and Triton on a GPU.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

CPU_ELEMENTS = 1024
"""Largest tensor without a GPU."""


class Chain(nn.Module):
    """``ops`` point-wise ops one after another: a product and a sine by turns."""

    def __init__(self, ops: int) -> None:
        super().__init__()
        self.ops = ops
        self.factor = nn.Parameter(torch.tensor(1.1))

    def forward(self, x: Tensor) -> Tensor:
        for number in range(self.ops):
            x = torch.sin(x) if number % 2 else x * self.factor
        return x


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=10, help="point-wise ops per iteration")
    parser.add_argument("--elements", type=int, default=65536, help="numbers in the tensor")
    parser.add_argument("--compile", action="store_true", help="compile the chain with torch.compile")
    parser.add_argument("--steps", type=int, default=200, help="iterations of the loop")
    return parser.parse_args()


def each_ms(iteration: Callable[[], object], count: int, device: str) -> list[float]:
    """Run ``iteration``; returns ms from the start of each to the start of the next.

    On a GPU the times are between CUDA events, so nothing waits for the GPU before the end of the loop.
    """
    if device == "cpu":
        stamps = [time.perf_counter()]
        for _ in range(count):
            iteration()
            stamps.append(time.perf_counter())
        return [1e3 * (end - start) for start, end in pairwise(stamps)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        iteration()
        event.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairwise(events)]


def main() -> None:
    """Run the chain ``--steps`` times; the first step compiles."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        elements = min(args.elements, CPU_ELEMENTS)
        print(
            f"no GPU here: elements {args.elements} -> {elements}, one thread, so that a CPU ends in seconds",
            flush=True,
        )
        args.elements = elements
        if args.compile and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            sys.exit(
                "torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang"
            )
    torch.manual_seed(0)
    chain: Callable[[Tensor], Tensor] = Chain(args.ops).to(device)
    x = torch.randn(args.elements, device=device)
    if args.compile:
        chain = torch.compile(chain)
    with torch.inference_mode():
        times = each_ms(lambda: chain(x), args.steps, device)
    mode = "compiled" if args.compile else "eager"
    print(
        f"{args.ops} point-wise ops on {args.elements} numbers, {mode}, on "
        f"{device}: median {statistics.median(times):.4f} ms per iteration, the first took {times[0]:.1f} ms"
    )


if __name__ == "__main__":
    main()
