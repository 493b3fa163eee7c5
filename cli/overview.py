"""What ``profrun`` without a command prints: the commands that make sense next in this folder."""

from __future__ import annotations

from pathlib import Path

from profrun.cli.options import runs_root
from profrun.cli.output import say, tell


def show_next_steps() -> None:
    """Print the commands that make sense now, by what is in the folders of runs and jobs."""
    root = runs_root(None)
    tell("profrun: profiles a program on NVIDIA, AMD or a CPU, and says what would make it faster.")
    say()
    steps = [("profrun run -- python train.py", "profile your own program")]
    names = sorted(path.parent.name for path in (root.glob("*/events.jsonl") if root.is_dir() else ()))
    if names:
        steps.append(("profrun status last", f"show the newest of {len(names)} runs in {root}"))
    jobs = sorted(Path("jobs").glob("*.yaml"))
    for job in jobs[:3]:
        steps.append((f"profrun submit {job}", "run this job"))
    if not names:
        steps.append(("profrun demo", "run the example that comes with profrun"))
    if not jobs:
        steps.append(("profrun init train.py", "write a job file, for `profrun submit`"))
        steps.append(("profrun normalize FILE... --out DIR", "or read profiler files that you have"))
    steps.append(("profrun doctor", "see what this machine can collect"))
    steps.append(("profrun --help", "list every command"))
    width = max(len(step) for step, _ in steps)
    for step, why in steps:
        tell(f"  {step:<{width}}  {why}")
