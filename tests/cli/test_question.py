"""A question is asked only where somebody can answer it."""

from __future__ import annotations

import sys

import pytest
import typer

from profrun.cli.question import confirm
from profrun.errors import UsageError

NOBODY = UsageError("nobody is there")


def test_without_a_terminal_nothing_is_asked() -> None:
    with pytest.raises(UsageError, match="nobody is there"):
        confirm("Go on?", declined="No.", nobody=NOBODY)


@pytest.mark.parametrize("answer", [True, False])
def test_the_answer_decides(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question, err: answer)
    monkeypatch.setattr("profrun.cli.question.note", said.append)
    if answer:
        confirm("Go on?", declined="Nothing was run.", nobody=NOBODY)
        return
    with pytest.raises(typer.Exit) as caught:
        confirm("Go on?", declined="Nothing was run.", nobody=NOBODY)
    assert (caught.value.exit_code, said) == (1, ["Nothing was run."])
