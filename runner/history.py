"""The history of jobs over runs: step times of each variant, run by run, from state documents alone.

No trace is opened, so that hundreds of runs take seconds. ``history_page`` is given the folder of the runs
and returns one HTML file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.profilers import UNPROFILED
from profrun.errors import ProfrunError
from profrun.runner.report import made_by
from profrun.runner.twins import step_of
from profrun.store.documents import read_provenance
from profrun.store.runs import Run, all_runs, created
from profrun.store.state import RunState, TrialRecord, read_state

if TYPE_CHECKING:
    from profrun.analysis.compare.history import MeasuredRun
    from profrun.analysis.rules.step_cost import UnprofiledStep
    from profrun.contract.provenance import Provenance
    from profrun.reports.content import HistoryContent, HistoryRun

Key = tuple[str, str, str]
"""Job, variant, collector."""


@dataclass(frozen=True)
class _Entry:
    """A run of a series, and what it is compared by."""

    shown: HistoryRun
    measured: MeasuredRun


def history_page(root: Path, out: Path) -> str:
    """The HTML page of all runs in a folder.

    Args:
        root: folder of the runs.
        out: the file that will hold the page; links to reports are relative to it.
    """
    from profrun.reports.history_page import history_html

    return history_html(read_history(root, out), made_by=made_by())


def read_history(root: Path, out: Path) -> HistoryContent:
    """The series of all runs in a folder, each run compared with the one before it."""
    from profrun.analysis.compare.history import changes
    from profrun.reports.content import HistoryContent, HistorySeries

    series: dict[Key, list[_Entry]] = {}
    left_out: list[str] = []
    runs = all_runs(root)
    for run in runs:
        try:
            found = _entries(read_state(run), out)
        except ProfrunError as error:
            left_out.append(f"{run.name}: {error}")
            continue
        for key, entry in found.items():
            series.setdefault(key, []).append(entry)
        if not found:
            left_out.append(f"{run.name}: no trial finished with a measured time")
    shown = []
    for (job, variant, collector), entries in series.items():
        marks = changes([one.measured for one in entries])
        rows = [replace(one.shown, change=mark) for one, mark in zip(entries, marks, strict=True)]
        shown.append(HistorySeries(job, variant, collector, rows))
    newest = sorted(shown, key=lambda one: -one.runs[-1].created_ns)
    return HistoryContent(str(root), len(runs), newest, left_out)


def _entries(state: RunState, out: Path) -> dict[Key, _Entry]:
    """What a run measured of each variant: without a profiler, else under the first with steps."""
    from profrun.analysis.compare.history import MeasuredRun
    from profrun.analysis.trial_times import trial_times
    from profrun.reports.content import HistoryRun

    found: dict[Key, _Entry] = {}
    for variant in dict.fromkeys(trial.variant for trial in state.trials):
        trials = _timed(state, variant)
        step = step_of(trials)
        if step is None:
            continue
        run = state.run
        link = os.path.relpath(run.report, out.absolute().parent) if run.report.exists() else None
        shown = HistoryRun(
            run=run.name,
            created_ns=state.created_ns,
            link=link,
            step_ns=step.ns,
            low_ns=step.low_ns,
            high_ns=step.high_ns,
            trials=step.trials,
            steps=step.steps,
            denominator=step.denominator,
        )
        machine, versions = _facts(run, trials[0], step)
        times = [known for trial in trials if (known := trial_times(trial))]
        key = (state.job, variant, trials[0].collector)
        found[key] = _Entry(shown, MeasuredRun(times, machine, versions))
    return found


def _timed(state: RunState, variant: str) -> list[TrialRecord]:
    """The trials of a variant whose steps are its step time."""
    usable = [
        trial
        for trial in state.trials
        if trial.variant == variant
        and trial.state == "finished"
        and not trial.blocking
        and not trial.serial
        and trial.steps.measured
    ]
    collectors = [trial.collector for trial in usable]
    chosen = UNPROFILED if UNPROFILED in collectors else next(iter(collectors), None)
    return [trial for trial in usable if trial.collector == chosen]


def _facts(run: Run, trial: TrialRecord, step: UnprofiledStep) -> tuple[dict[str, str], dict[str, str]]:
    """What the machine and the software were, by name; only what is known."""
    try:
        known = read_provenance(trial.paths)
    except ProfrunError:  # a damaged file: nothing is known, and nothing is called different
        known = None
    machine = {"clock": step.clock, "timed": step.denominator.of, **(_machine(known) if known else {})}
    versions = {"profrun": created(run).get("profrun"), **(_versions(known) if known else {})}
    return (
        {name: str(value) for name, value in machine.items() if value},
        {name: str(value) for name, value in versions.items() if value},
    )


def _machine(known: Provenance) -> dict[str, object]:
    gpus = [str(gpu.get("name") or gpu.get("card")) for gpu in known.gpus.before]
    return {"GPU": ", ".join(gpus), "CPU": known.cpu}


def _versions(known: Provenance) -> dict[str, object]:
    driver = next((gpu.get("driver_version") for gpu in known.gpus.before), None)
    return {
        "torch": known.torch.version if known.torch else None,
        "CUDA": known.cuda,
        "ROCm": known.rocm,
        "driver": driver,
        "Python": known.python,
        "git": known.git.sha,
        "host": known.host,
    }
