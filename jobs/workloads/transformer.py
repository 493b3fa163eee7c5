"""One transformer layer, forward only: self-attention, add & norm, MLP, add & norm.

Plain PyTorch: nothing here knows a profiler, except that the parts are named with ``record_function``.
The point of the exercise is the pair of its job: small and in fp32 with attention written out, the step is
all launches and memory traffic; large, in half precision with fused attention, it is matrix multiplication.

Without a GPU the sizes shrink until a CPU ends in seconds, and the output says so.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function

CPU_BATCH, CPU_SEQ = 2, 128
"""Largest sizes without a GPU."""


class SelfAttention(nn.Module):
    """Multi-head self-attention: scores written out, or fused (flash attention where the GPU has it)."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, width = x.shape
        q, k, v = self.qkv(x).view(batch, seq, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
            y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, seq, width))


class TransformerLayer(nn.Module):
    """Post-norm encoder layer on (batch, seq, width)."""

    def __init__(self, width: int = 512, heads: int = 8, hidden: int = 2048, fused: bool = False) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, fused)
        self.norm1 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        with record_function("Self-Attention"):
            y = self.attention(x)
        with record_function("Add & Norm 1"):
            x = self.norm1(x + y)
        with record_function("MLP"):
            y = self.mlp(x)
        with record_function("Add & Norm 2"):
            return self.norm2(x + y)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--attention", choices=("written-out", "fused"), default="written-out")
    parser.add_argument("--read", action="store_true", help="read one number of the result in each step")
    parser.add_argument("--steps", type=int, default=50)
    return parser.parse_args()


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Sizes and type that a CPU can do in seconds; says what was changed.

    One thread, because at these sizes several spend their time waiting for each other, and on a busy machine
    that wait is all one would measure.
    """
    torch.set_num_threads(1)
    wanted = {
        "batch": min(args.batch, CPU_BATCH),
        "seq": min(args.seq, CPU_SEQ),
        "precision": "bf16" if args.precision == "fp16" else args.precision,
    }
    changes = [
        f"{key} {getattr(args, key)} -> {value}"
        for key, value in wanted.items()
        if value != getattr(args, key)
    ]
    if changes:
        print(f"no GPU here: {', '.join(changes)}, one thread, so that a CPU finishes in seconds", flush=True)
    vars(args).update(wanted)


def run(layer: TransformerLayer, x: Tensor, steps: int, read: bool) -> tuple[list[float], float | None]:
    """Call the layer ``steps`` times.

    Args:
        read: fetch one number of each result, for which the host waits until the GPU has finished the step.

    Returns:
        Seconds that each call took on the host, and the mean ms per step by CUDA events, None without a GPU.
        The mean leaves out the first half of the steps, which warms up, and in which profilers record.
    """
    times = []
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if x.is_cuda else []
    for step in range(steps):
        if events and step == steps // 2:
            events[0].record()
        start = time.perf_counter()
        y = layer(x)
        times.append(time.perf_counter() - start)
        if read:
            with record_function("Read"):
                y[0, 0, 0].item()
    if not events:
        return times, None
    events[1].record()
    torch.cuda.synchronize()
    return times, events[0].elapsed_time(events[1]) / (steps - steps // 2)


def main() -> None:
    """Run the layer ``--steps`` times."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        fit_to_cpu(args)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    layer = TransformerLayer(fused=args.attention == "fused").to(device).eval()
    x = torch.randn(args.batch, args.seq, 512, device=device)
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(args.precision)
    precision = torch.autocast(device, half) if half else contextlib.nullcontext()
    with torch.inference_mode(), precision:
        times, gpu_ms = run(layer, x, args.steps, args.read)
    print(
        f"transformer layer: {args.steps} steps, batch {args.batch}, seq {args.seq}, {args.precision}, "
        f"{args.attention} attention, on {device}; {statistics.median(times) * 1e3:.3f} ms a call on the host"
        + (f", {gpu_ms:.3f} ms per step by CUDA events" if gpu_ms is not None else "")
    )


if __name__ == "__main__":
    main()
