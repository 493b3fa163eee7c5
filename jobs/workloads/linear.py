"""One linear layer, eager or compiled: is there anything left for torch.compile to fuse?

Plain PyTorch, forward only. ``--layout untransposed`` keeps the weight as (in, out), as a hand-written
``x @ weight + bias`` does; nn.Linear keeps it as (out, in) and multiplies by its transpose. Without a GPU the
sizes shrink, and the output says so. ``--compile`` needs a C++ compiler on a CPU and Triton on a GPU.
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

CPU_ROWS, CPU_WIDTH = 256, 256
"""Largest sizes without a GPU."""


class Untransposed(nn.Module):
    """x @ weight + bias with a weight of (in, out)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--inputs", type=int, default=32)
    parser.add_argument("--outputs", type=int, default=64)
    parser.add_argument("--layout", choices=("linear", "untransposed"), default="linear")
    parser.add_argument("--compile", action="store_true", help="compile the layer with torch.compile")
    parser.add_argument("--steps", type=int, default=100, help="iterations of the loop")
    return parser.parse_args()


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Sizes that a CPU can do in seconds; says what was changed."""
    torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
    limits = {"rows": CPU_ROWS, "inputs": CPU_WIDTH, "outputs": CPU_WIDTH}
    wanted = {key: min(getattr(args, key), limit) for key, limit in limits.items()}
    changes = [f"{key} {getattr(args, key)} -> {value}, " for key, value in wanted.items()]
    print(f"no GPU here: {''.join(changes)}one thread, so that a CPU ends in seconds", flush=True)
    vars(args).update(wanted)
    if args.compile and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        sys.exit("torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang")


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
    """Run the layer ``--steps`` times; the first step compiles."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        fit_to_cpu(args)
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    make = nn.Linear if args.layout == "linear" else Untransposed
    layer: Callable[[Tensor], Tensor] = make(args.inputs, args.outputs).to(device, dtype).eval()
    x = torch.randn(args.rows, args.inputs, device=device, dtype=dtype)
    if args.compile:
        layer = torch.compile(layer)

    def iteration() -> None:
        with record_function("linear_fwd"):
            layer(x)

    with torch.inference_mode():
        times = each_ms(iteration, args.steps, device)
    print(
        f"linear {args.rows} x {args.inputs} -> {args.outputs}, {args.layout}, "
        f"{'compiled' if args.compile else 'eager'}, on {device}: "
        f"median {statistics.median(times):.4f} ms per iteration, the first took {times[0]:.1f} ms"
    )


if __name__ == "__main__":
    main()
