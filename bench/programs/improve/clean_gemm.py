"""Matrix products in bfloat16, one after another. Planted: nothing."""

import parts
import torch

args = parts.arguments(
    __doc__, planted=False, steps=(400, 200), depth=(14, 8), width=(4096, 256), batch=(4096, 256)
)
with torch.device(parts.DEVICE):
    model = parts.chain(args.depth, args.width).to(parts.TYPE)
    x = torch.randn(args.batch, args.width).to(parts.TYPE)
parts.infer(model, x, args)
