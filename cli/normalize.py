"""``profrun normalize FILE... --out DIR``; ``profrun normalize DIR`` of what ``profrun wrap`` recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profrun.cli.options import JsonOption
from profrun.cli.output import emit, note, say, tell
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.traces.meta import ClockEntry

EXAMPLES = (
    ("profrun normalize trace.json.gz -o t", "a file of torch.profiler"),
    ("profrun normalize rank0.json rank1.json -o t", "all ranks of one recording"),
    ("profrun normalize results.db -o t", "a file of another profiler, known by its content"),
    ("profrun normalize /data/run", "what the ranks of `profrun wrap` have left, as a run"),
)
EXAMPLE = 120
"""Most characters of an issue's example that are printed; the trace has the whole example."""


def clock_lines(clocks: list[ClockEntry]) -> list[str]:
    """What was done about each clock that does not fit."""
    from profrun.contract.units import signed_time_text

    lines = []
    for clock in clocks:
        if clock["verdict"] in ("consistent", "unknown"):
            continue
        whose = f"GPU times of device {clock['device']}"
        if clock["verdict"] == "contradiction":
            lines.append(f"{whose} contradict themselves: they cannot be put on the host's clock")
        elif clock["moved_ns"] or clock["last_moved_ns"]:
            lines.append(
                f"{whose} were moved by {signed_time_text(clock['moved_ns'])} "
                f"({signed_time_text(clock['last_moved_ns'])} at the end): see docs/clocks.md"
            )
        else:
            lines.append(f"{whose} are not on the host's clock, and were left as they are")
    return lines


def _is_of_wrap(files: list[Path]) -> bool:
    """Whether the one argument is a folder that ``profrun wrap`` has filled."""
    if len(files) != 1 or not files[0].is_dir():
        return False
    from profrun.runner.wrapped import is_wrapped

    return is_wrapped(files[0])


def _complete(folder: Path, *, json_: bool) -> int:
    """Make a run of the folder of ``profrun wrap`` and show it; returns the exit code."""
    from profrun.cli.carry_out import conclude
    from profrun.cli.reading_line import ReadingLine
    from profrun.runner.wrapped import complete

    with ReadingLine() as line:
        state, plan = complete(folder, note, line.update)
    return conclude(state, plan, json_=json_)


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of one recording, of any profiler; or the folder of `profrun wrap`, which becomes a "
            "run.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="The trace folder to make, of files.", show_default=False
        ),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Use this reader instead of detecting the kind of file.", show_default=False
        ),
    ] = None,
    no_repair: Annotated[
        bool,
        typer.Option(
            "--no-repair",
            help="Leave GPU times that cannot be true instead of moving them onto the host's clock.",
        ),
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Turn the files of any profiler into one trace."""
    if _is_of_wrap(files):
        if out is not None or reader is not None or no_repair:
            raise UsageError(
                f"{files[0]} is what `profrun wrap` has recorded",
                why="it becomes a run where it lies",
                fix=f"leave out the options: profrun normalize {files[0]}",
            )
        raise typer.Exit(_complete(files[0], json_=json_))
    if out is None:
        raise UsageError("no --out is given", fix="name the trace folder to make, as with --out t")
    from profrun.cli.reading_line import ReadingLine
    from profrun.collectors.normalize import normalize

    places = [file.resolve() for file in files]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UsageError(f"{files[number]} is named twice", fix="name each file once")
    with ReadingLine() as line:
        result = normalize(files, out, reader=reader, progress=line.update, repair=not no_repair)
    if json_:
        emit(result.as_json())
        return
    version = f" {result.tool_version}" if result.tool_version else ""
    slices = result.counts["slices"]
    say(f"{result.trace}: {result.source}{version}, {slices} slices in {result.seconds:.2f} s")
    tell("  " + ", ".join(f"{count} {name}" for name, count in result.counts.items() if name != "slices"))
    for line_of_clock in clock_lines(result.clocks):
        note(f"  {line_of_clock}")
    for issue in result.issues:
        text = " ".join(str(issue.get("example") or "").split())
        example = f" (e.g. {text[:EXAMPLE]}{'...' if len(text) > EXAMPLE else ''})" if text else ""
        note(f"  {issue['count']} x {issue['code']}: {issue['message']}{example}")
