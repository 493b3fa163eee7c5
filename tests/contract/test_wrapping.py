"""What a profiler is told of a trial's command."""

from __future__ import annotations

from profrun.contract.command import Command, Ranges
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest


def test_a_request_carries_what_the_command_says() -> None:
    command = Command(
        *("t", "r", "j", "v", "nsys"),
        ("python", "x.py"),
        "/work",
        schedule=Schedule(active=5),
        ranges=Ranges(modules=2, steps="off"),
        ranks=4,
    )
    found = WrapRequest.of(
        command, {"sample": "cpu"}, out="/o", tool="/n", version=(2025, 1), vendor="nvidia"
    )
    assert found == WrapRequest(
        argv=("python", "x.py"),
        schedule=Schedule(active=5),
        options={"sample": "cpu"},
        out="/o",
        tool="/n",
        version=(2025, 1),
        vendor="nvidia",
        ranks=4,
        ranges=2,
        whole=True,
    )
