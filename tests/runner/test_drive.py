"""Driving a run: order, resuming, ending well, what a kill of the driver leaves; with a scripted engine."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from profrun.backends.base import Lane, PreparedPlan
from profrun.contract.codec import to_json
from profrun.contract.exit import Artefact, Exit
from profrun.contract.paths import TrialPaths
from profrun.contract.states import Status
from profrun.errors import DiskFullError, InputError, UnavailableError, UsageError
from profrun.in_job.rank_answers import silent
from profrun.plans.model import Plan, Trial
from profrun.runner.drive import STOPPED_AT_ONCE, drive
from profrun.runner.interrupt import Interrupts
from profrun.runner.planning import plan_of
from profrun.store.documents import read_exit, status_of
from profrun.store.events import Event, Handle, read_events
from profrun.store.files import write_json
from profrun.store.lock import driving
from profrun.store.runs import Run
from profrun.store.state import RunState, read_state
from tests.runner.scripted import Scripted, Watcher, begin, leave, new_run

RUNNING = Status("running")
A, B = "000-a-none-r1", "001-b-none-r1"


class _Killed(BaseException):
    """Stands for SIGKILL: nothing of ours may run after it."""


def _killed() -> None:
    raise _Killed


def _drive(
    run: Run, plan: Plan, engine: Scripted, watcher: Watcher | None = None, **more: object
) -> RunState:
    watcher = watcher or Watcher()
    interrupts = more.pop("interrupts", None) or Interrupts()
    return drive(run, plan, engine, cwd=run.path, observer=watcher, interrupts=interrupts, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about driving: no reader is asked."""
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])


