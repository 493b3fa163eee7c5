"""``profrun demo``."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

from profrun.cli.options import (
    BackendOption,
    CollectorsOption,
    DetachOption,
    DryRunOption,
    JsonOption,
    RepeatsOption,
    RunsOption,
    SetOption,
    VerboseOption,
)
from profrun.cli.output import note
from profrun.cli.start import HowToStart, short_overrides, start
from profrun.errors import UnavailableError

if TYPE_CHECKING:
    from profrun.jobs.overrides import Override

EXAMPLE = "transformer"
EXAMPLES = (
    ("profrun demo", "in any folder; runs are written to ./runs"),
    ("profrun demo --repeats 1", "faster, and nothing is proven then"),
)


def command(
    collectors: CollectorsOption = None,
    repeats: RepeatsOption = None,
    set_: SetOption = None,
    backend: BackendOption = "local",
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Run the example: a small transformer in two variants, compared."""
    from profrun.jobs.examples import path_of
    from profrun.runner.planning import spec_at

    spec = spec_at(path_of(EXAMPLE))
    overrides = short_overrides(collectors, repeats)
    if backend == "local":
        overrides.insert(0, _with_torch(spec.text))
    note(f"the job of this demo: {spec.name}")
    how = HowToStart(backend, set_ or (), dry_run, detach, runs, verbose, json_)
    code = start(spec, how, overrides=overrides)
    if not dry_run and not json_:
        note("now your own program: profrun run -- python train.py")
    raise typer.Exit(code)


def _with_torch(spec: str) -> Override:
    """The demo's command with a Python that has torch: profrun's own, else that on the PATH.

    Raises:
        UnavailableError: neither has it.
    """
    from profrun.jobs.load import load_text
    from profrun.jobs.overrides import Override

    python = sys.executable if find_spec("torch") else _python_on_path()
    _, _, rest = load_text(spec).command.partition(" ")
    return Override(f"command={json.dumps(f'{shlex.quote(python)} {rest}')}", f"the demo with {python}")


def _python_on_path() -> str:
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    for name in ("python", "python3"):
        python = shutil.which(name)
        if python and not subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode:
            return python
    raise UnavailableError(
        "the demo needs PyTorch",
        why=f"neither {sys.executable} nor the Python on the PATH has it",
        fix="install it (pip install torch), then run `profrun demo` again",
    )
