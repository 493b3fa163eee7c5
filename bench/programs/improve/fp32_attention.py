"""A transformer in fp32.

Planted: nothing of it runs in a type with fewer bits. Remedy: autocast in bfloat16.
"""

import contextlib

import parts
import torch
from torch import nn


class Model(nn.Sequential):
    """Blocks, under autocast where that is asked for."""

    def forward(self, x):
        fewer = torch.autocast(parts.DEVICE, torch.bfloat16) if args.fixed else contextlib.nullcontext()
        with fewer:
            return super().forward(x)


args = parts.arguments(
    __doc__, steps=(250, 10), depth=(4, 2), width=(512, 256), batch=(8, 2), length=(512, 128)
)
with torch.device(parts.DEVICE):
    model = Model(*(parts.Block(args.width, args.width // 64) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.length, args.width)
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
