"""Training a small transformer on sequences of frames: load, forward, backward, optimizer.

Plain PyTorch. Every option switches one habit of training loops, and each habit makes the GPU wait in a way
of its own: loading without workers, copying from pageable memory, reading the loss in every step, launching
each kernel by itself, copying on the stream that computes.

Without a GPU the sizes shrink, and the output says so; CUDA graphs and streams are left out there.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

Batch = tuple[Tensor, Tensor]
Step = Callable[[Tensor, Tensor], Tensor]
"""Forward and backward of one batch; gives the loss."""
READY = 4
"""Batches that ``--data ready`` prepares and then uses in turn."""


class Sizes(NamedTuple):
    """Sequences of ``seq`` frames; a frame has ``features`` numbers and one of ``classes`` labels."""

    seq: int = 512
    features: int = 768
    classes: int = 512
    width: int = 512
    layers: int = 4


CPU_BATCH, CPU_SIZES = 8, Sizes(seq=32, features=64, classes=32, width=64, layers=2)


class Frames(Dataset[Batch]):
    """Random sequences, the same in every run. Reading one takes ``read_ms``, as from a slow disk."""

    def __init__(self, count: int, sizes: Sizes, read_ms: float) -> None:
        seed = torch.Generator().manual_seed(0)
        self.count, self.read_ms = count, read_ms
        self.frames = torch.randn(16, sizes.seq, sizes.features, generator=seed)
        self.labels = torch.randint(0, sizes.classes, (16, sizes.seq), generator=seed)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Batch:
        time.sleep(self.read_ms / 1e3)
        return self.frames[index % 16], self.labels[index % 16]


class Tagger(nn.Module):
    """Projection, encoder layers, one class per frame; returns the loss."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            sizes.width, 8, 4 * sizes.width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.project = nn.Linear(sizes.features, sizes.width)
        self.encoder = nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False)
        self.head = nn.Linear(sizes.width, sizes.classes)

    def forward(self, frames: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(self.encoder(self.project(frames)))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument(
        "--data", choices=("loader", "ready"), default="ready", help="DataLoader, or in memory"
    )
    parser.add_argument("--workers", type=int, default=0, help="processes of the DataLoader")
    parser.add_argument("--read-ms", type=float, default=1.0, help="time to read one sequence")
    parser.add_argument("--memory", choices=("pinned", "pageable"), default="pinned")
    parser.add_argument("--log-every", type=int, default=1000, help="read the loss every so many steps")
    parser.add_argument("--graph", action="store_true", help="forward and backward as one CUDA graph")
    parser.add_argument("--prefetch", action="store_true", help="copy the next batch on a second stream")
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


def batches(args: argparse.Namespace, sizes: Sizes, pin: bool) -> Iterator[Batch]:
    """Batches in the memory of the host: from a DataLoader, or a few that were prepared before."""
    data = Frames(args.batch * args.steps, sizes, args.read_ms if args.data == "loader" else 0)
    loader = DataLoader(data, args.batch, num_workers=args.workers, pin_memory=pin)
    if args.data == "loader":
        yield from loader
    else:
        yield from itertools.islice(itertools.cycle(list(itertools.islice(loader, READY))), args.steps)


def copied(source: Iterator[Batch], device: str) -> Iterator[Batch]:
    """Each batch on the device, copied on the stream that computes."""
    for frames, labels in source:
        with record_function("copy"):
            batch = frames.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        yield batch


def prefetched(source: Iterator[Batch], device: str) -> Iterator[Batch]:
    """Each batch on the device; the next one is copied on a second stream while this one is used."""
    stream, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    batch: Batch | None = None
    for frames, labels in source:
        with record_function("copy"), torch.cuda.stream(stream):
            following = frames.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if batch is not None:
            yield batch
        compute.wait_stream(stream)
        for tensor in following:
            tensor.record_stream(compute)  # its memory is not given away before `compute` has used it
        batch = following
    if batch is not None:
        yield batch


def eager(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> Step:
    """Forward and backward, launched kernel by kernel."""

    def run(frames: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with (
            record_function("forward"),
            torch.autocast(device, torch.bfloat16, enabled=device == "cuda", cache_enabled=False),
        ):
            loss = model(frames, labels)
        with record_function("backward"):
            loss.backward()
        return loss.detach()

    return run


def graphed(step: Step, optimizer: torch.optim.Optimizer, frames: Tensor, labels: Tensor) -> Step:
    """The same as one CUDA graph: captured once, with fixed tensors, and then replayed by one launch."""
    fixed, side = (frames.clone(), labels.clone()), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(*fixed)
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step(*fixed)

    def run(frames: Tensor, labels: Tensor) -> Tensor:
        with record_function("copy"):
            fixed[0].copy_(frames, non_blocking=True)
            fixed[1].copy_(labels, non_blocking=True)
        graph.replay()
        return loss

    return run


def fit_to_cpu(args: argparse.Namespace) -> Sizes:
    """Sizes that a CPU can do in seconds; says what was changed."""
    torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
    without = [name for name in ("graph", "prefetch") if getattr(args, name)]
    vars(args).update({"batch": min(args.batch, CPU_BATCH), "graph": False, "prefetch": False})
    print(
        f"no GPU here: batch {args.batch}, {CPU_SIZES}, one thread, so that a CPU finishes in seconds"
        + "".join(f"; without --{name}" for name in without),
        flush=True,
    )
    return CPU_SIZES


class StepTimes:
    """When steps ended: CUDA events on a GPU, so that nobody waits for it, else the host's clock."""

    def __init__(self, gpu: bool) -> None:
        self.gpu = gpu
        self.marks: list[Any] = []

    def mark(self) -> None:
        """A step has ended."""
        self.marks.append(torch.cuda.Event(enable_timing=True) if self.gpu else time.perf_counter())
        if self.gpu:
            self.marks[-1].record()

    def median_ms(self) -> float:
        """Median time of a step; waits for the GPU."""
        if self.gpu:
            torch.cuda.synchronize()
        pairs = itertools.pairwise(self.marks)
        return statistics.median(a.elapsed_time(b) if self.gpu else 1e3 * (b - a) for a, b in pairs)


def main() -> None:
    """Train for ``--steps`` steps, and say how long a step took."""
    args = arguments()
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    sizes = Sizes() if gpu else fit_to_cpu(args)
    torch.manual_seed(0)
    model = Tagger(sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=gpu)
    source = batches(args, sizes, pin=gpu and args.memory == "pinned")
    step = eager(model, optimizer, device)
    if args.graph:
        step = graphed(step, optimizer, *(tensor.to(device) for tensor in next(source)))
    else:
        source = prefetched(source, device) if args.prefetch else copied(source, device)
    times, last = StepTimes(gpu), "not read"
    for number, (frames, labels) in enumerate(source, 1):
        loss = step(frames, labels)
        with record_function("optimizer"):
            optimizer.step()
        if number % args.log_every == 0:
            last = f"{loss.item():.3f}"  # the host waits here until the GPU has done everything
        times.mark()
    print(
        f"trained {args.steps} steps of {args.batch} sequences on {device}: "
        f"median step {times.median_ms():.3f} ms; last loss {last}"
    )


if __name__ == "__main__":
    main()
