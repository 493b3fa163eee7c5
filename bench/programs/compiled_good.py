"""A compiled Transformer in bf16 with one shape. Planted: nothing."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
model = nn.TransformerEncoder(layer, 6 if device == "cuda" else 1).to(device)
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
x = torch.randn(16 if device == "cuda" else 1, 512, 1024, device=device)
for _ in range(40 if device == "cuda" else 8):
    optimizer.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        loss = compiled(x).square().mean()
    loss.backward()
    optimizer.step()
