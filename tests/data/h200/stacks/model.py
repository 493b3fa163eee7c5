import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.up(x)
        y = torch.relu(y)
        y = self.down(y)
        return x + y


class Net(nn.Module):
    def __init__(self, width=512, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


# The recording beside it names the lines of this file: keep them where they are.
# mypy: ignore-errors
