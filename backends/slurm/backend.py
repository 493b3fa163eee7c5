"""The Slurm backend: submits arrays, asks once per round for all of them, and ends them so that reports are
kept."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.backends.base import PreparedPlan, Request
from profrun.backends.cluster import by_site, phase_of, settle, vendor_of
from profrun.backends.environ import secret_env
from profrun.backends.mounts import need_sources
from profrun.backends.slurm.commands import Slurm, SlurmError
from profrun.backends.slurm.runtimes import shared_mounts
from profrun.backends.slurm.script import render_script
from profrun.backends.slurm.states import Row, ended_status, living_status, parse_sacct, parse_squeue
from profrun.backends.tail import trial_lines
from profrun.contract.codec import from_json, to_json
from profrun.contract.command import Command, ImageUsed
from profrun.contract.states import TERMINAL, Status
from profrun.errors import InputError, ProfrunError, UnavailableError, UsageError
from profrun.plans.model import Plan, Trial
from profrun.store.documents import interrupted, read_exit, request_cancel, status_of
from profrun.store.events import Handle
from profrun.store.files import last_line, make_dir, read_json, write_json, write_text
from profrun.store.runs import Run

MAX_ARRAY = 1000
"""Tasks per array. Slurm's MaxArraySize is 1001 unless the site raised it."""
_LAG_S = 15.0
"""How long ``exit.json`` may take to appear through a network filesystem after Slurm says it ended."""
_REQUEUE_S = 10.0
"""How long a requeued or preempted task may be reported as ended before it is reported as waiting again.
Slurm 22.05 reports FAILED in between."""
_MISSING_S = 60.0
"""How long a task may be unknown to squeue and sacct (whose database lags) before it counts as lost."""
_TERM_WAIT_S = 10.0


@dataclass(frozen=True)
class Task:
    """A trial as a task of an array job."""

    job: str
    index: int

    @property
    def id(self) -> str:
        """As Slurm's commands name it."""
        return f"{self.job}_{self.index}"

    @property
    def handle(self) -> Handle:
        """As the log keeps it."""
        return Handle("slurm", to_json(self))


