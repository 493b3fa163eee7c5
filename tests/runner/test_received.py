"""Runs of somebody else: shown, refused, taken over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profrun.errors import InputError, UsageError
from profrun.runner.pipeline import reopen
from profrun.runner.received import MOST_COMMANDS, UNKNOWN_END, accept, received
from profrun.store.origin import foreign
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.runner.scripted import new_run

SPEC = """
name: t
command: touch {n}
env: {LD_PRELOAD: "a b.so"}
variants: {a: {n: "x\\x1b[2Jy"}, b: {n: two words}}
collectors: [none]
"""


def copied(tmp_path: Path, spec: str = SPEC) -> Run:
    """A run that was made elsewhere."""
    run, _ = new_run(tmp_path / "runs", spec)
    text = run.events.read_text().replace('"backend":"scripted"', '"backend":"local"')
    run.events.write_text(text)
    return Run(Path(shutil.copytree(run.path, tmp_path / "copy")))


def test_the_commands_are_shown_as_they_would_run_and_control_nothing(tmp_path: Path) -> None:
    found = received(copied(tmp_path))
    assert found is not None
    head, one, other, last = found.would_run
    assert head == f"2 commands in {tmp_path / 'runs'}, with the backend local"
    assert one == "$ LD_PRELOAD='a b.so' touch 'x\\x1b[2Jy'"
    assert other == "$ LD_PRELOAD='a b.so' touch two words"
    assert str(tmp_path / "copy/resolved.yaml") in last
    assert all(line.isprintable() for line in found.would_run)


def test_of_many_commands_the_first_are_shown(tmp_path: Path) -> None:
    names = ", ".join(f"v{number}: {{n: {number}}}" for number in range(MOST_COMMANDS + 3))
    found = received(
        copied(tmp_path, f"name: t\ncommand: x {{n}}\nvariants: {{{names}}}\ncollectors: [none]\n")
    )
    assert found is not None
    assert found.would_run[-2] == "and 3 more"
    assert len(found.would_run) == MOST_COMMANDS + 3


def test_it_is_not_carried_on_unless_it_was_accepted(tmp_path: Path) -> None:
    run = copied(tmp_path)
    with pytest.raises(UsageError, match="was not made here by you") as caught:
        reopen(run)
    assert str(caught.value).endswith(f"`profrun resume {run.path} --yes`")
    accept(run)
    assert received(run) is None
    assert reopen(run).run == run


def test_what_it_says_of_running_trials_is_not_believed(tmp_path: Path) -> None:
    run = copied(tmp_path)
    handle = {"backend": "local", "data": {"pid": 1, "host": "h"}}
    run.log().append("started", "000-a-none-r1", attempt=1, handle=handle)
    accept(run)
    first, second = read_state(run).trials
    assert (first.state, first.reason, second.state) == ("lost", UNKNOWN_END, "planned")


@pytest.mark.parametrize("mine", [True, False])
def test_plan_and_spec_must_agree(tmp_path: Path, mine: bool) -> None:
    run = copied(tmp_path)
    if mine:
        accept(run)
    run.resolved.write_text(run.resolved.read_text().replace("touch {n}", "touch PWNED"))
    assert foreign(run) is None or not mine
    with pytest.raises(InputError, match="differ in argv of trial 000-a-none-r1: ") as caught:
        received(run) if not mine else reopen(run)
    assert str(caught.value).count("touch") == 2
    assert "and touch PWNED;" in str(caught.value)


@pytest.mark.parametrize(("was", "now", "name"), [("a b.so", "evil.so", "env"), ("two", "evil", "argv")])
def test_the_first_difference_is_named(tmp_path: Path, was: str, now: str, name: str) -> None:
    run = copied(tmp_path)
    run.plan.write_text(run.plan.read_text().replace(was, now))
    with pytest.raises(InputError, match=f"plan.json and resolved.yaml differ in {name} of trial "):
        received(run)
