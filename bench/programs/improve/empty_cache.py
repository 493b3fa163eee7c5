"""A network that is trained on batches of different sizes.

Planted: each step ends with torch.cuda.empty_cache(), so its memory is allocated anew. Remedy: no such call.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(200, 50), depth=(4, 4), width=(2048, 128), rows=(16384, 64))
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    batches = [torch.randn(args.rows * (step + 2) // 4, args.width) for step in range(3)]
model, batches = model.to(parts.TYPE), [batch.to(parts.TYPE) for batch in batches]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
clock = parts.Clock()
for _ in clock.over(range(args.steps)):
    optimizer.zero_grad()
    losses = [(model(x) - x).square().mean() for x in batches]
    loss = torch.stack(losses).mean()
    loss.backward()
    optimizer.step()
    if parts.CUDA and not args.fixed:
        torch.cuda.empty_cache()
clock.report(loss)
