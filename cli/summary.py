"""``profrun summary TRACE``."""

from __future__ import annotations

from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, say, terminal_style
from profrun.runner.references import opened

EXAMPLES = (
    ("profrun summary last/1", "trial 1 of the newest run"),
    ("profrun summary trace.json.gz --top 5", "a profiler's own file"),
)


def command(
    trace: TraceArgument,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Rows of each table; 0 for all [default: 15; with --json all].", min=0
        ),
    ] = None,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Show GPU utilization, steps, kernels and operators of a trace."""
    from profrun.analysis.trace.summary import summarize
    from profrun.reports.terminal import summary_text

    with opened(trace, runs_root(runs)) as found:
        shown = top if top is not None else (0 if json_ else 15)
        summary = summarize(found, top=shown or None)
    if json_:
        emit(summary.to_json())
        return
    say(summary_text(summary, terminal_style()))
