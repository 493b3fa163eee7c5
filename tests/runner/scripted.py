"""A backend whose engine is a script: what each trial will leave behind, at which look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from profrun.backends.base import HERE, Lane, PreparedPlan, Request
from profrun.contract.codec import to_json
from profrun.contract.command import Command
from profrun.contract.exit import EndState, Exit
from profrun.contract.finding import Finding
from profrun.contract.paths import TrialPaths
from profrun.contract.states import Status
from profrun.contract.steps import Anchor, StepsFile, StepTime
from profrun.errors import UnavailableError
from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan, plan_file
from profrun.plans.model import Plan, Trial
from profrun.store.documents import read_command
from profrun.store.events import Event, Handle
from profrun.store.files import write_json
from profrun.store.runs import Run, create

SPEC = "name: t\ncommand: python x.py --n {n}\nvariants: {a: {n: 1}, b: {n: 2}}\ncollectors: [none]\n"


def new_run(root: Path, spec: str = SPEC, vendor: str = "auto") -> tuple[Run, Plan]:
    """A fresh run of a spec, with a bundle in place so that nothing is shipped."""
    plan = make_plan(load_text(spec), vendor=vendor)
    run = create(
        root,
        plan.job.name,
        spec_text=spec,
        resolved_text=dump_job(plan.job),
        plan=to_json(plan_file(plan)),
        backend="scripted",
        cwd=root,
        version="0",
    )
    run.bundle.mkdir()
    (run.bundle / "run.py").write_text("")
    return run, plan


def begin(trial: TrialPaths, attempt: int = 1) -> TrialPaths:
    """Make a trial's folder with what its wrapper is told."""
    trial.folder.mkdir(parents=True, exist_ok=True)
    told = Command(trial.folder.name, "r", "t", "a", "none", ("x",), "/", attempt=attempt)
    write_json(trial.command, to_json(told))
    return trial


def leave(
    trial: TrialPaths, state: EndState = "finished", steps: Sequence[int] = (10, 20, 30), **more: Any
) -> None:
    """Write what a wrapper leaves: steps of these durations (ns), all in the window, then exit.json."""
    rows = tuple(StepTime(i, 0, ns, window="active") for i, ns in enumerate(steps))
    measured = StepsFile(0, 5, "optimizer", "wall", Anchor(0, 0, 0), steps=rows)
    (trial.raw / "rank0").mkdir(parents=True, exist_ok=True)
    write_json(trial.raw / "rank0/steps.json", to_json(measured))
    told = read_command(trial)
    assert told is not None
    code = 0 if state == "finished" else 3
    ended = Exit(trial.folder.name, state, attempt=told.attempt, exit_code=code, **more)
    write_json(trial.exit, to_json(ended))


@dataclass
class Scripted:
    """Every trial ends as ``ends`` says (default finished) when it was looked at ``looks`` times.

    Attributes:
        started: ids in the order they were submitted, one a submission.
        refuses: what ``check`` says, None for nothing.
        lanes: trial id -> its lane; those that are not named have the usual one.
        stuck: ids that never end by themselves, only when they are cancelled.
        elsewhere: what ``trace_words`` says.
        steps: gives the durations of the steps that a trial leaves, ns; None for the usual ones.
        begins: with ``steps``: gives the time at which a trial began, unix ns; None for the real one.
        warnings: gives the findings in ``exit.json`` of a trial.
        left: what it says of leftovers, one sentence for each time that it is asked.
        cleared: the trials that it was asked to clear, one list for each time.
    """

    concurrent: bool = False
    ends: dict[str, EndState | Literal["lost"]] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    lanes: Mapping[str, Lane | None] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    looks: int = 2
    refuses: str | None = None
    name: str = "scripted"
    poll_s: float = 0.001
    started: list[str] = field(default_factory=list)
    cancels: list[tuple[list[str], float]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    cleared: list[list[str]] = field(default_factory=list)
    steps: Callable[[str], Sequence[int]] | None = None
    begins: Callable[[], int] | None = None
    warnings: Callable[[str], tuple[Finding, ...]] = lambda trial: ()
    _seen: dict[str, int] = field(default_factory=dict)

    def lane(self, prepared: PreparedPlan, trial: Trial) -> Lane | None:
        return self.lanes.get(trial.id, None if self.concurrent else HERE)

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> PreparedPlan:
        if self.refuses:
            raise UnavailableError(self.refuses)
        return PreparedPlan(plan, cwd)

    def adapt(self, prepared: PreparedPlan, trial: Trial, run: Run, command: Command) -> Command:
        return command

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        return self.elsewhere

    def render(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        return [Request(f"start {trial.id}", {"trial": trial.id}) for trial in trials]

    def submit(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        assert self.concurrent or len(trials) == 1
        self.started += [trial.id for trial in trials]
        return {trial.id: Handle(self.name, {"number": len(self.started)}) for trial in trials}

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        return {trial_id: self._one(trial_id, run.trial(trial_id)) for trial_id in handles}

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        seen = self._seen[trial_id] = self._seen.get(trial_id, 0) + 1
        state: EndState | Literal["lost"] = self.ends.get(trial_id, "finished")
        if trial_id in self.stuck or seen < self.looks:
            return Status("running")
        if state == "lost":
            return Status("lost", "no word")
        said = self.warnings(trial_id)
        if self.steps is None:
            leave(trial, state, warnings=said)
        else:
            began = {} if self.begins is None else {"started_ns": self.begins()}
            leave(trial, state, self.steps(trial_id), warnings=said, **began)
        return Status(state)

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        yield from ()

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        self.cleared.append(list(trials))
        return self.left.pop(0) if self.left else None

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        self.cancels.append((sorted(handles), grace))
        for trial_id in handles:
            self.stuck.discard(trial_id)
            self.ends[trial_id] = "cancelled" if grace else "lost"


@dataclass
class Watcher:
    """An observer that remembers, and may act at an event."""

    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    at: Mapping[tuple[str, str | None], Any] = field(default_factory=dict)
    ticks: int = 0
    at_tick: Mapping[int, Any] = field(default_factory=dict)

    def event(self, event: Event) -> None:
        self.events.append(event)
        action = self.at.get((event["event"], event["trial"]))
        if action is not None:
            action()

    def tick(self, active: Sequence[str]) -> None:
        self.ticks += 1
        action = self.at_tick.get(self.ticks)
        if action is not None:
            action()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def names(self) -> list[str]:
        return [event["event"] for event in self.events]
