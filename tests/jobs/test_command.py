"""Templates and splitting: what the shell would do, without the shell."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.jobs.command import CommandError, fill_command, pieces, split, text_of
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from tests.conftest import examples
from tests.jobs.specs import jobs, spec_of


@pytest.mark.parametrize(
    ("command", "values", "argv"),
    [
        ("python a.py --n {n}", {"n": 3}, ["python", "a.py", "--n", "3"]),
        ("run {flags} end", {"flags": ""}, ["run", "end"]),
        ("run {flags}", {"flags": "--a --b 'c d'"}, ["run", "--a", "--b", "c d"]),
        ('run "{text}"', {"text": 'a "b" $c'}, ["run", 'a "b" $c']),
        ("run '{text}'", {"text": "it's"}, ["run", "it's"]),
        ("run --x={a}{b}", {"a": 1, "b": 2.5}, ["run", "--x=12.5"]),
        ("run {{literal}} {f}", {"f": True}, ["run", "{literal}", "true"]),
        ("run a\\\n  b", {}, ["run", "a", "b"]),
        ("run '{v}'", {"v": "a\\\n'b\\"}, ["run", "a\\\n'b\\"]),
        ("bash -c 'a | b > $c'", {}, ["bash", "-c", "a | b > $c"]),
        ('bash -c "echo $HOME"', {}, ["bash", "-c", "echo $HOME"]),
        ("run a\\ b \\$c cost=5$ x#y", {}, ["run", "a b", "$c", "cost=5$", "x#y"]),
        ("run sizes=[1,2] '*'", {}, ["run", "sizes=[1,2]", "*"]),
        ("run ''", {}, ["run", ""]),
    ],
)
def test_argv(command: str, values: dict[str, str | int | float | bool], argv: list[str]) -> None:
    assert list(split(fill_command(command, values))) == argv


@pytest.mark.parametrize(
    "command",
    [
        "",
        "  ",
        "a | b",
        "a && b",
        "a; b",
        "a > b",
        "a < b",
        "a &",
        "(a)",
        "`a`",
        "a $B",
        'a "$B"',
        "a ${B}",
        "a ~/x",
        "a # b",
        "a *.c",
        "a\nb",
        "A=1 b",
        "cd x",
        "source x",
        "a 'b",
        'a "b',
        "a \\",
    ],
)
def test_what_needs_a_shell_is_refused(command: str) -> None:
    with pytest.raises(CommandError):
        split(command)


def test_offsets_point_at_the_place() -> None:
    with pytest.raises(CommandError) as caught:
        split("python a.py | tee x")
    assert caught.value.mistake.offset == 12


def test_pieces_keep_their_offsets() -> None:
    assert [tuple(piece) for piece in pieces("a{{b}}{c}d")] == [
        (0, "a{b}", False),
        (6, "c", True),
        (9, "d", False),
    ]


SAFE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@given(SAFE, st.sampled_from(["'{v}'", '"{v}"', "x'{v}'y", 'x"{v}"y']))
def test_a_quoted_value_is_one_argument_whatever_it_holds(value: str, template: str) -> None:
    argv = split(fill_command("run " + template, {"v": value}))
    assert len(argv) == 2
    assert argv[1].removeprefix("x").removesuffix("y") == value or argv[1] == value


@given(st.lists(SAFE, min_size=1, max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    """shlex.join quotes for a POSIX shell; what it made must split into the same words."""
    line = shlex.join(["run", *words])
    assert list(split(line)) == ["run", *words]


@given(jobs())
@examples(25, 1000)
def test_every_value_reaches_the_command_as_one_argument(data: dict[str, Any]) -> None:
    job = load_text(spec_of(data))
    for trial in make_plan(job).trials:
        assert trial.argv == ("run", *map(text_of, (trial.values[key] for key in _order(job.command))))


def _order(command: str) -> list[str]:
    return re.findall(r"{(\w+)}", command)
