"""A training loop against 'out of memory'.

Planted: torch.cuda.empty_cache() in each step, so memory is allocated anew.
"""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(12))).to(device)
optimizer = torch.optim.Adam(model.parameters(), fused=device == "cuda")
x = torch.randn(4096 if device == "cuda" else 16, 2048, device=device)
torch.backends.cuda.matmul.allow_tf32 = True
for _ in range(40):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    gc.collect()
    torch.cuda.empty_cache()
