"""``profrun run [OPTIONS] -- COMMAND``."""

from __future__ import annotations

from pathlib import Path

import typer

from profrun.cli.options import (
    BackendOption,
    CollectorsOption,
    CommandArgument,
    DetachOption,
    DryRunOption,
    JsonOption,
    LinesOption,
    NameOption,
    RepeatsOption,
    RunsOption,
    SetOption,
    StepsOption,
    VariantOption,
    VerboseOption,
)
from profrun.cli.start import HowToStart, drafted, short_overrides, start

CONTEXT = {"allow_interspersed_args": False}  # the first word that is no option begins the command

EXAMPLES = (
    ("profrun run -- python train.py --epochs 1", "what a step costs, and what would help"),
    ("profrun run -n 3 --variant 'bs=8,16' -- python train.py", "two batch sizes, compared"),
    ("profrun run --lines -- python train.py", "also in which line the GPU's time goes"),
    ("profrun run -n 3 --variant compile -- python train.py", "without and with --compile"),
)


def command(
    argv: CommandArgument = None,
    collectors: CollectorsOption = None,
    repeats: RepeatsOption = None,
    steps: StepsOption = None,
    lines: LinesOption = False,
    variant: VariantOption = None,
    name: NameOption = None,
    set_: SetOption = None,
    backend: BackendOption = "local",
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
    runs: RunsOption = None,
    verbose: VerboseOption = False,
    json_: JsonOption = False,
) -> None:
    """Profile a command: profrun run -- python train.py."""
    from profrun.jobs.draft import short_text
    from profrun.jobs.load import Spec

    draft = drafted(
        argv or [], name=name, variant=variant, collectors=collectors, repeats=repeats, steps=steps
    )
    text = short_text(draft, "Written by `profrun run`. To run it again: profrun submit THIS_FILE")
    how = HowToStart(backend, set_ or (), dry_run, detach, runs, verbose, json_)
    spec = Spec(text, "profrun run", Path.cwd())
    overrides = short_overrides(collectors, repeats, steps, name, lines=lines)
    raise typer.Exit(start(spec, how, overrides=overrides, again=True))
