"""DistributedDataParallel over many small parameters; runs under torchrun.

Planted: buckets of 0.1 MB, so gradients are summed with hundreds of collectives. Remedy: buckets of 100 MB.
"""

import os
import time

import parts
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

args = parts.arguments(__doc__, steps=(150, 200), depth=(100, 40), width=(384, 128), batch=(2048, 32))
dist.init_process_group("nccl" if parts.CUDA else "gloo")
if parts.CUDA:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
model = DistributedDataParallel(model, bucket_cap_mb=100 if args.fixed else 0.1, gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
clock = parts.Clock()
for _ in clock.over(range(args.steps)):
    optimizer.zero_grad()
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    clock.report(loss)
dist.barrier()
time.sleep(0.3)  # Python is aborted if it ends while a thread of gloo still holds a gradient
dist.destroy_process_group()
