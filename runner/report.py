"""The HTML report of a run, or of traces: gathers what it shows and hands that to ``reports``."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.provenance import Provenance
from profrun.contract.redact import text
from profrun.errors import ProfrunError
from profrun.runner.answers import answer_of, diagnosed
from profrun.runner.comparison_sides import read_trials
from profrun.runner.default_comparisons import point_name, points_of, telling_points
from profrun.runner.finish import ReadTraces
from profrun.runner.mapped import addresses_of
from profrun.runner.places import places_of
from profrun.runner.problems import problems_of
from profrun.runner.progress import counted, no_progress
from profrun.runner.references import opened, shown_name
from profrun.runner.twins import unprofiled_step
from profrun.store.documents import provenance_beside, read_provenance
from profrun.store.files import read_text, write_text
from profrun.store.improvement import read_improvement
from profrun.store.run_result import read_findings
from profrun.store.state import RunState, TrialRecord

if TYPE_CHECKING:
    from profrun.analysis.compare import ComparedTrial
    from profrun.analysis.rules.diagnose import Diagnosis
    from profrun.analysis.trace.used_gpus import UsedGpus
    from profrun.collectors.reading import Progress
    from profrun.reports.change_section import Change
    from profrun.reports.content import RunContent, TraceContent
    from profrun.traces.trace import Trace

TABS = 8
"""At most this many traces of a run have a tab of their own."""
SLICES = 2_000_000
"""Most slices of all timelines of a report; its traces share them."""
_SPEC_BYTES = 16 << 20
"""Largest job file that a report shows."""
METRICS = 200
"""Most hardware counters of a trace that are shown."""


def run_report(
    state: RunState,
    read: ReadTraces | None = None,
    progress: Progress = no_progress,
    *,
    source: bool = False,
) -> str:
    """The report of a run as HTML: whatever is there, and what is missing in words.

    Args:
        state: the run and its trials.
        read: what is known of its traces already; the rest is read from them.
        progress: called with the number of readings that were begun, and how many there are.
        source: embed the source round the lines with most GPU time.
    """
    from profrun.reports.content import RunContent
    from profrun.reports.titles import run_title

    read = ReadTraces() if read is None else read
    missing: list[str] = []
    chosen, total = _chosen(state)
    named = len({record.variant for record in state.trials}) > 1
    contents = []
    for record in chosen:
        try:
            contents.append(
                _trial_content(record, state, read, named=named, slices=SLICES // len(chosen), source=source)
            )
        except ProfrunError as error:  # one damaged trace must not take the report with it
            missing.append(f"{record.id} has no tab: {error}")
    if not state.run.comparison.exists():
        missing.append("comparisons and expectations: they are made when a run ends")
    findings, _ = read_findings(state.run)  # problems_of says what is wrong with the file
    with_trace = sum(record.trace is not None for record in state.trials)
    another = counted(progress, 2 * with_trace)  # each is read for what changed, and for its GPUs
    changes, machines = _changes(state, read, missing, another), _machines(state, missing)
    content = RunContent(
        state=state,
        job=_text(state.run.job),
        resolved=_text(state.run.resolved),
        answers=findings.answers,
        comparisons=findings.comparisons,
        expectations=findings.expectations,
        machines=machines,
        used_gpus=_used_gpus(state, machines, read, another),
        troubles=[str(problem) for problem in problems_of(state)],
        missing=missing,
        improvement=read_improvement(state.run),
        shown=len(contents),
        total=total,
    )
    return report_page(run_title(state.job, findings.answers), contents, run=content, changes=changes)


def write_run_report(state: RunState, read: ReadTraces | None = None) -> Path:
    """Write the run's report.html and return its path; the arguments are those of ``run_report``."""
    write_text(state.run.report, run_report(state, read))
    return state.run.report


