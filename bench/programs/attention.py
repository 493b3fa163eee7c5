"""A causal Transformer with attention written out.

Planted: softmax(QK)V is not fused; its score matrix is 2048 x 2048.
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
LENGTH = 2048 if device == "cuda" else 64


class Attention(nn.Module):
    """Attention as in a textbook."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(1024, 3072), nn.Linear(1024, 1024)

    def forward(self, x):
        q, k, v = (t.view(*t.shape[:2], 16, 64).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / 8.0
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device, dtype=torch.bool).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention and a feed-forward network."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(), nn.LayerNorm(1024), nn.LayerNorm(1024)
        self.mlp = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


model = nn.Sequential(*(Block() for _ in range(4))).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
x = torch.randn(4, LENGTH, 1024, device=device)
for _ in range(30 if device == "cuda" else 8):
    optimizer.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
