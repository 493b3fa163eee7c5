"""An image classifier with Lightning. Planted: images are decoded in the main process (no loader workers)."""

import pytorch_lightning as lightning
import torch
from torch import nn


class Images(torch.utils.data.Dataset):
    """Images that cost some milliseconds of Python and numpy each."""

    def __len__(self):
        return 16 * 40

    def __getitem__(self, index):
        image = torch.rand(3, 224, 224)
        for _ in range(2):  # an augmentation as users write it
            image = (image - image.mean()) / image.std() + 0.01 * torch.randn_like(image)
        return image, index % 100


def block(width, out, stride):
    return nn.Sequential(
        nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)
    )


class Classifier(lightning.LightningModule):
    """A small convolutional network."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            block(3, 64, 2), block(64, 128, 2), block(128, 256, 2), block(256, 256, 1), block(256, 512, 2)
        )
        self.head = nn.Linear(512, 100)

    def training_step(self, batch, _index):
        image, label = batch
        loss = nn.functional.cross_entropy(self.head(self.net(image).mean((2, 3))), label)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    loader = torch.utils.data.DataLoader(Images(), batch_size=16, num_workers=0)
    trainer = lightning.Trainer(
        max_steps=20,
        accelerator="auto",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        precision="bf16-mixed" if torch.cuda.is_available() else "32-true",
    )
    trainer.fit(Classifier(), loader)


main()
