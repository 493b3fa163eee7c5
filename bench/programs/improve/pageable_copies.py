"""A recommender whose features lie in the CPU's memory.

Planted: each batch is copied from pageable memory. Remedy: pinned memory, and a copy that does not block.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(250, 50), rows=(2048, 1024), features=(4096, 512), depth=(10, 2))
features = torch.randn(8, args.rows, args.features)
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.features)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
clock = parts.Clock()
for step in clock.over(range(args.steps)):
    batch = features[step % 8]
    if args.fixed and parts.CUDA:
        batch = batch.pin_memory().to(parts.DEVICE, non_blocking=True)
    else:
        batch = batch.to(parts.DEVICE)
    optimizer.zero_grad()
    with torch.autocast(parts.DEVICE, torch.bfloat16):
        loss = (model(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
clock.report(loss)
