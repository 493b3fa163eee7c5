"""A network that is trained on batches that worker processes make.

Planted: the loader does not pin its batches. Remedy: pin_memory=True, and a copy that does not block.
"""

import parts
import torch
from torch.utils.data import DataLoader, Dataset


class Batches(Dataset):
    """Whole batches of shape (rows, features), as a file with batches has them."""

    def __init__(self, batches, rows, features):
        self.batches = batches
        self.values = torch.randn(8, rows, features)

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        return self.values[index % 8].clone()


def main():
    args = parts.arguments(
        __doc__, steps=(250, 50), rows=(1024, 256), features=(4096, 512), depth=(16, 2), workers=(4, 2)
    )
    data = Batches(args.steps, args.rows, args.features)
    pin = args.fixed and parts.CUDA
    loader = DataLoader(data, None, num_workers=args.workers, persistent_workers=True, pin_memory=pin)
    with torch.device(parts.DEVICE):
        model = parts.mlp(args.depth, args.features).to(parts.TYPE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    clock = parts.Clock()
    for batch in clock.over(loader):
        if parts.CUDA:
            batch = batch.cuda(non_blocking=args.fixed)
        batch = batch.to(parts.TYPE)
        optimizer.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
    clock.report(loss)


if __name__ == "__main__":
    main()
