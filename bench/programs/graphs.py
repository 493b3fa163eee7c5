"""A training step in a CUDA graph. Planted: nothing; fp32 matrix products without TF32 take most of it."""

import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)).to(device)
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
x, y = torch.randn(512, 2048, device=device), torch.randn(512, 2048, device=device)


def step():
    optimizer.zero_grad(set_to_none=True)
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
batches = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(512 * 60, 2048)), batch_size=512
)
for (batch,) in batches:
    x.copy_(batch.to(device, non_blocking=True))
    graph.replay()
torch.cuda.synchronize()
