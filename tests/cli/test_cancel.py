"""``profrun cancel``: ends a run that another process drives, or that nobody drives any more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.cli.programs import WAITS, last_run, wait_until, write_job
from tests.cli.running import Capture, call, start


def test_the_orphan_of_a_killed_driver_is_cancelled_well(here: Path, capsys: Capture) -> None:
    with start("submit", write_job(here, WAITS, "x"), cwd=here) as child:
        wait_until((here / "ran").exists)
        child.kill()
        child.communicate()
    before = call(capsys, "status", "last", "--json").json
    assert (before["state"], before["trials"][0]["state"]) == ("interrupted", "running")
    done = call(capsys, "cancel", "last", "--json")
    assert done.code == 0, done.err
    (trial,) = done.json["trials"]
    assert (done.json["state"], trial["state"], trial["steps"]) == ("cancelled", "cancelled", 8)


@pytest.mark.thorough
def test_detach_status_and_cancel_from_outside(here: Path, capsys: Capture) -> None:
    done = call(capsys, "submit", write_job(here, WAITS, "x", repeats=2), "--detach", "--json")
    assert done.code == 0
    assert done.json["state"] == "running"
    assert call(capsys, "status", "last", "--json").json["state"] == "running"
    wait_until((here / "ran").exists)
    status = call(capsys, "status", "last", "--json").json
    assert (status["state"], [t["state"] for t in status["trials"]]) == ("running", ["running", "planned"])
    assert call(capsys, "resume", "last").code == 64  # somebody drives it
    done = call(capsys, "cancel", "last", "--json")
    assert done.code == 0
    assert [t["state"] for t in done.json["trials"]] == ["cancelled", "planned"]
    assert call(capsys, "cancel", "last").code == 64  # nothing runs any more
    done = call(capsys, "resume", "last", "--detach", "--json")
    assert (done.code, done.json["run"], done.json["state"]) == (0, status["run"], "running"), done.err
    second = call(capsys, "resume", "last", "--detach")
    assert (second.code, "is being driven already" in second.err) == (64, True)
    (here / "go.x").touch()
    wait_until(lambda: not read_state(last_run(here)).driven)
    state = read_state(last_run(here))
    assert (state.phase, [t.state for t in state.trials]) == ("finished", ["finished", "finished"])


def test_nothing_that_a_received_run_names_is_ended(here: Path, capsys: Capture) -> None:
    with start("submit", write_job(here, WAITS, "x"), cwd=here) as child:
        wait_until((here / "ran").exists)
        child.kill()
        child.communicate()
    run = last_run(here)
    copy = shutil.copytree(run.path, here / "inbox" / run.name)
    done = call(capsys, "cancel", copy, "--now")
    assert done.code == 64
    assert "was not made here by you, so nothing of it is ended" in done.err
    assert read_state(run).trials[0].state == "running"
    assert call(capsys, "status", run.path, "--json").json["trials"][0]["state"] == "running"
    assert call(capsys, "cancel", run.path).code == 0


def test_an_engine_is_not_asked_about_a_received_run(run: Run, capsys: Capture, tmp_path: Path) -> None:
    """Its log may name any job or container of this user."""
    handle = {"backend": "slurm", "data": {"job": "1; touch PWNED", "index": 0}}
    run.log().append("started", "001-b-none-r1", attempt=1, handle=handle)
    run.events.write_text(run.events.read_text().replace('"backend":"scripted"', '"backend":"slurm"'))
    copy = shutil.copytree(run.path, tmp_path / "copy")
    done = call(capsys, "status", copy, "--json")
    assert (done.code, done.json["trials"][1]["state"]) == (0, "running")
    assert any(text.startswith("slurm was not asked: it was made as ") for text in done.json["notes"])
    assert call(capsys, "cancel", copy).code == 64
    assert call(capsys, "logs", copy, "1").code == 0
