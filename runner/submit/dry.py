"""What a run would do, as a value: the requests to the backend and what every trial is told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profrun.runner.backends.base import load
from profrun.runner.model import Plan
from profrun.runner.store.runs import Run
from profrun.runner.submit.trial import command


def dry_run(plan: Plan, backend: str, root: Path, cwd: Path) -> dict[str, Any]:
    """The requests and the trials of a plan, as JSON. Deterministic; asks no engine and writes nothing.

    The run's folder is called ``<job>-dry-run``: its real name holds the time and a random part.
    """
    engine = load(backend)
    run = Run((root / f"{plan.job.name}-dry-run").absolute())
    requests = engine.render(plan, plan.trials, run.path)
    return {
        "job": plan.job.name,
        "backend": backend,
        "run": run.name,
        "path": str(run.path),
        "requests": [{"text": request.text, "body": dict(request.body)} for request in requests],
        "trials": [
            {
                "trial": trial.id,
                "variant": trial.variant,
                "collector": trial.collector,
                "blocking": trial.blocking,
                "repeat": trial.repeat,
                "command": command(run, plan, trial, engine, cwd),
            }
            for trial in plan.trials
        ],
    }


def _blocking_words() -> str:
    """What the wrapper sets on each vendor's GPUs for a launch-blocking trial."""
    from profrun.runner.plan import BLOCKING_ENV

    return ", ".join(
        f"{' '.join(f'{name}={value}' for name, value in BLOCKING_ENV[vendor].items())} ({vendor})"
        for vendor in ("nvidia", "amd")
    )


def dry_text(document: Mapping[str, Any]) -> str:
    """The same for a person: a shell-like block a trial, then the requests."""
    lines = [
        f"# {document['job']} on {document['backend']}: {len(document['trials'])} trials, nothing is started"
    ]
    one_each = len(document["requests"]) == len(document["trials"])
    for number, trial in enumerate(document["trials"]):
        told = trial["command"]
        lines += ["", f"## {trial['trial']}", f"cd {shlex.quote(str(told['cwd']))}"]
        lines += [f"export {name}={shlex.quote(str(value))}" for name, value in sorted(told["env"].items())]
        if trial["blocking"] and told["vendor"] == "auto":
            lines += [f"# set by the wrapper when it has seen the GPU: {_blocking_words()}"]
        lines += [shlex.join(told["argv"])]
        if one_each:
            lines += ["# asked of the backend:", document["requests"][number]["text"]]
    if not one_each:
        for request in document["requests"]:
            lines += ["", "# asked of the backend:", request["text"]]
    return "\n".join(lines)
