"""A language model whose texts lie on slow storage.

Planted: each text takes 1 ms to come, and the process that trains waits for it. Remedy: workers.
"""

import time

import parts
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    """Texts as numbers of their tokens; reading one takes ``seconds``."""

    def __init__(self, texts, length, seconds):
        self.texts, self.length, self.seconds = texts, length, seconds

    def __len__(self):
        return self.texts

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.randint(1024, (self.length,), generator=torch.Generator().manual_seed(index))


args = parts.arguments(
    __doc__, steps=(100, 50), batch=(16, 16), seconds=(1e-3, 1e-3), length=(512, 64), width=(1536, 64),
    depth=(4, 1), workers=(4, 4),
)  # fmt: skip
loading = {"num_workers": args.workers, "persistent_workers": True, "pin_memory": parts.CUDA}
texts = Texts(args.steps * args.batch, args.length, args.seconds)
loader = DataLoader(texts, args.batch, **(loading if args.fixed else {}))
with torch.device(parts.DEVICE):
    blocks = (parts.Block(args.width, args.width // 64) for _ in range(args.depth))
    model = nn.Sequential(nn.Embedding(1024, args.width), *blocks, nn.Linear(args.width, 1024))
model = model.to(parts.TYPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
clock = parts.Clock()
for tokens in clock.over(loader):
    tokens = tokens.to(parts.DEVICE, non_blocking=True)
    optimizer.zero_grad()
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
clock.report(loss)
