"""``profrun report RUN|TRACE...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, say
from profrun.errors import UnavailableError, UsageError
from profrun.store.runs import Run


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN | TRACE...",
            help="A run, or traces, trials (RUN/NUMBER) and profiler files [default: last].",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
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
    open_: Annotated[
        bool, typer.Option("--open", help="Show the file in a browser of this machine.")
    ] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Write one self-contained HTML file about a run, about traces, or about the history of all runs."""
    if index is not None:
        if what:
            raise UsageError(
                "--index takes no runs", fix="`profrun report --index DIR` shows all runs of DIR"
            )
        _history(index, out or index / "index.html", json_)
        if open_:
            _show(out or index / "index.html")
        return
    from profrun.runner.report import run_report, traces_report
    from profrun.store.files import write_text
    from profrun.store.state import read_state

    words = what or ["last"]
    root = runs_root(runs)
    run = _run(words[0], root) if len(words) == 1 else None
    if run is not None:
        path, text = out or run.report, run_report(read_state(run))
    else:
        name, text = traces_report(words, root)
        path = out or Path(f"{name}.html")
        if out is None and path.exists():
            raise UsageError(f"{path} exists already", fix="name another with --out, which replaces it")
    write_text(path, text, fix="name another file with --out")
    if json_:
        emit({"report": str(path), "bytes": path.stat().st_size, "run": run.name if run else None})
    else:
        say(str(path))
    if open_:
        _show(path)


def _history(root: Path, out: Path, json_: bool) -> None:
    """Write the page of all runs in a folder."""
    from profrun.runner.history import history_page
    from profrun.store.files import write_text
    from profrun.store.runs import all_runs

    if not all_runs(root):
        raise UsageError(f"no runs in {root}", fix="name the folder that holds the runs: --index runs")
    write_text(out, history_page(root, out), fix="name another file with --out")
    if json_:
        emit({"report": str(out), "bytes": out.stat().st_size, "runs": len(all_runs(root))})
    else:
        say(str(out))


def _run(word: str, root: Path) -> Run | None:
    """The run that an argument names, None when it names something else."""
    from profrun.store.runs import find

    if Path(word).is_file() or (Path(word) / "meta.json").exists() or (Path(word) / "trace").exists():
        return None
    try:
        return find(root, word)
    except UsageError:
        if "/" in word:  # RUN/TRIAL
            return None
        raise


def _show(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        raise UnavailableError("no browser could be started", fix=f"open {path.absolute()} yourself")
