"""The HTML report of a run, or of traces: gathers what it shows and hands that to ``reports``."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.contract.codec import to_json
from profrun.errors import ProfrunError
from profrun.runner.comparison_sides import provenance_of
from profrun.runner.default_comparisons import point_name
from profrun.runner.problems import problems_of
from profrun.runner.references import opened, shown_name
from profrun.store.files import read_json, write_text
from profrun.store.run_result import run_result
from profrun.store.state import RunState, TrialRecord

if TYPE_CHECKING:
    from profrun.reports.content import TraceContent
    from profrun.reports.run_content import RunContent
    from profrun.traces.trace import Trace

TABS = 8
"""At most this many traces of a run have a tab of their own."""


def run_report(state: RunState) -> str:
    """The report of a run as HTML: whatever is there, and what is missing in words."""
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
        missing.append("comparisons and expectations: they are made when a run ends")
    content = RunContent(
        document=to_json(run_result(state)),
        job=_text(state.run.job),
        resolved=_text(state.run.resolved),
        step_times={record.id: record.steps.measured for record in state.trials},
        machines=_machines(state, missing),
        troubles=[str(problem) for problem in problems_of(state)],
        missing=missing,
        shown=len(contents),
        total=total,
    )
    return report_page(state.run.name, contents, run=content)


def write_run_report(state: RunState) -> Path:
    """Write the run's report.html and return its path."""
    write_text(state.run.report, run_report(state))
    return state.run.report


def traces_report(references: Sequence[str], root: Path) -> tuple[str, str]:
    """The report of one or more traces: its title and its HTML.

    Args:
        references: traces, trials (RUN/NUMBER) or profiler files.
        root: folder of the runs.
    """
    contents = [_content(reference, root) for reference in references]
    return contents[0].name, report_page(" / ".join(content.name for content in contents), contents)


def _chosen(state: RunState) -> tuple[list[TrialRecord], int]:
    """The first profiled trace of each point, at most ``TABS``, and how many profiled traces there are."""
    profiled = [
        record
        for record in state.trials
        if record.trace is not None and record.collector != "none" and not record.normalise_error
    ]
    firsts: dict[str, TrialRecord] = {}
    for record in profiled:
        firsts.setdefault(point_name(record.variant, record.collector, record.blocking), record)
    return list(firsts.values())[:TABS], len(profiled)


def _trial_content(record: TrialRecord) -> TraceContent:
    from profrun.traces.trace import Trace

    assert record.trace is not None
    with Trace(record.trace) as trace:
        return trace_content(trace, name=record.id, slices=2000)


def _content(reference: str, root: Path) -> TraceContent:
    with opened(reference, root) as trace:
        return trace_content(trace, name=shown_name(reference, Path(trace.path)))


def trace_content(trace: Trace, *, name: str, slices: int = 4000) -> TraceContent:
    """What the report shows of one trace.

    Args:
        name: what to call it.
        slices: the most slices of the timeline view.
    """
    from profrun.reports.content import content_of

    return content_of(trace, name=name, provenance=provenance_of(Path(trace.path)), slices=slices)


def _machines(state: RunState, missing: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    without = []
    for record in state.trials:
        with contextlib.suppress(ProfrunError):
            document = read_json(record.path / "provenance.json")
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


def report_page(title: str, contents: Sequence[TraceContent], *, run: RunContent | None = None) -> str:
    """One HTML document of these traces, and of a run where one is given."""
    from profrun.reports.page import report_html
    from profrun.version import VERSION

    now = datetime.datetime.now(tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return report_html(title, contents, run=run, made_by=f"profrun {VERSION}, {now}")
