"""Matrix products in bfloat16 that are replayed as a CUDA graph. Planted: nothing."""

import parts
import torch

args = parts.arguments(
    __doc__, planted=False, steps=(600, 200), depth=(64, 8), width=(4096, 256), batch=(512, 64)
)
with torch.device(parts.DEVICE):
    model = parts.chain(args.depth, args.width).to(parts.TYPE)
    x = torch.randn(args.batch, args.width).to(parts.TYPE)
clock = parts.Clock()
with torch.no_grad():
    if parts.CUDA:
        model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
    for _ in clock.over(range(args.steps)):
        if parts.CUDA:
            graph.replay()
        else:
            y = model(x)
clock.report(y)
