"""Linear layers with GPT-2's formula of the GELU.

Planted: each operation of the formula is a kernel of its own, over a large tensor. Remedy: torch.compile.
"""

import math

import parts
import torch
from torch import nn


class Layer(nn.Module):
    """A wide layer with the GELU, and a way around it."""

    def __init__(self, width):
        super().__init__()
        self.rise, self.fall = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.rise(x)
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return x + self.fall(y)


args = parts.arguments(__doc__, steps=(150, 60), depth=(3, 2), width=(1024, 8), batch=(32768, 65536))
with torch.device(parts.DEVICE):
    model = nn.Sequential(*(Layer(args.width) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
if args.fixed:
    model.compile()
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