class SlurmBackend:
    """Trials as tasks of Slurm arrays.

    Args:
        slurm: what runs the commands.
        fastest, slowest: bounds of the time between two questions, seconds; it doubles while nothing changes.
    """

    name = "slurm"
    concurrent = True

    def __init__(self, slurm: Slurm | None = None, *, fastest: float = 1.0, slowest: float = 30.0) -> None:
        self.slurm = slurm or Slurm()
        self.poll_s = fastest
        self._fastest, self._slowest = fastest, slowest
        self._last: dict[str, Row] = {}
        self._since: dict[str, float] = {}  # trial -> monotonic time since when it is ended or unknown
        self._accounting = True
        self._ending = False  # somebody waits for the end: no back-off
        self.questions = 0

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> PreparedPlan:
        """Cluster profiles become part of the job. Scripts that cannot be made and folders that the nodes
        will not see are refused. What the nodes have, only they know.

        Raises:
            UsageError: the cluster block is wrong, or the run folder is not where the nodes see it.
            UnavailableError: a mount's source is not in a folder that this machine shares with the nodes,
                Slurm's commands are not here, or its controller does not answer.
        """
        plan = settle(plan)
        _check_shared(plan, run)
        for chunk in _chunks(trials):
            render_script(plan, chunk, run.path, cwd)
            settings = plan.job.cluster.of_site(chunk[0].site)
            if (settings.runtime or "none") != "none":
                need_sources(shared_mounts(plan.job, settings, cwd))
        if ask:
            self.slurm.run(["sinfo", "--noheader", "--format=%R"])
        return PreparedPlan(plan, cwd)

    def adapt(self, prepared: PreparedPlan, trial: Trial, run: Run, command: Command) -> Command:
        """The nodes see the same paths; whose GPUs they have, the site says."""
        plan = prepared.plan
        settings = plan.job.cluster.of_site(trial.site)
        told = replace(command, vendor=vendor_of(settings, plan), scratch=settings.scratch)
        if (settings.runtime or "none") != "none":
            told = replace(told, image=ImageUsed(plan.job.image))
        return told

    def render(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One script for each array: at most ``MAX_ARRAY`` trials of one site."""
        return [_request(_script(prepared, chunk, run), chunk) for chunk in _chunks(trials)]

    def submit(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Queue all of them.

        Raises:
            UsageError: the cluster block is wrong.
            UnavailableError: sbatch refuses, with its reason; what was queued before is cancelled.
        """
        secret = secret_env(prepared.plan.job, prepared.cwd)
        make_dir(run.path / "slurm")
        tasks: dict[str, Task] = {}
        try:
            for chunk in _chunks(trials):
                tasks |= self._queue(chunk, _script(prepared, chunk, run), run, secret)
        except ProfrunError:
            self._scancel([], [task.id for task in tasks.values()])
            raise
        self.poll_s = self._fastest
        return {trial: task.handle for trial, task in tasks.items()}

    def _queue(
        self, chunk: Sequence[Trial], text: str, run: Run, secret: Mapping[str, str]
    ) -> dict[str, Task]:
        trials = [trial.id for trial in chunk]
        folder = run.path / "slurm"
        number = len(list(folder.glob("array*.sh")))
        script = folder / f"array{number}.sh"
        write_text(script, text)
        # Written before sbatch runs: if profrun is killed after that, the tasks are found by the job's name.
        write_json(folder / f"array{number}.json", {"trials": trials, "job": None})
        said = self.slurm.run(["sbatch", "--parsable", str(script)], env=secret)
        job = said.strip().splitlines()[-1].split(";")[0]
        write_json(folder / f"array{number}.json", {"trials": trials, "job": job})
        return {trial: Task(job, index) for index, trial in enumerate(trials)}

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of all, with one squeue, and one sacct for those that squeue has forgotten.

        Raises:
            UnavailableError: the controller cannot be reached.
        """
        if not handles:
            return {}
        return self._states({trial: self._task(trial, handle, run) for trial, handle in handles.items()}, run)

    def _states(self, tasks: Mapping[str, Task | None], run: Run) -> dict[str, Status]:
        rows = self._ask([task for task in tasks.values() if task is not None])
        self._back_off(rows)
        return {trial: self._status(trial, task, rows, run) for trial, task in tasks.items()}

    def _ask(self, tasks: Sequence[Task]) -> dict[str, Row]:
        jobs = sorted({task.job for task in tasks}, key=int)
        if not jobs:
            return {}
        self.questions += 1
        rows = parse_squeue(self._squeue(jobs))
        missing = sorted({task.job for task in tasks if task.id not in rows}, key=int)
        if missing and self._accounting:
            try:
                told = self.slurm.run(
                    ["sacct", "-X", "-n", "-P", "-o", "JobID,State,ExitCode", "-j", ",".join(missing)]
                )
                rows = {**parse_sacct(told), **rows}
            except ProfrunError as error:
                # A database that is down may come back; accounting that is off does not.
                off = isinstance(error, SlurmError) and error.code in ("no-accounting", "no-command")
                self._accounting = not off
        return rows

    def _squeue(self, jobs: Sequence[str]) -> str:
        argv = ["squeue", "-h", "-r", "-t", "all", "-o", "%i|%T|%r", "-j", ",".join(jobs)]
        try:
            return self.slurm.run(argv)
        except SlurmError as error:
            if error.code == "unknown-job":  # all of them are too old for the controller's memory
                return ""
            raise

    def _back_off(self, rows: dict[str, Row]) -> None:
        """Ask less and less often while nothing changes."""
        calm = rows == self._last and not self._ending
        self.poll_s = min(self.poll_s * 2, self._slowest) if calm else self._fastest
        self._last = rows

    def _status(self, trial: str, task: Task | None, rows: Mapping[str, Row], run: Run) -> Status:
        paths = run.trial(trial)
        ended = read_exit(paths)
        row = rows.get(task.id) if task is not None else None
        living = living_status(row) if row is not None else None
        if ended is not None and living is None:
            if interrupted(ended) and ended.stopped_by == "SIGTERM" and not self._ending:
                waited = time.monotonic() - self._since.setdefault(trial, time.monotonic())
                if waited < _REQUEUE_S:
                    return Status("finalising", "ended from outside; Slurm may start it again")
            return status_of(ended)
        if living is not None:
            self._since.pop(trial, None)
            if living.state == "failed" and task is not None:  # it would wait for ever
                self._scancel([], [task.id])
            return phase_of(living, paths)
        waited = time.monotonic() - self._since.setdefault(trial, time.monotonic())
        if row is not None:
            if waited < _LAG_S and row.state != "CANCELLED":
                return Status("finalising", f"Slurm says {row.state}; waiting for exit.json")
            log = None if task is None else last_line(run.path / "slurm" / f"{task.id}.log")
            return ended_status(row, log)
        if task is None:
            return Status("lost", "it was never queued")
        if paths.cancel.exists() and not paths.phase.exists():
            return Status("cancelled", "cancelled before it started")  # Slurm forgets such jobs at once
        if waited < _MISSING_S:
            return Status("finalising", "Slurm does not know the job any more; waiting for exit.json")
        return Status("lost", "Slurm does not know the job any more, and the wrapper left no exit.json")

    def _task(self, trial: str, handle: Handle, run: Run) -> Task | None:
        """The task, found again when the driver was killed before it wrote the handle down."""
        if handle.data.get("job"):
            return from_json(Task, handle.data)
        for file in sorted((run.path / "slurm").glob("array*.json"), reverse=True):
            with contextlib.suppress(InputError):
                data = read_json(file) or {}
                if trial in data.get("trials", ()):
                    job = data.get("job") or self._job_named(run)
                    if job:
                        return Task(job, data["trials"].index(trial))
        return None

    def _job_named(self, run: Run) -> str | None:
        """The newest array of this run that Slurm knows."""
        told = self.slurm.run(["squeue", "-h", "-t", "all", "-o", "%F", f"--name=profrun:{run.name}"])
        return max(told.split(), key=int, default=None)

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the wrapper's stdout.log and stderr.log, every rank's."""
        return trial_lines(self, handle, run, trial_id, follow=follow)

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """SIGURG to the steps (only the wrapper hears it), after the grace TERM, then a plain scancel.

        A plain scancel at once would kill a profiler that needs longer than KillWait (30 s) to write.
        """
        self._ending, self.poll_s = True, self._fastest
        found = {trial: self._task(trial, handle, run) for trial, handle in handles.items()}
        tasks = {trial: task for trial, task in found.items() if task is not None}
        ids = [task.id for task in tasks.values()]
        for trial in tasks:
            request_cancel(run.trial(trial), grace, durable=False)
        with contextlib.suppress(ProfrunError):  # those that wait have nothing to write
            self._scancel(["--state=PENDING"], ids)
        if grace > 0:
            for signal in ("URG", "TERM"):
                self._scancel([f"--signal={signal}"], ids)
                wait_s = grace + 2 * _TERM_WAIT_S if signal == "URG" else _TERM_WAIT_S
                if self._wait(tasks, run, wait_s):
                    return
        self._scancel([], ids)

    def _wait(self, tasks: Mapping[str, Task], run: Run, seconds: float) -> bool:
        """Until all have ended; False when some have not after ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(UnavailableError):
                if all(status.state in TERMINAL for status in self._states(tasks, run).values()):
                    return True
            time.sleep(min(1.0, seconds / 10))
        return False

    def _scancel(self, options: Sequence[str], tasks: Sequence[str]) -> None:
        """One scancel for many tasks; those that have ended already are no error."""
        for start in range(0, len(tasks), 500):
            with contextlib.suppress(UsageError, UnavailableError):
                self.slurm.run(["scancel", "--quiet", *options, *tasks[start : start + 500]])


def _chunks(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    for group in by_site(trials).values():
        for start in range(0, len(group), MAX_ARRAY):
            yield group[start : start + MAX_ARRAY]


def _script(prepared: PreparedPlan, chunk: Sequence[Trial], run: Run) -> str:
    return render_script(prepared.plan, chunk, run.path, prepared.cwd)


def _request(text: str, chunk: Sequence[Trial]) -> Request:
    trials = [trial.id for trial in chunk]
    return Request(text, {"argv": ["sbatch", "--parsable"], "script": text, "trials": trials})


def _check_shared(plan: Plan, run: Run) -> None:
    for site in by_site(plan.trials):
        shared = plan.job.cluster.of_site(site).shared
        if shared and not run.path.resolve().is_relative_to(Path(shared).expanduser().resolve()):
            raise UsageError(
                f"the run folder {run.path} is not in {shared}, which the nodes see (cluster.shared)",
                fix=f"submit with --runs {shared}/...",
            )
