"""``profrun cancel``: ends a run that another process drives, or that nobody drives any more."""

from __future__ import annotations

from pathlib import Path

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
