"""One trial: its folder made ready, earlier attempts put aside, its files turned into a trace."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profrun.backends.base import Backend, P
from profrun.backends.environ import secret_names
from profrun.contract.codec import to_json
from profrun.contract.command import Command
from profrun.contract.paths import TrialPaths
from profrun.contract.profilers import UnknownProfilerError, profiler
from profrun.contract.public_command import private_command, public_command
from profrun.contract.safe_files import odd_kind
from profrun.contract.schedule import RECORDING_CUT
from profrun.errors import DiskFullError, FailedError, InputError, ProfrunError
from profrun.in_job.repository import Repositories
from profrun.in_job.withheld import close_files
from profrun.plans.model import Trial
from profrun.plans.public import redactor_of_trial
from profrun.runner.placement import Placed
from profrun.store.documents import read_command, whole_artefacts
from profrun.store.files import explained, make_dir, os_error, read_json, write_json, write_text
from profrun.store.private import forget_private, write_private
from profrun.store.runs import Run
from profrun.store.state import TrialRecord
from profrun.traces.meta import TrialEntry

_MOST_ATTEMPTS = 1_000_000
_NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)
"""Name of the folder of an earlier attempt."""
_INTERRUPTED = "Query interrupted"
"""What the trace engine makes of a KeyboardInterrupt that comes during a query."""


@dataclass(frozen=True)
class Normalised:
    """What became of a trial's files: a trace or the reason why there is none, and how long it took.

    Attributes:
        full: there is none because the disk is full.
    """

    trace: Path | None
    error: str | None
    seconds: float
    full: bool = False

    def event(self, run: Run) -> tuple[str, dict[str, Any]] | None:
        """Name and content of the event that the run's log keeps of it; None where nothing was to be made."""
        if self.error is not None:
            return "error", {"message": self.error, "seconds": self.seconds}
        if self.trace is not None:
            where = str(self.trace.relative_to(run.path))
            return "normalised", {"trace": where, "seconds": round(self.seconds, 3)}
        return None


def rotate(trial: TrialPaths) -> int:
    """Move what an earlier attempt left into ``attempts/<n>/``, whole; returns the next attempt's number.

    Raises:
        UnavailableError: the folder cannot be written.
    """
    folder, attempts = trial.folder, trial.attempts
    forget_private(folder)
    with explained(folder):
        earlier = sorted(int(path.name) for path in attempts.glob("[0-9]*") if _NUMBER.fullmatch(path.name))
        left = [path for path in folder.iterdir() if path != attempts] if folder.is_dir() else []
        if not left:
            return (earlier[-1] if earlier else 0) + 1
        number = _attempt_of(trial) or (earlier[-1] if earlier else 0) + 1
        target = attempts / str(number)
        target.mkdir(parents=True, exist_ok=True)
        # command.json is moved last: after a kill in between it still tells the attempt's number.
        for path in sorted(left, key=lambda item: item == trial.command):
            path.rename(target / path.name)
    return number + 1


def _attempt_of(trial: TrialPaths) -> int | None:
    try:
        told = read_command(trial)
    except InputError:
        return None
    return told.attempt if told is not None and 0 < told.attempt < _MOST_ATTEMPTS else None


def prepare(
    run: Run,
    prepared: P,
    trial: Trial,
    backend: Backend[P],
    placed: Placed | None = None,
    repositories: Repositories | None = None,
) -> int:
    """Make the trial's folder and write what the wrapper is told; returns the attempt's number.

    Args:
        placed: where its window lies, where that is not as the job says.
        repositories: asks git; trials that are started together share one.

    Raises:
        UnavailableError: the disk is full or the folder cannot be written.
    """
    paths = run.trial(trial.id)
    attempt = rotate(paths)
    make_dir(paths.raw)
    told = command(run, prepared, trial, backend, repositories or Repositories("submit"), attempt)
    if placed is not None:
        told = replace(told, schedule=placed.schedule.settled(), findings=(placed.finding,))
    told = replace(told, secrets=tuple(secret_names(prepared.plan.job, prepared.cwd)))
    redactor = redactor_of_trial(trial)
    private = private_command(told, redactor)
    if private is not None:
        write_private(paths.folder, private)
    write_json(paths.command, to_json(public_command(told, redactor)), durable=False)
    return attempt


