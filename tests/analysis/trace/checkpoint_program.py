"""A program for ``test_matrix_work``: small models with and without recomputed activations, on the CPU.

``python checkpoint_program.py FOLDER`` writes a recording of two steps of each model into the folder, and
``counts.json``: FLOPs of one step by ``torch.utils.flop_counter``, without attention, which it does not count
on a CPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

WIDTH, ROWS, BATCH, HEADS = 32, 16, 2, 4


class Block(torch.nn.Module):  # type: ignore[misc]
    """A layer of a transformer: attention, and an MLP of 4 x the width; no norms."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (part.view(BATCH, ROWS, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        found = torch.nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.out(found.transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.relu(self.up(x)))


class Square(torch.nn.Module):  # type: ignore[misc]
    """One square matrix without bias: its forward and backward multiply matrices of the same shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.relu(x.view(-1, WIDTH) @ self.weight) @ self.weight).view(x.shape)


def stepper(model: type[torch.nn.Module], how: str) -> Callable[[], None]:
    """A step of two layers: plain, reentrant, hooks (use_reentrant=False), whole (that without early stop),
    eval (no backward), or twice (a gradient of a gradient)."""
    layers = [model(), model()]
    x = torch.randn(BATCH, ROWS, WIDTH, requires_grad=True)

    def step() -> None:
        y = x
        for layer in layers:
            if how in ("plain", "eval", "twice"):
                y = layer(y)
            elif how == "whole":
                y = checkpoint(layer, y, use_reentrant=False, early_stop=False)
            else:
                y = checkpoint(layer, y, use_reentrant=how == "reentrant")
        if how == "twice":
            y.square().sum().backward(create_graph=True)
            assert x.grad is not None
            slope = x.grad
            for one in (x, *(weight for layer in layers for weight in layer.parameters())):
                one.grad = None
            slope.square().sum().backward()
        elif how != "eval":
            y.sum().backward()

    if how != "eval":
        return step

    def without() -> None:
        with torch.no_grad():
            step()

    return without


def main(out: Path) -> None:
    """Record every model in every way."""
    counts = {}
    torch.set_num_threads(1)
    for model in (Block, Square):
        ways = ["plain", "reentrant", "hooks", "whole", "eval"] + (["twice"] if model is Square else [])
        for how in ways:
            step, name = stepper(model, how), f"{model.__name__}-{how}"
            step()
            with profile(
                activities=[ProfilerActivity.CPU],
                record_shapes=True,
                schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
            ) as recording:
                for _ in range(3):
                    step()
                    recording.step()
            recording.export_chrome_trace(str(out / f"{name}.json"))
            with FlopCounterMode(display=False) as counter:
                step()
            ops = {str(op): flops for op, flops in counter.get_flop_counts()["Global"].items()}
            counts[name] = sum(flops for op, flops in ops.items() if "attention" not in op)
    (out / "counts.json").write_text(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
