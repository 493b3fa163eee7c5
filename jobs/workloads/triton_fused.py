"""y = 2x + 3 on a large vector: torch's two kernels, one kernel by torch.compile, and one written in Triton.

Two operations per element are nothing for a GPU; reading x and writing y is the work. So the step should take
the time in which the GPU's memory moves these bytes, and one kernel should take half as long as two, because
it moves half the bytes.

Without a GPU the vector shrinks, and the output says so. Triton needs a GPU: without one, that variant runs
torch's two kernels, and says so.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

try:
    import triton
    import triton.language as tl
except ImportError:  # builds of torch for CPUs come without it
    triton = None

CPU_ELEMENTS = 1 << 20
BLOCK = 1024
"""Elements per program of the Triton kernel."""


def two_kernels(x: Tensor) -> Tensor:
    """The formula as torch runs it: a product, then a sum."""
    return 2 * x + 3


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _fused_kernel(x, y, elements, block: tl.constexpr):  # type: ignore[no-untyped-def]
        """y = 2x + 3 for ``block`` elements; x and y are pointers."""
        offsets = tl.program_id(0) * block + tl.arange(0, block)
        inside = offsets < elements
        tl.store(y + offsets, 2 * tl.load(x + offsets, mask=inside) + 3, mask=inside)


def one_kernel(x: Tensor) -> Tensor:
    """The formula as one kernel, written in Triton."""
    y = torch.empty_like(x)
    _fused_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), block=BLOCK)
    return y


class Affine(nn.Module):
    """Applies a function to the vector that it holds.

    It is a module because profilers recognise modules by name, and their calls as the steps of a program.
    """

    def __init__(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.x = nn.Parameter(x, requires_grad=False)
        self.function = function

    def forward(self) -> Tensor:
        return self.function(self.x)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("eager", "compile", "triton"), default="eager")
    parser.add_argument("--elements", type=int, default=1 << 28, help="length of x, in fp32")
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


def function_of(mode: str, device: str) -> Callable[[Tensor], Tensor]:
    """What a mode runs on a device; exits where it cannot."""
    if mode != "triton":
        return two_kernels
    if device == "cpu":
        print("no GPU here, and Triton needs one: this runs torch's two kernels instead", flush=True)
        return two_kernels
    if triton is None:
        sys.exit("this Python has no Triton, which the variant is about: pip install triton")
    return one_kernel


def seconds_per_step(model: Affine, device: str, steps: int) -> float:
    """Mean time of a step over the last half of the steps: by CUDA events where there is a GPU.

    The first half warms up, and a profiler records some of its steps.
    """
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if device == "cuda" else []
    timed = steps - steps // 2
    start = 0.0
    for step in range(steps):
        if step == steps - timed:
            start = time.perf_counter()
            if events:
                events[0].record()
        model()
    if not events:
        return (time.perf_counter() - start) / timed
    events[1].record()
    torch.cuda.synchronize()
    return float(events[0].elapsed_time(events[1])) / 1e3 / timed


def main() -> None:
    """Compute for ``--steps`` steps, check the result, and print the rate."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        elements = min(args.elements, CPU_ELEMENTS)
        change = f"elements {args.elements} -> {elements}, " if elements != args.elements else ""
        print(f"no GPU here: {change}one thread, so that a CPU finishes in seconds", flush=True)
        args.elements = elements
        if args.mode == "compile" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            sys.exit(
                "torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang"
            )
    torch.manual_seed(0)
    model = Affine(torch.randn(args.elements, device=device), function_of(args.mode, device))
    if args.mode == "compile":
        model.compile()
    with torch.inference_mode():
        seconds = seconds_per_step(model, device, args.steps)
        torch.testing.assert_close(model()[-BLOCK:], two_kernels(model.x[-BLOCK:]))
    moved = 2 * model.x.numel() * model.x.element_size()
    print(
        f"y = 2x + 3, {args.mode}: {args.elements} elements on {device}, {seconds * 1e3:.4f} ms per step; "
        f"reading x and writing y once in that time is {moved / seconds / 1e9:.1f} GB/s"
    )


if __name__ == "__main__":
    main()
