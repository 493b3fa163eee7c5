"""A network whose author wants to know how long each layer takes.

Planted: torch.cuda.synchronize() after each layer keeps the host from running ahead. Remedy: no such calls.
"""

import time

import parts
import torch
from torch import nn


class Timed(nn.Module):
    """Layers, each with the seconds that it took in the last step."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.seconds = [0.0] * len(layers)

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            began = time.perf_counter()
            x = layer(x)
            if parts.CUDA and not args.fixed:
                torch.cuda.synchronize()
            self.seconds[number] = time.perf_counter() - began
        return x


args = parts.arguments(__doc__, steps=(500, 50), depth=(40, 4), width=(2048, 64), batch=(2048, 32))
with torch.device(parts.DEVICE):
    model, x = Timed(parts.chain(args.depth, args.width)), torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
parts.infer(model, x, args)
