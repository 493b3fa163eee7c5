"""A compiled network that reads texts of different lengths.

Planted: it is compiled for each length, with dynamic=False, so in each step. Remedy: dynamic=True.
"""

import parts
import torch
from torch import nn

args = parts.arguments(__doc__, steps=(16, 16), width=(1024, 64), batch=(64, 8), length=(512, 32))
torch._dynamo.config.recompile_limit = 1000
with torch.device(parts.DEVICE):
    network = nn.Sequential(nn.LayerNorm(args.width), nn.Linear(args.width, args.width), nn.GELU())
    texts = [torch.randn(args.batch, args.length + 8 * step, args.width) for step in range(args.steps)]
model = torch.compile(network, dynamic=args.fixed)
clock = parts.Clock()
with torch.no_grad():
    for x in clock.over(texts):
        y = model(x)
clock.report(y)
