"""Convolutions in bfloat16 with channels last, trained with a fused optimizer. Planted: nothing."""

import parts
import torch
from torch import nn

args = parts.arguments(
    __doc__, planted=False, steps=(400, 200), depth=(8, 3), width=(256, 32), batch=(16, 4), side=(56, 28)
)
torch.backends.cudnn.benchmark = True
with torch.device(parts.DEVICE):
    layers = (nn.Conv2d(args.width, args.width, 3, padding=1, bias=False) for _ in range(args.depth))
    model, x = nn.Sequential(*layers), torch.randn(args.batch, args.width, args.side, args.side)
model = model.to(dtype=parts.TYPE, memory_format=torch.channels_last)
x = x.to(dtype=parts.TYPE, memory_format=torch.channels_last)
parts.train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), x, args)
