"""Drive a run to its end: start what has not finished, wait, make traces, write down every step.

The same code starts a fresh run and resumes one whose driver was killed: it first looks at what the folder
says, keeps what ended, waits for what still lives, and repeats only what is lost, cancelled or never began.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol

from profrun.backends.base import Backend, P
from profrun.contract.ends import DISK_FULL
from profrun.contract.exit import Exit
from profrun.contract.finding import Finding
from profrun.contract.states import TERMINAL, Status
from profrun.contract.units import rank_list
from profrun.errors import ProfrunError, UnavailableError
from profrun.in_job.repository import Repositories
from profrun.plans.model import Plan, Trial
from profrun.runner.disk_watch import DiskWatch
from profrun.runner.interrupt import Interrupts
from profrun.runner.make_trace import made_elsewhere
from profrun.runner.placement import Placed, Placer
from profrun.runner.rounds import Rounds
from profrun.runner.start_order import StartOrder
from profrun.runner.trial_files import Normalised, normalise, prepare
from profrun.runner.waiting import Waiting
from profrun.store.documents import read_exit, status_of, with_late_answers, with_the_engines_reason
from profrun.store.events import NEVER_STARTED, Event, Handle
from profrun.store.files import explained, read_json
from profrun.store.lock import driving
from profrun.store.private import forget_private
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord, outcome, read_state, read_trial

_LOOK_S = 0.5
"""How often files are looked at while an engine is asked less often."""
_UNREACHABLE_S = 600.0
"""How long an engine may not answer before the driver gives up (and ``profrun resume`` may take over)."""
_KILL_WAIT_S = 20.0
"""How long to wait for the engine after a kill before the trial is written down as cancelled."""

STOPPED_AT_ONCE = "it was stopped at once; what its profiler had not written is lost"
"""Why a trial has no data that was cancelled and could not say how it ended."""


class Observer(Protocol):
    """Who shows progress. Called from the driving thread."""

    def event(self, event: Event) -> None:
        """Something was written to the log."""

    def tick(self, active: Sequence[str]) -> None:
        """Time passes; these trials are on their way."""

    def note(self, text: str) -> None:
        """Something to tell the person that is no event."""


def drive(
    run: Run,
    plan: Plan,
    backend: Backend[P],
    *,
    cwd: Path,
    observer: Observer,
    interrupts: Interrupts,
    repeat_failed: bool = False,
    prepared: P | None = None,
) -> RunState:
    """Carry out what is left of a run; returns its state at the end.

    Args:
        cwd: the folder that the job's relative paths count from.
        repeat_failed: also repeat trials that failed or ran out of time.
        prepared: the plan as the backend has prepared it already; None: it is prepared here, if something is
            to be started.

    Raises:
        UsageError: another process drives the run.
        DiskFullError: the disk is full: no other trial was started. What was collected is kept.
        UnavailableError: the backend cannot be used. What was collected is kept.
    """
    with driving(run.lock, run.name):
        driver = _Driver(run, plan, backend, cwd, observer, interrupts)
        driver.go(repeat_failed, prepared)
    return read_state(run)


class _Driver(Generic[P]):
    def __init__(
        self,
        run: Run,
        plan: Plan,
        backend: Backend[P],
        cwd: Path,
        observer: Observer,
        interrupts: Interrupts,
    ) -> None:
        self.run, self.plan, self.backend, self.cwd = run, plan, backend, cwd
        self.observer, self.interrupts = observer, interrupts
        self.log = run.log()
        self.placer = Placer(run, plan)
        self.told: list[Finding] = []  # where windows lie
        self.waiting = Waiting()
        self.active: dict[str, Handle] = {}
        self.states: dict[str, Status] = {}
        self.asked = 0.0
        self.unreachable: float | None = None  # monotonic time since when, if it is
        self.cancelled_at: float | None = None  # monotonic time of the kill, if any
        self.stopping = 0  # how many wishes to end were acted upon
        self.disk = DiskWatch(run)
        self.rounds = Rounds(plan, lambda: read_state(run).trials)

    def go(self, repeat_failed: bool, prepared: P | None) -> None:
        """From what the folder says to ``done``."""
        with explained(self.run.cancel_request):
            self.run.cancel_request.unlink(missing_ok=True)
        before = read_state(self.run)
        if any(record.attempt for record in before.trials):
            self._write("resumed", kept=before.count("finished"))
        todo = self._take_over(before.trials, repeat_failed)
        if todo:
            prepared = prepared or self.backend.prepare(self.plan, todo, self.run, self.cwd)
            self._ship_bundle()
        self._start_and_wait(prepared, todo)
        self._write("done", state=outcome(read_state(self.run).trials))

    def _take_over(self, records: Sequence[TrialRecord], repeat_failed: bool) -> list[Trial]:
        """Sort the folder's trials: to repeat (returned), to wait for (``active``), to normalise (done)."""
        again = {record.id for record in records if record.code == DISK_FULL}
        repeat = {"planned", "cancelled", "lost"} | ({"failed", "timeout"} if repeat_failed else set())
        open_handles = {
            record.id: record.handle or Handle(self.backend.name, {})
            for record in records
            if not record.ended and record.attempt
        }
        found = self.backend.status(open_handles, self.run) if open_handles else {}
        todo = []
        for record in records:
            status = found.get(record.id)
            if status is not None and status.state not in TERMINAL:
                self.active[record.id] = open_handles[record.id]
                self.observer.note(f"{record.id} is still running: waiting for it")
            elif status is not None and status.state not in repeat:
                self._finish(record.id, status)
            elif status is not None or record.state in repeat or record.id in again:
                todo.append(self.plan.trials[record.index])
            elif record.trace is None and record.ended:
                self._normalise(record)
        return todo

    def _ship_bundle(self) -> None:
        """Put the in-job part beside the trials, whole or not at all. What lies there is never trusted: it
        stays only while trials run that were started with it, which load parts of it later."""
        if self.active:
            return
        from profrun.plans.bundle import profilers_of, write_bundle

        with explained(self.run.bundle):
            write_bundle(self.run.bundle, profilers_of(self.plan))

    def _start_and_wait(self, prepared: P | None, todo: Sequence[Trial]) -> None:
        """Each trial in its turn, until nothing is active; none any more once the run is to end.

        Args:
            prepared: None where nothing is to be started.
        """
        lanes = {t.id: self.backend.lane(prepared, t) for t in self.plan.trials} if prepared else {}
        order = StartOrder(todo, lanes)
        while True:
            if prepared is not None and not self._wishes() and order.left and self.disk.has_room():
                for trials in self.rounds.take(order, self.active, self._skip):
                    self._start(prepared, trials)
            if not self.active:
                break
            self._wait_for_an_end()
        if self.disk.why is not None and not self.interrupts.count:
            raise self.disk.error()

    def _skip(self, trial: Trial, why: str) -> None:
        self._write("skipped", trial.id, reason=why)

    def _end_leftovers(self, trials: Sequence[str]) -> None:
        """Nothing of these trials, which are over, is to run beside what is measured next."""
        told = self.backend.end_leftovers(self.run, trials, grace=self.plan.job.resources.grace)
        if told is not None:
            self.observer.note(told)
            self._write("leftovers", message=told)

    def _start(self, prepared: P, trials: Sequence[Trial]) -> None:
        if not self.backend.concurrent:
            self._end_leftovers([trial.id for trial in self.plan.trials if trial.id not in self.active])
        attempts, repositories = {}, Repositories("submit")
        for trial in trials:
            attempts[trial.id] = prepare(
                self.run, prepared, trial, self.backend, self._place(trial), repositories
            )
            self._write("queued", trial.id, durable=trial is trials[-1], attempt=attempts[trial.id])
        try:
            handles = self.backend.submit(prepared, trials, self.run)
        except ProfrunError as error:
            for trial in trials:
                reason = f"never started: {error}"
                self._write("finished", trial.id, state="lost", reason=reason, code=NEVER_STARTED)
            raise
        for trial in trials:
            handle = self.active[trial.id] = handles[trial.id]
            if handle.data.get("note"):
                self.observer.note(f"{trial.id}: {handle.data['note']}")
            self._write(
                "queued" if self.backend.concurrent else "started",
                trial.id,
                durable=trial is trials[-1],
                attempt=attempts[trial.id],
                handle={"backend": handle.backend, "data": dict(handle.data)},
            )
        self.asked = 0.0

    def _place(self, trial: Trial) -> Placed | None:
        """Where the window of a trial lies, by what trials before it have shown; None: as the job says."""
        if self.backend.concurrent:
            return None
        try:
            placed = self.placer.place(trial)
        except Exception as error:  # an error that nobody expected costs no trial
            why = f"{type(error).__name__}: {error}"
            self.observer.note(f"{trial.id}: its window stays where the schedule has it ({why})")
            return None
        if placed is not None and placed.finding not in self.told:
            self.told.append(placed.finding)
            self.observer.note(str(placed.finding))
        return placed

    def _wait_for_an_end(self) -> None:
        """Until a trial that is active has ended."""
        before = len(self.active)
        while True:
            for trial_id, status in self._look().items():
                if status.state in TERMINAL:
                    self.active.pop(trial_id, None)
                    self._finish(trial_id, status)
                elif status != self.states.get(trial_id):
                    self._write("state", trial_id, state=status.state, reason=status.reason)
                self.states[trial_id] = status
            for line in self.waiting.news(
                {name: s for name, s in self.states.items() if name in self.active}
            ):
                self.observer.note(line)
            if len(self.active) < before:
                return
            self._wishes()
            self.observer.tick(list(self.active))
            # Many trials of a queue may lie on a network filesystem: look at them less often.
            self.interrupts.wait(min(self.backend.poll_s, _LOOK_S + 0.01 * len(self.active)))

    def _look(self) -> Mapping[str, Status]:
        """What changed: ``exit.json`` first, the engine only every ``poll_s``."""
        found: dict[str, Status] = {}
        if time.monotonic() - self.asked >= self.backend.poll_s:
            self.asked = time.monotonic()
            found = self._ask()
        for trial_id in self.active:
            told = found.get(trial_id)
            # Where no engine queues trials, its word is enough: it waits until the wrapper's process is gone,
            # and the next trial has the machine for itself.
            if told is not None and (told.state in TERMINAL or not self.backend.concurrent):
                continue
            ended = self._read_exit(trial_id)
            if ended is None:
                continue
            now = told or self.states.get(trial_id)
            if not self._may_come_again(ended) and (told is None or told.state != "queued"):
                found[trial_id] = status_of(ended)
            elif ended.silent and (now is None or now.state != "queued"):  # it is not to start again
                found[trial_id] = Status("finalising", f"waits for {rank_list(ended.silent)}")
        if self.cancelled_at is not None and time.monotonic() - self.cancelled_at > _KILL_WAIT_S:
            for trial_id in self.active:
                found.setdefault(trial_id, Status("cancelled", STOPPED_AT_ONCE))
        return found

    def _read_exit(self, trial_id: str) -> Exit | None:
        """How a trial ended, with the answers of ranks that came late."""
        trial = self.run.trial(trial_id)
        ended = read_exit(trial)
        return None if ended is None else with_late_answers(trial, ended)

    def _may_come_again(self, ended: Exit) -> bool:
        """A queue that ended a trial itself may start it again (requeue, preemption), and the silent ranks of
        one may still run: only it can tell."""
        return self.backend.concurrent and (ended.state == "timeout" or bool(ended.silent))

    def _ask(self) -> dict[str, Status]:
        """The engine's word; nothing while it cannot be reached, which a scheduler may be for minutes.

        Raises:
            UnavailableError: it could not be reached for ``_UNREACHABLE_S``. The trials go on without us.
        """
        try:
            found = dict(self.backend.status(self.active, self.run))
        except UnavailableError as error:
            if self.unreachable is None:
                self.unreachable = time.monotonic()
                self.observer.note(f"{self.backend.name} cannot be asked, trying on: {error}")
            if time.monotonic() - self.unreachable > _UNREACHABLE_S:
                raise
            return {}
        self.unreachable = None
        return found

    def _wishes(self) -> bool:
        """Act on a wish to end, from a signal or from ``profrun cancel``; True when the run is to end."""
        with contextlib.suppress(ProfrunError):
            request = read_json(self.run.cancel_request)
            if request is not None:
                now = request.get("grace") == 0
                if not self.interrupts.count or (now and self.interrupts.count < 2):
                    self.interrupts.press("profrun cancel", now=now)
        count = min(self.interrupts.count, 2)
        if count > self.stopping:
            self.stopping = count
            self._cancel(now=count > 1)
        return count > 0

    def _cancel(self, *, now: bool) -> None:
        grace = 0.0 if now else self.plan.job.resources.grace
        self._write("cancelled", by=self.interrupts.reason, grace_s=grace)
        if now:
            self.cancelled_at = time.monotonic()
        if not self.active:
            return
        handles = dict(self.active)

        def end() -> None:
            try:
                self.backend.cancel(handles, self.run, grace=grace)
            except ProfrunError as error:
                self.observer.note(f"the backend could not cancel: {error}")

        threading.Thread(target=end, name="cancel", daemon=True).start()

    def _finish(self, trial_id: str, status: Status) -> None:
        """Write down how a trial ended, and make its trace."""
        if status.state == "lost" and self.interrupts.count:
            status = Status("cancelled", STOPPED_AT_ONCE, status.exit_code)
        ended = self._read_exit(trial_id)
        if ended is None:
            self._end_leftovers([trial_id])
        if ended is not None and ended.silent:
            status = status_of(with_the_engines_reason(self.run.trial(trial_id), ended, status))
        self._write(
            "finished",
            trial_id,
            state=status.state,
            reason=status.reason,
            exit_code=status.exit_code,
            code=status.code,
        )
        forget_private(self.run.trial(trial_id).folder)
        self.disk.ended(trial_id, status)
        self._normalise(read_trial(self.run, trial_id))

    def _normalise(self, record: TrialRecord) -> None:
        try:
            with self.interrupts.abortable():
                done = self._made_elsewhere(record) or normalise(
                    self.run, record, lambda done, total: self.observer.tick([record.id])
                )
        except KeyboardInterrupt:
            self.observer.note(f"{record.id}: its files are kept, the trace is made on resume")
            return
        self.disk.normalised(record.id, done)
        event = done.event(self.run)
        if event is not None:
            self._write(event[0], record.id, **event[1])

    def _made_elsewhere(self, record: TrialRecord) -> Normalised | None:
        """What another process made of a trial's files, where the backend has a place for it."""
        words = self.backend.trace_words(self.plan, self.plan.trials[record.index].site)
        if not words or not any(path.is_file() for path in record.paths.raw.rglob("*")):
            return None
        done = made_elsewhere(words, self.run, record, lambda: self.observer.tick([record.id]))
        if isinstance(done, Normalised):
            return done
        self.observer.note(f"{record.id}: its trace is made here, not on a node: {done}")
        return None

    def _write(self, event: str, trial: str | None = None, *, durable: bool = True, **data: Any) -> None:
        self.observer.event(self.log.append(event, trial, durable=durable, **data))
