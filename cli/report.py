"""``profrun report RUN|TRACE...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, note, say
from profrun.errors import UsageError

EXAMPLES = (
    ("profrun report last --open", "write the report of a run, and show it"),
    ("profrun report --index runs", "the history of all runs of a folder"),
    ("profrun report a.json.gz b.json.gz --out ab.html", "one page about two recordings"),
    ("profrun report last --source", "with the source of the lines that take most GPU time"),
)


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|TRACE...",
            help="A run, or traces, trials (RUN/NUMBER) and profiler files [default: last].",
            autocompletion=completers.runs_and_traces,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write [default: the run's report.html, or NAME.html in this folder].",
            show_default=False,
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Make a page of all runs in a folder instead: each job's step times over time, with what "
            "changed [written to DIR/index.html].",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        bool,
        typer.Option(
            "--source",
            help="Embed the source round the lines with 1 % of the GPU time or more, where a mapping tells "
            "them (`ranges: {lines: true}`): it is read from this machine, and secrets are hidden.",
        ),
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Show the file in the browser, as `profrun open` does.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Write one self-contained HTML file about a run, traces, or all runs."""
    if index is not None:
        if what:
            raise UsageError(
                "--index takes no runs", fix="`profrun report --index DIR` shows all runs of DIR"
            )
        if source:
            raise UsageError("--index takes no --source", fix="`profrun report RUN --source` embeds it")
        path, about = _history(index, out)
    else:
        path, about = _report(what or ["last"], out, runs_root(runs), source)
    if json_:
        emit({"report": str(path), "bytes": path.stat().st_size, **about})
    else:
        say(str(path))
    if open_:
        _show(path)


def _report(words: list[str], out: Path | None, root: Path, source: bool) -> tuple[Path, dict[str, object]]:
    """Write the page of a run, or of traces; returns the file, and its run for --json (None for traces)."""
    from profrun.cli.reading_line import ReadingLine
    from profrun.runner.references import run_meant
    from profrun.runner.report import run_report, traces_report
    from profrun.store.files import write_text
    from profrun.store.state import read_state

    run = run_meant(words[0], root) if len(words) == 1 else None
    if run is not None:
        with ReadingLine() as line:
            path = out or run.report
            text = run_report(read_state(run), progress=line.update, source=source)
    else:
        name, text = traces_report(words, root, source=source)
        path = out or Path(f"{name}.html")
        if out is None and path.exists():
            raise UsageError(f"{path} exists already", fix="name another with --out, which replaces it")
    write_text(path, text, fix="name another file with --out")
    return path, {"run": run.name if run else None}


def _history(root: Path, out: Path | None) -> tuple[Path, dict[str, object]]:
    """Write the page of all runs in a folder; returns the file, and how many they are for --json."""
    from profrun.runner.history import history_page
    from profrun.store.files import write_text
    from profrun.store.runs import all_runs

    runs = all_runs(root)
    if not runs:
        raise UsageError(f"no runs in {root}", fix="name the folder that holds the runs: --index runs")
    path = out or root / "index.html"
    write_text(path, history_page(root, path), fix="name another file with --out")
    return path, {"runs": len(runs)}


def _show(path: Path) -> None:
    from profrun.cli.browser import show_file

    hint = show_file(path)
    if hint:
        note(hint)
