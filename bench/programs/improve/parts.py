"""What the programs of this folder share: arguments, a clock, and networks that several of them use."""

import argparse
import fcntl
import json
import os
import statistics
import time

import torch
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TYPE = torch.bfloat16 if CUDA else torch.float32
UNTIMED = 0.2
"""The part of the steps, from the first on, that median and mean leave out."""
turn = None
"""Number of the open file that programs which share a GPU lock in turns; None: this one shares none."""


def arguments(about, *, planted=True, **sizes):
    """Read the command line, seed torch, and wait until no other program uses the GPU.

    The wait is before anything is on the GPU, so programs that share one only import side by side.

    Args:
        about: the program's docstring.
        planted: the program has a stall, so it knows ``--fixed``.
        sizes: name of an option -> its value on a GPU, its value without one. ``steps`` is one of them.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    if planted:
        parser.add_argument("--fixed", action="store_true", help="apply the remedy")
    for name, (gpu, cpu) in sizes.items():
        value = gpu if CUDA else cpu
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    args = parser.parse_args()
    wait_for_turn()
    torch.manual_seed(0)
    return args


def wait_for_turn():
    """Where this program shares a GPU: wait until no other one uses it. ``report`` gives it to the next."""
    global turn
    if os.environ.get("BENCH_TURN"):
        turn = os.open(os.environ["BENCH_TURN"], os.O_RDWR | os.O_CREAT)
        fcntl.flock(turn, fcntl.LOCK_EX)


def give_turn():
    """Where this program shares a GPU: let the next one use it."""
    if turn is not None:
        fcntl.flock(turn, fcntl.LOCK_UN)


class Clock:
    """Takes the time of each step: with CUDA events on a GPU, without waiting for it.

    Args:
        cuda: the steps run on a GPU.
    """

    def __init__(self, cuda=CUDA):
        self.cuda = cuda
        self.marks = []

    def over(self, items):
        """The items, one per step; a step begins before its item is fetched."""
        self._mark()
        for item in items:
            yield item
            self._mark()

    def _mark(self):
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def report(self, result=None):
        """Print median and mean of the later steps as one line of JSON.

        Args:
            result: what the last step computed, such as its loss; the mean of its absolute values is printed.
        """
        pairs = list(zip(self.marks, self.marks[1:], strict=False))
        if self.cuda:
            torch.cuda.synchronize()
            times = [begin.elapsed_time(end) for begin, end in pairs]
        else:
            times = [(end - begin) * 1000 for begin, end in pairs]
        later = times[int(UNTIMED * len(times)) :]
        line = {"median_step_ms": statistics.median(later), "mean_step_ms": statistics.mean(later)}
        line["steps"] = len(times)
        if result is not None:
            line["result"] = result.detach().float().abs().mean().item()
        print(json.dumps(line), flush=True)
        give_turn()


def train(model, optimizer, x, args, *, set_to_none=True, clock=None):
    """Train the model to return its input, ``args.steps`` steps, and report."""
    clock = clock or Clock()
    loss = None
    for _ in clock.over(range(args.steps)):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    clock.report(loss)


def infer(model, x, args):
    """Call the model, ``args.steps`` steps, and report."""
    clock = Clock()
    y = None
    with torch.no_grad():
        for _ in clock.over(range(args.steps)):
            y = model(x)
    clock.report(y)


def mlp(depth, width):
    """Linear layers of one width, each with a GELU."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth)))


def chain(depth, width):
    """Linear layers of one width and nothing else; what goes through them keeps its size."""
    layers = [nn.Linear(width, width, bias=False) for _ in range(depth)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=width**-0.5)
    return nn.Sequential(*layers)


class Block(nn.Module):
    """A transformer block: attention, then a network of two layers, each with a norm before it."""

    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        """Tokens of shape (batch, length, width)."""
        q, k, v = self.qkv(self.norm_a(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.wide(self.norm_b(x))


class Residual(nn.Module):
    """Two convolutions with batch norms, and a way around them."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        """Images of shape (batch, width, height, width of the image)."""
        return torch.relu(x + self.body(x))
