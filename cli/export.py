"""``profrun export TRACE --to perfetto|chrome|speedscope|pprof``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, note, tell
from profrun.contract.units import bytes_text, counted, percent_text, time_text
from profrun.runner.references import opened, shown_name

if TYPE_CHECKING:
    from profrun.runner.stack_export import StackExport
    from profrun.traces.export import ExportResult

EXAMPLES = (
    ("profrun export last/1", "a file for Perfetto"),
    ("profrun export last/1 --to chrome -o t.json.gz", "for chrome://tracing"),
    ("profrun export last/1 --to speedscope", "GPU time as a flame graph"),
    ("profrun export last/1 --to pprof -o t.pb.gz", "the same for `pprof -http=: t.pb.gz`"),
)


class Format(str, Enum):
    """What viewers read."""

    perfetto = "perfetto"
    chrome = "chrome"
    speedscope = "speedscope"
    pprof = "pprof"


SUFFIX = {
    Format.perfetto: ".pftrace",
    Format.chrome: ".json.gz",
    Format.speedscope: ".speedscope.json",
    Format.pprof: ".pb.gz",
}


def command(
    trace: TraceArgument,
    to: Annotated[
        Format,
        typer.Option(metavar="FORMAT", help="Format to write: perfetto, chrome, speedscope or pprof."),
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
    """Write a trace for Perfetto, Chrome, speedscope or pprof."""
    from profrun.runner.stack_export import export_stacks
    from profrun.traces.export import export

    with opened(trace, runs_root(runs)) as found:
        name = shown_name(trace, found.path)
        target = out or Path(name + SUFFIX[to])
        if to is Format.speedscope or to is Format.pprof:
            _tell_stacks(export_stacks(found, target, to.value, name=name), to, json_)
        else:
            _tell_slices(export(found, target, to.value), to, json_)


def _tell_slices(result: ExportResult, to: Format, json_: bool) -> None:
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


def _tell_stacks(result: StackExport, to: Format, json_: bool) -> None:
    from profrun.analysis.json import to_json
    from profrun.reports.stack_text import subject

    size = result.path.stat().st_size
    if json_:
        emit(to_json(result) | {"path": str(result.path), "to": to.value, "bytes": size})
        return
    told = ""
    if result.resolved_ns is not None:
        told = f", {percent_text(result.resolved_ns / result.gpu_ns)} of it with a line of the program"
    time = f"{subject(result.of, result.steps)}: {time_text(result.gpu_ns)}{told}"
    tell(f"{result.path}: {counted(result.stacks, 'stack')}, {bytes_text(size)}; {time}")
    if result.without_lines is not None:
        note(f"The stacks have no lines of the program: {result.without_lines}")
