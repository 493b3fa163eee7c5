"""The interface between the runner and what executes trials: ``Backend``, ``PreparedPlan`` and ``Request``.

A backend is asked in this order. ``prepare`` checks the plan, finds out what it needs to know (the image's
digest, the values of cluster profiles) and returns all of it as one value, a ``PreparedPlan``. ``adapt`` and
``render`` are pure functions of that value: what each trial is told, and the request that starts it, which
``--dry-run`` prints and golden tests compare. ``submit`` carries the requests out. Nothing is remembered
between these calls.

Every backend starts the same wrapper (``profrun.in_job``). How a trial ended is read from the ``exit.json``
that the wrapper writes last; what the engine says counts only where that file is missing. Before
``submit`` the caller (``profrun.runner``) has written the run's ``bundle/`` and, for each trial, its folder
with ``command.json``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from profrun.contract.command import Command
from profrun.contract.redact import Redactor
from profrun.contract.states import Status
from profrun.errors import UnavailableError, UsageError
from profrun.plans.model import Plan, Trial
from profrun.plans.public import redactor_of
from profrun.store.events import Handle
from profrun.store.runs import Run

BACKENDS = ("local", "docker", "slurm", "kubernetes")
"""Names of the backends; each is the module of that name here, with ``make() -> Backend``."""
WRAPPED = "wrap"
"""What stands for a backend in the log of a run whose trials another launcher started (``profrun wrap``)."""


@dataclass(frozen=True)
class PreparedPlan:
    """A plan with all that a backend found out about it before anything is made or started.

    A backend that finds out more has a subclass of its own.

    Attributes:
        plan: the plan; its job holds the values of cluster profiles and the image that is meant now, so that
            ``resolved.yaml`` repeats exactly this run.
        cwd: the folder that the job's relative paths count from.
        left_out: what of the job this backend leaves out, one sentence each.
    """

    plan: Plan
    cwd: Path
    left_out: tuple[str, ...] = ()

    @cached_property
    def redactor(self) -> Redactor:
        """Hides the plan's secrets in the copies of scripts and manifests that a run keeps."""
        return redactor_of(self.plan)


P = TypeVar("P", bound=PreparedPlan)


@dataclass(frozen=True)
class Lane:
    """Trials that wait for one another, because they would disturb each other's measurement.

    Attributes:
        name: the same for all trials of the lane, e.g. the site where they run.
        width: how many of them may be on their way at the same time.
        together: all that are to start are given to one ``submit``, and the engine keeps to ``width``. They
            wait only for trials of the lane that were started before.
    """

    name: str
    width: int = 1
    together: bool = False


HERE = Lane("here")
"""The lane of trials that run on this machine: one at a time."""


@dataclass(frozen=True)
class Request:
    """What leaves for the backend's engine, as a value.

    Attributes:
        text: how a person would do the same by hand: a shell line, an sbatch script, a manifest in YAML.
        body: the same for a machine: argv, keyword arguments of an SDK call, a manifest.
    """

    text: str
    body: Mapping[str, Any] = field(default_factory=dict)


class Backend(Protocol[P]):
    """What executes trials. All methods raise ProfrunError subclasses only.

    Attributes:
        name: as in ``BACKENDS``.
        concurrent: True when an engine queues trials, so that one that was submitted may start later, and may
            be started again after it was ended from outside. When each is submitted, ``lane`` says.
        poll_s: how often the caller should ask ``status``, seconds. Files are looked at more often.
    """

    name: str
    concurrent: bool
    poll_s: float

    def lane(self, prepared: P, trial: Trial) -> Lane | None:
        """What this trial waits behind; None: it is submitted at once with all others that have no lane,
        and the engine keeps the order. Pure, and the same for a run and for its ``resume``."""

    def prepare(self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True) -> P:
        """Refuse what cannot work, then find out what the other methods need to know.

        Called before the run folder is made, by a dry run, and by ``resume``; makes and writes nothing. What
        this machine knows by itself (GPUs, mounts, folders, settings) is checked first.

        Args:
            trials: those that are to be started.
            run: the run, whose folder may not be there yet.
            cwd: the folder that the job's relative paths count from.
            ask: False for a dry run: nothing is pulled, and an engine that does not answer is no error.

        Raises:
            UsageError: the job and this backend do not fit together.
            UnavailableError: a GPU, a folder, an image or the engine is not there.
        """

    def adapt(self, prepared: P, trial: Trial, run: Run, command: Command) -> Command:
        """``command.json`` as the job will see it. Pure. Where the job runs on this machine nothing changes.

        Args:
            command: with paths of this machine; ``cwd`` is the folder the command runs in.
        """

    def render(self, prepared: P, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """The requests for these trials: one for each trial, or one for many (arrays). Pure."""

    def submit(self, prepared: P, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Start or queue these trials; returns trial id -> handle."""

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        """Words before a command of this Python that carry it out where the traces of trials at this site
        are to be made; none: in this process. Pure."""

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of all of them, with as few questions to the engine as possible.

        A handle without data belongs to a trial whose driver was killed while it submitted: find out from the
        engine (by the trial's name) or the trial folder whether it was started; ``lost`` if it was not.
        """

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        """End what these trials, which are over, have left running; a sentence that names it, or None.

        The driver calls it before it starts a trial and when one has ended without a word. A backend whose
        engine ends everything of a trial with its wrapper has nothing to do.

        Args:
            trials: ids of trials of which no wrapper runs.
            grace: seconds between the request to end and the kill.
        """

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the trial's output."""

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """Ask the wrappers of these trials to end, so that profilers can write; kill after ``grace`` s."""


def load(name: str) -> Backend[PreparedPlan]:
    """The backend of this name.

    Raises:
        UsageError: there is none.
        UnavailableError: it needs a Python package that is not installed.
    """
    if name == WRAPPED:
        raise UsageError(
            "another launcher started the trials of this run with `profrun wrap`",
            fix="start, watch and end them with that launcher; then `profrun normalize` makes a run of them",
        )
    if name not in BACKENDS:
        raise UsageError(f"no backend {name!r}", fix=f"choose one of {', '.join(BACKENDS)}")
    try:
        module = importlib.import_module(f"profrun.backends.{name}")
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"backend {name} cannot be used", why=f"no Python package {error.name!r} here"
        ) from error
    return cast("Backend[PreparedPlan]", module.make())
