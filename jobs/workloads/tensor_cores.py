"""Matrix products in fp32, TF32, bf16, fp16 and fp8: how much faster are tensor cores than CUDA cores?

Plain PyTorch. A step is one call of a module that multiplies the same two square matrices a few times. The
variants of the job differ in the type and in the size. On NVIDIA, fp32 products run on CUDA cores, and those
of the other types on tensor cores.

Without a GPU the sizes shrink, and the output says so. A CPU has no TF32: it computes in fp32 there.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor, nn

TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
}
PRODUCTS = 4
"""Products per step."""


class Products(nn.Module):
    """Multiplies a (size, size) input ``PRODUCTS`` times by the same (size, size) weight, transposed."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.one = torch.ones((), device=weight.device)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(PRODUCTS - 1):
            self.product(x, self.weight.t())
        return self.product(x, self.weight.t())

    def product(self, x: Tensor, weight: Tensor) -> Tensor:
        """x @ weight. fp8 has a function of its own, with a scale for each side; its result is bf16 here."""
        if x.dtype is torch.float8_e4m3fn:
            return torch._scaled_mm(
                x, weight, scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        return x @ weight


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--type", choices=tuple(TYPES), default="bf16")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of the matrices")
    parser.add_argument("--steps", type=int, default=30)
    return parser.parse_args()


def seconds_per_step(model: Products, x: Tensor, steps: int) -> float:
    """Mean time of a step over the last half of the steps: by CUDA events where there is a GPU.

    The first half warms up, and a profiler records some of its steps.
    """
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if x.is_cuda else []
    timed = steps - steps // 2
    start = 0.0
    for step in range(steps):
        if step == steps - timed:
            start = time.perf_counter()
            if events:
                events[0].record()
        model(x)
    if not events:
        return (time.perf_counter() - start) / timed
    events[1].record()
    torch.cuda.synchronize()
    return float(events[0].elapsed_time(events[1])) / 1e3 / timed


def main() -> None:
    """Multiply for ``--steps`` steps and print the rate."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = args.size
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        size = 128 if args.size > 1024 else 64
        print(
            f"no GPU here: size {args.size} -> {size}, one thread, so that a CPU finishes in seconds",
            flush=True,
        )
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = args.type == "tf32"
    x, weight = (torch.randn(size, size, device=device).to(TYPES[args.type]) for _ in range(2))
    with torch.inference_mode():
        seconds = seconds_per_step(Products(weight), x, args.steps)
    rate = 2 * size**3 * PRODUCTS / seconds
    print(
        f"{PRODUCTS} products of {size} x {size} matrices in {args.type} on {device}: "
        f"{seconds * 1e3:.4f} ms per step, {rate / 1e12:.4g} TFLOP/s"
    )


if __name__ == "__main__":
    main()
