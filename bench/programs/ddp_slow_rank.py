"""DistributedDataParallel on two GPUs.

Planted: rank 1 does 30 ms of Python work in each step, and rank 0 waits for it.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank = dist.get_rank()
device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu")
if cuda:
    torch.cuda.set_device(device)
model = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(8))).to(device)
model = DistributedDataParallel(model, device_ids=[device.index] if cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(256 * 40, 2048))
for (batch,) in torch.utils.data.DataLoader(data, batch_size=256, pin_memory=cuda):
    if rank == 1:
        end = time.perf_counter() + 0.03
        while time.perf_counter() < end:
            sum(range(1000))
    optimizer.zero_grad()
    model(batch.to(device, non_blocking=True)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
