"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", help="Folder of the runs [default: $PROFRUN_RUNS or ./runs].", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's name, the beginning of its name, its path, or `last`.")
]
TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace folder, a trial (RUN/NUMBER), a run with one trace, or a profiler's file.",
    ),
]


def runs_root(option: Path | None) -> Path:
    """The folder of the runs: --runs, else $PROFRUN_RUNS, else ./runs."""
    if option is not None:
        return option
    return Path(os.environ.get("PROFRUN_RUNS") or "runs")
