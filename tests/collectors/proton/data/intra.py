# mypy: ignore-errors
"""Proton's instrumentation backend: times inside one Triton kernel."""

import sys

import torch
import triton
import triton.language as tl
import triton.profiler as proton
import triton.profiler.language as pl

pl.enable_semantic("triton")


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with pl.scope("loads"):
        a = tl.load(x + at, mask=at < n)
        b = tl.load(y + at, mask=at < n)
    with pl.scope("store"):
        tl.store(out + at, a + b, mask=at < n)


x = torch.randn(4096, device="cuda")
y, out = torch.randn_like(x), torch.empty_like(x)
proton.start(sys.argv[1], data=sys.argv[2], backend="instrumentation")
for _ in range(2):
    add[(4,)](x, y, out, 4096, BLOCK=1024)
torch.cuda.synchronize()
proton.finalize()
