"""A network with many large weights, trained with small batches.

Planted: gradients are filled with zeros and added to. Remedy: zero_grad(set_to_none=True), torch's default.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(300, 40), depth=(8, 4), width=(8192, 1024), batch=(32, 8))
torch.set_float32_matmul_precision("high")
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
parts.train(model, optimizer, x, args, set_to_none=args.fixed)
