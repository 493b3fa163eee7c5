"""A network of large linear layers in fp32.

Planted: matrix products run with the precision "highest". Remedy: TF32, torch's precision "high".
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(150, 40), depth=(4, 4), width=(4096, 512), batch=(4096, 64))
torch.set_float32_matmul_precision("high" if args.fixed else "highest")
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, args.width)
    x = torch.randn(args.batch, args.width)
parts.train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True), x, args)
