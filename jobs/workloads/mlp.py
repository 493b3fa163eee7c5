"""A gated MLP (GeGLU), eager or compiled: which kernels does torch.compile fuse, and what is it worth?

Plain PyTorch, forward only. Without a GPU the sizes shrink, and the output says so. Compiling needs a C++
compiler on a CPU and Triton on a GPU.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function

CPU_ROWS = 64


class GatedMLP(nn.Module):
    """down(gelu(gate(x)) * up(x)) on (rows, width)."""

    def __init__(self, width: int = 768, hidden: int = 3072) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.gate(x)) * self.up(x))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=50)
    return parser.parse_args()


def main() -> None:
    """Run the MLP ``--steps`` times; the first step compiles."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        rows = min(args.rows, CPU_ROWS)
        print(
            f"no GPU here: rows {args.rows} -> {rows}, one thread, so that a CPU finishes in seconds",
            flush=True,
        )
        args.rows = rows
    if device == "cpu" and args.mode == "compile" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        sys.exit("torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang")
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = GatedMLP().to(device, dtype).eval()
    x = torch.randn(args.rows, 768, device=device, dtype=dtype)
    times = []
    with torch.inference_mode():
        if args.mode == "compile":
            model.compile()
        for _ in range(args.steps):
            start = time.perf_counter()
            with record_function("MLP"):
                model(x)
            times.append(time.perf_counter() - start)
        if device == "cuda":
            torch.cuda.synchronize()
    print(
        f"gated MLP, {args.mode}: {args.steps} steps of {args.rows} rows on {device}; "
        f"{statistics.median(times) * 1e3:.3f} ms a call on the host"
    )


if __name__ == "__main__":
    main()
