"""A gated MLP, forward and backward; ``--compile`` compiles it, with CUDA graphs (``reduce-overhead``)."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH = 2048 if device == "cuda" else 64


class Block(nn.Module):
    """A gated MLP with a residual."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.gate = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        hidden = nn.functional.gelu(self.gate(y))
        hidden = hidden * self.up(y)
        return x + self.down(hidden)


net = nn.Sequential(*(Block() for _ in range(4))).to(device)
if args.compile:
    net = torch.compile(net, mode="reduce-overhead")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
x = torch.randn(512, WIDTH, device=device)
for _ in range(args.steps):
    torch.compiler.cudagraph_mark_step_begin()
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
