"""torch.add(torch.matmul(x, w), b) again and again: the first program of many tutorials on torch.profiler.

With ``--bare`` a loop calls the function. Without it, the loop calls a module that calls the function: a
profiler can then tell the iterations apart. Without a GPU the matrices shrink, and the output says so.
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
from torch.profiler import record_function

CPU_SIZE = 256
"""Largest matrices without a GPU."""


def matmul_add(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x @ w + b for square matrices of one size."""
    return torch.add(torch.matmul(x, w), b)


class MatmulAdd(nn.Module):
    """The function with ``w`` and ``b`` as parameters."""

    def __init__(self, function: Callable[[Tensor, Tensor, Tensor], Tensor], w: Tensor, b: Tensor) -> None:
        super().__init__()
        self.function, self.w, self.b = function, nn.Parameter(w), nn.Parameter(b)

    def forward(self, x: Tensor) -> Tensor:
        with record_function("matmul_add"):
            return self.function(x, self.w, self.b)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="rows and columns of each matrix")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--warmup", type=int, default=0, help="calls before the loop, which no step counts")
    parser.add_argument("--compile", action="store_true", help="compile the function with torch.compile")
    parser.add_argument("--bare", action="store_true", help="call the function, not the module")
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
    """Call the function ``--steps`` times."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        size = min(args.size, CPU_SIZE)
        print(
            f"no GPU here: size {args.size} -> {size}, one thread, so that a CPU ends in seconds", flush=True
        )
        args.size = size
        if args.compile and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            sys.exit(
                "torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang"
            )
    torch.manual_seed(0)
    dtype = getattr(torch, args.dtype)
    x, w, b = (torch.randn(args.size, args.size, device=device, dtype=dtype) for _ in range(3))
    function = torch.compile(matmul_add) if args.compile else matmul_add
    module = MatmulAdd(function, w, b)
    with torch.inference_mode():
        for _ in range(args.warmup):
            function(x, module.w, module.b)
        if args.bare:
            start = time.perf_counter()
            for _ in range(args.steps):
                function(x, w, b)
            if device == "cuda":
                torch.cuda.synchronize()
            found = f"{1e3 * (time.perf_counter() - start):.3f} ms in all"
        else:
            times = each_ms(lambda: module(x), args.steps, device)
            found = (
                f"median {statistics.median(times):.4f} ms per iteration, the first took {times[0]:.1f} ms"
            )
    print(f"matmul + add of {args.size} x {args.size} {args.dtype} on {device}, {args.steps} times: {found}")


if __name__ == "__main__":
    main()
