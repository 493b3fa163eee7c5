"""Llama's layers without attention: RMSNorm and SwiGLU, written out.

Planted: each operation of the norm, in fp32, is a kernel of its own. Remedy: torch.compile.
"""

import parts
import torch
from torch import nn


class Layer(nn.Module):
    """A norm and a gated layer, and a way around them."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        y = self.weight * y.to(x.dtype)
        gate = self.gate(y)
        return x + self.down(gate * torch.sigmoid(gate) * self.up(y))


args = parts.arguments(__doc__, steps=(150, 30), depth=(3, 2), width=(2048, 128), batch=(16384, 2048))
with torch.device(parts.DEVICE):
    model = nn.Sequential(*(Layer(args.width) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
if args.fixed:
    model.compile()
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
