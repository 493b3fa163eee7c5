"""A network of linear layers that is trained on the CPU. Planted: nothing."""

import parts
import torch

args = parts.arguments(
    __doc__, planted=False, steps=(400, 200), depth=(2, 2), width=(512, 384), batch=(256, 256)
)
model, x = parts.mlp(args.depth, args.width), torch.randn(args.batch, args.width)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
parts.train(model, optimizer, x, args, clock=parts.Clock(cuda=False))
