"""What the wrap of Proton orders: nothing round the command, all of it inside."""

from __future__ import annotations

import pytest

from profrun.collectors.proton.wrap import wrap
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest


def request(schedule: Schedule, options: dict[str, str], *, whole: bool = False) -> WrapRequest:
    return WrapRequest(("python", "a.py"), schedule, options, "/out", "", whole=whole)


@pytest.mark.parametrize(
    ("options", "emitter", "expected"),
    [
        ({}, "in_process", "*.chrome_trace"),
        ({"data": "tree"}, "in_process", "*.hatchet"),
        ({"context": "python"}, None, "*.chrome_trace"),
        ({"context": "shadow", "hook": "none"}, "in_process", "*.chrome_trace"),
    ],
)
def test_the_command_stays_and_the_hook_drives_proton(
    options: dict[str, str], emitter: str | None, expected: str
) -> None:
    wrapped = wrap(request(Schedule(), options))
    assert wrapped.argv == ("python", "a.py")
    assert (wrapped.hook, wrapped.emitter, wrapped.expected) == ("in_process", emitter, (expected,))
    assert "first recorded step" in wrapped.notes[0]


def test_without_steps_the_whole_run_is_recorded_and_that_is_noted() -> None:
    assert wrap(request(Schedule(), {}, whole=True)).notes == [
        "Proton records the run as a whole, from the import of torch on: at most 10 s and 2 GiB"
    ]
