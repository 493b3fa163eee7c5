"""Progress of a run on stderr: a line at each change, or one line that changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun import cli
from profrun.cli.asked import asked, reset
from profrun.cli.progress import Progress, stopping_text
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsFile, StepTime
from profrun.store.files import write_json
from tests.runner.scripted import begin, leave, new_run

SPEC = (
    "name: t\ncommand: python x.py --n {n}\nvariants: {a: {n: 1}, b: {n: 2}}\n"
    "collectors: [none]\nrepeats: 2\n"
)


def test_progress_without_a_terminal_is_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, plan = new_run(tmp_path)
    first, second = plan.trials
    for trial in plan.trials:
        begin(run.trial(trial.id))
    with Progress(run, plan, live=False) as progress:
        progress.event({"event": "resumed", "trial": None, "kept": 0})
        leave(run.trial(first.id), steps=[1000, 3000, 2000])
        for event, trial_id, data in (
            ("queued", first.id, {}),
            ("started", first.id, {}),
            ("state", first.id, {"state": "running"}),
            ("state", first.id, {"state": "finalising"}),
            ("finished", first.id, {"state": "finished", "exit_code": 0}),
            ("normalised", first.id, {}),
            ("started", second.id, {}),
            ("finished", second.id, {"state": "failed", "exit_code": 3, "reason": "it broke"}),
            ("error", second.id, {"message": "torn"}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 60.0}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 0.0}),
            ("finished", second.id, {"state": "cancelled", "reason": "it was cancelled"}),
        ):
            progress.event({"event": event, "trial": trial_id, **data})
    assert capsys.readouterr().err.splitlines() == [
        f"resuming {run.name}: 0 of 2 trials are finished",
        "[1/2] a none r1: started",
        "[1/2] a none r1: finished, 0 s, step 2 us",
        "[2/2] b none r1: started",
        "[2/2] b none r1: failed, 0 s (exit code 3): it broke",
        "  001-b-none-r1: no trace: torn",
        "Stopping; saving profiles. Press Ctrl-C again to stop at once.",
        "Stopping at once. What the profilers have not written yet is lost.",
        "[2/2] b none r1: cancelled, 0 s",
    ]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("SIGINT", "Stopping; saving profiles. Press Ctrl-C again to stop at once."),
        ("SIGHUP", "The terminal was closed. Stopping; saving profiles."),
        ("profrun cancel", "You cancelled it. Stopping; saving profiles."),
        ("SIGTERM", "Another program ended it (a batch system, a service manager or `kill`). Stopping;"),
    ],
)
def test_who_ended_a_run_is_said_without_a_signal(by: str, said: str) -> None:
    assert stopping_text(by, now=False).startswith(said)


def test_the_live_line_has_step_of_steps_and_counts_what_is_done(tmp_path: Path) -> None:
    """Trial a made 4 steps and ended; b, of another variant, is at its 3rd, of whom nobody knows how many."""
    run, plan = new_run(tmp_path, SPEC)
    first, second, third, _ = plan.trials
    progress = Progress(run, plan, live=False)
    for trial in plan.trials:
        begin(run.trial(trial.id))
    progress.event({"event": "started", "trial": first.id})
    leave(run.trial(first.id), steps=[1000, 2000, 3000, 4000])
    progress.event({"event": "finished", "trial": first.id, "state": "finished"})
    progress.event({"event": "started", "trial": second.id})
    leave(run.trial(second.id), steps=[1000, 2000, 5000])
    run.trial(second.id).exit.unlink()
    running = progress.live_fields([second.id])
    assert running == ["[##--------]", "2/4", "", "b none r1", "step 3", "5 us", "0:00 left"]
    leave(run.trial(second.id))
    assert progress.live_fields([second.id])[4] == "making the trace, 0 s"
    progress.event({"event": "finished", "trial": second.id, "state": "finished"})
    progress.event({"event": "started", "trial": third.id})
    leave(run.trial(third.id), steps=[1000, 7000])
    run.trial(third.id).exit.unlink()
    assert progress.live_fields([third.id])[0:6] == [
        "[######----]",
        "3/4",
        "",
        "a none r2",
        "step 2/4",
        "7 us",
    ]
    write_json(run.trial(third.id).phase, {"phase": "finalise"})
    assert progress.live_fields([third.id])[4:6] == ["the profiler writes its files, 0 s", ""]
    write_json(run.trial(third.id).phase, {"phase": "ranks", "waiting": "ranks 1-3"})
    assert progress.live_fields([third.id])[4] == "waiting for ranks 1-3, 0 s"
    leave(run.trial(third.id), "failed", wrappers=4, silent=(2,))
    assert progress.live_fields([third.id])[4] == "waiting for rank 2, 0 s"
    run.trial(third.id).cancel.touch()
    assert progress.live_fields([third.id])[4] == "saving profiles, 0 s"


def test_of_several_at_once_the_first_that_runs_is_shown_and_no_time_left(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path, SPEC)
    ids = [trial.id for trial in plan.trials]
    progress = Progress(run, plan, live=False, concurrent=True)
    for trial_id in ids:
        progress.event({"event": "queued", "trial": trial_id})
    assert progress.live_fields(ids)[1:5] == ["0/4", "4 running", "a none r1", "waiting 0 s"]
    for trial_id in ids[1:3]:
        progress.event({"event": "state", "trial": trial_id, "state": "running"})
    fields = progress.live_fields(ids)
    assert fields[1:] == ["0/4", "2 running, 2 queued", "b none r1", "running, 0 s", "", ""]


def test_a_pipe_gets_a_line_at_each_change_and_not_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule skips two steps and records three; steps are told after 30 s, then after 60 s more."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    run, plan = new_run(tmp_path, SPEC.replace("[none]", "[torch]"))
    trial = plan.trials[0]
    begin(run.trial(trial.id))
    with Progress(run, plan, live=False) as progress:
        progress.event({"event": "started", "trial": trial.id})
        for second in range(200):
            now[0] = float(second)
            if second in (3, 5, 20):
                leave(run.trial(trial.id), steps=[1000] * second)
                run.trial(trial.id).exit.unlink()
            if second == 190:
                write_json(run.trial(trial.id).phase, {"phase": "finalise"})
            progress.tick([trial.id])
    assert capsys.readouterr().err.splitlines() == [
        "[1/4] a torch r1: started",
        "[1/4] a torch r1: recording, step 4",
        "[1/4] a torch r1: step 20, 1 us, 20 recorded",
        "[1/4] a torch r1: step 20, 1 us, 20 recorded",
        "[1/4] a torch r1: the profiler writes its files",
    ]


def test_a_window_that_waits_is_told_when_it_has_been_recorded_and_one_that_was_moved_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    run, plan = new_run(tmp_path, SPEC.replace("[none]", "[torch]") + "schedule: {wait: steady}\n")
    with Progress(run, plan, live=False) as progress:
        for trial, wait in zip(plan.trials, ("steady", 8), strict=False):
            paths = begin(run.trial(trial.id))
            told = json.loads(paths.command.read_text())
            write_json(paths.command, told | {"schedule": {"wait": wait}})
            progress.event({"event": "started", "trial": trial.id})
            for steps in (5, 10):
                now[0] += 10.0
                rows = [StepTime(i, 0, 9, window="active" if i > 7 else "wait") for i in range(steps)]
                (paths.raw / "rank0").mkdir(parents=True, exist_ok=True)
                file = StepsFile(0, 5, "optimizer", "wall", Anchor(0, 0, 0), steps=tuple(rows))
                write_json(paths.raw / "rank0/steps.json", to_json(file))
                progress.tick([trial.id])
    assert [line for line in capsys.readouterr().err.splitlines() if "record" in line] == [
        "[1/4] a torch r1: recorded in the steady phase",
        "[2/4] b torch r1: recording, step 11",
    ]


def test_quiet_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, plan = new_run(tmp_path)
    reset()
    asked().quiet = True
    with Progress(run, plan, live=True) as progress:
        progress.event({"event": "started", "trial": plan.trials[0].id})
        progress.tick([plan.trials[0].id])
        progress.note("something")
    reset()
    assert capsys.readouterr().err == ""
    assert cli.run(["--version"]) == 0


def test_a_refusal_of_many_is_not_told_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, plan = new_run(tmp_path)
    with Progress(run, plan, live=False) as progress:
        for trial in plan.trials:
            data = {"state": "lost", "code": "never-started", "reason": "sbatch refused"}
            progress.event({"event": "finished", "trial": trial.id, **data})
    assert capsys.readouterr().err == ""
