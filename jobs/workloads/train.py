"""Training a small transformer on random tokens: forward, backward, optimizer.

Plain PyTorch. The variants differ in one line that many training loops have: reading the loss in every step
makes the host wait for the GPU each time; reading it seldom lets launches run ahead.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset[Tensor]):
    """Random sequences, the same in every run."""

    def __init__(self, count: int, seq: int, vocabulary: int) -> None:
        seed = torch.Generator().manual_seed(0)
        self.data = torch.randint(0, vocabulary, (count, seq), generator=seed)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Tensor:
        return self.data[index]


class LanguageModel(nn.Module):
    """Embedding, encoder layers, projection; returns the loss of predicting the next token."""

    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self.head(self.encoder(self.embedding(tokens)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log-every", type=int, default=1, help="read the loss every so many steps")
    parser.add_argument("--workers", type=int, default=0, help="DataLoader processes")
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


def main() -> None:
    """Train for ``--steps`` steps."""
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, seq, vocabulary, width, layers = (8, 512, 8192, 512, 4)
    if device == "cpu":
        torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
        batch, seq, vocabulary, width, layers = (2, 64, 1024, 128, 2)
        print(
            f"no GPU here: batch {batch}, seq {seq}, vocabulary {vocabulary}, width {width}, "
            f"{layers} layers, one thread, so that a CPU finishes in seconds",
            flush=True,
        )
    torch.manual_seed(0)
    model = LanguageModel(vocabulary, width, layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(
        Tokens(batch * args.steps, seq, vocabulary),
        batch_size=batch,
        num_workers=args.workers,
        pin_memory=device == "cuda",
    )
    last = float("nan")
    for step, tokens in enumerate(loader):
        with record_function("data"):
            tokens = tokens.to(device, non_blocking=True)
        with record_function("forward"), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = model(tokens)
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if step % args.log_every == 0:
            last = loss.item()
    print(f"trained {args.steps} steps on {device}; last loss read {last:.3f}")


if __name__ == "__main__":
    main()
