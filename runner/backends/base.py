"""The seam between a run and what executes its trials.

A backend turns a trial into a request, a plain value that ``--dry-run`` prints and golden tests compare
(``render``), and carries it out. Every backend starts the same wrapper (``profrun.runner.in_job``) and
believes only the ``exit.json`` that the wrapper writes last; its own engine's word counts only where that
file is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from profrun.runner.model import Plan, Trial, TrialState


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
    """What executes trials. All methods raise ProfrunError subclasses only."""

    name: str

    def render(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Sequence[Request]:
        """The requests for these trials: pure, no engine is asked. One a trial, or one for many (arrays)."""

    def submit(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Mapping[str, Handle]:
        """Start these trials (or queue them); returns trial id -> handle. Local kinds start one at a time."""

    def status(self, handles: Mapping[str, Handle], run: Path) -> Mapping[str, Status]:
        """State of all of them, with as few questions to the engine as possible."""

    def logs(self, handle: Handle, run: Path, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the trial's output."""

    def cancel(self, handles: Mapping[str, Handle], run: Path, *, grace: float) -> None:
        """End these trials well: tell the wrapper, wait for reports, kill only after ``grace`` seconds."""
