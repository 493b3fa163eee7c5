"""A DCGAN whose two networks are trained in turns; ``--compile`` compiles both."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, BATCH = (64, 128) if device == "cuda" else (4, 4)


def up(width, out, stride, pad):
    return [nn.ConvTranspose2d(width, out, 4, stride, pad, bias=False), nn.BatchNorm2d(out), nn.ReLU(True)]


def down(width, out):
    return [nn.Conv2d(width, out, 4, 2, 1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.2, True)]


generator = nn.Sequential(
    *up(100, WIDTH * 8, 1, 0), *up(WIDTH * 8, WIDTH * 4, 2, 1), *up(WIDTH * 4, WIDTH * 2, 2, 1),
    *up(WIDTH * 2, WIDTH, 2, 1), nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1, bias=False), nn.Tanh(),
).to(device)  # fmt: skip
discriminator = nn.Sequential(
    nn.Conv2d(3, WIDTH, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), *down(WIDTH, WIDTH * 2),
    *down(WIDTH * 2, WIDTH * 4), *down(WIDTH * 4, WIDTH * 8), nn.Conv2d(WIDTH * 8, 1, 4, 1, 0, bias=False),
).to(device)  # fmt: skip
if args.compile:
    generator, discriminator = torch.compile(generator), torch.compile(discriminator)
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
images = torch.rand(BATCH, 3, 64, 64, device=device)
ones, zeros = torch.ones(BATCH, device=device), torch.zeros(BATCH, device=device)

for _ in range(args.steps):
    optimizer_d.zero_grad()
    loss_real = criterion(discriminator(images).view(-1), ones)
    loss_real.backward()
    fake = generator(torch.randn(BATCH, 100, 1, 1, device=device))
    loss_fake = criterion(discriminator(fake.detach()).view(-1), zeros)
    loss_fake.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = criterion(discriminator(fake).view(-1), ones)
    loss_g.backward()
    optimizer_g.step()
