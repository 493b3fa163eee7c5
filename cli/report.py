"""``profrun report RUN|TRACE...``, and the report that ends a run."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import emit, say
from profrun.errors import ProfrunError, UsageError

if TYPE_CHECKING:
    from profrun.reports.content import TraceContent
    from profrun.store.state import RunState, TrialRecord

TABS = 8
"""Most traces of a run with a tab of their own."""


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
            help="The file [default: the run's report.html, or NAME.html here].", show_default=False
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in a browser of this machine.")] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """One self-contained HTML file of a run or of traces."""
    from profrun.store.files import write_text
    from profrun.store.state import read_state

    words = what or ["last"]
    root = runs_root(runs)
    run = _run(words[0], root) if len(words) == 1 else None
    if run is not None:
        path, text = out or run.report, run_report(read_state(run))
    else:
        contents = [_content(word, root) for word in words]
        path = out or Path(f"{contents[0].name}.html")
        if out is None and path.exists():
            raise UsageError(f"{path} exists already", fix="name another with --out, which replaces it")
        text = _page(" / ".join(content.name for content in contents), contents)
    write_text(path, text, fix="name another file with --out")
    if json_:
        emit({"report": str(path), "bytes": path.stat().st_size, "run": run.name if run else None})
    else:
        say(str(path))
    if open_:
        _show(path)


def run_report(state: RunState) -> str:
    """The report of a run as HTML: whatever is there, and what is missing in words."""
    from profrun.cli.result import run_document, troubles
    from profrun.reports.run_content import RunContent

    missing: list[str] = []
    chosen, total = _chosen(state)
    contents = []
    for record in chosen:
        try:
            contents.append(_trial_content(record))
        except ProfrunError as error:  # one damaged trace must not take the report with it
            missing.append(f"{record.id} has no tab: {error}")
    if not state.run.comparison.exists():
        missing.append("comparisons, expectations and twins' kernels: they are made when a run ends")
    content = RunContent(
        document=run_document(state),
        job=_text(state.run.job),
        resolved=_text(state.run.resolved),
        step_times={record.id: record.steps.measured for record in state.trials},
        machines=_machines(state, missing),
        troubles=troubles(state),
        missing=missing,
        shown=len(contents),
        total=total,
    )
    return _page(state.run.name, contents, run=content)


def write_run_report(state: RunState) -> Path:
    """Write the run's report.html and return its path."""
    from profrun.store.files import write_text

    write_text(state.run.report, run_report(state))
    return state.run.report


def _run(word: str, root: Path) -> Any:
    """The run that a word names, None when it names something else."""
    from profrun.store.runs import find

    if Path(word).is_file() or (Path(word) / "meta.json").exists() or (Path(word) / "trace").exists():
        return None
    try:
        return find(root, word)
    except UsageError:
        if "/" in word:  # RUN/TRIAL
            return None
        raise


def _chosen(state: RunState) -> tuple[list[TrialRecord], int]:
    """The first profiled trace of each point, at most ``TABS``, and how many profiled traces there are."""
    from profrun.cli.traces import point_name

    profiled = [
        record
        for record in state.trials
        if record.trace is not None and record.collector != "none" and not record.normalise_error
    ]
    firsts: dict[str, TrialRecord] = {}
    for record in profiled:
        firsts.setdefault(point_name(record), record)
    return list(firsts.values())[:TABS], len(profiled)


def _trial_content(record: TrialRecord) -> TraceContent:
    import profrun
    from profrun.reports.content import content_of
    from profrun.store.files import read_json

    assert record.trace is not None
    with profrun.open(record.trace) as trace:
        provenance = read_json(record.paths.provenance)
        return content_of(trace, name=record.id, provenance=provenance, slices=2000)


def _content(reference: str, root: Path) -> TraceContent:
    from profrun.cli.traces import opened, shown_name
    from profrun.reports.content import content_of
    from profrun.store.files import read_json

    with opened(reference, root) as trace:
        path = Path(trace.path)
        name = shown_name(reference, path)
        return content_of(trace, name=name, provenance=read_json(path.parent / "provenance.json"))


def _machines(state: RunState, missing: list[str]) -> dict[str, Any]:
    from profrun.store.files import read_json

    found: dict[str, Any] = {}
    without = []
    for record in state.trials:
        with contextlib.suppress(ProfrunError):
            document = read_json(record.paths.provenance)
            if document is not None:
                found[record.id] = document
                continue
        if record.attempt:
            without.append(record.id)
    if without:
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        missing.append(f"{without[0]}{more} left no provenance: the machine is not known")
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _page(title: str, contents: Sequence[TraceContent], *, run: Any = None) -> str:
    from profrun import __version__
    from profrun.reports.page import report_html

    now = datetime.datetime.now(tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return report_html(title, contents, run=run, made_by=f"profrun {__version__}, {now}")


def _show(path: Path) -> None:
    import webbrowser

    from profrun.errors import UnavailableError

    if not webbrowser.open(path.absolute().as_uri()):
        raise UnavailableError("no browser could be started", fix=f"open {path.absolute()} yourself")
