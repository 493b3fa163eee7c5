"""Transformer blocks in bfloat16, compiled, trained with a fused optimizer. Planted: nothing."""

import parts
import torch
from torch import nn

args = parts.arguments(
    __doc__, planted=False, steps=(350, 200), depth=(2, 1), width=(1024, 64), batch=(8, 2), length=(1024, 64)
)
with torch.device(parts.DEVICE):
    model = nn.Sequential(*(parts.Block(args.width, args.width // 64) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.length, args.width).to(parts.TYPE)
model = model.to(parts.TYPE)
model.compile()
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
