"""What the trials beside this one say about its program."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.codec import to_json
from profrun.contract.command import Command
from profrun.contract.exit import Exit, StepsSeen
from profrun.contract.steps import StepSign
from profrun.in_job.earlier import no_steps_before
from profrun.in_job.files import write_json


def command(trial: str, variant: str) -> Command:
    return Command(trial=trial, run="r", job="j", variant=variant, collector="torch", argv=("a",), cwd="")


def trial(root: Path, name: str, variant: str, state: str, how: StepSign) -> Path:
    folder = root / name
    folder.mkdir()
    write_json(folder / "command.json", to_json(command(name, variant)))
    if state:
        ended = Exit(name, state, steps=StepsSeen(how, 1))  # type: ignore[arg-type]
        write_json(folder / "exit.json", to_json(ended))
    return folder


@pytest.mark.parametrize(
    ("others", "known"),
    [
        ([], False),
        ([("a", "finished", "run")], True),
        ([("b", "finished", "run")], False),  # another variant
        ([("a", "", "run")], False),  # it still runs
        ([("a", "timeout", "none")], False),
        ([("a", "finished", "module")], False),
        ([("a", "failed", "none"), ("a", "finished", "run")], True),
    ],
)
def test_a_finished_trial_of_the_same_variant_that_saw_no_step_decides(
    tmp_path: Path, others: list[tuple[str, str, StepSign]], known: bool
) -> None:
    for number, other in enumerate(others):
        trial(tmp_path, f"{number:03}-x", *other)
    own = trial(tmp_path, "900-own", "a", "", "none")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/exit.json").write_text("{")
    found = no_steps_before(command("900-own", "a"), own)
    assert (found is not None) is known
    assert found is None or "saw no step" in str(found)
