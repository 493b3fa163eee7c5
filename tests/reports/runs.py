"""Reports of known runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profrun.plans.model import Plan
from profrun.store.runs import Run
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

SPEC = """\
name: t
command: python x.py --n {n}
variants: {a: {n: 1}, b: {n: 2}}
collectors: [none, torch]
launch_blocking: both
expect: [{present: [never]}]
"""


GPU = {"name": "GPU X", "clocks_sm": 1980, "throttled_by": ["sw_power_cap"]}


PROVENANCE = {
    "trial": "a trial",
    "host": "box-<7>",
    "os": "Debian",
    "cpus": 2,
    "cpu": "A CPU",
    "memory_bytes": 2**34,
    "vendor": "nvidia",
    "git": {"sha": "abc", "dirty": True},
    "image": {"reference": "repo/image:1", "digest": "sha256:1"},
    "environment": {"TOKEN": "should never leave the machine"},
    "packages": ["torch==2.13.0"],
    "gpus": {"before": [GPU], "after": []},
}


def finished_run(
    root: Path, *, device: Mapping[str, Any] | None = None, provenance: Mapping[str, Any] | None = None
) -> tuple[Run, Plan]:
    """A run whose trials all finished and left a trace, but the last, which failed.

    Args:
        device: other values of the GPU in each trace.
        provenance: other values of the provenance of each trial.
    """
    run, plan = new_run(root, SPEC)
    for number, trial in enumerate(plan.trials):
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1)
        last = trial is plan.trials[-1]
        leave(paths, "failed" if last else "finished", steps=[1000 * (number + 1)] * 3)
        paths.provenance.write_text(json.dumps(PROVENANCE | dict(provenance or {})))
        if last:
            paths.stderr.write_text("Boom: </pre><script>\n")
            continue
        rows = [("step", f"profrun.step#{n}", 2000 * n, 1000 * (number + 1), "main") for n in range(3)]
        job = {
            "run": run.name,
            "variant": trial.variant,
            "collector": trial.collector,
            "blocking": trial.blocking,
        }
        meta = {"collector": trial.collector, "job": job}
        make_trace(paths.trace, rows, meta=meta, device=device).close()
    run.log().append("done", None, state="failed")
    return run, plan
