"""A deep network with many parameters.

Planted: AdamW updates them one by one, with about ten small kernels each. Remedy: fused=True.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(200, 200), depth=(40, 40), width=(1024, 64), batch=(4096, 64))
how = {"fused": True} if args.fixed else {"foreach": False, "fused": False}
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, **how), x, args)
