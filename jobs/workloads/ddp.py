"""Data-parallel training of an MLP: DistributedDataParallel or FSDP2, started by torchrun.

Plain PyTorch. Each rank has a batch of its own. DDP sums the gradients bucket by bucket while the backward
still runs; with one bucket for all of them there is nothing left to compute meanwhile. FSDP2 keeps a share of
the parameters on each rank, and gathers a layer when it is needed. ``--late-rows`` gives the last rank more
rows than the others, as a batch of longer sequences does.

Without GPUs the ranks are processes on the CPU (gloo), the sizes shrink, and the output says so.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

CPU_ROWS, CPU_WIDTH, CPU_LAYERS = 64, 64, 4


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("ddp", "fsdp"), default="ddp")
    parser.add_argument("--bucket-mb", type=float, default=25, help="size of a bucket of gradients")
    parser.add_argument("--late-rows", type=float, default=0.0, help="share of rows more on the last rank")
    parser.add_argument("--rows", type=int, default=8192, help="rows of a batch on each rank")
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=30)
    return parser.parse_args()


def mlp(width: int, layers: int) -> nn.Sequential:
    """Layers of equal width."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers)))


def parallel(model: nn.Sequential, args: argparse.Namespace, device: torch.device) -> nn.Module:
    """The model, made ready for several ranks."""
    if args.mode == "fsdp":
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        return model
    ids = [device.index] if device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=ids, bucket_cap_mb=args.bucket_mb)


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Sizes that a CPU can do in seconds; says what was changed. Buckets shrink as the layers do."""
    torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
    args.bucket_mb *= (CPU_WIDTH / args.width) ** 2
    args.rows, args.width, args.layers = CPU_ROWS, CPU_WIDTH, CPU_LAYERS
    if dist.get_rank() == 0:
        print(
            f"no GPU here: rows {args.rows}, width {args.width}, {args.layers} layers, buckets of "
            f"{args.bucket_mb * 2**10:.0f} KiB, gloo, one thread, so that a CPU finishes in seconds",
            flush=True,
        )


def begin() -> torch.device:
    """Join the other ranks; the device of this one."""
    world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    there = torch.cuda.device_count()
    if not there:
        dist.init_process_group("gloo")
        return torch.device("cpu")
    if local >= there:
        sys.exit(f"{world} ranks need {world} GPUs, and here is {there}: run only one_rank, or use more GPUs")
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Tensor) -> None:
    """One step of training."""
    optimizer.zero_grad(set_to_none=True)
    with record_function("forward"), torch.autocast(batch.device.type, torch.bfloat16, enabled=batch.is_cuda):
        loss = model(batch).float().square().mean()
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()


def train(args: argparse.Namespace, device: torch.device) -> str:
    """Train for ``--steps`` steps; what this rank measured."""
    gpu, rank, world = device.type == "cuda", dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = parallel(mlp(args.width, args.layers).to(device), args, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=gpu)
    late = args.late_rows if rank == world - 1 else 0
    batch = torch.randn(round(args.rows * (1 + late)), args.width, device=device)
    marks: list[Any] = []
    for _ in range(args.steps):
        step(model, optimizer, batch)
        marks.append(torch.cuda.Event(enable_timing=True) if gpu else time.perf_counter())
        if gpu:
            marks[-1].record()
    dist.barrier()
    if gpu:
        torch.cuda.synchronize()
    pairs = itertools.pairwise(marks)
    median = statistics.median(a.elapsed_time(b) if gpu else 1e3 * (b - a) for a, b in pairs)
    memory = f", at most {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of GPU memory" if gpu else ""
    who = f"rank {rank} of {world}, {args.mode}, {len(batch)} rows on {device}"
    return f"{who}: median step {median:.3f} ms{memory}"


def main() -> None:
    """Train, and say what each rank measured."""
    args, device = arguments(), begin()
    if device.type == "cpu":
        fit_to_cpu(args)
    print(train(args, device), flush=True)
    dist.destroy_process_group()
    if device.type == "cpu":
        # FSDP2 keeps the process group, and with it the threads of gloo. A thread that still holds the last
        # collective when Python ends aborts the process (https://github.com/pytorch/pytorch/pull/179291).
        time.sleep(0.2)


if __name__ == "__main__":
    main()
