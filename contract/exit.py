"""``exit.json``: how a trial ended. The wrapper writes it last; every backend believes only this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .finding import Finding
from .steps import StepSign

FORMAT = 2

EndState = Literal["finished", "failed", "timeout", "cancelled"]
ArtefactState = Literal["whole", "truncated", "missing"]


@dataclass(frozen=True)
class Artefact:
    """One file that a trial left, or should have left.

    Attributes:
        path: relative to the trial folder; of a missing file the pattern that nothing matches.
        bytes: its size; 0 when it is missing.
        state: ``truncated``: begun and not finished.
    """

    path: str
    bytes: int
    state: ArtefactState


@dataclass(frozen=True)
class StepsSeen:
    """Steps of a rank: how they were found (``StepsFile.how``), and how many there were."""

    how: StepSign = "none"
    count: int = 0


@dataclass(frozen=True)
class Seconds:
    """Wall time of the parts of a trial, in seconds."""

    preflight: float = 0.0
    app: float = 0.0
    finalise: float = 0.0
    export: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Exit:
    """How one trial ended.

    Attributes:
        exit_code: of the user's command; None when a signal killed it or it never started.
        signal: name of the signal that killed it, like SIGTERM, else None.
        reason: why it did not finish, one sentence for people.
        code: stable short name of the reason, for programs.
        stopped_by: ``limit``; ``rank``: another rank had failed; ``profiler``: it had died; or the signal
            that asked the trial to end. None when it ended by itself.
        started_ns, ended_ns: unix time, ns.
        collector: as the job names it; ``profiler``: what it became.
        tool, tool_version: the executable, None for a profiler without one.
        argv: what was really started, secrets masked.
        ranges_emitted: ranges that the hook emitted.
        warnings: what is worth saying, each once.
        nodes: on which its ranks ran, as the cluster names them; empty where no cluster ran it.
        wrappers: how many wrappers the trial has, one for each rank that the engine started.
        silent: ranks whose wrappers had not said how they ended. The driver adds what they say later.
    """

    trial: str
    state: EndState
    attempt: int = 1
    rank: int = 0
    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None
    code: str | None = None
    stopped_by: str | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    seconds: Seconds = field(default_factory=Seconds)
    collector: str = "none"
    profiler: str | None = None
    tool: str | None = None
    tool_version: str | None = None
    vendor: str = "none"
    argv: tuple[str, ...] = ()
    steps: StepsSeen = field(default_factory=StepsSeen)
    ranges_emitted: int = 0
    artefacts: tuple[Artefact, ...] = ()
    warnings: tuple[Finding, ...] = ()
    nodes: tuple[str, ...] = ()
    wrappers: int = 1
    silent: tuple[int, ...] = ()
    format: int = FORMAT
