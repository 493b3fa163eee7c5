"""The state of a run, folded from its log and its files alone.

Any process on any machine that sees the folder gets the same answer. Where log and ``exit.json`` disagree,
``exit.json`` is right: the wrapper writes it last, the log may have been cut off by a kill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from profrun.contract.exit import Exit
from profrun.contract.finding import Finding
from profrun.contract.paths import TrialPaths
from profrun.contract.profilers import MAPPING, all_serial
from profrun.contract.states import TERMINAL, TrialState
from profrun.errors import InputError
from profrun.plans.model import Trial
from profrun.store.documents import Steps, read_exit, read_steps, status_of
from profrun.store.events import Event, Handle, read_events
from profrun.store.lock import is_held
from profrun.store.runs import Run, created, read_plan

RunPhase = Literal["running", "interrupted", "finished", "failed", "cancelled", "broken"]
"""``interrupted``: not at its end and nobody drives it; ``broken``: it was never planned to the end."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial as the folder tells it.

    Attributes:
        attempt: which execution this is, from 1; 0 when it never started.
        exit_code: of the user's command; None when it has none (killed, never started).
        started_ns, ended_ns: unix ns, None when not known.
        trace: the normalised trace, None when there is none.
        steps: step times as the hook measured them.
        code: short name of the reason where a program decides by it, else None.
        exit: its ``exit.json``, None when there is none.
        collector: as the job names it.
        profiler: what the collector became; None while that is not known.
        serial: kernels run one at a time under that profiler, so its times are no timeline's.
    """

    id: str
    index: int
    variant: str
    collector: str
    blocking: bool
    repeat: int
    state: TrialState
    paths: TrialPaths
    reason: str | None = None
    exit_code: int | None = None
    code: str | None = None
    attempt: int = 0
    started_ns: int | None = None
    ended_ns: int | None = None
    handle: Handle | None = None
    trace: Path | None = None
    normalise_error: str | None = None
    steps: Steps = field(default_factory=Steps)
    exit: Exit | None = None
    profiler: str | None = None
    serial: bool = False

    @property
    def maps(self) -> bool:
        """Whether it is a mapping of kernels to lines: its times are no measurement."""
        return self.collector == MAPPING

    @property
    def ended(self) -> bool:
        """Whether it has ended; only ``resume`` starts it again."""
        return self.state in TERMINAL

    @property
    def failed(self) -> bool:
        """Whether it ended in another way than it was meant to: not where it was cancelled, or not needed."""
        return self.ended and self.state not in ("finished", "skipped", "cancelled")

    @property
    def took_ns(self) -> int | None:
        """From its start to its end, ns; None where one of them is not known."""
        if self.started_ns is None or self.ended_ns is None:
            return None
        return self.ended_ns - self.started_ns

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What the wrapper found worth saying."""
        return self.exit.warnings if self.exit is not None else ()


@dataclass(frozen=True)
class RunState:
    """A run as its folder tells it.

    Attributes:
        driven: somebody holds the run's lock now.
        cancelled_by: name of the signal that asked for the end of a cancelled run, or "profrun cancel"; else
            None.
        notes: what could not be read.
    """

    run: Run
    job: str
    backend: str
    cwd: Path
    created_ns: int
    phase: RunPhase
    driven: bool
    trials: tuple[TrialRecord, ...]
    cancelled_by: str | None = None
    notes: tuple[str, ...] = ()

    def count(self, *states: str) -> int:
        """Trials in one of these states."""
        return sum(trial.state in states for trial in self.trials)


def read_state(run: Run) -> RunState:
    """Read a run back from disk.

    Raises:
        InputError: the folder is not a run that profrun made.
    """
    first = created(run)
    events = read_events(run.events)
    notes = [f"{events.unreadable} unreadable lines in events.jsonl"] if events.unreadable else []
    driven = is_held(run.lock)
    try:
        planned = read_plan(run).trials
        records = tuple(_record(run, item, _of(events.items, item.id), notes) for item in planned)
        phase = _phase(events.items, records, driven)
    except InputError as error:
        records = ()
        phase = "running" if driven else "broken"
        notes.append(str(error))
    return RunState(
        run=run,
        job=str(first.get("job", run.name)),
        backend=str(first.get("backend", "local")),
        cwd=Path(str(first.get("cwd", "."))),
        created_ns=int(first["ts"]),
        phase=phase,
        driven=driven,
        trials=records,
        cancelled_by=_cancelled_by(events.items) if phase == "cancelled" else None,
        notes=tuple(notes),
    )


