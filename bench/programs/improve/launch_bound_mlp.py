"""A deep and narrow network that is trained with batches of one size.

Planted: its kernels are shorter than the time to launch them. Remedy: CUDA graphs.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(300, 100), depth=(32, 32), width=(256, 32), batch=(64, 8))
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
if args.fixed and parts.CUDA:
    model = torch.cuda.make_graphed_callables(model, (x,))
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
