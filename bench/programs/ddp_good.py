"""DistributedDataParallel on two GPUs with balanced ranks. Planted: nothing."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

cuda = torch.cuda.is_available()
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30 if cuda else 8)
args = parser.parse_args()
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu")
if cuda:
    torch.cuda.set_device(device)
model = nn.Sequential(*(nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(6))).to(device)
model = DistributedDataParallel(
    model, device_ids=[device.index] if cuda else None, gradient_as_bucket_view=True
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(4096 if cuda else 16, 4096, device=device)
for _ in range(args.steps):
    optimizer.zero_grad()
    with torch.autocast(device.type, torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
