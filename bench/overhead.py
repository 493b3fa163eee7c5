"""What profrun's in-job part costs: ``python bench/overhead.py [--json]``, about a minute.

* edge: CPU time that the hook takes at a step's end, outside the recorded window: loops over an optimizer and
  over a model that do next to nothing, with and without the hook. This is the precise figure.
* hook: CPU time of a training step and of an inference step of about 1 ms, with and without the hook;
  alternating processes, the best block of each (noise only ever adds). On a busy machine its noise is larger
  than what it measures.
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
from typing import Any

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
if kind == "infer": del opt
step = train if kind == "train" else infer
net(x); step(); step()
best = None
for _ in range(30):
    t = time.process_time_ns()
    for _ in range(500): step()
    t = (time.process_time_ns() - t) / 500
    best = t if best is None else min(best, t)
print(json.dumps(best))
"""
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
FAR = {"wait": 10**9, "warmup": 1, "active": 1, "repeat": 1, "skip_first": 0}
ROUNDS = 2


def trial(root: Path, name: str, argv: list[str], collector: str = "none") -> Path:
    """A trial folder whose window never opens."""
    folder = root / "trials" / name
    folder.mkdir(parents=True)
    command: dict[str, Any] = {"format": 1, "trial": name, "attempt": 1, "collector": collector, "argv": argv}
    command |= {"vendor": "none", "blocking": False, "env": {}, "schedule": FAR, "cwd": str(root)}
    command |= {"ranges": {"modules": 2, "steps": "auto"}, "options": {}, "ranks": 1, "timeout_s": 600.0}
    (folder / "command.json").write_text(json.dumps(command))
    return folder


def once(argv: list[str]) -> tuple[str, float]:
    """Standard output and wall seconds of a command."""
    began = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout, time.perf_counter() - began


def hook_cost(root: Path, kind: str, program: str, name: str) -> dict[str, Any]:
    """Best CPU ns a step without and with the hook, and the difference as a share of the step."""
    script = root / f"{name}-{kind}.py"
    script.write_text(program)
    argv = [sys.executable, str(script), kind]
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
        "share_of": "CPU time of a step without the hook",
        "plain_all_ns": [round(value) for value in plain],
        "hooked_all_ns": [round(value) for value in hooked],
    }


def range_cost() -> dict[str, Any]:
    """Best of 20 of an inactive range, less the empty loop, ns."""
    loops = 200_000
    setup = "import profrun"
    used = min(timeit.repeat("with profrun.range('x'): pass", setup, repeat=20, number=loops))
    empty = min(timeit.repeat("pass", setup, repeat=20, number=loops))
    return {"inactive_ns": round((used - empty) / loops * 1e9, 1)}


def wrapper_cost(root: Path) -> dict[str, Any]:
    """Median wall seconds that the wrapper adds to a program that does nothing."""
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
        result: dict[str, Any] = {
            "edge": [hook_cost(root, kind, EDGE, "edge") for kind in ("train", "infer")],
            "hook": [hook_cost(root, kind, STEP, "step") for kind in ("train", "infer")],
            "range": range_cost(),
            "wrapper": wrapper_cost(root),
        }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for row in result["edge"]:
        print(f"hook at the end of a step ({row['step']}): {row['cost_ns'] / 1e3:+.2f} us")
    for row in result["hook"]:
        print(
            f"hook, {row['step']} step of {row['plain_ns'] / 1e6:.3f} ms: "
            f"{row['cost_ns'] / 1e3:+.1f} us ({row['share']:+.2%})"
        )
    print(f"profrun.range while nobody records: {result['range']['inactive_ns']} ns")
    print(f"wrapper: +{result['wrapper']['added_s']} s a trial")


if __name__ == "__main__":
    main()
