"""The options that every command has, before and after its name."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.cli.app import COMMANDS, load_command
from profrun.cli.asked import Asked, asked
from profrun.store.runs import Run
from tests.cli.running import Capture, call

NAMES = [name for section in COMMANDS.values() for name in section]


def _every(command: Any) -> list[Any]:
    below = getattr(command, "commands", {}).values()
    return [command, *(part for one in below for part in _every(one))]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_them_once(name: str) -> None:
    for part in _every(load_command(name)):
        options = [option for parameter in part.params for option in parameter.opts]
        for option in ("-q", "--quiet", "-v", "--verbose", "--color", "--no-color"):
            assert options.count(option) == 1, (part.name, option)
        assert len(options) == len(set(options)), part.name


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (["runs"], Asked()),
        (["-q", "runs"], Asked(quiet=True)),
        (["runs", "-q"], Asked(quiet=True)),
        (["-q", "runs", "-v"], Asked(quiet=True, verbose=True)),
        (["--color", "never", "runs", "--color", "always"], Asked(colour="always")),
        (["--color", "always", "runs"], Asked(colour="always")),
        (["runs", "--no-color"], Asked(colour="never")),
        (["--no-color", "-q", "-v", "runs"], Asked(quiet=True, verbose=True, colour="never")),
    ],
)
def test_they_mean_the_same_before_and_after_the_command(
    run: Run, capsys: Capture, args: list[str], found: Asked
) -> None:
    assert call(capsys, *args, "--runs", run.path.parent).code == 0
    assert asked() == found
    call(capsys, "--version")
    assert asked() == Asked(), "the next command line begins anew"


def test_a_command_that_prints_more_is_told_wherever_it_stands(
    run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr("profrun.cli.run_text.show_run", lambda _, verbose: told.append(verbose))
    place = ("--runs", run.path.parent)
    for args in (["status"], ["-v", "status"], ["status", "-v"], ["-v", "status", "--verbose"], ["status"]):
        assert call(capsys, *args, *place).code == 0
    assert told == [False, True, True, True, False]


def test_colours_on_request_and_none_in_a_pipe(run: Run, capsys: Capture) -> None:
    place = ("runs", "--runs", run.path.parent)
    plain, coloured = call(capsys, *place).out, call(capsys, *place, "--color", "always").out
    assert "\x1b[" not in plain
    assert "\x1b[33minterrupted\x1b[0m" in coloured
    assert coloured.replace("\x1b[33m", "").replace("\x1b[1m", "").replace("\x1b[0m", "") == plain


def test_what_colour_is_no_choice(capsys: Capture) -> None:
    done = call(capsys, "runs", "--color", "blue")
    assert done.code == 64
    assert "'blue' is not one of" in done.err
