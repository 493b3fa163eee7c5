"""``profrun.plan``, ``profrun.submit`` and runs: a job from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.api.results import Result
from profrun.api.table import Table, table_of_field
from profrun.api.trace import Trace
from profrun.errors import FailedError
from profrun.plans.model import Plan
from profrun.runner import pipeline
from profrun.runner.drive import Observer
from profrun.runner.planning import spec_at
from profrun.runner.references import one_trace, trace_paths
from profrun.runner.report import write_run_report
from profrun.runner.watch import observed_state
from profrun.store import runs as store
from profrun.store.run_claims import ClaimResult
from profrun.store.run_result import PairResult, RunResult, TrialResult, run_result
from profrun.store.state import RunPhase

if TYPE_CHECKING:
    from profrun.analysis.trace.variation import Variation
    from profrun.store.events import Event


class Silent:
    """An observer that shows nothing."""

    def event(self, event: Event) -> None:
        """Something was written to the run's log."""

    def tick(self, active: Sequence[str]) -> None:
        """Time passes; these trials are on their way."""

    def note(self, text: str) -> None:
        """Something to tell the person."""


class Run(Result):
    """A run, by its folder. Every property reads the folder anew, so a run that goes on can be watched."""

    def __init__(self, folder: store.Run) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """``<job>-<utc time>-<4 hex>``."""
        return self._folder.name

    @property
    def path(self) -> Path:
        """The run's folder, absolute."""
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
    def expectations(self) -> tuple[ClaimResult, ...]:
        """What the run says of each expectation of the job; empty before the run's end."""
        return self.result.expectations

    def trace(self, trial: str | int) -> Trace:
        """The trace of one trial, by its id, the beginning of it, or its number.

        Raises:
            UsageError: there is no such trial, or the name is that of several.
            InputError: it has no trace.
        """
        return Trace(one_trace(f"{self.path}/{trial}", self.path.parent))

    def traces(self, point: str | None = None) -> list[Path]:
        """Folders of the traces: of all trials, or of the finished trials of a point (``baseline-torch``).

        ``profrun.compare`` takes such lists.

        Raises:
            UsageError: there is no such point.
            InputError: there is no trace.
        """
        return trace_paths(f"{self.path}/{point}" if point else str(self.path), self.path.parent)

    def variation(self, point: str) -> Variation:
        """Why the trials of a point take different times: shares of the variance, by cause; from 5 trials on.

        Args:
            point: as ``traces`` takes it, such as ``baseline-none``.

        Raises:
            UsageError: there is no such point.
            InputError: there is no trace.
        """
        from profrun.analysis.trace.trial_variation import trial_facts, trial_variation

        found = []
        for path in self.traces(point):
            with Trace(path) as trace:
                found.append(trial_facts(trace))
        return trial_variation([one for one in found if one is not None])

    def report(self) -> Path:
        """Write the run's HTML report; returns its path."""
        return write_run_report(observed_state(self._folder))

    def table(self, name: str) -> Table:
        """The trials, comparisons or expectations as a table; see ``RunResult``.

        Raises:
            UsageError: there is no such table.
        """
        return table_of_field(self.result, name)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def __str__(self) -> str:
        result = self.result
        done = sum(trial.state == "finished" for trial in result.trials)
        lines = [f"{result.run}: {result.state}, {done} of {len(result.trials)} trials finished"]
        lines += [f"{pair.b} against {pair.a}: {pair.text}" for pair in result.comparisons]
        lines += [f"{row.claim}: {row.state}" for row in result.expectations]
        return "\n".join(lines)


def plan(job: str | Path, *, set: str | Sequence[str] = (), backend: str = "local") -> Plan:
    """The trials of a job. Nothing is started.

    Args:
        job: the job spec, a YAML file.
        set: ``path=value`` overrides, one or several, as of ``profrun submit --set``.
        backend: local, docker, slurm or kubernetes.

    Raises:
        UsageError: the spec or an override is wrong.
    """
    return pipeline.plan(spec_at(Path(job)), overrides_of(set), backend=backend)


def overrides_of(given: str | Sequence[str]) -> Sequence[str]:
    """``path=value`` overrides, one or several, as a list."""
    return [given] if isinstance(given, str) else given


def submit(
    job: str | Path,
    *,
    backend: str = "local",
    set: str | Sequence[str] = (),
    cwd: str | Path | None = None,
    runs: str | Path | None = None,
    observer: Observer | None = None,
) -> Run:
    """Run a job to its end: plan, trials, traces, comparisons, report.

    Ctrl-C ends the run well: the trials that ended are kept, and ``profrun resume`` goes on with it.

    Args:
        job: the job spec, a YAML file.
        backend: local, docker, slurm or kubernetes.
        set: ``path=value`` overrides, one or several.
        cwd: folder that the job's relative paths count from; None for the folder of the job file.
        runs: folder of the runs; None for $PROFRUN_RUNS or ./runs.
        observer: is told what happens, in this thread; None shows nothing.

    Returns:
        The run; whether its trials finished is in ``Run.state`` and ``Run.trials``.

    Raises:
        UsageError, UnavailableError: the job cannot be run here; nothing is left behind.
        FailedError: the trials ran, but the comparisons or the report could not be made.
    """
    told = observer or Silent()
    spec = spec_at(Path(job), Path(cwd) if cwd is not None else None)
    planned = pipeline.plan(spec, overrides_of(set), backend=backend)
    prepared = pipeline.prepare(planned, spec, backend=backend, root=store.runs_root(runs))
    for text in (*planned.job.warnings, *prepared.left_out):
        told.note(text)
    state = pipeline.execute(prepared, told)
    problems = pipeline.finish(state, prepared.plan)
    if problems:
        raise FailedError(
            f"{prepared.run.name} ran, but its comparisons or its report could not be made",
            why="; ".join(str(problem) for problem in problems),
            fix=f"see profrun.find_run({str(prepared.run.path)!r})",
        ) from problems[0]
    return Run(prepared.run)


def find_run(reference: str | Path = "last", *, runs: str | Path | None = None) -> Run:
    """A run by its name, the beginning of its name, its path, or ``last``.

    Args:
        reference: which run.
        runs: folder of the runs; None for $PROFRUN_RUNS or ./runs.

    Raises:
        UsageError: there is none, or several match.
    """
    return Run(store.find(store.runs_root(runs), str(reference)))


def all_runs(*, runs: str | Path | None = None) -> list[Run]:
    """Every run in a folder, the oldest first.

    Args:
        runs: folder of the runs; None for $PROFRUN_RUNS or ./runs.
    """
    return [Run(folder) for folder in store.all_runs(store.runs_root(runs))]
