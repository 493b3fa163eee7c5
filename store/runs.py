"""Run folders: where they are, what is in them, how one is made and found."""

from __future__ import annotations

import datetime
import errno
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.contract.codec import DocumentError, to_json
from profrun.contract.paths import BUNDLE, LAUNCHES, TRIALS, TrialPaths, is_plain_name
from profrun.errors import InputError, UsageError
from profrun.store.events import EventLog, read_events
from profrun.store.files import explained, make_dir, read_json, write_json, write_text
from profrun.store.private import write_private
from profrun.store.seal import place_of

if TYPE_CHECKING:
    from profrun.contract.private import Private
    from profrun.plans.model import PlanFile

_STAMP = re.compile(r"-(\d{8}t\d{6}z)-[0-9a-f]{4}$", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """A run's folder and the names in it (docs/architecture.md)."""

    path: Path

    @property
    def name(self) -> str:
        """``<job>-<utc time>-<4 hex>``."""
        return self.path.name

    @property
    def job(self) -> Path:
        """The spec as it was given."""
        return self.path / "job.yaml"

    @property
    def resolved(self) -> Path:
        """A spec that repeats this run."""
        return self.path / "resolved.yaml"

    @property
    def plan(self) -> Path:
        """Every trial, in order."""
        return self.path / "plan.json"

    @property
    def events(self) -> Path:
        """The append-only log."""
        return self.path / "events.jsonl"

    @property
    def lock(self) -> Path:
        """The process that drives the run holds it."""
        return self.path / "lock"

    @property
    def cancel_request(self) -> Path:
        """Asks the driver to end: {"grace": seconds or null}."""
        return self.path / "cancel"

    @property
    def bundle(self) -> Path:
        """The in-job part, as it was shipped."""
        return self.path / BUNDLE

    @property
    def driver_log(self) -> Path:
        """What a detached driver printed."""
        return self.path / "driver.log"

    @property
    def comparison(self) -> Path:
        """The comparisons and expectations of the run."""
        return self.path / "comparison.json"

    @property
    def user_job(self) -> Path:
        """The job of which ``profrun improve`` made this run's one: with all its variants."""
        return self.path / "user-job.yaml"

    @property
    def improvement(self) -> Path:
        """What ``profrun improve`` tried on the program of this run, and what it gave."""
        return self.path / "improvement.json"

    @property
    def improved(self) -> Path:
        """The job with what helped, as ``profrun improve`` wrote it."""
        return self.path / "improved.yaml"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    @property
    def trials(self) -> Path:
        """The trials, one folder each."""
        return self.path / TRIALS

    @property
    def wrapper(self) -> Path:
        """The program that carries out one trial; its argument is the trial's folder."""
        return self.bundle / "run.py"

    def trial(self, trial_id: str) -> TrialPaths:
        """Folder of one trial, and the names in it.

        Raises:
            InputError: the id, which a document may state, is no plain name.
        """
        if not is_plain_name(trial_id):
            raise InputError(
                f"{self.path} is damaged",
                why=f"a trial is called {trial_id[:200]!r}, which is no name of a folder",
                fix="submit the job again",
            )
        return TrialPaths(self.trials / trial_id)

    def log(self) -> EventLog:
        """Appends events; only for the holder of the lock."""
        return EventLog(self.events)


def runs_root(folder: Path | str | None = None) -> Path:
    """The folder of the runs: the one given, else $PROFRUN_RUNS, else ./runs."""
    return Path(folder if folder is not None else os.environ.get("PROFRUN_RUNS") or "runs")


def run_name(job: str, now: datetime.datetime, token: str) -> str:
    """``<job>-<utc yyyymmddThhmmssZ>-<4 hex>``; ``now`` must be in UTC."""
    return f"{job}-{now:%Y%m%dT%H%M%SZ}-{token}"


def create(
    root: Path,
    job: str,
    *,
    spec_text: str,
    resolved_text: str,
    plan: Mapping[str, Any],
    backend: str,
    cwd: Path,
    version: str,
    private: Private | None = None,
) -> Run:
    """Make a run's folder with its first files; nothing is started.

    ``created`` is the first thing written and ``planned`` the last, so that a run that was killed in
    between can be told from a whole one.

    Args:
        private: the secrets that the other texts are without; None: the job has none.

    Raises:
        UnavailableError: the runs folder cannot be written or the disk is full.
    """
    make_dir(root)
    run = _new_folder(root, job)
    log = run.log()
    log.append(
        "created",
        run=run.name,
        job=job,
        backend=backend,
        cwd=str(cwd),
        profrun=version,
        **to_json(place_of(run.path)),
    )
    if private is not None:
        write_private(run.path, private)
    write_text(run.job, spec_text)
    write_text(run.resolved, resolved_text)
    write_json(run.plan, dict(plan))
    make_dir(run.trials)
    log.append("planned", trials=len(plan["trials"]))
    return run


def _new_folder(root: Path, job: str) -> Run:
    while True:
        name = run_name(job, datetime.datetime.now(datetime.timezone.utc), secrets.token_hex(2))
        run = Run((root / name).absolute())
        with explained(run.path):
            try:
                run.path.mkdir()
            except FileExistsError:
                continue  # the same second and the same token: draw again
        return run


def is_run(path: Path) -> bool:
    """Whether this is a run's folder.

    Raises:
        OSError: it cannot be looked at.
    """
    return (path / "events.jsonl").is_file()


def _possible(path: Path) -> bool:
    """Whether a file can have this path: it is not too long."""
    try:
        (path / "events.jsonl").exists()
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def all_runs(root: Path) -> list[Run]:
    """Every run under ``root``, oldest first by the time in its name (its log's age where there is none).

    Raises:
        UsageError: it is a file.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is no folder", fix="name the folder of the runs with --runs DIR")
    if not root.is_dir():
        return []
    with explained(root):
        found = [Run(path.absolute()) for path in root.iterdir() if is_run(path)]
    return sorted(found, key=_age)


def _age(run: Run) -> tuple[str, int, str]:
    stamp = _STAMP.search(run.name)
    modified = run.events.stat().st_mtime_ns
    if stamp:
        return stamp[1].upper(), modified, run.name
    moment = datetime.datetime.fromtimestamp(modified / 1e9, datetime.timezone.utc)
    return f"{moment:%Y%m%dT%H%M%SZ}", modified, run.name


def find(root: Path, reference: str) -> Run:
    """The run meant by a path, a name, the beginning of a name, or ``last``.

    Raises:
        UsageError: none or several match; says which there are.
    """
    path = Path(reference)
    possible = _possible(path)
    if possible and is_run(path):
        return Run(path.absolute())
    runs = all_runs(root)
    if reference == "last" and runs:
        return runs[-1]
    exact = [run for run in runs if run.name == reference]
    matches = exact or [run for run in runs if run.name.startswith(reference.rstrip("/"))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{reference!r} is the beginning of {len(matches)} runs",
            why=_some(matches),
            fix="give more of the name, or `last`",
        )
    if possible and (path / LAUNCHES).is_dir():
        raise UsageError(
            f"{reference} is no run yet",
            why="`profrun wrap` has recorded into it",
            fix=f"make a run of it: profrun normalize {reference}",
        )
    raise UsageError(
        f"no run {reference!r} in {root}",
        why=f"the runs there are {_some(runs)}" if runs else "there are no runs there",
        fix="see `profrun runs`, or name the folder with --runs DIR",
    )


def _some(runs: Sequence[Run], most: int = 3) -> str:
    """The newest few names."""
    names = [run.name for run in reversed(runs)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def created(run: Run) -> dict[str, Any]:
    """The run's first event: job, backend, cwd, profrun, and where it was made (``seal.Place``).

    Raises:
        InputError: the log holds none; this is not a run that profrun made.
    """
    for event in read_events(run.events).items:
        if event["event"] == "created":
            return event
    raise InputError(
        f"{run.path} is not a whole run", why="its events.jsonl has no 'created'", fix="submit the job again"
    )


def read_plan(run: Run) -> PlanFile:
    """``plan.json``.

    Raises:
        InputError: the run was killed before it was planned, or the file is damaged.
    """
    from profrun.plans.model import read_plan_file  # takes long; names of runs are completed without it

    plan = read_json(run.plan)
    if plan is None:
        raise InputError(
            f"{run.name} was never planned to the end",
            why="profrun was ended while it made the folder",
            fix="remove the folder and submit the job again",
        )
    try:
        found = read_plan_file(plan)
    except DocumentError as error:
        raise InputError(f"{run.plan} is damaged", why=str(error), fix="submit the job again") from error
    for trial in found.trials:
        run.trial(trial.id)
    return found
