"""Batches come from pinned memory without blocking, and go through matrix products. Planted: nothing."""

import parts
import torch

args = parts.arguments(
    __doc__, planted=False, steps=(400, 200), depth=(14, 8), width=(4096, 256), batch=(4096, 256)
)
batches = torch.randn(4, args.batch, args.width, device=parts.DEVICE).to("cpu", parts.TYPE)
if parts.CUDA:
    batches = batches.pin_memory()
with torch.device(parts.DEVICE):
    model = parts.chain(args.depth, args.width).to(parts.TYPE)
clock = parts.Clock()
with torch.no_grad():
    for step in clock.over(range(args.steps)):
        y = model(batches[step % 4].to(parts.DEVICE, non_blocking=True))
clock.report(y)
