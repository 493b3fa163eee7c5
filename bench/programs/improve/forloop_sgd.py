"""A deep network with small layers, whose forward and backward are CUDA graphs already.

Planted: SGD with momentum updates its parameters one by one. Remedy: fused=True or foreach=True.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(300, 40), depth=(60, 40), width=(512, 64), batch=(512, 16))
how = {"fused": True} if args.fixed else {"foreach": False}
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
model, x = model.to(parts.TYPE), x.to(parts.TYPE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **how)
if parts.CUDA:
    model = torch.cuda.make_graphed_callables(model, (x,))
parts.train(model, optimizer, x, args)