def command(
    run: Run,
    prepared: P,
    trial: Trial,
    backend: Backend[P],
    repositories: Repositories,
    attempt: int = 1,
) -> Command:
    """``command.json`` of a trial on this backend, and what ``--dry-run`` shows.

    Args:
        repositories: asks git, with the paths of this machine; a backend may give the job others.
    """
    from profrun.plans.make import make_command

    here = make_command(prepared.plan, trial, run.name, attempt=attempt, cwd=str(prepared.cwd))
    here = replace(here, git=repositories.of(here.argv, here.cwd))
    return backend.adapt(prepared, trial, run, here)


def normalise(
    run: Run,
    record: TrialRecord,
    progress: Callable[[int, int | None], None] | None = None,
    *,
    out: Path | None = None,
) -> Normalised:
    """Turn what the trial left into ``trace/``. Never raises for bad files: they are kept, and named.

    Raises:
        KeyboardInterrupt: a signal asked for the end. Nothing is written down: ``resume`` does it again.

    A trial that was cancelled or failed is normalised too when something whole is there.

    Args:
        out: where the trace goes instead.
    """
    started = time.perf_counter()
    out = out or record.paths.trace
    try:
        files = sources(record)
        if not files:
            return Normalised(None, _nothing(record), time.perf_counter() - started)
        from profrun.collectors.normalize import normalize

        if record.trace is None and (record.paths.trace).is_dir():  # a damaged one, or half a copy
            shutil.rmtree(record.paths.trace)
        normalize(
            files,
            out,
            job=job_of(run, record),
            steps=record.paths.steps(),
            samples=record.paths.samples(),
            progress=progress,
        )
    except Exception as error:
        if _INTERRUPTED in str(error):
            raise KeyboardInterrupt from error
        told = error if isinstance(error, ProfrunError) else _crash(record.paths, error)
        seconds, full = time.perf_counter() - started, isinstance(told, DiskFullError)
        return Normalised(None, str(told), seconds, full)
    finally:
        if record.profiler is not None and _keeps_environment(record.profiler):
            close_files(record.paths.raw)  # readers make files beside those of the profiler
    return Normalised(out, None, time.perf_counter() - started)


def _keeps_environment(name: str) -> bool:
    try:
        return profiler(name).keeps_environment
    except UnknownProfilerError:
        return False


def job_of(run: Run, record: TrialRecord) -> TrialEntry:
    """What a trace keeps of its trial (``meta.job``)."""
    known: TrialEntry = {
        "run": run.name,
        "trial": record.id,
        "variant": record.variant,
        "collector": record.collector,
        "blocking": record.blocking,
        "repeat": record.repeat,
        "attempt": record.attempt,
        "state": record.state,
        "nodes": list(record.exit.nodes) if record.exit is not None else [],
        "cut": any(one.code == RECORDING_CUT for one in record.warnings),
    }
    for file in record.paths.steps()[:1]:
        work = (read_json(file) or {}).get("work")
        known["work"] = work if isinstance(work, dict) else None
    return known


def _nothing(record: TrialRecord) -> str | None:
    """Why there is nothing to normalise; None where none was to be expected."""
    if record.state != "finished" or record.collector == "none":
        return None
    return "the collector left nothing that can be read; see the trial's stderr.log"


def _crash(trial: TrialPaths, error: Exception) -> ProfrunError:
    """One line about an error nobody expected, so that it does not cost the other trials."""
    if isinstance(error, OSError):
        return os_error(error, trial.folder)
    if "No space left on device" in str(error):  # the trace engine's own words
        return os_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), trial.trace)
    crash = trial.folder / "normalise-crash.log"
    with contextlib.suppress(ProfrunError):
        write_text(crash, "".join(traceback.format_exception(error)), durable=False)
    return FailedError(f"bug in a reader ({type(error).__name__}: {error}); the traceback is in {crash}")


def sources(record: TrialRecord) -> list[Path]:
    """The files of a trial that make its trace: those of its artefacts that a reader takes, by content."""
    steps = [path for path in record.paths.steps() if odd_kind(path) is None]
    if record.collector == "none":
        return steps
    from profrun.collectors.normalize import readers, readers_of
    from profrun.collectors.sniff import make_source

    known = list(readers() if record.profiler is None else readers_of(record.profiler))
    found = [path for path in whole_artefacts(record.paths, record.exit) if path not in steps]
    return [path for path in found if any(reader.accepts(make_source(path)) for reader in known)]
