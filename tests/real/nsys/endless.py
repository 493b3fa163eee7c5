"""A model that is called until somebody ends the process; runs on a GPU where there is one."""

from __future__ import annotations

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
x = torch.randn(16, 64, device=device)
while True:
    model(x)
