"""An MLP captured in a CUDA graph and replayed: one launch, several kernels."""

from __future__ import annotations

import torch

import profrun

torch.manual_seed(0)
model = (
    torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024))
    .cuda()
    .half()
)
x = torch.randn(256, 1024, device="cuda", dtype=torch.half)
side = torch.cuda.Stream()
with torch.no_grad(), torch.cuda.stream(side):
    for _ in range(3):
        model(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    y = model(x)
for _ in range(30):
    graph.replay()
    torch.cuda.synchronize()
    profrun.step()
print(f"graph of an MLP: {float(y.float().norm()):.3f}")
