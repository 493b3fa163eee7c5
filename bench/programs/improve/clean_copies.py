"""Large tensors are copied, or scaled and added, in the device's memory. Planted: nothing."""

import parts
import torch
from torch import nn


class Traffic(nn.Module):
    """Moves a tensor a number of times."""

    def __init__(self, size, rounds, add):
        super().__init__()
        self.a, self.b, self.c = (torch.randn(size) for _ in range(3))
        self.rounds, self.add = rounds, add

    def forward(self, scale):
        for _ in range(self.rounds):
            if self.add:
                torch.add(self.a, self.b, alpha=scale, out=self.c)
            else:
                self.c.copy_(self.a)
        return self.c


args = parts.arguments(
    __doc__, planted=False, steps=(500, 200), megabytes=(512, 8), rounds=(12, 3), add=(0, 0)
)
with torch.device(parts.DEVICE):
    model = Traffic(args.megabytes * 1_000_000 // 4, args.rounds, args.add)
parts.infer(model, 0.5, args)