def read_trial(run: Run, trial_id: str) -> TrialRecord:
    """One trial of a run, without reading the others' files.

    Raises:
        InputError: the run is broken or has no such trial.
    """
    for item in read_plan(run).trials:
        if item.id == trial_id:
            return _record(run, item, _of(read_events(run.events).items, trial_id), [])
    raise InputError(f"{run.name} has no trial {trial_id}", fix=f"see `profrun status {run.name}`")


def outcome(records: Iterable[TrialRecord]) -> RunPhase:
    """How a run has ended as a whole. A trial that did not end by then means that the run was cancelled."""
    states = {record.state for record in records} - {"skipped"}
    if "cancelled" in states or not states <= TERMINAL:
        return "cancelled"
    if states - {"finished"}:
        return "failed"
    return "finished"


def _phase(events: list[Event], records: tuple[TrialRecord, ...], driven: bool) -> RunPhase:
    if driven:
        return "running"
    last = next((e for e in reversed(events) if e["event"] in ("done", "started", "queued")), None)
    if last is not None and last["event"] == "done":
        state = last.get("state")
        return cast(RunPhase, state) if state in get_args(RunPhase) else outcome(records)
    return "interrupted"


def _cancelled_by(events: list[Event]) -> str:
    """Who asked for the end last."""
    asked = next((event for event in reversed(events) if event["event"] == "cancelled"), {})
    return str(asked.get("by"))


def _of(events: list[Event], trial_id: str) -> list[Event]:
    return [event for event in events if event.get("trial") == trial_id]


def _record(run: Run, planned: Trial, events: list[Event], notes: list[str]) -> TrialRecord:
    """Fold one trial's events, then let its files correct them."""
    state: TrialState = "planned"
    folded: dict[str, Any] = {}
    for event in events:
        kind = event["event"]
        if kind in ("queued", "started"):
            state = "queued" if kind == "queued" else "running"
            folded = {
                "attempt": int(event.get("attempt", 1)),
                "handle": _handle(event) or folded.get("handle"),
                "started_ns": int(event["ts"]) if kind == "started" else None,
            }
        elif kind in ("state", "finished"):
            state = event.get("state", state)
            folded |= {key: event.get(key) for key in ("reason", "exit_code", "code")}
            if kind == "finished":
                folded["ended_ns"] = int(event["ts"])
        elif kind == "skipped":
            state, folded = "skipped", {"reason": event.get("reason")}
        elif kind == "error":
            folded["normalise_error"] = event.get("message")
        elif kind == "normalised":
            folded.pop("normalise_error", None)
    paths = run.trial(planned.id)
    ended = read_exit(paths, folded.get("attempt")) if folded.get("attempt") else None
    if ended is not None and ended.silent and "ended_ns" not in folded:
        ended = None  # ranks may still say how they ended: the driver decides
    if ended is not None:
        status = status_of(ended)
        state = status.state
        folded |= {"reason": status.reason, "exit_code": status.exit_code, "code": status.code}
        folded |= {"attempt": ended.attempt, "ended_ns": ended.ended_ns or folded.get("ended_ns")}
        folded |= {"started_ns": ended.started_ns or folded.get("started_ns")}
    profiler = planned.profiler or _became(planned, ended)
    return TrialRecord(
        id=planned.id,
        index=planned.index,
        variant=planned.variant,
        collector=planned.collector,
        profiler=profiler,
        serial=all_serial({profiler: planned.options.get(profiler, {})} if profiler else planned.options),
        blocking=planned.blocking,
        repeat=planned.repeat,
        state=state,
        paths=paths,
        trace=paths.trace if (paths.trace / "meta.json").is_file() else None,
        steps=_steps(paths, state, notes),
        exit=ended,
        **folded,
    )


def _became(planned: Trial, ended: Exit | None) -> str | None:
    """The profiler that only the job could choose."""
    name = ended.profiler if ended is not None else None
    return name if name in planned.options else None


def _steps(paths: TrialPaths, state: TrialState, notes: list[str]) -> Steps:
    if state == "planned":
        return Steps()
    try:
        return read_steps(paths)
    except InputError as error:
        notes.append(str(error))
        return Steps()


def _handle(event: Event) -> Handle | None:
    value = event.get("handle")
    if not isinstance(value, dict):
        return None
    return Handle(str(value.get("backend")), dict(value.get("data") or {}))
