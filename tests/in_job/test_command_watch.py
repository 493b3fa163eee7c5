"""What is said of a profiler that had to be ended."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from profrun.in_job.command_watch import Watch


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (7, "it did nothing for 5 s after the program had ended"),
        (None, "it did nothing for 5 s and no program was seen"),
    ],
)
def test_a_profiler_that_hangs_is_said_to_outlive_only_a_program_that_was_seen(
    app: int | None, said: str
) -> None:
    life = SimpleNamespace(
        patience=5.0,
        alone=lambda processes: not processes,
        hangs=lambda _, __: True,
        not_its_own=lambda _: [],
    )
    killed: list[str] = []
    watch = SimpleNamespace(
        life=life,
        pid=1 << 30,
        app=app,
        app_end=1.0,
        tool_start=None,
        swept=False,
        owner=SimpleNamespace(
            below=lambda: [SimpleNamespace(pid=os.getpid(), parent=1)]
        ),  # an orphan of the program
        _kill=lambda _, reason: killed.append(reason),
    )
    Watch._look_at_tool(cast("Watch", watch), cast("Any", None))
    assert killed == [said]
