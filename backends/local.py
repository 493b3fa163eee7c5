"""The local backend: a trial is a process on this machine, in a session of its own.

If profrun is killed, the trial goes on to its end and writes its files; ``profrun resume`` waits for it, or
finds it finished, and repeats nothing in either case. Whether it runs is told by a lock (``live`` in the
trial folder), which is taken before the process starts and inherited by it and by its guard
(``in_job.guard``). The kernel releases the lock with them, so that no process number in a file is mistaken
for a running process, and a trial whose wrapper was killed lives until the guard has ended its program.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profrun.backends.base import HERE, Lane, PreparedPlan, Request
from profrun.backends.environ import secret_env, withheld_notes
from profrun.backends.host import probe_host
from profrun.backends.local_checks import (
    busy_notes,
    check_machine,
    choose_gpus,
    left_out,
    newcomers,
    uses_seen,
)
from profrun.backends.tail import trial_lines
from profrun.contract.command import Command
from profrun.contract.ends import died_text
from profrun.contract.paths import TrialPaths
from profrun.contract.states import Status
from profrun.errors import UnavailableError
from profrun.in_job import leftovers, memory_kills
from profrun.in_job.gpu_use import GpuUse
from profrun.in_job.proctree import descendants
from profrun.plans.model import Plan, Trial
from profrun.store.documents import finalising, read_exit, request_cancel, status_of
from profrun.store.events import Handle
from profrun.store.files import appending, explained, last_line
from profrun.store.lock import is_held, patient_lock, sign
from profrun.store.runs import Run

_TERM_WAIT_S = 5.0
"""Between SIGTERM and SIGKILL, after the grace is over."""
_LEAVE_WAIT_S = 60.0
"""For a wrapper that has said how it ended: a busy machine takes seconds until the process is gone."""
_LOOK_S = 0.05


@dataclass(frozen=True)
class LocalPlan(PreparedPlan):
    """A plan with the environment that shows its programs their GPUs.

    Attributes:
        environ: variables that are set.
        unset: variables that are not handed on.
        busy: the GPUs that they see and that are in use already, as the user was told.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    busy: tuple[GpuUse, ...] = ()


