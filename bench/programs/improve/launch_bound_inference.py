"""A small language model that writes token after token, reading the last ones.

Planted: its kernels are shorter than the time to launch them. Remedy: torch.compile with CUDA graphs.
"""

import parts
import torch
from torch import nn

args = parts.arguments(
    __doc__, steps=(3000, 300), depth=(6, 4), width=(256, 64), batch=(4, 1), window=(32, 16)
)
with torch.device(parts.DEVICE):
    blocks = (parts.Block(args.width, args.width // 64) for _ in range(args.depth))
    model = nn.Sequential(nn.Embedding(1024, args.width), *blocks, nn.Linear(args.width, 1024))
    window = torch.randint(1024, (args.batch, args.window))
if args.fixed:
    model.compile(mode="reduce-overhead")
clock = parts.Clock()
with torch.no_grad():
    for _ in clock.over(range(args.steps)):
        token = model(window)[:, -1:].argmax(-1)
        window = torch.cat([window[:, 1:], token], 1)
clock.report(window)
