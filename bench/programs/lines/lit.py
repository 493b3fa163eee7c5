"""An MLP trained by Lightning; ``--compile`` compiles it."""

import argparse

import lightning
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
on_gpu = torch.cuda.is_available()
WIDTH = 4096 if on_gpu else 64


class Lit(lightning.LightningModule):
    """Two layers and a normalisation, eight times."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            *(
                nn.Sequential(
                    nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)
                )
                for _ in range(8)
            )
        )

    def training_step(self, batch, _):
        (x,) = batch
        return nn.functional.mse_loss(self.net(x), x)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


model = Lit()
if args.compile:
    model.net = torch.compile(model.net)
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(64 * 256, WIDTH)), batch_size=256
)
lightning.Trainer(
    max_steps=args.steps,
    precision="bf16-mixed" if on_gpu else "32-true",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="gpu" if on_gpu else "cpu",
    devices=1,
).fit(model, data)
