"""``profrun init``: a commented job file that works as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.jobs.load import load_job
from tests.cli.programs import STEPS
from tests.cli.running import Capture, call


def test_the_file_works_as_it_is(here: Path, capsys: Capture) -> None:
    (here / "train.py").write_text(STEPS)
    done = call(capsys, "init", "-c", "none", "train.py", "8")
    assert (done.code, done.out, done.err) == (0, "", "wrote job.yaml; next: profrun submit job.yaml\n")
    assert load_job("job.yaml").command == "python train.py 8"
    found = call(capsys, "submit", "job.yaml", "--json").json
    assert [trial["state"] for trial in found["trials"]] == ["finished"]


def test_a_file_in_another_folder_finds_the_program(here: Path, capsys: Capture) -> None:
    (here / "train.py").write_text(STEPS)
    (here / "jobs").mkdir()
    assert call(capsys, "init", "-o", "jobs/a.yaml", "--", "python", "train.py", "8").code == 0
    assert "workdir: ..\n" in (here / "jobs/a.yaml").read_text()
    assert call(capsys, "submit", "jobs/a.yaml", "--dry-run").code == 0


def test_a_file_that_is_there_is_kept(here: Path, capsys: Capture) -> None:
    (here / "job.yaml").write_text("mine")
    done = call(capsys, "init", "train.py")
    assert done.code == 64
    assert done.err == (
        "profrun: job.yaml exists already; name another file with -o FILE, or replace it with --force\n"
    )
    assert (here / "job.yaml").read_text() == "mine"
    assert call(capsys, "init", "--force", "train.py").code == 0
    assert load_job("job.yaml").name == "train"


def test_it_can_be_printed(here: Path, capsys: Capture) -> None:
    done = call(capsys, "init", "-o", "-", "--variant", "bs=8,16", "torchrun", "train.py")
    assert "command: torchrun train.py --bs {bs}\n" in done.out
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "no/job.yaml", "train.py"), "there is no folder no; mkdir -p no"),
        (("-c", "nsy", "train.py"), "--collectors nsy: collectors: 'nsy' is not known; did you mean 'nsys'?"),
        (("cd", "x"), "'cd' is a word of the shell, not a program"),
    ],
)
def test_what_cannot_be_written_is_said(
    here: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    done = call(capsys, "init", *words)
    assert done.code == 64
    assert said in done.err
    assert not list(here.iterdir())
