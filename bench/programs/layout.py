"""Mixed-precision convolutions in NCHW.

Planted: cuDNN changes the layout before and after each convolution.
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Residual(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.norm = nn.GroupNorm(32, width)

    def forward(self, x):
        return x + self.b(torch.nn.functional.silu(self.a(self.norm(x))))


model = nn.Sequential(
    nn.Conv2d(4, 256, 3, 1, 1), *(Residual(256) for _ in range(6)), nn.Conv2d(256, 4, 3, 1, 1)
)
model = model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
x = torch.randn(16 if device == "cuda" else 1, 4, 64, 64, device=device)
for _ in range(30 if device == "cuda" else 8):
    optimizer.zero_grad()
    with torch.autocast(device, torch.float16):
        loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
