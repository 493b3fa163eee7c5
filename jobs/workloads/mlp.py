"""A gated MLP (GeGLU) whose gelu and product run eagerly, compiled, in a hand-written kernel, or in Liger's.

Forward only: down(gelu(gate(x)) * up(x)). With ``--then-rows`` the number of rows changes after a few steps,
as it does when batches differ: what must be compiled again? At the end the output is compared with that of
functions of PyTorch. Without a GPU the rows shrink, and the output says so; Triton and Liger need a GPU, so
on a CPU these modes run the eager functions. ``--mode compile`` needs a C++ compiler on a CPU.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, repeat

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function

try:
    import triton
    import triton.language as tl
except ImportError:  # builds of torch without a GPU have no Triton
    triton = None

WIDTH, HIDDEN, BLOCK = 768, 3072, 1024
CPU_ROWS = 64
"""Largest number of rows without a GPU."""
LARGEST_ERROR = 0.02
"""Largest relative error of the output: bf16 rounds three times on the way, by up to 0.4 % each."""


def gelu_times_up(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up as two functions of PyTorch: two kernels, and one tensor between them."""
    return F.gelu(gate, approximate="tanh") * up


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def geglu_kernel(gate, up, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        """One block of gelu(gate) * up: reads both once and writes once, computes in fp32."""
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = place < count
        g = tl.load(gate + place, mask=inside).to(tl.float32)
        u = tl.load(up + place, mask=inside).to(tl.float32)
        # gelu by tanh: g / 2 * (1 + tanh(z)) = g * sigmoid(2 z), where z = sqrt(2 / pi) * (g + 0.044715 g^3)
        z = 0.7978845608028654 * (g + 0.044715 * g * g * g)
        tl.store(out + place, g * tl.sigmoid(2 * z) * u, mask=inside)


def geglu_by_hand(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up in one kernel of our own."""
    out = torch.empty_like(gate)
    geglu_kernel[(triton.cdiv(gate.numel(), BLOCK),)](gate, up, out, gate.numel(), BLOCK)
    return out


def geglu_of(mode: str, device: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The function for gelu(gate) * up."""
    if mode in ("eager", "compile"):
        return gelu_times_up
    if device == "cpu":
        print(f"{mode} needs a GPU, and there is none: gelu and the product run as functions of PyTorch")
        return gelu_times_up
    if triton is None:
        sys.exit(f"{mode} needs Triton, which is not installed: pip install triton")
    if mode == "triton":
        return geglu_by_hand
    try:
        from liger_kernel.ops.geglu import LigerGELUMulFunction
    except ImportError as error:
        sys.exit(f"liger needs the package liger-kernel ({error}): pip install liger-kernel")
    return LigerGELUMulFunction.apply


class GatedMLP(nn.Module):
    """down(gelu(gate(x)) * up(x)) on (rows, width); ``geglu`` is given gate(x) and up(x)."""

    def __init__(self, geglu: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.geglu = geglu
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.geglu(self.gate(x), self.up(x)))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("eager", "compile", "triton", "liger"), default="eager")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--then-rows", type=int, default=0, help="rows from --change-at on; 0: no change")
    parser.add_argument("--change-at", type=int, default=6)
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    if args.steps < 3:
        parser.error("--steps: at least 3")
    return args


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Rows that a CPU can do in seconds; says what was changed."""
    torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
    rows = min(args.rows, CPU_ROWS)
    then_rows = args.then_rows * rows // args.rows
    changed = f", then {args.then_rows} -> {then_rows}" if args.then_rows else ""
    print(
        f"no GPU here: rows {args.rows} -> {rows}{changed}, fp32, one thread, so that a CPU ends in seconds",
        flush=True,
    )
    args.rows, args.then_rows = rows, then_rows
    if args.mode == "compile" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
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


def check(model: GatedMLP, x: Tensor, y: Tensor) -> None:
    """End the program if ``y`` is not what plain functions of PyTorch compute in fp32."""
    x, gate, up, down = (one.float() for one in (x, model.gate.weight, model.up.weight, model.down.weight))
    wanted = F.linear(gelu_times_up(F.linear(x, gate), F.linear(x, up)), down)
    error = ((y.float() - wanted).norm() / wanted.norm()).item()
    if not error < LARGEST_ERROR:
        sys.exit(f"the output is wrong: it differs by {error:.2%} from that of PyTorch's functions in fp32")
    print(f"the output differs by {error:.1e} (relative norm) from that of PyTorch's functions in fp32")


def main() -> None:
    """Run the MLP ``--steps`` times; the first step compiles."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        fit_to_cpu(args)
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = GatedMLP(geglu_of(args.mode, device)).to(device, dtype).eval()
    forward = torch.compile(model) if args.mode == "compile" else model
    x = torch.randn(args.rows, WIDTH, device=device, dtype=dtype)
    inputs: Iterator[Tensor] = repeat(x)
    if args.then_rows:
        other = torch.randn(args.then_rows, WIDTH, device=device, dtype=dtype)
        inputs = chain(repeat(x, args.change_at), repeat(other))
    y = x

    def iteration() -> None:
        nonlocal x, y
        x = next(inputs)
        with record_function("mlp_fwd"):
            y = forward(x)

    with torch.inference_mode():
        times = each_ms(iteration, args.steps, device)
        check(model, x, y)
    slowest = max(range(2, len(times)), key=times.__getitem__)
    print(
        f"gated MLP, {args.mode}, {args.steps} steps of {args.rows} rows"
        + (f", {args.then_rows} from step {args.change_at} on" if args.then_rows else "")
        + f", on {device}: median {statistics.median(times):.4f} ms per iteration, the first took "
        f"{times[0]:.1f} ms, the slowest after two {times[slowest]:.4f} ms (step {slowest})"
    )


if __name__ == "__main__":
    main()
