"""``profrun export TRACE --to perfetto|chrome``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, tell
from profrun.contract.units import bytes_text
from profrun.runner.references import opened, shown_name

EXAMPLES = (
    ("profrun export last/1", "a file for Perfetto"),
    ("profrun export last/1 --to chrome -o t.json.gz", "for chrome://tracing"),
)


class Format(str, Enum):
    """What viewers read."""

    perfetto = "perfetto"
    chrome = "chrome"


SUFFIX = {Format.perfetto: ".pftrace", Format.chrome: ".json.gz"}


def command(
    trace: TraceArgument,
    to: Annotated[
        Format, typer.Option(metavar="FORMAT", help="Format to write: perfetto or chrome.")
    ] = Format.perfetto,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write [default: the trace's name, here].",
            show_default=False,
        ),
    ] = None,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Write a trace for Perfetto or chrome://tracing."""
    from profrun.traces.export import export

    with opened(trace, runs_root(runs)) as found:
        target = out or Path(shown_name(trace, found.path) + SUFFIX[to])
        result = export(found, target, to.value)
    size = result.path.stat().st_size
    if json_:
        emit(
            {
                "path": str(result.path),
                "to": to.value,
                "bytes": size,
                "slices": result.slices,
                "counters": result.counters,
                "flows": result.flows,
                "tracks_added": result.tracks_added,
                "shift_ns": result.shift_ns,
            }
        )
        return
    extra = f", {result.tracks_added} tracks added for overlaps" if result.tracks_added else ""
    tell(f"{result.path}: {result.slices} slices, {result.flows} arrows, {bytes_text(size)}{extra}")
