"""A convolutional network whose images are unpacked, resized and normalized when they are read.

Planted: that takes about 2 ms per image, in the process that trains. Remedy: workers.
"""

import zlib

import parts
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Packed images, each read as (3, 224, 224) of fp32."""

    def __init__(self, images, side=288):
        ramp = torch.arange(side) // 2
        noise = torch.randint(0, 16, (32, 3, side, side))
        pixels = (noise + (ramp[:, None] + ramp) % 200).to(torch.uint8)
        self.packed = [zlib.compress(image.numpy().tobytes(), 1) for image in pixels]
        self.images, self.side = images, side

    def __len__(self):
        return self.images

    def __getitem__(self, index):
        data = bytearray(zlib.decompress(self.packed[index % len(self.packed)]))
        image = torch.frombuffer(data, dtype=torch.uint8).view(1, 3, self.side, self.side).float() / 255
        image = nn.functional.interpolate(image, 224, mode="bilinear", antialias=True)[0]
        return (image - image.mean((1, 2), keepdim=True)) / image.std((1, 2), keepdim=True)


def main():
    args = parts.arguments(
        __doc__, steps=(100, 90), batch=(8, 8), width=(192, 8), depth=(8, 1), stride=(2, 16), workers=(4, 4)
    )
    loading = {"num_workers": args.workers, "persistent_workers": True, "pin_memory": parts.CUDA}
    loader = DataLoader(Images(args.steps * args.batch), args.batch, **(loading if args.fixed else {}))
    with torch.device(parts.DEVICE):
        model = nn.Sequential(
            nn.Conv2d(3, args.width, 7, stride=args.stride, padding=3),
            *(parts.Residual(args.width) for _ in range(args.depth)),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(args.width, 100),
        )  # fmt: skip
    model = model.to(dtype=parts.TYPE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    clock = parts.Clock()
    for images in clock.over(loader):
        images = images.to(parts.DEVICE, parts.TYPE, non_blocking=True, memory_format=torch.channels_last)
        optimizer.zero_grad()
        loss = model(images).square().mean()
        loss.backward()
        optimizer.step()
    clock.report(loss)


if __name__ == "__main__":
    main()
