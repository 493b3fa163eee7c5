"""The seam between a run and what executes its trials.

A backend turns a trial into a request, a plain value that ``--dry-run`` prints and golden tests compare
(``render``), and carries it out. Every backend starts the same wrapper (``profrun.in_job``) and
believes only the ``exit.json`` that the wrapper writes last; its own engine's word counts only where that
file is missing.

Before ``submit`` the caller (``profrun.runner.submit``) has written, for each of these trials, the trial
folder with ``command.json`` and the run's ``bundle/``. ``command.json`` speaks of the caller's machine: its
``cwd`` is the folder the job was submitted from. A backend whose job sees other paths, or that knows the
image's digest, rewrites ``cwd``, ``env`` and ``image`` with ``adapt`` (which ``--dry-run`` shows too).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from profrun.contract.states import TrialState
from profrun.errors import UnavailableError, UsageError
from profrun.plans.model import Plan, Trial

BACKENDS = ("local", "docker", "slurm", "kubernetes")
"""Names of the backends; each is the module of that name here, with ``make() -> Backend``."""

TERMINAL: frozenset[TrialState] = frozenset({"finished", "failed", "timeout", "cancelled", "lost"})
"""States that nothing follows."""


@dataclass(frozen=True)
class TrialPaths:
    """Where a trial of a run lives, on the machine that calls."""

    run: Path
    trial: Path

    @property
    def command(self) -> Path:
        """What the wrapper is told (docs/architecture.md, command.json)."""
        return self.trial / "command.json"

    @property
    def exit(self) -> Path:
        """How it ended; written last by the wrapper."""
        return self.trial / "exit.json"

    @property
    def raw(self) -> Path:
        """The profiler's own files, one folder a rank."""
        return self.trial / "raw"

    @property
    def trace(self) -> Path:
        """The normalised trace."""
        return self.trial / "trace"


@dataclass(frozen=True)
class Request:
    """What leaves for the backend's engine, as a value.

    Attributes:
        text: how a person would do the same by hand: a shell line, an sbatch script, a manifest in YAML.
        body: the same for a machine: argv, keyword arguments of an SDK call, a manifest.
    """

    text: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Handle:
    """What a backend needs to find its work again from another process: JSON-safe values only."""

    backend: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Status:
    """State of one trial as the backend sees it, with a reason a person understands."""

    state: TrialState
    reason: str | None = None
    exit_code: int | None = None


class Backend(Protocol):
    """What executes trials. All methods raise ProfrunError subclasses only.

    Attributes:
        name: as in ``BACKENDS``.
        concurrent: True when ``submit`` may be given all trials at once (an engine queues them); False when
            the caller gives one, waits for its end, gives the next.
        poll_s: how often the caller should ask ``status``, seconds. Files are looked at more often.
    """

    name: str
    concurrent: bool
    poll_s: float

    def check(self, plan: Plan, trials: Sequence[Trial], run: Path, cwd: Path) -> Sequence[str]:
        """Refuse what this machine already knows cannot work: GPUs, mounts, folders, settings.

        Asked before the run folder is made, by a dry run, and by ``resume``; writes nothing and asks no
        engine, so what only the engine knows is still refused by ``pin`` or ``submit``.

        Args:
            run: where the run's folder is or will be.
            cwd: the folder the job was submitted from.

        Returns:
            What of the job this backend leaves out, a sentence each.
        """

    def pin(self, plan: Plan) -> Plan:
        """The plan with its image replaced by exactly the one meant now; the identity where there is none.

        Asked once, before the run folder is made: ``resolved.yaml`` then repeats exactly this run.
        """

    def adapt(self, plan: Plan, trial: Trial, run: Path, command: Mapping[str, Any]) -> dict[str, Any]:
        """``command.json`` as the job will see it. Pure; the identity where the job runs on this machine."""

    def render(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Sequence[Request]:
        """The requests for these trials: pure, no engine is asked. One a trial, or one for many (arrays)."""

    def submit(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Mapping[str, Handle]:
        """Start these trials (or queue them); returns trial id -> handle. Local kinds start one at a time."""

    def status(self, handles: Mapping[str, Handle], run: Path) -> Mapping[str, Status]:
        """State of all of them, with as few questions to the engine as possible.

        A handle without data belongs to a trial whose driver was killed while it submitted: find out from the
        engine (by the trial's name) or the trial folder whether it was started; ``lost`` if it was not.
        """

    def logs(self, handle: Handle, run: Path, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the trial's output."""

    def cancel(self, handles: Mapping[str, Handle], run: Path, *, grace: float) -> None:
        """End these trials well: tell the wrapper, wait for reports, kill only after ``grace`` seconds."""


def load(name: str) -> Backend:
    """The backend of this name.

    Raises:
        UsageError: there is none.
        UnavailableError: it needs a Python package that is not installed.
    """
    if name not in BACKENDS:
        raise UsageError(f"no backend {name!r}", fix=f"choose one of {', '.join(BACKENDS)}")
    try:
        module = importlib.import_module(f"profrun.backends.{name}")
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"backend {name} cannot be used", why=f"no Python package {error.name!r} here"
        ) from error
    return cast(Backend, module.make())
