"""A profiler that fails to start the program: what it printed, and how long it may still take to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.in_job.tool_start import HANG_S, ToolStart, loads_hook

FAILED = "Connection lost"


def start(tmp_path: Path) -> ToolStart:
    return ToolStart(lambda log: FAILED if FAILED in log else None, tmp_path / "loaded")


def test_a_program_that_has_loaded_the_hook_was_started_whatever_the_log_says(tmp_path: Path) -> None:
    assert start(tmp_path).failure(f"{FAILED}\n") == FAILED
    (tmp_path / "loaded").touch()
    assert start(tmp_path).failure(f"{FAILED}\n") is None
    assert start(tmp_path).failure("Collecting data\n") is None


@pytest.mark.parametrize(
    ("printed_s", "looked_s", "hangs"),
    [
        (None, 60.0, False),  # it has printed nothing: it may still start the program
        (0.0, HANG_S - 0.1, False),
        (0.0, HANG_S, True),
        (20.0, 20.0 + HANG_S - 1.0, False),  # counted from the message, not from the start
        (20.0, 20.0 + HANG_S + 1.0, True),
    ],
)
def test_it_hangs_five_seconds_after_its_message(
    tmp_path: Path, printed_s: float | None, looked_s: float, hangs: bool
) -> None:
    watched = start(tmp_path)
    seen = False
    for tenth in range(round(looked_s * 10) + 1):
        now = tenth / 10
        log = FAILED if printed_s is not None and now >= printed_s else ""
        seen = seen or watched.hangs(lambda log=log: log, now)  # type: ignore[misc]
    assert (seen, watched.failed) == (hangs, printed_s is not None)


@pytest.mark.parametrize(
    ("program", "argv", "expected"),
    [
        ("/usr/bin/python3.11", "python train.py -I", True),
        ("/usr/bin/python3.11", "python -m train -E", True),
        ("/usr/bin/python3.11", "python -u -X importtime -W ignore train.py", True),
        ("/usr/bin/python3.11", "python /usr/bin/torchrun train.py", True),
        ("/usr/bin/python3.11", "python -I train.py", False),
        ("/usr/bin/python3.11", "python -X dev -uS train.py", False),
        ("/usr/bin/bash", "bash train.sh", False),
        ("", "python train.py", False),
    ],
)
def test_which_process_loads_the_hook_before_the_program(program: str, argv: str, expected: bool) -> None:
    assert loads_hook(program, argv.split()) == expected
