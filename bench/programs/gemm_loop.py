"""The same products again and again: a loop that is bound by the GPU, with a known amount of extra work.

A step is 100 products of (1024, 4096) by (4096, 4096) in bfloat16, and ``--extra`` products more: so much
per cent of extra work. Without a GPU the sizes shrink.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch

ROWS, WIDTH, PRODUCTS = 1024, 4096, 100


class Products(torch.nn.Module):
    """``count`` products with the same matrix."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.count = count
        self.weight = torch.nn.Parameter(torch.randn(width, width), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count - 1):
            x @ self.weight
        return x @ self.weight


def turn() -> tuple[Path, int] | None:
    """The file that holds the number of the trial whose turn it is, and the number of this one."""
    told = os.environ.get("PROFRUN_BENCH_TURN")
    if told is None:
        return None
    name, _, number = told.rpartition(":")
    return Path(name), int(number)


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--extra", type=int, default=0, help="per cent of extra work")
    args = parser.parse_args()
    place = turn()
    while place is not None and int(place[0].read_text() or -1) < place[1]:
        time.sleep(0.005)
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    rows, width = (ROWS, WIDTH) if gpu else (16, 64)
    model = Products(PRODUCTS + args.extra, width).to(device, torch.bfloat16)
    x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
    for _ in range(args.steps):
        model(x)
    if gpu:
        torch.cuda.synchronize()
    if place is not None:
        place[0].write_text(str(place[1] + 1))


if __name__ == "__main__":
    main()
