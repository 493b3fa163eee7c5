"""A compiled Transformer block.

Planted: the sequence length changes at every step, so it is compiled again and again.
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device=device)
torch._dynamo.config.cache_size_limit = 64
step_of = torch.compile(lambda x: model(x).square().mean(), dynamic=False)
optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
for step in range(10):
    x = torch.randn(16, 128 + 8 * step, 512, device=device)
    optimizer.zero_grad()
    step_of(x).backward()
    optimizer.step()
