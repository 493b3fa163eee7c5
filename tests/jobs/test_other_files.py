"""A file that is plainly no job spec is named, with the command that takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import UsageError
from profrun.jobs.load import load_job


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train.py", b'"""Trains."""\n', "a Python program, not a job spec; profile it with `profrun run"),
        ("a.ipynb", b"{}", "a notebook, not a job spec; make a program of it with `jupyter nbconvert"),
        ("go.sh", b"#!/bin/sh\n", "a program, not a job spec; profile it with `profrun run -- ./go.sh`"),
        ("tool", b"\x7fELF\0", "a program, not a job spec; profile it with `profrun run -- ./tool`"),
        (
            "r.nsys-rep",
            b"NV\0\0",
            "not a text file, so it is not a job spec; if it is a profiler's file, `profrun",
        ),
    ],
)
def test_it_is_said_what_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_job(name)
    assert str(caught.value).startswith(f"{name} is {said}")


def test_a_job_spec_may_have_any_name_and_a_first_line_for_the_shell(tmp_path: Path) -> None:
    for name in ("job", "job.txt", "job.json"):
        (tmp_path / name).write_text('{"name": "t", "command": "x"}')
        assert load_job(tmp_path / name).name == "t"
    (tmp_path / "job.yaml").write_text("#!/usr/bin/env -S profrun submit\nname: t\ncommand: x\n")
    assert load_job(tmp_path / "job.yaml").name == "t"
