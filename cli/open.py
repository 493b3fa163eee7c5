"""``profrun open RUN|TRACE``: the report of a run in the browser, or a trace in Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profrun.cli import completers
from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, say, tell
from profrun.contract.units import bytes_text
from profrun.errors import UnavailableError
from profrun.runner.references import opened, run_meant, shown_name
from profrun.store.runs import Run

EXAMPLES = (
    ("profrun open", "the report of the newest run, in the browser"),
    ("profrun open last/1", "the timeline of its trial 1, in Perfetto"),
    ("profrun open trace.json.gz --no-browser", "print the link only"),
)


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TRACE",
            help="A run, for its report; or a trace folder, a trial (RUN/NUMBER) or a profiler's file.",
            autocompletion=completers.runs_and_traces,
        ),
    ] = "last",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Start no browser; print the path or the link.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time for Perfetto's page to fetch the trace.", min=0),
    ] = 300,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Show a run's report in the browser, or a trace in Perfetto.

    Perfetto's page, https://ui.perfetto.dev, fetches the trace from this machine, once; nothing is uploaded.
    With --json nothing is shown: the document says where the file is.
    """
    from profrun.cli.browser import show_file
    from profrun.cli.perfetto import DROP

    root = runs_root(runs)
    run = run_meant(what, root)
    path = _report(run) if run is not None else viewable(what, root)
    if json_:
        how = DROP if run is None else "open it in a browser"
        emit(
            {
                "kind": "trace" if run is None else "report",
                "path": str(path),
                "bytes": _size(path),
                "how": how,
            }
        )
        return
    say(f"{path} ({bytes_text(_size(path))})")
    if run is None:
        _show_trace(path, shown_name(what, path.with_suffix("")), timeout, no_browser=no_browser)
    elif not no_browser:
        hint = show_file(path)
        if hint:
            say(hint)


def _size(path: Path) -> int:
    return path.stat().st_size


def _report(run: Run) -> Path:
    """The run's page; made now where the run has not ended yet."""
    from profrun.runner.report import write_run_report
    from profrun.store.state import read_state

    return run.report if run.report.is_file() else write_run_report(read_state(run))


def _show_trace(path: Path, name: str, timeout: float, *, no_browser: bool) -> None:
    """Serve the file until Perfetto's page has fetched it.

    Raises:
        UnavailableError: the port is taken, or nobody fetched it in time.
    """
    import sys

    from profrun.cli.browser import can_show, copy_hint, show
    from profrun.cli.perfetto import DROP, ORIGIN, serving

    if not no_browser and not can_show():
        say(copy_hint(path))
        tell(f"There {DROP}.")
        return
    with serving(path, name + ".pftrace") as server:
        say(server.link)
        if no_browser:
            tell("Open this link in a browser on this machine; profrun ends when Perfetto has the trace.")
        else:
            show(server.link, f"drop {path} on {ORIGIN}")
        tell(f"If the browser asks whether {ORIGIN} may reach this device, allow it.")
        sys.stdout.flush()
        if not server.wait(timeout):
            raise UnavailableError(
                f"Perfetto's page did not fetch the trace within {timeout:g} s",
                why="the link was not opened, or the page was not allowed to reach this device",
                fix=f"try again with a longer --timeout, or drop {path} on {ORIGIN}",
            )
    say("Perfetto has the trace.")


def viewable(reference: str, root: Path) -> Path:
    """A Perfetto file of the trace, beside it; made again only when the trace is newer.

    Raises:
        UnavailableError: the folder cannot be written; `profrun export --out FILE` writes elsewhere.
    """
    from profrun.traces.export import export

    source = Path(reference)
    with opened(reference, root) as found:
        # A profiler's own file was read into a temporary trace: the Perfetto file is put beside that file.
        folder = source if source.is_file() else found.path
        target = folder.absolute().with_name(folder.name + ".pftrace")
        newest = (source if source.is_file() else found.path / "meta.json").stat().st_mtime_ns
        if not target.exists() or target.stat().st_mtime_ns < newest:
            target.unlink(missing_ok=True)
            export(found, target, "perfetto")
    return target
