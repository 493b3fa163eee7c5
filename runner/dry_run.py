"""What a run would do, as a value: the requests to the backend and what every trial is told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profrun.backends.base import load
from profrun.contract.codec import to_json
from profrun.contract.profilers import candidates
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest
from profrun.plans.model import Plan
from profrun.runner.trial_files import command
from profrun.store.runs import Run

VENDOR_OF = {"nsys": "nvidia", "ncu": "nvidia", "rocprof": "amd"}


def dry_run(plan: Plan, backend: str, root: Path, cwd: Path) -> dict[str, Any]:
    """The requests and the trials of a plan, as JSON. Writes and starts nothing.

    The run's folder is called ``<job>-dry-run``: its real name holds the time and a random part.

    Raises:
        UsageError, UnavailableError: what ``submit`` would refuse before it makes anything.
    """
    engine = load(backend)
    run = Run((root / f"{plan.job.name}-dry-run").absolute())
    prepared = engine.prepare(plan, plan.trials, run.path, cwd, ask=False)
    requests = engine.render(prepared, plan.trials, run.path)
    return {
        "job": plan.job.name,
        "backend": backend,
        "run": run.name,
        "path": str(run.path),
        "left_out": list(prepared.left_out),
        "requests": [{"text": request.text, "body": dict(request.body)} for request in requests],
        "trials": [
            {
                "trial": trial.id,
                "variant": trial.variant,
                "collector": trial.collector,
                "blocking": trial.blocking,
                "repeat": trial.repeat,
                "command": (told := to_json(command(run, prepared, trial, engine))),
                "wrapped": wrapped(told),
            }
            for trial in plan.trials
        ],
    }


def wrapped(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How the collector wraps the command: {collector, argv, passes, env, notes}, one for each it may become.

    ``timeline`` and ``counters`` are two while the vendor is not known. Which flags a profiler gets may still
    depend on its version, which only the job sees; here it is what the job's ``version`` says, if anything.
    """
    known = told["profiler"]
    found = []
    for profiler in candidates(known or str(told["collector"])):
        name, module = profiler.name, profiler.part("wrap")
        options = told["options"] if known else told["options"].get(name, {})
        done = module.wrap(
            WrapRequest(
                argv=tuple(told["argv"]),
                schedule=Schedule(**told["schedule"]),
                options=options,
                out="raw/rank0",
                tool=options.get("path") or module.TOOL or "",
                version=_version(options.get("version")),
                vendor=VENDOR_OF.get(name, told["vendor"]),
                ranks=int(told["ranks"]),
                ranges=int(told["ranges"]["modules"]),
                steps_found=told["ranges"]["steps"] != "off",
            )
        )
        found.append(
            {
                "collector": name,
                "argv": list(done.argv),
                "passes": [list(argv) for argv in done.passes],
                "env": dict(done.env),
                "notes": list(done.notes),
            }
        )
    return found


def _version(text: str | None) -> tuple[int, ...] | None:
    """The profiler's version as the job states it for dry runs."""
    return tuple(int(part) for part in text.split(".")) if text else None


def _wrapped_lines(way: Mapping[str, Any], plain: list[str]) -> list[str]:
    """What the wrapper starts instead, where that is something else."""
    argvs = way["passes"] or [way["argv"]]
    if argvs == [plain]:
        return []
    sets = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(way["env"].items()))
    return [f"# under {way['collector']}:", *(sets + shlex.join(argv) for argv in argvs)]


def _blocking_words() -> str:
    """What the wrapper sets on each vendor's GPUs for a launch-blocking trial."""
    from profrun.contract.launch_blocking import BLOCKING_ENV

    return ", ".join(
        f"{' '.join(f'{name}={value}' for name, value in BLOCKING_ENV[vendor].items())} ({vendor})"
        for vendor in ("nvidia", "amd")
    )


def dry_text(document: Mapping[str, Any]) -> str:
    """The same for a person: a shell-like block a trial, then the requests."""
    lines = [
        f"# {document['job']} on {document['backend']}: {len(document['trials'])} trials, nothing is started"
    ]
    lines += [f"# note: {text}" for text in document["left_out"]]
    one_each = len(document["requests"]) == len(document["trials"])
    for number, trial in enumerate(document["trials"]):
        told = trial["command"]
        lines += ["", f"## {trial['trial']}", f"cd {shlex.quote(str(told['cwd']))}"]
        lines += [f"export {name}={shlex.quote(str(value))}" for name, value in sorted(told["env"].items())]
        if trial["blocking"] and told["vendor"] == "auto":
            lines += [f"# set by the wrapper when it has seen the GPU: {_blocking_words()}"]
        lines += [shlex.join(told["argv"])]
        for way in trial["wrapped"]:
            lines += _wrapped_lines(way, told["argv"])
        if one_each:
            lines += ["# asked of the backend:", document["requests"][number]["text"]]
    if not one_each:
        for request in document["requests"]:
            lines += ["", "# asked of the backend:", request["text"]]
    return "\n".join(lines)