def test_trials_run_in_order_one_at_a_time(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine, watcher = Scripted(), Watcher()
    state = _drive(run, plan, engine, watcher)
    assert engine.started == [A, B]
    assert watcher.names() == ["queued", "started", "state", "finished"] * 2 + ["done"]
    assert (state.phase, [t.state for t in state.trials]) == ("finished", ["finished", "finished"])
    assert [t.steps.median_ns for t in state.trials] == [20, 20]
    assert read_events(run.events).items[2:] == watcher.events  # after created and planned


def test_a_queueing_engine_gets_all_at_once(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(concurrent=True)
    state = _drive(run, plan, engine)
    assert engine.started == [A, B]
    assert state.phase == "finished"


def test_trials_of_a_lane_are_submitted_in_turn_to_an_engine_that_queues(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    watcher = Watcher()
    engine = Scripted(concurrent=True, lanes={A: Lane("site"), B: Lane("site")}, ends={A: "lost"})
    assert [t.state for t in _drive(run, plan, engine, watcher).trials] == ["lost", "finished"]
    told = [(event["event"], event["trial"]) for event in watcher.events if event["event"] != "state"]
    each = ["queued", "queued", "finished"]  # the second with the handle
    assert told == [*((event, A) for event in each), *((event, B) for event in each), ("done", None)]


def test_the_order_of_a_lane_holds_after_a_kill(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    lanes = {A: Lane("site"), B: Lane("site")}
    with pytest.raises(_Killed):
        _drive(run, plan, Scripted(concurrent=True, lanes=lanes), Watcher(at={("state", A): _killed}))
    watcher = Watcher()
    engine = Scripted(concurrent=True, lanes=lanes)
    engine.looks = 4
    assert _drive(run, plan, engine, watcher).phase == "finished"
    assert engine.started == [B]
    told = [(event["event"], event["trial"]) for event in watcher.events]
    assert told.index(("finished", A)) < told.index(("queued", B))


def test_before_each_start_what_is_left_is_ended_and_said(tmp_path: Path) -> None:
    """Also before the first: this may be a run that is carried on."""
    run, plan = new_run(tmp_path)
    engine, watcher = Scripted(left=["1 process was ended"]), Watcher()
    _drive(run, plan, engine, watcher)
    assert engine.cleared == [[A, B], [A, B]]
    assert watcher.names()[0] == "leftovers"
    assert watcher.events[0]["message"] == "1 process was ended"
    assert "1 process was ended" in watcher.notes


def test_a_trial_is_lost_only_when_nothing_of_it_runs(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(ends={A: "lost"})
    lost = []

    class Looks(Watcher):
        def event(self, event: Event) -> None:
            super().event(event)
            if event["event"] == "finished" and event["trial"] == A:
                lost.append(list(engine.cleared))

    _drive(run, plan, engine, Looks())
    assert lost == [[[A, B], [A]]]


def test_trials_of_a_queue_may_run_beside_one_another(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(concurrent=True)
    _drive(run, plan, engine)
    assert engine.cleared == []


class _Full(Scripted):
    """An engine that says a few times why it starts nothing."""

    reasons = ("partition down", "partition down", "node drained")
    told = 0

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        self.told += 1
        if self.told <= len(self.reasons):
            return {trial: Status("queued", self.reasons[self.told - 1]) for trial in handles}
        return super().status(handles, run)


def test_why_nothing_starts_is_told_once_and_when_it_changes(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    watcher = Watcher()
    assert _drive(run, plan, _Full(concurrent=True), watcher).phase == "finished"
    assert [text for text in watcher.notes if "cannot start" in text] == [
        "2 trials cannot start yet: partition down",
        "2 trials cannot start yet: node drained",
    ]


@pytest.mark.parametrize("how", ["failed", "timeout", "lost"])
def test_a_trial_that_does_not_finish_fails_the_run_and_not_the_others(
    tmp_path: Path, how: Literal["failed", "timeout", "lost"]
) -> None:
    run, plan = new_run(tmp_path)
    state = _drive(run, plan, Scripted(ends={A: how}))
    assert [t.state for t in state.trials] == [how, "finished"]
    assert state.phase == "failed"


@pytest.mark.parametrize(
    ("event", "trial", "again"),
    [
        ("finished", A, [B]),  # killed when the first had finished
        ("started", B, []),  # killed while the second ran on: it is waited for, not repeated
    ],
)
def test_resume_after_a_kill_repeats_nothing_that_finished(
    tmp_path: Path, event: str, trial: str, again: list[str]
) -> None:
    run, plan = new_run(tmp_path)
    with pytest.raises(_Killed):
        _drive(run, plan, Scripted(), Watcher(at={(event, trial): _killed}))
    assert read_state(run).phase == "interrupted"
    engine = Scripted()
    state = _drive(run, plan_of(run), engine)
    assert engine.started == again
    assert [t.attempt for t in state.trials] == [1, 1]
    assert state.phase == "finished"


def test_a_trial_that_the_engine_never_got_is_started_on_resume(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    with pytest.raises(_Killed):
        _drive(run, plan, Scripted(), Watcher(at={("queued", A): _killed}))
    engine = Scripted(ends={A: "lost"})  # what an engine says of a trial it does not know
    engine.looks = 1
    state = _drive(run, plan, engine, Watcher(at={("queued", A): engine.ends.clear}))
    assert engine.started == [A, B]
    assert state.phase == "finished"


def test_a_trial_that_ended_while_nobody_watched_is_kept(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    with pytest.raises(_Killed):
        _drive(run, plan, Scripted(), Watcher(at={("started", A): _killed}))
    leave(run.trial(A), steps=[5])
    assert read_state(run).trials[0].state == "finished"  # exit.json is right, whatever the log says
    engine = Scripted()
    state = _drive(run, plan, engine)
    assert engine.started == [B]
    assert state.trials[0].steps.measured == (5,)


def test_the_first_wish_ends_well_and_starts_nothing_more(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine, interrupts = Scripted(stuck={A}), Interrupts()
    watcher = Watcher(at_tick={2: lambda: interrupts.press("SIGINT")})
    state = _drive(run, plan, engine, watcher, interrupts=interrupts)
    assert engine.cancels == [([A], plan.job.resources.grace)]
    assert engine.started == [A]
    assert [t.state for t in state.trials] == ["cancelled", "planned"]
    assert state.phase == "cancelled"


def test_the_second_wish_ends_now(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine, interrupts = Scripted(stuck={A}), Interrupts()

    def cancel_in_vain(handles: object, run: Run, *, grace: float) -> None:
        engine.cancels.append(([A], grace))
        if grace == 0:
            engine.stuck.clear()
            engine.ends[A] = "lost"

    engine.cancel = cancel_in_vain  # type: ignore[method-assign]
    press = lambda: interrupts.press("SIGINT")  # noqa: E731
    state = _drive(run, plan, engine, Watcher(at_tick={2: press, 4: press}), interrupts=interrupts)
    assert [grace for _, grace in engine.cancels] == [plan.job.resources.grace, 0.0]
    assert state.trials[0].state == "cancelled"
    assert state.trials[0].reason == STOPPED_AT_ONCE
    assert state.phase == "cancelled"


def test_a_cancelled_run_resumes_and_keeps_the_first_attempt_whole(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    interrupts = Interrupts()
    watcher = Watcher(at_tick={1: lambda: interrupts.press("SIGINT")})
    _drive(run, plan, Scripted(stuck={A}), watcher, interrupts=interrupts)
    state = _drive(run, plan, Scripted())
    assert state.phase == "finished"
    assert [t.attempt for t in state.trials] == [2, 1]
    kept = run.trial(A).folder / "attempts" / "1"
    assert sorted(path.name for path in kept.iterdir()) == ["command.json", "exit.json", "raw"]
    assert (kept / "raw/rank0/steps.json").exists()


def test_failed_trials_are_repeated_only_on_request(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    _drive(run, plan, Scripted(ends={A: "failed"}))
    again = Scripted()
    assert _drive(run, plan, again).phase == "failed"
    assert again.started == []
    assert _drive(run, plan, again, repeat_failed=True).phase == "finished"
    assert again.started == [A]


def test_two_cannot_drive_one_run(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    with driving(run.lock, run.name), pytest.raises(UsageError, match="is being driven already"):
        _drive(run, plan, Scripted())


def test_a_start_that_fails_is_written_down(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted()

    def refuse(*args: object) -> None:
        raise UnavailableError("no engine here")

    engine.submit = refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(UnavailableError, match="no engine here"):
        _drive(run, plan, engine)
    assert read_state(run).trials[0].reason == "never started: no engine here"
    assert _drive(run, plan, Scripted()).phase == "finished"


def _unreachable(engine: Scripted, times: int) -> None:
    """The engine does not answer the next questions."""
    answer = engine.status

    def status(handles: object, run: Path) -> object:
        nonlocal times
        times -= 1
        if times >= 0:
            raise UnavailableError("no answer")
        return answer(handles, run)  # type: ignore[arg-type]

    engine.status = status  # type: ignore[method-assign, assignment]


def test_an_engine_that_does_not_answer_for_a_while_is_asked_again(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine, watcher = Scripted(concurrent=True), Watcher()
    _unreachable(engine, 5)
    assert _drive(run, plan, engine, watcher).phase == "finished"
    assert watcher.notes == ["scripted cannot be asked, trying on: no answer"]


def test_an_engine_that_never_answers_ends_the_driver_and_not_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(concurrent=True)
    _unreachable(engine, 10**9)
    monkeypatch.setattr("profrun.runner.drive._UNREACHABLE_S", 0.05)
    with pytest.raises(UnavailableError, match="no answer"):
        _drive(run, plan, engine)
    assert read_state(run).phase == "interrupted"
    assert [t.state for t in read_state(run).trials] == ["queued", "queued"]
    again = Scripted(concurrent=True)
    assert _drive(run, plan, again).phase == "finished"
    assert again.started == []


def test_a_run_planned_by_another_profrun_is_not_carried_on(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.resolved.write_text(run.resolved.read_text().replace("b:", "c:"))
    with pytest.raises(InputError, match=r"plans its resolved\.yaml differently"):
        plan_of(run)


def test_a_readers_bug_costs_one_trace_and_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, plan = new_run(tmp_path)

    def bug(record: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("profrun.runner.trial_files.sources", bug)
    state = _drive(run, plan, Scripted())
    assert [t.state for t in state.trials] == ["finished", "finished"]
    assert "bug in a reader (KeyError: 'surprise')" in str(state.trials[0].normalise_error)
    assert "surprise" in (run.trial(A).folder / "normalise-crash.log").read_text()


def test_a_run_carried_on_is_refused_too_and_loses_no_trial(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(refuses="the folder is gone")
    with pytest.raises(UnavailableError, match="the folder is gone"):
        drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert engine.started == []
    assert [trial.state for trial in read_state(run).trials] == ["planned", "planned"]


def test_a_run_with_nothing_left_to_start_asks_nothing(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    for engine in (Scripted(), Scripted(refuses="the folder is gone")):
        drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert read_state(run).phase == "finished"


@dataclass
class Requeues(Scripted):
    """At the first look trial A has been ended by a signal and is about to start again."""

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        seen = self._seen[trial_id] = self._seen.get(trial_id, 0) + 1
        if trial_id == A and seen == 1:
            leave(trial, "timeout")
            return Status("running")
        leave(trial)
        return Status("finished")


def test_an_end_from_outside_counts_when_the_queue_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """exit.json of the attempt that was requeued is there before the next look at the queue."""
    monkeypatch.setattr("profrun.runner.drive._LOOK_S", 0.01)
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])  # no reader is asked
    run, plan = new_run(tmp_path)
    engine = Requeues(concurrent=True, poll_s=0.5)
    state = drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert [trial.state for trial in state.trials] == ["finished", "finished"]
    assert read_state(run).phase == "finished"


@dataclass
class Late(Scripted):
    """Trial A's rank 0 has ended; the engine says ``told`` of it, until ``until`` looks have passed."""

    told: Status = RUNNING
    until: int = 3
    concurrent: bool = True

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        if trial_id != A:
            return super()._one(trial_id, trial)
        seen = self._seen[A] = self._seen.get(A, 0) + 1
        if seen == 1:
            leave(trial)
            own = replace(read(trial), wrappers=2)
            write_json(make_hook(trial) / "exit.rank0.json", to_json(own))
            write_json(trial.exit, to_json(silent(replace(own, silent=(1,)), [1])))
        return self.told if seen < self.until else self.last(trial)

    def last(self, trial: TrialPaths) -> Status:
        """What the engine says in the end."""
        return status_of(read(trial))


def read(trial: TrialPaths) -> Exit:
    found = read_exit(trial)
    assert found is not None
    return found


def make_hook(trial: TrialPaths) -> Path:
    trial.hook.mkdir(exist_ok=True)
    return trial.hook


def test_a_trial_whose_late_rank_answers_has_finished(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    late = Exit(A, "finished", rank=1, wrappers=2, artefacts=(Artefact("raw/rank1/x", 3, "whole"),))

    def answer() -> None:
        assert read_state(run).trials[0].state == "finalising"  # exit.json says that it failed
        write_json(run.trial(A).answer(1), to_json(late))

    watcher = Watcher(at_tick={4: answer})
    engine = Late(until=10**9)
    state = _drive(run, plan, engine, watcher)
    assert [(t.state, t.reason) for t in state.trials] == [("finished", None)] * 2
    assert ("finalising", "waits for rank 1") in [
        (event.get("state"), event.get("reason")) for event in watcher.events
    ]
    assert state.trials[0].exit is not None
    assert [artefact.path for artefact in state.trials[0].exit.artefacts] == ["raw/rank1/x"]


def test_a_rank_that_stays_silent_fails_the_trial_when_the_engine_has_ended_it(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    state = _drive(run, plan, Late(until=5))
    assert [(t.state, t.code) for t in state.trials] == [("failed", "rank-silent"), ("finished", None)]


def test_the_engine_may_know_why_a_rank_is_silent(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Late()
    engine.last = lambda trial: Status("failed", "rank 1: out of memory", 137, "rank-silent")  # type: ignore[method-assign]
    first = _drive(run, plan, engine).trials[0]
    assert (first.state, first.reason, first.code) == ("failed", "rank 1: out of memory", "rank-silent")


def test_a_trial_with_a_silent_rank_that_waits_to_start_again_stays_queued(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    watcher = Watcher()
    _drive(run, plan, Late(told=Status("queued", "BeginTime"), until=6), watcher)
    told = [event["state"] for event in watcher.events if event["event"] == "state" and event["trial"] == A]
    assert told == ["queued"]


def test_a_driver_that_was_killed_while_a_rank_was_late_waits_for_it(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    killed = Watcher(at_tick={3: _killed})
    with pytest.raises(_Killed):
        _drive(run, plan, Late(until=10**9), killed)
    assert read_state(run).trials[0].ended is False
    write_json(run.trial(A).answer(1), to_json(Exit(A, "finished", rank=1)))
    again = Late()
    again._seen[A] = 1
    assert [t.state for t in _drive(run, plan, again).trials] == ["finished", "finished"]
    assert A not in again.started


class Leaving(Scripted):
    """A backend without a queue whose wrapper has written how it ended, and is still there for some looks."""

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        seen = self._seen[trial_id] = self._seen.get(trial_id, 0) + 1
        if seen == 1:
            leave(trial, "finished")
        return RUNNING if seen < 5 else status_of(read(trial))

    def submit(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        assert all(seen >= 5 for seen in self._seen.values()), "the wrapper before is still there"
        return super().submit(prepared, trials, run)


def test_the_next_trial_begins_when_the_wrapper_of_the_last_one_is_gone(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    state = _drive(run, plan, Leaving(poll_s=0.0))
    assert [t.state for t in state.trials] == ["finished", "finished"]


def test_the_in_job_part_is_shipped_anew(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    (run.bundle / "run.py").write_text("import os; os.system('touch PWNED')")
    (run.bundle / "site").mkdir()
    (run.bundle / "site/torch.py").write_text("")
    _drive(run, plan, Scripted())
    assert "PWNED" not in (run.bundle / "run.py").read_text()
    assert [path.name for path in (run.bundle / "site").iterdir()] == ["sitecustomize.py"]


def test_trials_that_still_run_keep_the_in_job_part_that_they_began_with(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    (run.bundle / "run.py").write_text("older")
    begin(run.trial(A))
    run.log().append("started", A, attempt=1, handle={"backend": "scripted", "data": {}})
    _drive(run, plan, Scripted())
    assert (run.bundle / "run.py").read_text() == "older"


def _almost_full(monkeypatch: pytest.MonkeyPatch, *free: int) -> None:
    """The disk has so many bytes free, at one look after the other; the last number stays."""
    left = list(free)

    def look(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=left.pop(0) if len(left) > 1 else left[0])

    monkeypatch.setattr("profrun.runner.disk_watch.shutil.disk_usage", look)


def test_a_full_disk_stops_the_run_once_and_resume_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted()
    with monkeypatch.context() as small:
        _almost_full(small, 1 << 30, 3 << 20)
        with pytest.raises(DiskFullError) as caught:
            _drive(run, plan, engine)
    told = str(caught.value)
    assert told.startswith(f"the disk of {run.path} is full, and no other trial was started: only 3 MiB")
    assert told.endswith(f"then `profrun resume {run.name}`: 1 of 2 trials finished and are kept")
    assert engine.started == [A]
    assert read_state(run).phase == "interrupted"
    assert _drive(run, plan, engine).phase == "finished"
    assert engine.started == [A, B]


def test_a_trial_that_met_a_full_disk_stops_the_run_and_is_repeated(tmp_path: Path) -> None:
    """Each trial failed in turn, and a plain resume repeated none."""
    run, plan = new_run(tmp_path)
    engine = FullDisk()
    with pytest.raises(DiskFullError, match=f"{A}: only 0 MiB are free; .*0 of 2 trials finished"):
        _drive(run, plan, engine)
    assert engine.started == [A]
    assert [trial.state for trial in read_state(run).trials] == ["failed", "planned"]
    state = _drive(run, plan, Scripted())
    assert [(trial.state, trial.attempt) for trial in state.trials] == [("finished", 2), ("finished", 1)]


def test_nothing_is_said_of_the_disk_when_nothing_is_left_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan = new_run(tmp_path)
    _almost_full(monkeypatch, 1 << 30, 1 << 30, 0)
    assert _drive(run, plan, Scripted()).phase == "finished"


def test_a_trace_that_met_a_full_disk_stops_the_run_and_is_made_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted()

    def full(record: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as small:
        small.setattr("profrun.runner.trial_files.sources", full)
        with pytest.raises(DiskFullError, match=f"{A}: the disk is full"):
            _drive(run, plan, engine)
    assert engine.started == [A]
    assert _drive(run, plan, engine).phase == "finished"
    assert engine.started == [A, B]


@dataclass
class FullDisk(Scripted):
    """Every trial says that its disk is full."""

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        leave(trial, "failed", code="disk-full", reason="only 0 MiB are free")
        return Status("failed", "only 0 MiB are free", None, "disk-full")
