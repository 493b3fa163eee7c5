"""Two-rank data-parallel training of a few encoder layers; run by torchrun."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

cuda = torch.cuda.is_available()
rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if cuda else "gloo", device_id=device if cuda else None)
torch.manual_seed(rank)
width, layers = (1024, 4) if cuda else (64, 2)
stack = torch.nn.Sequential(
    *[
        torch.nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0)
        for _ in range(layers)
    ]
)
model = DistributedDataParallel(stack.to(device), bucket_cap_mb=50)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(8, 256 if cuda else 16, width, device=device)
for _ in range(16):
    with torch.autocast(device.type, torch.bfloat16):
        loss = model(x).float().pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if cuda:
    torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
