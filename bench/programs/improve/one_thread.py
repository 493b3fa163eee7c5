"""Speech: spectra are computed on the CPU, a network is trained with them.

Planted: the job sets OMP_NUM_THREADS=1, as launchers do. Remedy: four threads.
"""

import parts
import torch

args = parts.arguments(__doc__, steps=(120, 100), seconds=(30, 12), depth=(4, 2))
if args.fixed:
    torch.set_num_threads(4 if parts.CUDA else 2)
sound = torch.randn(8, args.seconds * 16000)
angles = torch.arange(400)[:, None] * torch.arange(200) * (torch.pi / 200)
waves = torch.cat([angles.cos(), angles.sin()], 1)
with torch.device(parts.DEVICE):
    model = parts.mlp(args.depth, 200)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
clock = parts.Clock()
for step in clock.over(range(args.steps)):
    frames = sound[step % 8].unfold(0, 400, 160).contiguous()
    real, imaginary = (frames @ waves).chunk(2, 1)
    spectra = (real.square() + imaginary.square() + 1e-6).log().to(parts.DEVICE)
    optimizer.zero_grad()
    loss = (model(spectra) - spectra).square().mean()
    loss.backward()
    optimizer.step()
clock.report(loss)