def traces_report(references: Sequence[str], root: Path, *, source: bool = False) -> tuple[str, str]:
    """The report of one or more traces: its title and its HTML.

    Args:
        references: traces, trials (RUN/NUMBER) or profiler files.
        root: folder of the runs.
        source: as of ``run_report``.
    """
    contents = [_content(reference, root, SLICES // len(references), source) for reference in references]
    return contents[0].name, report_page(" / ".join(content.name for content in contents), contents)


def _chosen(state: RunState) -> tuple[list[TrialRecord], int]:
    """The first profiled trace of each point, at most ``TABS``, and how many profiled traces there are."""
    profiled = [
        record
        for record in state.trials
        if record.trace is not None and record.collector != "none" and not record.maps
        if not record.normalise_error
    ]
    firsts: dict[str, TrialRecord] = {}
    for record in profiled:
        firsts.setdefault(point_name(record.variant, record.collector, record.blocking), record)
    return list(firsts.values())[:TABS], len(profiled)


def _trial_content(
    record: TrialRecord, state: RunState, read: ReadTraces, *, named: bool, slices: int, source: bool
) -> TraceContent:
    """What the report shows of a trial, with so many slices; ``named``: its tab states the variant."""
    from profrun.reports.titles import tab_name
    from profrun.traces.trace import Trace

    assert record.trace is not None
    with Trace(record.trace) as trace:
        found = read.diagnoses.get(record.id) or diagnosed(trace, record, state)
        content = trace_content(trace, name=record.id, slices=slices, found=found, source=source)
    return replace(
        content, tab=tab_name(record.variant, record.collector, blocking=record.blocking, named=named)
    )


def _content(reference: str, root: Path, slices: int, source: bool) -> TraceContent:
    with opened(reference, root) as trace:
        return trace_content(trace, name=shown_name(reference, trace.path), slices=slices, source=source)


def trace_content(
    trace: Trace, *, name: str, slices: int = SLICES, found: Diagnosis | None = None, source: bool = False
) -> TraceContent:
    """What the report shows of one trace.

    Args:
        trace: any trace.
        name: what to call it.
        slices: most slices of the timeline; kernels that were serialised have no timeline.
        found: its diagnosis; None to make it.
        source: embed the source round the lines with most GPU time.
    """
    from profrun.analysis.rules.diagnose import diagnosis
    from profrun.analysis.trace.call_tree import call_trees
    from profrun.analysis.trace.key_averages import key_averages
    from profrun.analysis.trace.memory import allocated
    from profrun.analysis.trace.op_shapes import op_shapes
    from profrun.analysis.trace.recorded_tables import hardware_metrics, reader_issues
    from profrun.analysis.trace.run_course import run_course
    from profrun.analysis.trace.step_spread import step_spread
    from profrun.analysis.trace.summary import summarize
    from profrun.analysis.trace.timeline_slices import timeline_slices
    from profrun.reports.content import TraceContent

    metrics, metric_count = hardware_metrics(trace, most=METRICS)
    if found is None:
        provenance, unprofiled = provenance_beside(trace.path), unprofiled_step(trace.path)
        found = diagnosis(trace, provenance=provenance, unprofiled=unprofiled, mapped=addresses_of(trace))
    summary = summarize(trace)
    places, places_missing = places_of(trace, source=source)
    return TraceContent(
        name=name,
        summary=summary,
        spread=step_spread(summary.steps),
        shapes=key_averages(trace, by_shapes=True) if op_shapes(trace).shapes else None,
        calls=call_trees(trace),
        places=places,
        places_missing=places_missing,
        findings=found.findings,
        memory=allocated(trace),
        timeline=None if trace.meta.get("replayed") else timeline_slices(trace, most=slices),
        run=run_course(trace),
        issues=reader_issues(trace),
        metrics=metrics,
        metric_count=metric_count,
        answer=answer_of(found, name),
        recorded_ns=None if found.cost.basis == "recording" else found.cost.recorded_ns,
    )


def _changes(
    state: RunState, read: ReadTraces, missing: list[str], another: Callable[[], None]
) -> list[Change]:
    """What changed from the first variant to each other one; a damaged trace is added to ``missing``."""
    from profrun.analysis.compare.point_pairs import compare_points
    from profrun.reports.change_section import Change
    from profrun.reports.compare_sentence import Called

    sides: dict[str, list[TrialRecord]] = {}
    for point in telling_points(points_of(state.trials)):
        sides.setdefault(point.variant, []).extend(point.trials)
    if len(sides) < 2:
        return []
    try:
        first, *others = [
            [_compared(record, read, another) for record in side] for side in list(sides.values())[: TABS + 1]
        ]
    except ProfrunError as error:
        missing.append(f"what changed between the variants: {error}")
        return []
    base, *variants = (f"{state.run.name}/{variant}" for variant in sides)
    return [
        Change(compare_points(first, other), Called((base, "vs", variant)))
        for other, variant in zip(others, variants, strict=False)
    ]


def _compared(record: TrialRecord, read: ReadTraces, another: Callable[[], None]) -> ComparedTrial:
    """The trace of a trial as comparisons take it."""
    another()
    assert record.trace is not None  # points hold trials with a trace only
    return read.trials.get(record.id) or read_trials([(record.id, record.trace)])[0]


def _machines(state: RunState, missing: list[str]) -> dict[str, Provenance]:
    """The provenance of each trial that left one; trials that ran and left none are added to ``missing``."""
    found: dict[str, Provenance] = {}
    without = []
    for record in state.trials:
        with contextlib.suppress(ProfrunError):
            known = read_provenance(record.paths)
            if known is not None:
                found[record.id] = known
                continue
        if record.attempt:
            without.append(record.id)
    if without:
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        missing.append(f"{without[0]}{more} left no provenance: the machine is not known")
    return found


def _used_gpus(
    state: RunState, machines: Mapping[str, Provenance], read: ReadTraces, another: Callable[[], None]
) -> dict[str, UsedGpus]:
    """The GPUs that each trial used; a trial whose trace is damaged is left out."""
    from profrun.analysis.trace.used_gpus import used_gpus
    from profrun.traces.trace import Trace

    found = dict(read.used_gpus)
    for record in state.trials:
        if record.trace is not None and record.id in machines and record.id not in found:
            another()
            with contextlib.suppress(ProfrunError), Trace(record.trace) as trace:
                found[record.id] = used_gpus(trace, machines[record.id])
    return found


def _text(path: Path) -> str | None:
    try:
        return text(read_text(path, _SPEC_BYTES))  # an older profrun hid nothing there
    except (FileNotFoundError, ProfrunError):
        return None


def report_page(
    title: str,
    contents: Sequence[TraceContent],
    *,
    run: RunContent | None = None,
    changes: Sequence[Change] = (),
) -> str:
    """One HTML document of these traces, and of a run and its variants where they are given."""
    from profrun.reports.page import report_html

    return report_html(title, contents, run=run, changes=changes, made_by=made_by())


def write_comparison(change: Change, path: Path) -> None:
    """Write the HTML page of a comparison.

    Raises:
        UnavailableError: the file cannot be written.
    """
    from profrun.reports.page import comparison_html

    write_text(path, comparison_html(change, made_by=made_by()))


def made_by() -> str:
    """The program and the time, for the foot of a page."""
    from profrun.version import VERSION

    now = datetime.datetime.now(tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return f"profrun {VERSION}, {now}"
