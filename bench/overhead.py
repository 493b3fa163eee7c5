"""What profrun's in-job part costs: ``python bench/overhead.py [--json]``, about a minute.

* edge: CPU time that the hook takes at a step's end, outside the recorded window: loops over an optimizer, a
  model, a compiled function, a CUDA graph, a DataLoader and, with the Python that PROFRUN_JAX names, a jitted
  function that do next to nothing, with and without the hook. This is the precise figure.
* hook: CPU time of a training step and of an inference step of about 1 ms, with and without the hook;
  alternating processes, the best block of each, because noise only adds. On a busy machine the noise is
  larger than what is measured.
* range: ``with profrun.range("x"): pass`` while nobody records, ns.
* wrapper: wall seconds of a trial beyond the program's own, without a profiler.

The hook's figures are CPU time of one process, so they hold on a busy machine as well.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path
from typing import TypedDict

from profrun.contract.codec import to_json
from profrun.contract.command import Command, Ranges
from profrun.contract.schedule import Schedule
from profrun.contract.units import signed_time_text, time_text
from profrun.plans.bundle import write_bundle

EDGE = """
import json, sys, time, torch
class Nothing(torch.optim.Optimizer):
    def step(self): pass
net = torch.nn.Linear(1, 1)
x = torch.zeros(1, 1)
opt = Nothing(net.parameters(), {})
def train(): opt.step()
def infer():
    with torch.no_grad(): net(x)
kind = sys.argv[1]
if kind != "train": del opt
if kind in ("train", "infer"): net(x)
torch.cuda.CUDAGraph.__bases__[0].replay = lambda self: None     # as on a GPU, but for the GPU
graph = object.__new__(torch.cuda.CUDAGraph)
graph._tracker = None
batches = iter(torch.utils.data.DataLoader(range(10**6), batch_size=None))
compiled = torch.compile(lambda x: x, backend="eager") if kind == "compiled" else None
steps = {"train": train, "infer": infer, "compiled": lambda: compiled(x), "graph": graph.replay,
         "loader": lambda: next(batches)}
step = steps[kind]
"""
JIT = """
import json, time, jax, jax.numpy as jnp
jitted, x = jax.jit(lambda x: x), jnp.zeros(1)
def step(): jitted(x)
"""
LOOP = """
step(); step()
best = None
for _ in range(30):
    t = time.process_time_ns()
    for _ in range(500): step()
    t = (time.process_time_ns() - t) / 500
    best = t if best is None else min(best, t)
print(json.dumps(best))
"""
EDGES = ("train", "infer", "compiled", "graph", "loader")
STEP = """
import json, sys, time, torch
torch.set_num_threads(1)
kind = sys.argv[1]
rows = 96 if kind == "train" else 384
nn = torch.nn
net = nn.Sequential(*[nn.Sequential(nn.Linear(160, 160), nn.ReLU()) for _ in range(6)])
x = torch.randn(rows, 160)
opt = torch.optim.SGD(net.parameters(), lr=1e-9) if kind == "train" else None
def step():
    if opt is None:
        with torch.no_grad():
            return net(x)
    net(x).sum().backward()
    opt.step()
    opt.zero_grad()
for _ in range(50): step()
best = None
for _ in range(20):
    t = time.process_time_ns()
    for _ in range(30): step()
    t = (time.process_time_ns() - t) / 30
    best = t if best is None else min(best, t)
