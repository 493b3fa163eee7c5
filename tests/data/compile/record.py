"""A compiled function under torch.profiler: with the shape that it was compiled for, or a new one in each
step.

python record.py cached cached.json
python record.py recompiled recompiled.json
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 5


def function(x: torch.Tensor, factor: int) -> torch.Tensor:
    return torch.sin(x @ x) * factor + x.relu()


compiled = torch.compile(function, dynamic=False)
for size in (16, 32):
    compiled(torch.randn(size, size), 2)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=STEPS - 1, repeat=1),
    record_shapes=True,
) as profiler:
    for step in range(STEPS):
        size = 32 + 8 * step if sys.argv[1] == "recompiled" else 32
        compiled(torch.randn(size, size, requires_grad=True), 2).sum().backward()
        profiler.step()
profiler.export_chrome_trace(sys.argv[2])
