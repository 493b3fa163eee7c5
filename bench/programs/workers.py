"""A loader with two workers that cannot keep up. Planted: each sample costs 3 ms, a step needs 64 samples."""

import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Samples(torch.utils.data.Dataset):
    """A sample costs 3 ms of waiting, as reading from a slow disk does."""

    def __len__(self):
        return 64 * 30

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.rand(3, 128, 128), index % 10


model = nn.Sequential(
    nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 128, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(128, 10),
).to(device)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(Samples(), batch_size=64, num_workers=2, pin_memory=device == "cuda")
for image, label in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(image.to(device, non_blocking=True)), label.to(device))
    loss.backward()
    optimizer.step()
