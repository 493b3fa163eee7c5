"""``profrun`` alone: what to do next, here."""

from __future__ import annotations

from pathlib import Path

from profrun.cli.options import runs_root
from profrun.cli.output import say


def show_next_steps() -> None:
    """Look round (two folders, nothing is imported) and name the commands that make sense now."""
    root = runs_root(None)
    say("profrun: one YAML job, profiled on NVIDIA or AMD, into one trace format.")
    say()
    steps = []
    names = sorted(path.parent.name for path in (root.glob("*/events.jsonl") if root.is_dir() else ()))
    if names:
        steps.append(("profrun status last", f"the newest of {len(names)} runs in {root}"))
    jobs = sorted(Path("jobs").glob("*.yaml"))
    for job in jobs[:3]:
        steps.append((f"profrun submit {job}", "run it"))
    if not jobs:
        steps.append(("profrun submit JOB.yaml", "run a job spec; `name` and `command` are enough in it"))
        steps.append(("profrun normalize FILE... --out DIR", "or read profiler files you already have"))
    steps.append(("profrun doctor", "what this machine can collect"))
    steps.append(("profrun --help", "every command"))
    width = max(len(step) for step, _ in steps)
    for step, why in steps:
        say(f"  {step:<{width}}  {why}")
