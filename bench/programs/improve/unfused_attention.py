"""Attention as the formula says: softmax(q k^T / sqrt(d)) v.

Planted: scale and softmax are kernels over all pairs of tokens. Remedy: torch.compile.
"""

import math

import parts
import torch
from torch import nn


class Attention(nn.Module):
    """Attention of all tokens to all, and a way around it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


args = parts.arguments(
    __doc__, steps=(150, 30), depth=(2, 2), width=(1024, 128), batch=(32, 2), length=(1024, 256)
)
with torch.device(parts.DEVICE):
    model = nn.Sequential(*(Attention(args.width, args.width // 64) for _ in range(args.depth)))
    x = torch.randn(args.batch, args.length, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
if args.fixed:
    model.compile()
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
