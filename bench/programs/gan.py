"""A DCGAN as in many tutorials. Planted: three .item() and a .to() per step make the CPU wait for the GPU."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, BATCH = 64, 128 if device == "cuda" else 8


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
    nn.Sigmoid(),
).to(device)  # fmt: skip
criterion = nn.BCELoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
images = torch.rand(BATCH, 3, 64, 64)

for step in range(40):
    discriminator.zero_grad()
    real = images.to(device)
    label = torch.full((BATCH,), 1.0, device=device)
    loss_real = criterion(discriminator(real).view(-1), label)
    loss_real.backward()
    d_x = discriminator(real).mean().item()
    noise = torch.randn(BATCH, 100, 1, 1, device=device)
    fake = generator(noise)
    label.fill_(0.0)
    loss_fake = criterion(discriminator(fake.detach()).view(-1), label)
    loss_fake.backward()
    optimizer_d.step()
    generator.zero_grad()
    label.fill_(1.0)
    loss_g = criterion(discriminator(fake).view(-1), label)
    loss_g.backward()
    optimizer_g.step()
    if step % 1 == 0:
        print(step, (loss_real + loss_fake).item(), loss_g.item(), d_x)
