"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", help="Folder of the runs [default: $PROFRUN_RUNS or ./runs].", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also print every trial and every comparison.")
]
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


def runs_root(given: Path | None) -> Path:
    """The folder of the runs; the store is imported only by commands that use it."""
    from profrun.store.runs import runs_root as root

    return root(given)
