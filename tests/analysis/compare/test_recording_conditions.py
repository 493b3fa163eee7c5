"""Under which conditions a trace was recorded: the program, as its processes stated it."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.recording_conditions import program_of
from profrun.contract.provenance import Process, Provenance


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (("python", "train.py", "--bs", "8"), ("train.py", "--bs", "8")),
        (("/opt/venv/bin/python", "-u", "/work/train.py", "x"), ("train.py", "x")),
        (("python", "-m", "pkg.train", "--x"), ("pkg.train", "--x")),
        (("/usr/bin/bench", "--x"), ("bench", "--x")),
    ],
)
def test_the_interpreter_and_folders_do_not_belong_to_the_program(
    argv: tuple[str, ...], program: tuple[str, ...]
) -> None:
    assert program_of(Provenance("t", processes=(Process(steps=3, rank=0, argv=argv),))) == program


def test_the_program_is_that_of_the_process_with_steps_of_the_lowest_rank() -> None:
    processes = (
        Process(rank=0, role="launcher", steps=0, argv=("torchrun", "train.py")),
        Process(rank=1, steps=30, argv=("python", "train.py", "one")),
        Process(rank=0, steps=30, argv=("python", "train.py", "zero")),
    )
    assert program_of(Provenance("t", processes=processes)) == ("train.py", "zero")
    assert program_of(Provenance("t")) == ()
