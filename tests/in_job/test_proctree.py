"""Which process is the user's program."""

from __future__ import annotations

import pytest

from profrun.in_job import proctree


@pytest.mark.parametrize(
    ("running", "argv", "same"),
    [
        (["python", "t.py", "-x"], ["python", "t.py", "-x"], True),
        (["/usr/bin/python3", "/opt/bin/tool", "-x"], ["tool", "-x"], True),
        (["/usr/bin/env", "python3", "/opt/bin/tool", "-x"], ["tool", "-x"], True),
        (["nsys", "profile", "--output=x", "python", "t.py", "-x"], ["python", "t.py", "-x"], False),
        (["python", "worker.py"], ["python", "t.py"], False),
        ([], ["python"], False),
    ],
)
def test_the_users_process_is_told_from_the_profiler(running: list[str], argv: list[str], same: bool) -> None:
    assert proctree.is_command(running, argv) is same
