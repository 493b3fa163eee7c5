"""The Slurm backend: submits arrays, asks once per round for all of them, and ends them so that reports are
kept."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profrun.backends.base import Lane, Request
from profrun.backends.cluster import by_site, phase_of, settle, vendor_of
from profrun.backends.environ import secret_env
from profrun.backends.mounts import need_sources
from profrun.backends.profilers import patience_s
from profrun.backends.slurm.allocation import SlurmPlan, check_fits, inside_of, parse_limits, settled, told
from profrun.backends.slurm.allocation_script import render_allocation
from profrun.backends.slurm.commands import Slurm, SlurmError
from profrun.backends.slurm.runtimes import check_shared, shared_mounts
from profrun.backends.slurm.script import render_script
from profrun.backends.slurm.shared_job import begin, read_order, read_turns
from profrun.backends.slurm.states import Row, ended_status, living_status, parse_sacct, parse_squeue
from profrun.backends.slurm.tasks import Group, Task, groups, shares
from profrun.backends.slurm.trace_step import trace_words
from profrun.backends.slurm.turns import Turn, ended_early, no_exit, skipped, turn_status
from profrun.backends.tail import trial_lines
from profrun.contract.codec import from_json
from profrun.contract.command import Command, ImageUsed
from profrun.contract.states import TERMINAL, Status
from profrun.errors import InputError, ProfrunError, UnavailableError, UsageError
from profrun.plans.model import Plan, Trial
from profrun.store.documents import interrupted, read_exit, request_cancel, status_of
from profrun.store.events import Handle
from profrun.store.files import last_line, make_dir, read_json, write_json, write_text
from profrun.store.lock import is_held
from profrun.store.runs import Run

_LAG_S = 15.0
"""How long ``exit.json`` may take to appear through a network filesystem after Slurm says it ended."""
_REQUEUE_S = 10.0
"""How long a requeued or preempted task may be reported as ended before it is reported as waiting again.
Slurm 22.05 reports FAILED in between."""
_MISSING_S = 60.0
"""How long a task may be unknown to squeue and sacct (whose database lags) before it counts as lost."""
_TERM_WAIT_S = 10.0


class SlurmBackend:
    """Trials as tasks of Slurm arrays.

    Args:
        slurm: what runs the commands.
        fastest, slowest: bounds of the time between two questions, seconds; it doubles while nothing changes.
    """

    name = "slurm"
    concurrent = True

    def __init__(self, slurm: Slurm | None = None, *, fastest: float = 5.0, slowest: float = 30.0) -> None:
        self.slurm = slurm or Slurm()
        self.poll_s = fastest
        self._fastest, self._slowest = fastest, slowest
        self._last: object = None
        self._since: dict[str, float] = {}  # trial -> monotonic time since when it is ended or unknown
        self._accounting = True
        self._ending = False  # somebody waits for the end: no back-off
        self.questions = 0

    def lane(self, prepared: SlurmPlan, trial: Trial) -> Lane | None:
        """Arrays and allocations keep the order themselves. What ``resume`` starts again waits until the
        allocation that still runs has ended: it may run in the same one.
        """
        cluster = prepared.plan.job.cluster
        return Lane("allocation", together=True) if shares(cluster) and not cluster.sites else None

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> SlurmPlan:
        """Cluster profiles become part of the job. Scripts that cannot be made and folders that the nodes
        will not see are refused. What the nodes have, only they know.

        Raises:
            UsageError: the cluster block is wrong, or the run folder is not where the nodes see it.
            UnavailableError: a mount's source is not in a folder that this machine shares with the nodes,
                Slurm's commands are not here, or its controller does not answer.
        """
        plan = settle(plan)
        check_shared(plan, run.path)
        for site, members in by_site(trials).items():
            render_script(plan, members, run.path, cwd)
            settings = plan.job.cluster.of_site(site)
            if (settings.runtime or "none") != "none":
                need_sources(shared_mounts(plan.job, settings, cwd))
        inside = inside_of(os.environ, plan)
        self._fastest = max(self._fastest, plan.job.cluster.poll or 0)
        limits: dict[str, float] = {}
        with contextlib.nullcontext() if ask else contextlib.suppress(UnavailableError):
            limits = parse_limits(self.slurm.run(["sinfo", "--noheader", "--format=%P|%l"]))
            if inside is not None:
                inside = told(inside, self._shown(inside.job))
        prepared = SlurmPlan(settled(plan, limits, inside), cwd, inside=inside)
        if inside is not None:
            check_fits(prepared.plan, inside)
        for number, group in enumerate(groups(prepared.plan, trials)):
            _script(prepared, group, run, number)
        return prepared

    def _shown(self, job: str) -> str:
        """What ``scontrol`` says of a job; nothing where it does not know it (any more)."""
        try:
            return self.slurm.run(["scontrol", "show", "job", "-o", job])
        except SlurmError as error:
            if error.code == "unknown-job":
                return ""
            raise

    def adapt(self, prepared: SlurmPlan, trial: Trial, run: Run, command: Command) -> Command:
        """The nodes see the same paths; whose GPUs they have, the site says."""
        plan = prepared.plan
        settings = plan.job.cluster.of_site(trial.site)
        told = replace(
            command,
            vendor=vendor_of(settings, plan),
            scratch=settings.scratch,
            echo=False,
            patience_s=patience_s(plan, trial),
        )
        if (settings.runtime or "none") != "none":
            told = replace(told, image=ImageUsed(plan.job.image))
        return told

    def render(self, prepared: SlurmPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One script for each array or shared allocation."""
        found = groups(prepared.plan, trials)
        return [_request(prepared, group, _script(prepared, group, run, n)) for n, group in enumerate(found)]

    def submit(self, prepared: SlurmPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Queue all of them.

        Raises:
            UsageError: the cluster block is wrong.
            UnavailableError: sbatch refuses, with its reason; what was queued before is cancelled.
        """
        secret = secret_env(prepared.plan.job, prepared.cwd)
        make_dir(run.path / "slurm")
        tasks: dict[str, Task] = {}
        try:
            for group in groups(prepared.plan, trials):
                tasks |= self._queue(prepared, group, run, secret)
        except ProfrunError:
            self._scancel([], sorted({task.id for task in tasks.values() if not task.inside}))
            raise
        self.poll_s = self._fastest
        return {trial: task.handle for trial, task in tasks.items()}

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        """A job of one task on a compute node, where the job asks for it."""
        return trace_words(plan.job.cluster.of_site(site))

    def _queue(
        self, prepared: SlurmPlan, group: Group, run: Run, secret: Mapping[str, str]
    ) -> dict[str, Task]:
        folder, inside = run.path / "slurm", prepared.inside
        number = len(list(folder.glob(f"{group.kind}*.sh")))
        name = f"{group.kind}{number}"
        script = folder / f"{name}.sh"
        trials = [trial.id for trial in group.trials]
        if group.shared:
            write_text(folder / f"{name}.turns", "".join(f"{trial}\n" for trial in trials))
        text = _script(prepared, group, run, number)
        shown = prepared.redactor.text(text)
        write_text(script, shown)
        whole = text if text != shown else None  # it has secrets: only Slurm is given them
        # Written before it is queued: if profrun is killed after that, the tasks are found by the job's name.
        known = {"trials": trials, "job": inside.job if inside else None, "inside": inside is not None}
        write_json(folder / f"{name}.json", known)
        if inside is not None:
            job = inside.job
            begin(script, {**os.environ, **secret}, whole)
        else:
            words = ["sbatch", "--parsable", *([str(script)] if whole is None else [])]
            said = self.slurm.run(words, text=whole, env=secret)
            job = said.strip().splitlines()[-1].split(";")[0]
            write_json(folder / f"{name}.json", {**known, "job": job})
        shared = name if group.shared else None
        return {trial: Task(job, n, shared, inside is not None) for n, trial in enumerate(trials)}

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
        shared = {task.allocation: task for task in tasks.values() if task is not None and task.allocation}
        rows |= {task.id: self._here(task, run) for task in shared.values() if task.inside}
        turns = {name: read_turns(run, name) for name in shared}
        self._back_off((rows, turns))
        return {trial: self._status(trial, task, rows, turns, run) for trial, task in tasks.items()}

    def _here(self, task: Task, run: Run) -> Row:
        """The script that runs in the allocation around profrun, as Slurm would tell of a job."""
        return Row("RUNNING" if is_held(run.path / f"slurm/{task.allocation}.lock") else "COMPLETED")

    def _ask(self, tasks: Sequence[Task]) -> dict[str, Row]:
        jobs = sorted({task.job for task in tasks if not task.inside}, key=int)
        if not jobs:
            return {}
        self.questions += 1
        rows = parse_squeue(self._squeue(jobs))
        missing = sorted({task.job for task in tasks if task.id not in rows and not task.inside}, key=int)
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

    def _back_off(self, answer: object) -> None:
        """Ask less and less often while nothing changes."""
        calm = answer == self._last and not self._ending
        self.poll_s = min(self.poll_s * 2, self._slowest) if calm else self._fastest
        self._last = answer

    def _status(
        self,
        trial: str,
        task: Task | None,
        rows: Mapping[str, Row],
        turns: Mapping[str, Mapping[str, Turn]],
        run: Run,
    ) -> Status:
        paths = run.trial(trial)
        ended = read_exit(paths)
        row = rows.get(task.id) if task is not None else None
        living = living_status(row) if row is not None else None
        turn: Turn | None = None
        if task is not None and task.allocation:
            turn = turns[task.allocation].get(trial)
            if living is not None:
                now = turn_status(task.job, living, turn, ended, cancelled=paths.cancel.exists())
                if now is not None:
                    return now
                if turn is not None and turn.state == "ended" and living.state != "queued":
                    living = None  # the job lives, but nothing more comes of this trial
                    row = Row("COMPLETED")
        if ended is not None and living is None:
            again = interrupted(ended) and ended.stopped_by == "SIGTERM"
            if (again or ended.silent) and not self._ending:
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
            if task is not None and task.allocation and (turn is None or turn.state == "skipped"):
                return skipped(turn) if turn is not None else ended_early(row.state)
            log = None if task is None else last_line(run.path / "slurm" / task.log(trial))
            return no_exit(turn, log) if turn is not None and turn.code else ended_status(row, log)
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
        found = [*(run.path / "slurm").glob("array*.json"), *(run.path / "slurm").glob("allocation*.json")]
        for file in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
            with contextlib.suppress(InputError):
                data = read_json(file) or {}
                if trial in data.get("trials", ()):
                    job = data.get("job") or self._job_named(run)
                    if job:
                        shared = file.stem if file.stem.startswith("allocation") else None
                        index = data["trials"].index(trial)
                        return Task(job, index, shared, bool(data.get("inside")))
        return None

    def _job_named(self, run: Run) -> str | None:
        """The newest job of this run that Slurm knows."""
        told = self.slurm.run(["squeue", "-h", "-t", "all", "-o", "%F", f"--name=profrun:{run.name}"])
        return max(told.split(), key=int, default=None)

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        """Nothing: slurmstepd ends all processes of a step with its tasks, and the guard does it, too."""
        return None

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
        for trial in tasks:
            request_cancel(run.trial(trial), grace, durable=False)
        whole = self._whole(tasks, run)
        with contextlib.suppress(ProfrunError):  # those that wait have nothing to write
            self._scancel(["--state=PENDING"], whole)
        if grace > 0:
            for signal in ("URG", "TERM"):
                self._scancel([f"--signal={signal}"], [*whole, *self._steps(tasks, whole)])
                wait_s = grace + 2 * _TERM_WAIT_S if signal == "URG" else _TERM_WAIT_S
                if self._wait(tasks, run, wait_s):
                    return
        self._scancel([], [*whole, *self._steps(tasks, whole)])

    def _whole(self, tasks: Mapping[str, Task], run: Run) -> list[str]:
        """Jobs and array tasks that profrun made and that no other trial needs."""
        found = {task.id for task in tasks.values() if not task.inside}
        for name in {task.allocation for task in tasks.values() if task.allocation}:
            rest = set(read_order(run, name)) - set(tasks)
            if any(read_exit(run.trial(trial)) is None for trial in rest):
                found -= {task.id for task in tasks.values() if task.allocation == name}
        return sorted(found)

    def _steps(self, tasks: Mapping[str, Task], whole: Sequence[str]) -> list[str]:
        """Running steps of trials whose allocation goes on without them."""
        jobs = {task.job for task in tasks.values() if task.allocation and task.id not in whole}
        found = []
        for job in sorted(jobs):
            with contextlib.suppress(ProfrunError):
                told = self.slurm.run(["squeue", "-h", "--steps", "-o", "%i|%j", "-j", job])
                rows = (line.strip().split("|", 1) for line in told.splitlines() if "|" in line)
                found += [step for step, name in rows if name.removeprefix("profrun:") in tasks]
        return found

    def _wait(self, tasks: Mapping[str, Task], run: Run, seconds: float) -> bool:
        """Until all have ended; False when some have not after ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(UnavailableError):
                if all(status.state in TERMINAL for status in self._states(tasks, run).values()):
                    return True
            time.sleep(min(self._fastest, seconds / 10))
        return False

    def _scancel(self, options: Sequence[str], tasks: Sequence[str]) -> None:
        """One scancel for many tasks; those that have ended already are no error."""
        for start in range(0, len(tasks), 500):
            with contextlib.suppress(UsageError, UnavailableError):
                self.slurm.run(["scancel", "--quiet", *options, *tasks[start : start + 500]])


def _script(prepared: SlurmPlan, group: Group, run: Run, number: int) -> str:
    plan, trials = prepared.plan, group.trials
    if not group.shared:
        return render_script(plan, trials, run.path, prepared.cwd)
    name = f"{group.kind}{number}"
    return render_allocation(plan, trials, run.path, prepared.cwd, name=name, inside=prepared.inside)


def _request(prepared: SlurmPlan, group: Group, text: str) -> Request:
    trials = [trial.id for trial in group.trials]
    argv = ["sbatch", "--parsable"] if prepared.inside is None else ["bash"]
    return Request(text, {"argv": argv, "script": text, "trials": trials})