class LocalBackend:
    """Trials as processes of this machine, one at a time, so that they do not change each other's times."""

    name = "local"
    concurrent = False
    poll_s = 0.05

    def __init__(self) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._kills: dict[Path, memory_kills.Kills] = {}  # when each trial was started, by its folder

    def lane(self, prepared: PreparedPlan, trial: Trial) -> Lane:
        """One trial at a time."""
        return HERE

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> LocalPlan:
        """GPUs, nodes and the working directory of this machine are checked; there is no image.

        Raises:
            UsageError: several nodes.
            UnavailableError: a GPU or the working directory is not there, or too few GPUs are free.
        """
        check_machine(plan.job)
        chosen = choose_gpus(plan.job, os.environ)
        told = (*left_out(plan.job), *withheld_notes(plan.job, cwd, os.environ))
        if chosen is None:
            uses = tuple(uses_seen(plan.job, os.environ))
            notes = busy_notes(uses) if plan.job.resources.gpus == "auto" else ()
            return LocalPlan(plan, cwd, (*told, *notes), busy=uses)
        from profrun.backends.gpu_choice import visible_env

        environ, unset = visible_env(chosen, probe_host().vendor)
        uses = tuple(uses_seen(plan.job, {**_without(os.environ, unset), **environ}))
        return LocalPlan(chosen.resolved(plan), cwd, (*told, *chosen.notes), environ, unset, uses)

    def adapt(self, prepared: LocalPlan, trial: Trial, run: Run, command: Command) -> Command:
        """The job sees this machine's paths. What the program prints is kept once, by the wrapper."""
        return replace(command, echo=False)

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        """Traces are made in this process."""
        return ()

    def render(self, prepared: LocalPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One shell line for each trial: what to type to do the same by hand."""
        return [_request(wrapper_argv(run, trial.id), prepared) for trial in trials]

    def submit(self, prepared: LocalPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Start these trials now.

        Raises:
            UnavailableError: a process cannot be started, or the trial is still alive from before.
        """
        secret = secret_env(prepared.plan.job, prepared.cwd)
        return {trial.id: self._start(prepared, run, trial.id, secret) for trial in trials}

    def _start(self, prepared: LocalPlan, run: Run, trial_id: str, secret: Mapping[str, str]) -> Handle:
        trial = run.trial(trial_id)
        environ = {**_without(os.environ, prepared.unset), **prepared.environ}
        others = newcomers(prepared.busy, uses_seen(prepared.plan.job, environ))
        live = patient_lock(trial.live)
        if live is None:
            raise UnavailableError(
                f"{trial_id} is running already",
                why="a process holds its lock",
                fix=f"end it with `profrun cancel {run.name}`",
            )
        kills = memory_kills.count()
        try:
            with explained(trial.wrapper_log), appending(trial.wrapper_log) as log:
                child = subprocess.Popen(
                    wrapper_argv(run, trial_id),
                    env={**environ, **secret},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(live,),
                )
            sign(live, pid=child.pid)
        finally:
            os.close(live)
        self._children[child.pid] = child
        self._kills[trial.folder] = kills
        note = {"note": "; ".join(others)} if others else {}
        return Handle(self.name, {"pid": child.pid, "host": socket.gethostname(), **note})

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of each trial: from ``exit.json`` if there is one, else from the lock."""
        return {trial_id: self._status(handle, run, trial_id) for trial_id, handle in handles.items()}

    def _status(self, handle: Handle, run: Run, trial_id: str) -> Status:
        trial = run.trial(trial_id)
        alive = self._alive(handle, trial)  # asked before the file is looked for: no gap between
        ended = read_exit(trial)
        if ended is not None:
            self._reap(handle)
            return status_of(ended)
        if alive:
            return finalising(trial) or Status("running")
        return Status("lost", self._why_lost(handle, trial))

    def _child(self, handle: Handle) -> subprocess.Popen[bytes] | None:
        """The wrapper, where this process has started it."""
        pid = handle.data.get("pid")
        return self._children.get(pid) if isinstance(pid, int) else None

    def _alive(self, handle: Handle, trial: TrialPaths) -> bool:
        child = self._child(handle)
        if child is not None and child.poll() is None:  # also reaps it
            return True
        return is_held(trial.live)

    def _reap(self, handle: Handle) -> None:
        """Wait until the wrapper has ended, so that the next trial has the machine for itself."""
        child = self._child(handle)
        if child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LEAVE_WAIT_S)

    def _why_lost(self, handle: Handle, trial: TrialPaths) -> str:
        """Why a trial without ``exit.json`` may have ended."""
        child = self._child(handle)
        code = child.returncode if child is not None else None
        killed = memory_kills.since(self._kills.get(trial.folder, memory_kills.Kills()))
        how = f"it {died_text(-code, killed)}" if code is not None and code < 0 else f"exit code {code}"
        text = "the wrapper ended without saying how" + (f" ({how})" if code is not None else "")
        line = last_line(trial.wrapper_log)
        return text + (f"; the last line of its log: {line}" if line else "")

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        """End the processes of this machine that carry the mark of these trials.

        The guard has done it in most cases: only if it was killed, too, something may be left.
        """
        folders = {str(run.trial(trial).folder.resolve()) for trial in trials}
        ended = leftovers.end_all(lambda folder, rank: folder in folders, grace)
        return f"of trials that are over {leftovers.ended_text(ended)}" if ended else None

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of stdout.log, then of stderr.log; with ``follow`` as they come, until the trial ends."""
        return trial_lines(self, handle, run, trial_id, follow=follow)

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """Ask the wrapper to end the app and let the profiler write; after ``grace`` s TERM, then KILL."""
        for trial_id, handle in handles.items():
            trial = run.trial(trial_id)
            request_cancel(trial, grace)
            self._end(handle, trial, grace)

    def _end(self, handle: Handle, trial: TrialPaths, grace: float) -> None:
        pid = self._pid(handle, trial)
        if pid is None or not self._alive(handle, trial):
            return
        if grace > 0:
            # The wrapper kills the app itself after its grace and then needs a moment to say how it ended.
            for number, wait_s in ((signal.SIGURG, grace + _TERM_WAIT_S), (signal.SIGTERM, _TERM_WAIT_S)):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
                if self._wait(handle, trial, wait_s):
                    return
        for group in {pid, *_groups_below(pid)}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._wait(handle, trial, _TERM_WAIT_S)

    def _wait(self, handle: Handle, trial: TrialPaths, seconds: float) -> bool:
        """Wait for its end; False when it still lives after ``seconds``."""
        deadline = time.monotonic() + seconds
        while self._alive(handle, trial):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def _pid(self, handle: Handle, trial: TrialPaths) -> int | None:
        """The wrapper's process, if it is one of this machine.

        A profrun that was killed between starting the process and writing its handle left no number: then
        the process is looked for by its command line (Linux).
        """
        pid = handle.data.get("pid")
        if not pid:
            return _find_wrapper(trial)
        if not isinstance(pid, int) or handle.data.get("host") != socket.gethostname():
            return None
        return pid if pid in self._children or _is_wrapper(pid, trial) else None


def machine_vendor(root: Path = Path("/")) -> str:
    """Whose GPUs this machine drives, by the kernel driver's device files: nvidia, amd, or auto.

    ``auto`` when there are none or both: then the wrapper finds out (under WSL there is neither file).
    """
    nvidia, amd = (root / "dev/nvidiactl").exists(), (root / "dev/kfd").exists()
    if nvidia == amd:
        return "auto"
    return "nvidia" if nvidia else "amd"


def make() -> LocalBackend:
    """The backend, for ``base.load``."""
    return LocalBackend()


def wrapper_argv(run: Run, trial_id: str) -> tuple[str, ...]:
    """How the wrapper of a trial is started on this machine. It needs only the standard library, so it runs
    with the Python that runs profrun; the user's command chooses its own."""
    return (sys.executable or "python3", str(run.wrapper), str(run.trial(trial_id).folder))


def _request(argv: tuple[str, ...], prepared: LocalPlan) -> Request:
    unset = [word for name in prepared.unset for word in ("-u", name)]
    given = [f"{name}={value}" for name, value in prepared.environ.items()]
    body: dict[str, object] = {"argv": list(argv), "new_session": True}
    if unset or given:
        body |= {"environ": dict(prepared.environ), "unset": list(prepared.unset)}
    return Request(text=shlex.join([*(["env", *unset, *given] if unset or given else []), *argv]), body=body)


def _without(environ: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}


def _groups_below(pid: int) -> set[int]:
    """Process groups of all descendants: the app may have been put into one of its own."""
    groups = set()
    for process in descendants(pid) if Path("/proc").is_dir() else ():
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(process.pid))
    return groups


def _find_wrapper(trial: TrialPaths) -> int | None:
    """The process that is this trial's wrapper."""
    for entry in Path("/proc").glob("[0-9]*"):
        if _is_wrapper(int(entry.name), trial):
            return int(entry.name)
    return None


def _is_wrapper(pid: int, trial: TrialPaths) -> bool:
    """Whether a process is this trial's wrapper, by its command line: its last argument is the trial's
    folder. A number in a file alone proves nothing: the process may have ended, and another one has it now.
    """
    if not Path("/proc/self/cmdline").exists():  # not Linux: the trial's lock has told that it lives
        return True
    with contextlib.suppress(OSError):
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return len(parts) > 2 and parts[-1] == os.fsencode(trial.folder) and parts[-2].endswith(b"run.py")
    return False
