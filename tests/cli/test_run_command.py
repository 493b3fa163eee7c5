"""``profrun run``: a run like any other, from the words of a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.jobs.load import load_job
from tests.cli.programs import STEPS, last_run, wait_until
from tests.cli.running import Capture, call


def test_a_command_becomes_a_run_that_submit_repeats(here: Path, capsys: Capture) -> None:
    (here / "work.py").write_text(STEPS)
    done = call(capsys, "run", "-c", "none", "-n", 2, "--steps", 4, "--json", "--", "python", "work.py", 9)
    assert done.code == 0, done.err
    assert [(trial["steps"], trial["steps_measured"]) for trial in done.json["trials"]] == [(9, 4), (9, 4)]
    run = last_run(here)
    assert run.name.startswith("work-")
    assert f"run it again: profrun submit runs/{run.name}/job.yaml\n" in done.err
    assert run.job.read_text() == (
        "# Written by `profrun run`. To run it again: profrun submit THIS_FILE\n"
        "name: work\ncommand: python work.py 9\ncollectors: [none]\nrepeats: 2\nschedule:\n  active: 4\n"
    )
    for spec in (run.job, run.resolved):
        again = call(capsys, "submit", spec, "--dry-run", "--json").json
        assert [trial["command"]["argv"] for trial in again["trials"]] == [["python", "work.py", "9"]] * 2
        assert {trial["command"]["cwd"] for trial in again["trials"]} == {str(here)}


def test_variants_are_arguments_of_the_command(here: Path, capsys: Capture) -> None:
    (here / "work.py").write_text(STEPS)
    words = (
        "run",
        "--variant",
        "n=8,9",
        "--dry-run",
        "--json",
        "-c",
        "none",
        "--",
        "python",
        "work.py",
        "{n}",
    )
    found = call(capsys, *words).json
    told = {trial["variant"]: trial["command"]["argv"] for trial in found["trials"]}
    assert told == {"n_8": ["python", "work.py", "8"], "n_9": ["python", "work.py", "9"]}
    assert not (here / "runs").exists()


def test_without_options_it_runs_with_and_without_the_default_profiler(here: Path, capsys: Capture) -> None:
    (here / "work.py").write_text(STEPS)
    found = call(capsys, "run", "--dry-run", "--json", "python", "work.py", "8", "-n", "3").json
    assert [trial["collector"] for trial in found["trials"]] == ["none", "torch"]
    assert found["trials"][0]["command"]["argv"] == ["python", "work.py", "8", "-n", "3"]  # the command's own


def test_set_is_laid_over_it_and_then_the_resolved_job_repeats_it(here: Path, capsys: Capture) -> None:
    (here / "work.py").write_text(STEPS)
    options = ("-c", "none", "--name", "mine", "--set", "resources.timeout=7m")
    done = call(capsys, "run", *options, "--json", "--", "python", "work.py", "8")
    assert done.code == 0, done.err
    run = last_run(here)
    assert f"profrun submit runs/{run.name}/resolved.yaml" in done.err
    assert load_job(run.resolved).resources.timeout == 420
    assert run.name.startswith("mine-")


@pytest.mark.thorough
def test_a_detached_run_goes_on(here: Path, capsys: Capture) -> None:
    (here / "work.py").write_text(STEPS)
    done = call(capsys, "run", "-c", "none", "--detach", "--json", "python", "work.py", "8")
    assert done.code == 0, done.err
    wait_until(
        lambda: call(capsys, "status", json.loads(done.out)["run"], "--json").json["state"] == "finished"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 64, "no command is given; write it at the end: profrun run -n 3 -- python train.py --epochs 1"),
        (("-n", "3", "--"), 64, "no command is given"),
        (("--epochs", "1", "python"), 64, "No such option: --epochs"),
        (
            ("--", "python t.py --bs 8"),
            64,
            "'python t.py --bs 8' is one word, so it would be the",
        ),
        (("--", "pyhton3", "t.py"), 69, "there is no program 'pyhton3': it is not on the PATH; did you mean"),
        (
            ("t.py",),
            69,
            "t.py is a file, not a program on the PATH; run it with its interpreter: python",
        ),
        (("--", "python3", "no.py"), 69, "cannot find no.py in "),
        (
            ("-c", "nsy", "python3", "t.py"),
            64,
            "--collectors nsy: collectors: 'nsy' is not known; did",
        ),
        (("-c", ",", "python3", "t.py"), 64, "--collectors ,: collectors: the list is empty; write"),
        (("-n", "0", "python3", "t.py"), 64, "--repeats 0: repeats: '0' is too small; write a whole number"),
        (("--steps", "0", "python3", "t.py"), 64, "--steps 0: schedule.active: '0' is too small; write"),
        (("--name", "a b", "python3", "t.py"), 64, "--name a b: name: 'a b' does not fit; write letters"),
        (("--variant", "bs=", "python3", "t.py"), 64, "--variant bs=: a value is empty"),
        (("--", "python3", "t.py", "\udcff"), 64, "an argument of the command is not UTF-8; rename the file"),
        (
            ("--", "A=1", "python3", "t.py"),
            64,
            "'A=1' sets a variable, so it is not a program; write profrun run",
        ),
    ],
)
def test_what_cannot_be_run_is_said_and_nothing_is_made(
    here: Path, capsys: Capture, words: tuple[str, ...], code: int, said: str
) -> None:
    (here / "t.py").touch()
    done = call(capsys, "run", *words)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (here / "runs").exists()