print(json.dumps(best))
"""
FAR = Schedule(wait=10**9, active=1)
"""The recorded window is never reached."""
ROUNDS = 2


class HookCost(TypedDict):
    """Best CPU ns per step without and with the hook, the difference, and its share of a step without."""

    step: str
    plain_ns: int
    hooked_ns: int
    cost_ns: int
    share: float
    share_of: str
    plain_all_ns: list[int]
    hooked_all_ns: list[int]


class WrapperCost(TypedDict):
    """Wall seconds that the wrapper adds to a trial: the median, and those of each trial."""

    added_s: float
    all_s: list[float]


def trial(root: Path, name: str, argv: list[str]) -> Path:
    """Make the folder of an unprofiled trial whose window never opens."""
    folder = root / "trials" / name
    folder.mkdir(parents=True)
    command = Command(
        trial=name,
        run="overhead",
        job="overhead",
        variant="default",
        collector="none",
        profiler="none",
        vendor="none",
        argv=tuple(argv),
        cwd=str(root),
        schedule=FAR,
        ranges=Ranges(modules=2),
        timeout_s=600.0,
    )
    (folder / "command.json").write_text(json.dumps(to_json(command)))
    return folder


def once(argv: list[str]) -> tuple[str, float]:
    """Standard output and wall seconds of a command."""
    began = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout, time.perf_counter() - began


def hook_cost(root: Path, kind: str, program: str, name: str, python: str = sys.executable) -> HookCost:
    """Measure the hook on a program; ``kind``, of the steps, is its argument."""
    script = root / f"{name}-{kind}.py"
    script.write_text(program)
    argv = [python, str(script), kind]
    plain: list[float] = []
    hooked: list[float] = []
    for number in range(ROUNDS):
        plain.append(float(json.loads(once(argv)[0])))
        folder = trial(root, f"{name}-{kind}-{number}", argv)
        hooked.append(float(json.loads(once([sys.executable, str(root / "bundle/run.py"), str(folder)])[0])))
        steps = json.loads((folder / "exit.json").read_text())["steps"]
        assert steps["count"] >= 600, steps
    cost = min(hooked) - min(plain)
    return {
        "step": kind,
        "plain_ns": round(min(plain)),
        "hooked_ns": round(min(hooked)),
        "cost_ns": round(cost),
        "share": round(cost / min(plain), 5),
        "share_of": "CPU time per step without the hook",
        "plain_all_ns": [round(value) for value in plain],
        "hooked_all_ns": [round(value) for value in hooked],
    }


def range_cost() -> float:
    """Best of 20 of an inactive range, less the empty loop, in ns."""
    loops = 200_000
    setup = "import profrun"
    used = min(timeit.repeat("with profrun.range('x'): pass", setup, repeat=20, number=loops))
    empty = min(timeit.repeat("pass", setup, repeat=20, number=loops))
    return round((used - empty) / loops * 1e9, 1)


def wrapper_cost(root: Path) -> WrapperCost:
    """Measure the wrapper around a program that does nothing."""
    argv = [sys.executable, "-c", "pass"]
    added = []
    for number in range(7):
        plain = once(argv)[1]
        folder = trial(root, f"wrapper-{number}", argv)
        added.append(once([sys.executable, str(root / "bundle/run.py"), str(folder)])[1] - plain)
    return {
        "added_s": round(sorted(added)[len(added) // 2], 3),
        "all_s": [round(value, 3) for value in added],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_bundle(root / "bundle")
        edges = [hook_cost(root, kind, EDGE + LOOP, "edge") for kind in EDGES]
        jax = os.environ.get("PROFRUN_JAX")
        if jax is not None:
            edges.append(hook_cost(root, "jit", JIT + LOOP, "edge", jax))
        hooks = [hook_cost(root, kind, STEP, "step") for kind in ("train", "infer")]
        inactive_ns, wrapper = range_cost(), wrapper_cost(root)
    if options.json:
        document = {"edge": edges, "hook": hooks, "range": {"inactive_ns": inactive_ns}, "wrapper": wrapper}
        print(json.dumps(document, indent=1))
        return
    for row in edges:
        print(f"hook at the end of a step ({row['step']}): {signed_time_text(row['cost_ns'])}")
    for row in hooks:
        step, cost = time_text(row["plain_ns"]), signed_time_text(row["cost_ns"])
        print(f"hook, {row['step']} step of {step}: {cost} ({row['share']:+.2%})")
    print(f"profrun.range while nobody records: {time_text(inactive_ns)}")
    print(f"wrapper: +{wrapper['added_s']} s per trial")


if __name__ == "__main__":
    main()
