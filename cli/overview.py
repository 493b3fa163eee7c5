"""What ``profrun`` without a command prints: the commands that make sense next in this folder."""

from __future__ import annotations

from pathlib import Path

from profrun.cli.options import runs_root
from profrun.cli.output import say


def show_next_steps() -> None:
    """Print the commands that make sense now, by what is in the folders of runs and jobs."""
    root = runs_root(None)
    say("profrun: one YAML job, profiled on NVIDIA or AMD, into one trace format.")
    say()
    steps = []
    names = sorted(path.parent.name for path in (root.glob("*/events.jsonl") if root.is_dir() else ()))
    if names:
        steps.append(("profrun status last", f"show the newest of {len(names)} runs in {root}"))
    jobs = sorted(Path("jobs").glob("*.yaml"))
    for job in jobs[:3]:
        steps.append((f"profrun submit {job}", "run this job"))
    if not jobs:
        steps.append(("profrun submit JOB.yaml", "run a job: `name` and `command` suffice"))
        steps.append(("profrun normalize FILE... --out DIR", "or read profiler files that you have"))
    steps.append(("profrun doctor", "see what this machine can collect"))
    steps.append(("profrun --help", "list every command"))
    width = max(len(step) for step, _ in steps)
    for step, why in steps:
        say(f"  {step:<{width}}  {why}")
