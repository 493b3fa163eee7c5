"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.contract.profilers import BUILT_IN, MAPPING, NEUTRAL

RunsOption = Annotated[
    Path | None,
    typer.Option(
        "--runs",
        metavar="DIR",
        help="Folder of the runs [default: $PROFRUN_RUNS or ./runs].",
        show_default=False,
    ),
]
BackendOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where trials run: local, docker, slurm or kubernetes.",
        autocompletion=completers.backends,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one value of the job, e.g. resources.timeout=2h; repeatable.",
        show_default=False,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what every trial would do; start nothing.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Return at once; the run continues in the background.")
]
_COLLECTORS = (*(name for name in BUILT_IN if name != MAPPING), *NEUTRAL)
CollectorsOption = Annotated[
    str | None,
    typer.Option(
        "--collectors",
        "-c",
        metavar="NAME,...",
        help=f"Profilers, with commas between them: {', '.join(_COLLECTORS)} ...; "
        f"{BUILT_IN[0]!r} measures without one.",
        autocompletion=completers.collectors,
        show_default=False,
    ),
]
RepeatsOption = Annotated[
    int | None,
    typer.Option(
        "--repeats", "-n", metavar="N", help="Trials of each variant and profiler.", show_default=False
    ),
]
StepsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Steps to record [default: 3, after 2 that are not].", show_default=False),
]
LinesOption = Annotated[
    bool,
    typer.Option(
        "--lines", help="One more trial per variant finds the line and module of each kernel (ranges.lines)."
    ),
]
VariantOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=A,B",
        help="bs=8,16 adds `--bs 8` in one variant and `--bs 16` in another, or fills {bs} where the command "
        "has it; a NAME alone is a flag that is left out and added. Repeatable: all combinations.",
        show_default=False,
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Name of the job [default: the program's].", show_default=False
    ),
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- COMMAND", help="The program and its arguments, as you type them.", show_default=False
    ),
]
ByOption = Annotated[
    str,
    typer.Option(
        metavar="VIEW", help="Show what changed by kernel, op, range, module, line, category or step."
    ),
]
ThresholdOption = Annotated[
    str, typer.Option(metavar="SHARE", help="Changes smaller than this count as the same: 0.01 or 1%.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print a table for a pull request.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also print every trial and every comparison.")
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's name, the beginning of its name, its path, or `last`.",
        autocompletion=completers.runs,
    ),
]
TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace folder, a trial (RUN/NUMBER), a run with one trace, or a profiler's file.",
        autocompletion=completers.traces,
    ),
]


def runs_root(given: Path | None) -> Path:
    """The folder of the runs; the store is imported only by commands that use it."""
    from profrun.store.runs import runs_root as root

    return root(given)
