"""Residual convolutions in bfloat16.

Planted: images and weights are in the order NCHW, so cuDNN reorders them for each convolution. Remedy:
channels_last.
"""

import parts
import torch
from torch import nn

args = parts.arguments(__doc__, steps=(150, 20), depth=(4, 2), width=(64, 32), batch=(64, 4), side=(112, 28))
with torch.device(parts.DEVICE):
    model = nn.Sequential(*(parts.Residual(args.width) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.width, args.side, args.side)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
if args.fixed:
    model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
