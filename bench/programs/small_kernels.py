"""A hand-written optimizer and loss.

Planted: hundreds of tiny kernels per step, so the host cannot keep the GPU busy.
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(24))).to(device)
state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()}
x, y = torch.randn(64, 256, device=device), torch.randn(64, 256, device=device)
for step in range(1, 60):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p, (m, v) in state.items():
            m.mul_(0.9).add_(p.grad, alpha=0.1)
            v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            p.sub_(1e-3 * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8))
            p.grad = None
