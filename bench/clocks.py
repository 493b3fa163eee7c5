"""Clocks of many ranks: how long their bounds take, and what 512 files of one trial cost.

    python bench/clocks.py ranks [RANKS ...]
    python bench/clocks.py files [RANKS]

``ranks`` makes collectives of ranks with random clocks (constraints only: every other collective is of all
ranks, the others of groups of eight), asks for the bounds, and checks that each true clock lies inside.
``files`` makes small kineto files from a real recording of one rank, with hosts of eight ranks whose clocks
are seconds apart, and runs ``profrun normalize`` and ``profrun summary`` on all of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measured import PROFRUN, cost

from profrun.traces.causality.exchange import Exchanges, bounds

SOURCE = Path(__file__).parent.parent / "tests/data/h200/ddp/torch/rank0/pt.trace.json.gz"
COLLECTIVES = 200
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def made(ranks: int, rng: np.random.Generator) -> tuple[Exchanges, Any]:
    """Collectives of ranks with random clocks, and what must be added to each rank's times."""
    truth = np.append(0, rng.integers(-5 * 10**9, 5 * 10**9, ranks - 1))
    parts: list[tuple[Any, ...]] = []
    number = 0
    for place in range(COLLECTIVES):
        begin = 10**6 * place + rng.exponential(2e5, ranks).astype(np.int64)
        group = np.zeros(ranks, np.int64) if place % 2 == 0 else np.arange(ranks) // 8
        last = np.zeros(int(group.max()) + 1, np.int64)
        np.maximum.at(last, group, begin)
        end = last[group] + rng.integers(30_000, 70_000, ranks)
        parts.append((np.arange(ranks), number + group, begin - truth, end - truth))
        number += len(last)
    rank, collective, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Exchanges(rank, collective, start, end, ranks), truth


def constraints(counts: list[int]) -> None:
    """A row for each number of ranks."""
    print("| ranks | records | sweeps | seconds | us per record | clocks inside | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for ranks in counts:
        parts, truth = made(ranks, np.random.default_rng(ranks))
        began = time.perf_counter()
        found = bounds(parts, 1)
        took = time.perf_counter() - began
        inside = int(((found.low <= truth) & (truth <= found.high)).sum())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        records = len(parts.rank)
        each = took / records * 1e6
        print(f"| {ranks} | {records} | {found.sweeps} | {took:.2f} | {each:.2f} | {inside} | {peak} |")


def thinned(events: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """All collectives and steps of a recording, and a part of everything else."""
    kept = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") in GPU and ("nccl" in event["name"] or rng.random() < 0.25)
    }
    found = []
    for event in events:
        cat = event.get("cat")
        if cat in (*GPU, "cuda_runtime", "cuda_driver"):
            keep = event.get("args", {}).get("correlation") in kept or "Synchronize" in event["name"]
        else:
            keep = event.get("ph") == "M" or cat != "cpu_op" or rng.random() < 0.1
        if keep:
            found.append(event)
    return found


def rank_files(folder: Path, ranks: int, whole: dict[str, Any], rng: random.Random) -> list[Path]:
    """A recording of one rank as the files of so many ranks; hosts of eight ranks have clocks of their own.

    Args:
        whole: the JSON of the recording.
    """
    paths = []
    shift = 0.0  # us
    for rank in range(ranks):
        if rank and rank % 8 == 0:
            shift = rng.uniform(-3e6, 3e6)
        moved = [
            event | {"ts": round(event["ts"] + shift, 3)} if "ts" in event else event
            for event in whole["traceEvents"]
        ]
        info = whole["distributedInfo"] | {"rank": rank, "world_size": ranks}
        paths.append(folder / f"rank{rank}.json.gz")
        text = json.dumps(whole | {"distributedInfo": info, "traceEvents": moved})
        paths[-1].write_bytes(gzip.compress(text.encode(), 1))
    return paths


def files(ranks: int) -> None:
    """Make the files, read them, and summarise the trace."""
    rng = random.Random(0)
    whole = json.loads(gzip.decompress(SOURCE.read_bytes()))
    events = thinned(whole["traceEvents"], rng)
    with tempfile.TemporaryDirectory() as folder:
        paths = rank_files(Path(folder), ranks, whole | {"traceEvents": events}, rng)
        trace = Path(folder) / "trace"
        for words in (
            ["normalize", *map(str, paths), "--out", str(trace)],
            ["summary", str(trace), "--json"],
        ):
            took = cost([*PROFRUN, *words])
            print(
                f"{words[0]}: {ranks} ranks, {len(events)} events each, {took.wall_s:.1f} s, "
                f"{took.cpu_s:.1f} CPU s, peak {took.peak_mb:.0f} MB"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["ranks", "files"])
    parser.add_argument("counts", type=int, nargs="*")
    options = parser.parse_args()
    if options.what == "ranks":
        constraints(options.counts or [512, 1024, 2048, 4096])
    else:
        files(next(iter(options.counts), 512))


if __name__ == "__main__":
    main()
