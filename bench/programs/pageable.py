"""A recommender's embedding tables on the CPU. Planted: 256 MB per step are copied from pageable memory."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS = 65536 if device == "cuda" else 256
features = torch.randn(4, ROWS, 1024)
model = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    batch = features[step % 4].to(device)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
