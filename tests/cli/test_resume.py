"""``profrun resume``: nothing that finished is repeated, and a run that cannot go on is refused."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

from profrun.store import events as events_module
from profrun.store import files
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.cli.programs import STEPS, WAITS, last_run, wait_until, write_job
from tests.cli.running import Capture, call, program, start


@pytest.mark.parametrize("content", ['{"trials": [{}]}', '{"trials": 3}', '{"trials": [{"id": 1}]}'])
def test_a_damaged_plan_is_one_line(run: Run, capsys: Capture, content: str) -> None:
    run.plan.write_text(content)
    assert "plan.json is damaged" in call(capsys, "status", run.path).out
    done = call(capsys, "resume", run.path)
    assert (done.code, "plan.json is damaged" in done.err) == (65, True)


def test_kill_9_and_resume_repeat_nothing_that_finished(here: Path) -> None:
    job = write_job(here, WAITS, "{n}", variants={name: {"n": name} for name in "abc"})
    (here / "go.a").touch()
    with start("submit", job, cwd=here) as child:
        wait_until(lambda: (here / "ran").exists() and "b" in (here / "ran").read_text())
        child.kill()
        child.communicate()
    before = read_state(last_run(here))
    assert before.phase == "interrupted"
    assert [t.state for t in before.trials] == ["finished", "running", "planned"]
    (here / "go.b").touch()
    (here / "go.c").touch()
    done = program("resume", "last", "--json", cwd=here)
    assert done.code == 0, done.err
    assert [t["attempt"] for t in done.json["trials"]] == [1, 1, 1]
    assert [t["state"] for t in done.json["trials"]] == ["finished"] * 3
    assert (here / "ran").read_text().split() == ["a", "b", "c"]  # each ran once
    assert all(t["trace"] for t in done.json["trials"])


@pytest.mark.thorough
def test_a_killed_trial_is_repeated_and_its_first_attempt_kept(here: Path) -> None:
    job = write_job(here, WAITS, "x")
    with start("submit", job, cwd=here) as child:
        wait_until((here / "ran").exists)
        child.kill()
        child.communicate()
    run = last_run(here)
    (record,) = read_state(run).trials
    assert record.handle is not None
    os.killpg(record.handle.data["pid"], signal.SIGKILL)
    (here / "go.x").touch()
    done = program("resume", cwd=here)
    assert done.code == 0, done.err
    assert (run.trial(record.id).folder / "attempts/1/command.json").exists()
    (record,) = read_state(run).trials
    assert (record.state, record.attempt) == ("finished", 2)


@pytest.mark.thorough
def test_a_detached_resume_repeats_what_failed_and_says_when_it_cannot_start(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(capsys, "submit", write_job(here, "import sys; sys.exit(3)")).code == 1
    assert last_run(here).comparison.exists()
    (here / "work.py").write_text(STEPS)
    with monkeypatch.context() as broken:
        (here / "broken").mkdir()
        (here / "broken/profrun.py").write_text("raise SystemExit('no profrun here')")
        broken.setenv("PYTHONPATH", str(here / "broken"))
        done = call(capsys, "resume", "--detach", "--failed")
        assert (done.code, "no profrun here" in done.err) == (1, True)
    assert call(capsys, "resume", "--detach", "--failed").code == 0
    wait_until(lambda: read_state(last_run(here)).phase == "finished")
    wait_until(lambda: not read_state(last_run(here)).driven)


@pytest.mark.thorough
def test_a_disk_that_fills_up_is_one_line_and_resume_goes_on(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.write_all
    left = [6]

    def filling(fd: int, data: bytes, *, durable: bool = True) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, data, durable=durable)

    with monkeypatch.context() as full:
        full.setattr(events_module, "write_all", filling)
        done = call(capsys, "submit", write_job(here, STEPS, repeats=2))
    assert done.code == 69
    (said,) = [line for line in done.err.splitlines() if "the disk is full" in line]
    assert said.startswith("profrun: the disk is full: ")
    done = program("resume", "last", "--json", cwd=here)
    assert done.code == 0, done.err
    assert [t["state"] for t in done.json["trials"]] == ["finished"] * 2


def _received(here: Path, capsys: Capture) -> Path:
    """A run that somebody has sent: one of its two trials is missing, and its command leaves a file."""
    job = write_job(here, STEPS + "\nopen('ran', 'a').write('x')", repeats=2)
    assert call(capsys, "submit", job).code == 0
    run = last_run(here)
    folder = Path(shutil.copytree(run.path, here / "inbox" / run.name))
    lines = folder.joinpath("events.jsonl").read_text().splitlines()
    second = next(folder.glob("trials/001-*"))
    kept = [line for line in lines if second.name not in line and '"done"' not in line]
    folder.joinpath("events.jsonl").write_text("\n".join(kept) + "\n")
    shutil.rmtree(second)
    (here / "ran").unlink()
    return folder


def test_a_received_run_is_shown_and_not_run_unless_it_is_said(here: Path, capsys: Capture) -> None:
    folder = _received(here, capsys)
    (folder / "bundle/run.py").write_text("open('PWNED', 'w')")
    for more in ([], ["--detach"]):
        done = call(capsys, "resume", folder, *more)
        assert done.code == 64
        assert "$ python work.py 8" in done.err.splitlines()
        assert f"it was made as '{here / 'runs' / folder.name}' on the machine " in done.err
        assert done.err.splitlines()[-1].endswith(f"`profrun resume {folder} --yes`")
    assert not (here / "ran").exists()
    done = call(capsys, "resume", folder, "--yes", "--json")
    assert (done.code, [t["state"] for t in done.json["trials"]]) == (0, ["finished"] * 2), done.err
    assert ((here / "ran").read_text(), (here / "PWNED").exists()) == ("x", False)
    assert call(capsys, "resume", folder).code == 0  # it is one's own now


def test_a_received_run_whose_command_was_changed_is_refused(here: Path, capsys: Capture) -> None:
    folder = _received(here, capsys)
    text = (folder / "resolved.yaml").read_text()
    (folder / "resolved.yaml").write_text(text.replace("python work.py 8", "touch PWNED_CMD"))
    done = call(capsys, "resume", folder, "--yes")
    assert (done.code, (here / "PWNED_CMD").exists()) == (65, False)
    assert "differ in argv of trial 000-" in done.err
    assert ": python work.py 8 and touch PWNED_CMD; one of the two files was changed" in done.err


@pytest.mark.parametrize("name", ["lock", "events.jsonl"])
def test_resume_changes_nothing_through_a_link(here: Path, capsys: Capture, name: str) -> None:
    """``lock`` was emptied and signed through it, and ``events.jsonl`` was appended to."""
    folder = _received(here, capsys)
    victim = here / "victim"
    victim.write_bytes((folder / name).read_bytes() if name == "events.jsonl" else b"mine")
    before = victim.read_bytes()
    (folder / name).unlink()
    (folder / name).symlink_to(victim)
    for more in ([], ["--yes"]):
        done = call(capsys, "resume", folder, *more)
        assert (done.code, "is a symbolic link" in done.err) == (65, True)
    assert victim.read_bytes() == before
    assert not (here / "ran").exists()
