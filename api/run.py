"""``profrun.plan``, ``profrun.submit`` and runs: a job from Python."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.api.trace import Trace
from profrun.plans.model import Plan
from profrun.runner import pipeline
from profrun.runner.drive import Observer
from profrun.runner.references import trace_paths
from profrun.runner.report import write_run_report
from profrun.runner.watch import observed_state
from profrun.store import runs as store
from profrun.store.run_result import ExpectationResult, PairResult, RunResult, TrialResult, run_result
from profrun.store.state import RunPhase

if TYPE_CHECKING:
    from profrun.store.events import Event

RUNS = Path("runs")
"""Folder of the runs when none is given."""


class Silent:
    """An observer that shows nothing."""

    def event(self, event: Event) -> None:
        """Something was written to the run's log."""

    def tick(self, active: Sequence[str]) -> None:
        """Time passes."""

    def note(self, text: str) -> None:
        """Something to tell the person."""


class Run:
    """A run, by its folder. Every property reads the folder anew, so a run that goes on can be watched."""

    def __init__(self, folder: store.Run) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """``<job>-<utc time>-<4 hex>``."""
        return self._folder.name

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._folder.path

    @property
    def result(self) -> RunResult:
        """Everything that the run measured, as ``profrun submit --json`` prints it."""
        return run_result(observed_state(self._folder))

    @property
    def state(self) -> RunPhase:
        """running, interrupted, finished, failed, cancelled or broken."""
        return self.result.state

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """The trials, in the order in which they ran."""
        return self.result.trials

    @property
    def comparisons(self) -> tuple[PairResult, ...]:
        """The comparisons of the run's points; empty before its end."""
        return self.result.comparisons

    @property
    def expectations(self) -> tuple[ExpectationResult, ...]:
        """The expectations of the job; empty before the run's end."""
        return self.result.expectations

    def trace(self, trial: str | int) -> Trace:
        """The trace of one trial, by its id, the beginning of it, or its number.

        Raises:
            UsageError: there is no such trial.
            InputError: it has no trace.
        """
        return Trace(trace_paths(f"{self.path}/{trial}", self.path.parent)[0])

    def traces(self, point: str | None = None) -> list[Path]:
        """Folders of the finished traces: of all trials, or of a point (``baseline-torch``).

        ``profrun.compare`` takes such lists.
        """
        return trace_paths(f"{self.path}/{point}" if point else str(self.path), self.path.parent)

    def report(self) -> Path:
        """Write the run's HTML report; returns its path."""
        return write_run_report(observed_state(self._folder))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        result = self.result
        done = sum(trial.state == "finished" for trial in result.trials)
        lines = [f"{result.run}: {result.state}, {done} of {len(result.trials)} trials finished"]
        lines += [f"{pair.b} against {pair.a}: {pair.text}" for pair in result.comparisons]
        lines += [f"{row.expected}: {row.state}" for row in result.expectations]
        return f"<pre>{html.escape(chr(10).join(lines))}</pre>"


def plan(job: str | Path, *, set: Sequence[str] = (), backend: str = "local") -> Plan:
    """The trials of a job. Nothing is started.

    Args:
        job: the job spec, a YAML file.
        set: ``path=value`` overrides, as of ``profrun submit --set``.
        backend: local, docker, slurm or kubernetes.

    Raises:
        UsageError: the spec or an override is wrong.
    """
    return pipeline.plan(Path(job), set, backend=backend)


def submit(
    job: str | Path,
    *,
    backend: str = "local",
    set: Sequence[str] = (),
    runs: str | Path = RUNS,
    observer: Observer | None = None,
) -> Run:
    """Run a job to its end: plan, trials, traces, comparisons, report.

    Args:
        job: the job spec, a YAML file.
        backend: local, docker, slurm or kubernetes.
        set: ``path=value`` overrides.
        runs: folder of the runs.
        observer: is told what happens; None shows nothing.

    Returns:
        The run; whether its trials finished is in ``Run.state`` and ``Run.trials``.

    Raises:
        UsageError, UnavailableError: the job cannot be run here; nothing is left behind.
        ProfrunError: the comparisons or the report could not be made; the run is kept.
    """
    prepared = pipeline.prepare(
        plan(job, set=set, backend=backend), Path(job), backend=backend, root=Path(runs), cwd=Path.cwd()
    )
    state = pipeline.execute(prepared, observer or Silent())
    for problem in pipeline.finish(state, prepared.plan):
        raise problem
    return Run(prepared.run)


def find_run(reference: str = "last", *, runs: str | Path = RUNS) -> Run:
    """A run by its name, the beginning of its name, its path, or ``last``.

    Raises:
        UsageError: there is none, or several match.
    """
    return Run(store.find(Path(runs), reference))


def all_runs(*, runs: str | Path = RUNS) -> list[Run]:
    """Every run in a folder, the oldest first."""
    return [Run(folder) for folder in store.all_runs(Path(runs))]
